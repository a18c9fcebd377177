import type { VNode } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Empty } from '../empty.tsx'
import { count, formatMs, formatNs } from '../format.ts'
import type { PanelProps, Session } from '../session.ts'
import { TaskDetails } from './details.tsx'
import { showWait, waitText } from './longwaits.ts'
import { liveRows, matches, recordedRows, type SortKey, sortRows, type TaskRow } from './rows.ts'

const ROW = 26
const REFRESH_MS = 500

interface Column {
  readonly key: SortKey
  readonly title: string
  readonly isNumber: boolean
  text(row: TaskRow): string
}

const columns: readonly Column[] = [
  {
    key: 'name',
    title: 'Task',
    isNumber: false,
    text: ({ name, code }) => (code === '' || code === name ? name : `${name} · ${code}()`),
  },
  { key: 'state', title: 'State', isNumber: false, text: ({ state }) => state },
  { key: 'cpu', title: 'CPU', isNumber: true, text: ({ cpu }) => (cpu < 0 ? '' : String(cpu)) },
  {
    key: 'priority',
    title: 'Priority',
    isNumber: true,
    text: ({ priority, basePriority }) =>
      priority === basePriority ? String(priority) : `${basePriority} ↑ ${priority}`,
  },
  {
    key: 'share',
    title: '% CPU',
    isNumber: true,
    text: ({ share }) => (share === 0 ? '' : (share * 100).toFixed(share < 0.1 ? 1 : 0)),
  },
  { key: 'runTime', title: 'On CPU', isNumber: true, text: ({ runTime }) => formatMs(runTime) },
  { key: 'waitTime', title: 'Waited for a CPU', isNumber: true, text: ({ waitTime }) => formatMs(waitTime) },
  { key: 'switches', title: 'Switches', isNumber: true, text: ({ switches }) => String(switches) },
  { key: 'waitsFor', title: 'Waits for', isNumber: false, text: ({ waitsFor }) => waitsFor },
]

/** The table of tasks, and beside it the selected task, or the longest waits of all. */
export function TasksPanel({ session }: PanelProps): VNode {
  const { data } = session
  const isLive = session.about?.live === true
  const [sort, setSort] = useState<{ key: SortKey; isDown: boolean }>({ key: 'runTime', isDown: true })
  const [filter, setFilter] = useState('')
  const [selected, setSelected] = useState('')
  const [tick, redraw] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => redraw(n => n + 1), REFRESH_MS)
    return () => clearInterval(timer)
  }, [])
  const all = useMemo(
    () => sortRows(isLive ? liveRows(data) : recordedRows(data), sort.key, sort.isDown),
    [data, isLive, sort, isLive ? tick : data.trace.tasks.length],
  )
  const rows = filter.trim() === '' ? all : all.filter(row => matches(row, filter.trim()))
  const chosen = all.find(({ key }) => key === selected)
  if (all.length === 0) {
    return session.state === 'connecting' ? (
      <Empty title="Connecting" />
    ) : (
      <Empty title="No tasks">
        {isLive ? 'The program has spawned no task yet.' : 'The trace has no tasks in it.'}
      </Empty>
    )
  }
  return (
    <div class="split">
      <section class="tablepane" aria-label="Tasks">
        <div class="tools">
          <input
            type="search"
            placeholder="Filter by name, function, state, lock"
            aria-label="Filter"
            value={filter}
            onInput={event => setFilter(event.currentTarget.value)}
          />
          <span class="dim">
            {rows.length === all.length
              ? count(all.length, 'task')
              : `${rows.length} of ${count(all.length, 'task')}`}
          </span>
        </div>
        <Table rows={rows} sort={sort} onSort={setSort} selected={selected} onSelect={setSelected} />
      </section>
      <aside>
        {chosen === undefined ? (
          <LongestWaits session={session} />
        ) : (
          <TaskDetails session={session} row={chosen} onClose={() => setSelected('')} />
        )}
      </aside>
    </div>
  )
}

