import type { VNode } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import type { ControlRequest } from '../../src/trace/control.ts'
import { formatMs, formatNs } from '../format.ts'
import { HistogramChart } from '../histogram.tsx'
import { isWait } from '../model/lane.ts'
import type { LongWait } from '../model/trace.ts'
import type { Session } from '../session.ts'
import { Stack } from '../stack.tsx'
import { chartOf } from '../timeline/panel.tsx'
import { showWait, waitText } from './longwaits.ts'
import { histogramsOf, type TaskRow } from './rows.ts'

interface DetailsProps {
  readonly session: Session
  readonly row: TaskRow
  readonly onClose: () => void
}

/** One task: what it does, its controls, its times, its longest waits and its stack. */
export function TaskDetails({ session, row, onClose }: DetailsProps): VNode {
  const { lane } = row
  const last = session.data.trace.last
  const histograms = useMemo(
    () => (lane === undefined ? null : histogramsOf(lane, last)),
    [lane, lane?.count],
  )
  const waits = useMemo(() => (lane === undefined ? [] : longestOf(lane, last)), [lane, lane?.count])
  const showLane = (): void => {
    if (lane === undefined) return
    const chart = chartOf(session)
    if (!chart.shownTasks().includes(lane)) chart.toggle(lane.track.id)
    session.show('timeline')
  }
  return (
    <>
      <div class="asidehead">
        <h2>{row.name}</h2>
        <button type="button" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </div>
      <dl class="facts">
        {row.code !== '' && <Fact label="Function" value={`${row.code}()`} />}
        <Fact label="State" value={`${row.state}${row.waitsFor === '' ? '' : `: ${row.waitsFor}`}`} />
        <Fact label="On CPU" value={formatMs(row.runTime)} />
        <Fact label="Waited for a CPU" value={formatMs(row.waitTime)} />
        <Fact
          label="Priority"
          value={
            row.priority === row.basePriority
              ? `${row.priority}`
              : `${row.priority}, lent by a waiter; its own is ${row.basePriority}`
          }
        />
      </dl>
      {session.about?.control === true && row.id !== 0 && (
        <Controls session={session} row={row} key={row.key} />
      )}
      {lane !== undefined && (
        <button type="button" onClick={showLane}>
          Show in the time line
        </button>
      )}
      {histograms !== null && (
        <>
          <HistogramChart title="On CPU, at a time" of={histograms.running} />
          <HistogramChart title="Waited for a CPU" of={histograms.runnable} />
          <HistogramChart title="Waited for locks" of={histograms.locks} />
          <HistogramChart title="Asleep" of={histograms.asleep} />
        </>
      )}
      {waits.length > 0 && <h3>Its longest waits</h3>}
      <ol class="waits">
        {waits.map(wait => (
          <li key={wait.number}>
            <button type="button" onClick={() => showWait(session, wait)}>
              <strong>{formatNs(wait.duration)}</strong>
              <span class="dim"> {waitText(wait)}</span>
            </button>
          </li>
        ))}
      </ol>
    </>
  )
}

function Fact({ label, value }: { label: string; value: string }): VNode {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  )
}

const ITS_LONGEST = 8

function longestOf(lane: LongWait['lane'], last: number): LongWait[] {
  const waits: LongWait[] = []
  for (let row = Math.max(0, lane.count - 100_000); row < lane.count; row++) {
    const state = lane.stateOf(row)
    if (!isWait(state)) continue
    const duration = Math.min(lane.endOf(row), last) - lane.startOf(row)
    if (waits.length === ITS_LONGEST && duration <= waits[ITS_LONGEST - 1].duration) continue
    const { number, start, args } = lane.slice(row)
    waits.push({ lane, number, start, duration, state, args })
    waits.sort((a, b) => b.duration - a.duration)
    waits.splice(ITS_LONGEST)
  }
  return waits
}

const priorities = ['realtime', 'high', 'normal', 'low', 'idle'] as const

/** Stop, resume, priority, stack, and kill after a question. */
function Controls({ session, row }: { session: Session; row: TaskRow }): VNode {
  const [said, say] = useState('')
  const [stack, setStack] = useState<string | null>(null)
  const dialog = useRef<HTMLDialogElement>(null)
  const cancel = useRef<HTMLButtonElement>(null)
  const isOver = session.state === 'ended'
  // The dialog itself says whether it is open: its event `close` comes late.
  const askFirst = (): void => {
    dialog.current?.showModal()
    cancel.current?.focus()
  }
  const closeDialog = (): void => dialog.current?.close()
  const ask = async (request: ControlRequest, done: string): Promise<void> => {
    const reply = await session.ask(request)
    if (!reply.ok) say(reply.error)
    else say('done' in reply && !reply.done ? 'Nothing changed: it may have ended.' : done)
  }
  const readStack = async (): Promise<void> => {
    const reply = await session.ask({ op: 'stack', task: row.id })
    setStack(reply.ok && 'stack' in reply ? reply.stack : null)
    say(reply.ok ? '' : reply.error)
  }
  const kill = (): void => {
    closeDialog()
    void ask({ op: 'kill', task: row.id }, `A kill was sent to ${row.name}.`)
  }
  return (
    <div class="controls">
      <div class="buttons">
        {row.state === 'stopped' ? (
          <button
            type="button"
            disabled={isOver}
            onClick={() => void ask({ op: 'continue', task: row.id }, 'Resumed.')}
          >
            Resume
          </button>
        ) : (
          <button
            type="button"
            disabled={isOver}
            onClick={() => void ask({ op: 'stop', task: row.id }, 'Stopped.')}
          >
            Stop
          </button>
        )}
        <select
          aria-label="Priority"
          disabled={isOver}
          value=""
          onChange={event => {
            const priority = event.currentTarget.value as (typeof priorities)[number]
            event.currentTarget.value = ''
            void ask({ op: 'priority', task: row.id, priority }, `Its priority is ${priority}.`)
          }}
        >
          <option value="" disabled>
            Priority…
          </option>
          {priorities.map(name => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <button type="button" disabled={isOver} onClick={() => void readStack()}>
          Stack
        </button>
        <button type="button" class="danger" disabled={isOver} onClick={askFirst}>
          Kill…
        </button>
      </div>
      <p class="said" role="status">
        {said}
      </p>
      {stack !== null && <Stack text={stack} />}
      <dialog ref={dialog}>
        <p>
          Kill <strong>{row.name}</strong>? An error is thrown into it at its next wait or safepoint. Its
          callers see the error.
        </p>
        <div class="buttons">
          <button type="button" ref={cancel} onClick={closeDialog}>
            Cancel
          </button>
          <button type="button" class="danger" onClick={kill}>
            Kill
          </button>
        </div>
      </dialog>
    </div>
  )
}
