import type { VNode } from 'preact'
import type { Execution } from '../../src/checker/report/execution.ts'

/** The height of a row, the width of the numbers and of a thread's column, in pixels. */
export const ROW = 30
export const NUMBER = 52
export const COLUMN = 276
/** Between two columns, for the edges. */
export const GAP = 34

export interface EdgesProps {
  readonly execution: Execution
  readonly at: number
  /** The rows that are drawn. */
  readonly first: number
  readonly last: number
}

/** The conflicts, drawn from the earlier step to the later one. Those of the selected step stand out. */
export function Edges({ execution, at, first, last }: EdgesProps): VNode {
  const { steps, threads, race } = execution
  const edges = steps
    .flatMap(({ after }, to) => after.map(from => ({ from, to })))
    .filter(({ from, to }) => to >= first && from <= last)
  if (race !== undefined && !edges.some(({ from, to }) => from === race[0] && to === race[1]))
    edges.push({ from: race[0], to: race[1] })
  const width = NUMBER + threads.length * COLUMN
  return (
    <svg class="edges" aria-hidden="true" width={width} height={steps.length * ROW}>
      <defs>
        {['edge', 'near', 'race'].map(kind => (
          <marker
            key={kind}
            id={`arrow-${kind}`}
            class={kind}
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="8"
            markerHeight="8"
            markerUnits="userSpaceOnUse"
            orient="auto-start-reverse"
          >
            <path d="M0 0 8 4 0 8z" />
          </marker>
        ))}
      </defs>
      {edges.map(({ from, to }) => {
        const isRace = race !== undefined && from === race[0] && to === race[1]
        const kind = isRace ? 'race' : from === at || to === at ? 'near' : 'edge'
        return (
          <path
            key={`${from}-${to}`}
            class={kind}
            d={curve(steps[from].thread, from, steps[to].thread, to)}
            marker-end={`url(#arrow-${kind})`}
            marker-start={isRace ? 'url(#arrow-race)' : undefined}
          />
        )
      })}
    </svg>
  )
}

/** From the side of one access to the side of the other that faces it. */
function curve(thread: number, row: number, otherThread: number, otherRow: number): string {
  const right = otherThread > thread
  const x = NUMBER + thread * COLUMN + (right ? COLUMN - GAP : 0)
  const otherX = NUMBER + otherThread * COLUMN + (right ? 0 : COLUMN - GAP)
  const y = (row + 0.5) * ROW
  const otherY = (otherRow + 0.5) * ROW
  const bend = Math.min(60, Math.max(14, Math.abs(otherX - x) / 2))
  const sign = right ? 1 : -1
  return `M${x} ${y}C${x + sign * bend} ${y} ${otherX - sign * bend} ${otherY} ${otherX} ${otherY}`
}
