import type { VNode } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Execution, ExecutionStep } from '../../src/checker/report/execution.ts'
import { COLUMN, Edges, GAP, NUMBER, ROW } from './edges.tsx'
import { reach } from './order.ts'

export interface StepsProps {
  readonly execution: Execution
  /** The selected step. */
  readonly at: number
  /** Where a step did something else in the execution before: what it did there. */
  readonly changes: readonly (string | undefined)[]
  readonly canMove: boolean
  onSelect(at: number): void
  onMove(from: number, to: number): void
}

interface Drag {
  readonly from: number
  readonly to: number
}

/** An execution: a column a thread, a row a step, and an edge from each step to those that follow from it. */
export function Steps({ execution, at, changes, canMove, onSelect, onMove }: StepsProps): VNode {
  const { threads, steps } = execution
  const [drag, setDrag] = useState<Drag | null>(null)
  const box = useRef<HTMLDivElement>(null)
  const head = useRef<HTMLDivElement>(null)
  const rows = useRef<HTMLDivElement>(null)
  const [seen, setSeen] = useState({ first: 0, last: ROWS_AT_FIRST })
  const order = steps.map(({ thread }) => thread)

  /** Only the rows in sight, and some around them, are elements: an execution may have thousands. */
  const look = (): void => {
    const { scrollTop = 0, clientHeight = 0 } = box.current ?? {}
    const first = Math.floor(scrollTop / ROW / ROWS_AROUND - 1) * ROWS_AROUND
    const last = Math.ceil((scrollTop + clientHeight) / ROW / ROWS_AROUND + 1) * ROWS_AROUND
    if (first !== seen.first || last !== seen.last) setSeen({ first, last })
  }
  useEffect(() => {
    const list = box.current
    if (list === null) return
    const top = at * ROW
    const bottom = top + ROW + (head.current?.offsetHeight ?? 0)
    if (top < list.scrollTop) list.scrollTop = top
    else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight
    look()
  }, [at, execution])

  const rowAt = (event: PointerEvent): number => {
    const top = rows.current?.getBoundingClientRect().top ?? 0
    return Math.floor((event.clientY - top) / ROW)
  }
  const limited = (from: number, to: number): number => {
    const { first, last } = reach(order, from)
    return Math.max(first, Math.min(last, to))
  }
  const press = (event: PointerEvent, from: number): void => {
    onSelect(from)
    if (!canMove || event.button !== 0) return
    ;(event.currentTarget as Element).setPointerCapture(event.pointerId)
    setDrag({ from, to: from })
  }
  const pull = (event: PointerEvent): void => {
    if (drag !== null) setDrag({ from: drag.from, to: limited(drag.from, rowAt(event)) })
  }
  const drop = (): void => {
    setDrag(null)
    if (drag !== null && drag.to !== drag.from) onMove(drag.from, drag.to)
  }
  const type = (event: KeyboardEvent): void => {
    const step = stepOf(event.key, at, steps.length)
    if (step === undefined) return
    event.preventDefault()
    if (!event.altKey) onSelect(step)
    else if (canMove && limited(at, step) !== at) onMove(at, limited(at, step))
  }
  const width = NUMBER + threads.length * COLUMN

  return (
    <div class="scroll" ref={box} onScroll={look}>
      <div class="steps" style={{ minWidth: `${width}px` }}>
        <div class="threads" aria-hidden="true" ref={head}>
          <span style={{ width: `${NUMBER}px` }} />
          {threads.map((name, thread) => (
            <span key={thread} class={`thread t${thread % 8}`} style={{ width: `${COLUMN}px` }}>
              {name}
            </span>
          ))}
        </div>
        <div
          class="rows"
          ref={rows}
          role="listbox"
          style={{ height: `${steps.length * ROW}px` }}
          tabIndex={0}
          aria-label="Steps of the execution"
          aria-activedescendant={`step-${at}`}
          onKeyDown={type}
        >
          <Edges execution={execution} at={at} first={seen.first} last={seen.last} />
          {rowsBetween(steps, seen.first, seen.last).map(([row, step]) => (
            <div
              key={row}
              id={`step-${row}`}
              role="option"
              aria-selected={row === at}
              aria-posinset={row + 1}
              aria-setsize={steps.length}
              aria-label={labelOf(step, row, threads)}
              class={classes(
                'step',
                row === at && 'selected',
                step.marked && 'marked',
                drag?.from === row && 'dragged',
              )}
              style={{ height: `${ROW}px`, top: `${row * ROW}px` }}
              onPointerDown={event => press(event, row)}
              onPointerMove={pull}
              onPointerUp={drop}
              onPointerCancel={() => setDrag(null)}
            >
              <span class="number" style={{ width: `${NUMBER}px` }}>
                {step.marked ? '▶ ' : ''}
                {row + 1}
              </span>
              <span
                class={`access t${step.thread % 8}`}
                style={{ marginLeft: `${step.thread * COLUMN}px`, width: `${COLUMN - GAP}px` }}
                title={step.text}
              >
                <b>{step.kind}</b> {step.target} <i>{step.effect}</i>
                {changes[row] !== undefined && (
                  <em class="was" title={`In the order before: ${changes[row]}`}>
                    {' '}
                    ≠
                  </em>
                )}
              </span>
            </div>
          ))}
          {drag !== null && drag.to !== drag.from && (
            <div
              class="drop"
              style={{ top: `${(drag.to > drag.from ? drag.to + 1 : drag.to) * ROW - 1}px` }}
            />
          )}
        </div>
      </div>
    </div>
  )
}

/** The rows that are drawn before the list is laid out, and how many more than those in sight. */
const ROWS_AT_FIRST = 80
const ROWS_AROUND = 20

function rowsBetween(
  steps: readonly ExecutionStep[],
  first: number,
  last: number,
): [number, ExecutionStep][] {
  const from = Math.max(0, first)
  return steps.slice(from, last).map((step, n) => [from + n, step])
}

function stepOf(key: string, at: number, length: number): number | undefined {
  if (key === 'ArrowDown' || key === 'j') return Math.min(length - 1, at + 1)
  if (key === 'ArrowUp' || key === 'k') return Math.max(0, at - 1)
  if (key === 'Home') return 0
  if (key === 'End') return length - 1
  return undefined
}

function labelOf(step: ExecutionStep, row: number, threads: readonly string[]): string {
  const { thread, kind, target, effect, marked } = step
  return `${row + 1}, ${threads[thread]}: ${kind} ${target} ${effect}${marked ? ', marked' : ''}`
}

function classes(...names: (string | false | undefined)[]): string {
  return names.filter(name => typeof name === 'string').join(' ')
}