interface TableProps {
  readonly rows: readonly TaskRow[]
  readonly sort: { key: SortKey; isDown: boolean }
  readonly onSort: (sort: { key: SortKey; isDown: boolean }) => void
  readonly selected: string
  readonly onSelect: (key: string) => void
}

/** Only the rows in sight are in the document. */
function Table({ rows, sort, onSort, selected, onSelect }: TableProps): VNode {
  const body = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [height, setHeight] = useState(600)
  useEffect(() => {
    const element = body.current
    if (element === null) return undefined
    const observer = new ResizeObserver(() => setHeight(element.clientHeight))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  const first = Math.max(0, Math.floor(top / ROW) - 5)
  const shown = rows.slice(first, first + Math.ceil(height / ROW) + 10)
  const onKey = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor(height / ROW) - 1)
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -rows.length,
      End: rows.length,
    }
    if (event.key === 'Escape') onSelect('')
    const step = steps[event.key]
    if (step === undefined) return
    event.preventDefault()
    const at = rows.findIndex(({ key }) => key === selected)
    const next = Math.min(rows.length - 1, Math.max(0, at + step))
    onSelect(rows[next]?.key ?? '')
    const element = body.current
    if (element === null) return
    if (next * ROW < element.scrollTop) element.scrollTop = next * ROW
    if ((next + 1) * ROW > element.scrollTop + height - ROW) element.scrollTop = (next + 2) * ROW - height
  }
  return (
    <div
      class="table"
      role="grid"
      aria-rowcount={rows.length}
      tabIndex={0}
      ref={body}
      onKeyDown={onKey}
      onScroll={event => setTop(event.currentTarget.scrollTop)}
    >
      <div class="row head" role="row">
        {columns.map(({ key, title, isNumber }) => (
          <span
            key={key}
            role="columnheader"
            class={isNumber ? 'number' : ''}
            aria-sort={sort.key !== key ? 'none' : sort.isDown ? 'descending' : 'ascending'}
          >
            <button
              type="button"
              onClick={() => onSort({ key, isDown: sort.key === key ? !sort.isDown : isNumber })}
            >
              {title} {sort.key === key ? (sort.isDown ? '▾' : '▴') : ''}
            </button>
          </span>
        ))}
      </div>
      <div class="rows" style={{ height: `${rows.length * ROW}px` }}>
        {shown.map((row, at) => (
          <div
            key={row.key}
            class="row"
            role="row"
            aria-selected={row.key === selected}
            style={{ transform: `translateY(${(first + at) * ROW}px)` }}
            onClick={() => onSelect(row.key === selected ? '' : row.key)}
          >
            {columns.map(({ key, isNumber, text }) => (
              <span
                key={key}
                role="gridcell"
                class={`${isNumber ? 'number' : ''} ${key} ${key === 'state' ? row.state.replaceAll(' ', '-') : ''}`}
                title={isNumber ? undefined : text(row)}
              >
                {text(row)}
              </span>
            ))}
          </div>
        ))}
      </div>
    </div>
  )
}

function LongestWaits({ session }: { session: Session }): VNode {
  const { longest, lostEvents } = session.data.trace
  return (
    <>
      <h2>Longest waits</h2>
      {lostEvents > 0 && (
        <p class="dim">Some events are lost. A wait whose end is among them seems longer than it was.</p>
      )}
      {longest.length === 0 && <p class="dim">No task has waited yet.</p>}
      <ol class="waits">
        {longest.slice(0, 25).map(wait => (
          <li key={`${wait.lane.track.id} ${wait.number}`}>
            <button type="button" title="Show it in the time line" onClick={() => showWait(session, wait)}>
              <strong>{formatNs(wait.duration)}</strong> {wait.lane.track.name}
              <span class="dim"> {waitText(wait)}</span>
            </button>
          </li>
        ))}
      </ol>
    </>
  )
}
