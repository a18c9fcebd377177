import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { CheckerData, CheckView, RerunReply, RerunRequest } from '../../src/checker/report/checkview.ts'
import type { Execution } from '../../src/checker/report/execution.ts'
import { Empty } from '../empty.tsx'
import type { PanelProps } from '../session.ts'
import { Steps } from './execution.tsx'
import { Explored } from './explored.tsx'
import { changesFrom, movedSchedule } from './order.ts'
import { Source } from './source.tsx'
import { Words } from './words.tsx'

/** The checks of a run: how far each search is, and the failing execution of one that failed. */
export function CheckerPanel({ session }: PanelProps): VNode {
  const data = session.checker as CheckerData | null
  const [chosen, choose] = useState<number | null>(null)
  if (data === null) {
    return (
      <Empty title="No check is open">
        Run <code>heddle check --view ring.check.ts</code>: a failing execution is shown here, step by step.
      </Empty>
    )
  }
  const failed = data.checks.findIndex(({ status }) => status === 'failed')
  const running = data.checks.findIndex(({ status }) => status === 'running')
  const at = chosen ?? (failed >= 0 ? failed : Math.max(running, data.over ? 0 : data.checks.length - 1))
  const check = data.checks[at]
  if (check === undefined) {
    return (
      <Empty title={data.over ? 'There was no check' : 'The checks are being loaded'}>
        {data.over
          ? 'The files declare none, or none has the name that was asked for.'
          : 'They begin at once.'}
      </Empty>
    )
  }
  const ask = async (schedule: string, firm: number): Promise<RerunReply> => {
    const request: RerunRequest = { check: at, schedule, firm }
    const reply = await session.ask({ op: 'checker', data: request })
    if (!reply.ok) return { error: reply.error }
    return 'data' in reply ? (reply.data as RerunReply) : { error: 'the source did not answer' }
  }
  return (
    <div class="checker">
      {data.checks.length > 1 && <CheckList checks={data.checks} at={at} onChoose={choose} />}
      <CheckPane key={at} check={check} sources={data.sources} ask={ask} />
    </div>
  )
}

const marks = { running: '…', passed: '✓', failed: '✗', incomplete: '◐', wrong: '!' } as const

function CheckList({
  checks,
  at,
  onChoose,
}: {
  checks: readonly CheckView[]
  at: number
  onChoose(at: number): void
}): VNode {
  const type = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step === 0) return
    event.preventDefault()
    onChoose(Math.max(0, Math.min(checks.length - 1, at + step)))
  }
  return (
    <ul class="checks" role="listbox" aria-label="Checks" tabIndex={0} onKeyDown={type}>
      {checks.map(({ name, file, status }, n) => (
        <li
          key={n}
          role="option"
          aria-selected={n === at}
          class={n === at ? 'selected' : ''}
          onClick={() => onChoose(n)}
        >
          <span class={`result ${status}`} title={status}>
            {marks[status]}
          </span>
          <span>
            {name}
            <small>{file}</small>
          </span>
        </li>
      ))}
    </ul>
  )
}

interface PaneProps {
  readonly check: CheckView
  readonly sources: Readonly<Record<string, string>>
  ask(schedule: string, firm: number): Promise<RerunReply>
}

function CheckPane({ check, sources, ask }: PaneProps): VNode {
  const { execution } = check
  return (
    <div class="check">
      <h2>
        <span class={`result ${check.status}`}>{marks[check.status]}</span> {check.name}
      </h2>
      {check.status === 'wrong' && <p class="end failed">The check itself is wrong: {check.why}</p>}
      {execution === undefined ? (
        check.status !== 'wrong' && <Explored check={check} />
      ) : (
        <Failing first={execution} check={check} sources={sources} ask={ask} />
      )}
    </div>
  )
}

/** The failing execution, and those that the reader makes of it by moving steps. */
function Failing({ first, check, sources, ask }: PaneProps & { readonly first: Execution }): VNode {
  const [history, setHistory] = useState<readonly Execution[]>([first])
  const [at, select] = useState(
    Math.max(
      0,
      first.steps.findLastIndex(({ marked }) => marked),
    ),
  )
  const [note, setNote] = useState('')
  useEffect(() => setHistory([first]), [first])
  const execution = history[history.length - 1]
  const before = history[history.length - 2]
  const changes = before === undefined ? [] : changesFrom(before, execution)
  const shown = Math.min(at, execution.steps.length - 1)

  const move = async (from: number, to: number): Promise<void> => {
    const { schedule, firm } = movedSchedule(execution, from, to)
    const reply = await ask(schedule, firm)
    const what = `Step ${from + 1} ${to < from ? 'earlier' : 'later'}, as step ${to + 1}`
    if ('error' in reply) setNote(`${what}: ${reply.error}`)
    else if (!reply.possible) setNote(`${what}: not possible. ${reply.why}.`)
    else {
      setNote(`${what}: possible.`)
      setHistory([...history, reply.execution])
      select(to)
    }
  }
  const back = (): void => {
    setHistory(history.slice(0, -1))
    setNote('')
  }
  return (
    <div class="failing">
      <div class="order">
        <p class={`end ${execution.end.kind}`} role="status">
          {execution.end.title}
        </p>
        {execution.end.detail.map((line, n) => (
          <p key={n} class="detail">
            {line}
          </p>
        ))}
        <div class="bar">
          <button type="button" disabled={shown <= 0} onClick={() => select(shown - 1)}>
            ◀ Back
          </button>
          <button
            type="button"
            disabled={shown >= execution.steps.length - 1}
            onClick={() => select(shown + 1)}
          >
            Forward ▶
          </button>
          {before !== undefined && (
            <button type="button" onClick={back}>
              Undo the move
            </button>
          )}
          <span class="note" role="status">
            {note !== ''
              ? note
              : check.fixed !== ''
                ? check.fixed
                : 'Drag a step earlier or later, or press Alt with an arrow key.'}
          </span>
        </div>
        <Steps
          execution={execution}
          at={shown}
          changes={changes}
          canMove={check.fixed === ''}
          onSelect={select}
          onMove={(from, to) => void move(from, to)}
        />
        {execution.schedule !== '' && (
          <p class="detail">
            Schedule: <code>{execution.schedule}</code>
          </p>
        )}
      </div>
      <aside>
        <Words execution={execution} at={shown} />
        <Source step={execution.steps[shown]} sources={sources} />
      </aside>
    </div>
  )
}
