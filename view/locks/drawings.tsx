import type { VNode } from 'preact'
import { type Link, lockTitle } from './graph.ts'

const BOX = 190
const GAP = 92
const TALL = 56

/** A chain of priority inheritance: waiters to the left, the holder that must run to the right. */
export function ChainDrawing({ links }: { links: readonly Link[] }): VNode {
  const width = links.length * BOX + (links.length - 1) * GAP
  const text = links
    .map(({ party, lock }) => `${party.name}${lock === null ? '' : ` waits for ${lockTitle(lock)}, held by`}`)
    .join(' ')
  return (
    <svg
      class="drawing"
      width={width + 4}
      height={TALL + 26}
      viewBox={`-2 -2 ${width + 4} ${TALL + 26}`}
      role="img"
      aria-label={text}
    >
      {links.map(({ party, lock }, at) => {
        const x = at * (BOX + GAP)
        const isLent = party.priority < party.basePriority
        return (
          <g key={party.tid} transform={`translate(${x} 0)`}>
            <rect class={isLent ? 'box lent' : 'box'} width={BOX} height={TALL} rx="6" />
            <text x="10" y="20" class="strong">
              {cut(party.name, 26)}
            </text>
            <text x="10" y="41" class={isLent ? 'lenttext' : 'dimtext'}>
              {isLent ? `base ${party.basePriority}, lent ${party.priority} ↑` : `priority ${party.priority}`}
            </text>
            {lock !== null && (
              <>
                <line class="edge" x1={BOX} y1={TALL / 2} x2={BOX + GAP - 7} y2={TALL / 2} />
                <path class="tip" d={`M ${BOX + GAP} ${TALL / 2} l -8 -4.5 v 9 z`} />
                <text class="edgetext" x={BOX + GAP / 2} y={TALL / 2 - 8} text-anchor="middle">
                  {cut(lock.name || lock.kind, 15)}
                </text>
                <text class="dimtext" x={BOX + GAP / 2} y={TALL / 2 + 16} text-anchor="middle">
                  waits
                </text>
              </>
            )}
          </g>
        )
      })}
    </svg>
  )
}

const SIZE = 330
const RADIUS = 105
/** Half of the box of a party. */
const HALF = { x: BOX / 2, y: 19 }

/** A deadlock: its parties on a circle, each with an arrow to the one that holds the lock it waits for. */
export function CircleDrawing({ links }: { links: readonly Link[] }): VNode {
  const place = (at: number): { x: number; y: number } => {
    const angle = (at / links.length) * 2 * Math.PI - Math.PI / 2
    return { x: SIZE / 2 + RADIUS * Math.cos(angle), y: SIZE / 2 + RADIUS * 0.82 * Math.sin(angle) }
  }
  return (
    <svg
      class="drawing"
      width={SIZE}
      height={SIZE - 60}
      viewBox={`0 30 ${SIZE} ${SIZE - 60}`}
      role="img"
      aria-label="The circle of waits"
    >
      {links.map(({ party, lock }, at) => {
        const [from, to] = [place(at), place((at + 1) % links.length)]
        const middle = bent(from, to)
        return (
          <g key={party.tid}>
            <path class="edge bad" d={`M ${from.x} ${from.y} Q ${middle.x} ${middle.y} ${to.x} ${to.y}`} />
            <path class="tip bad" transform={tipAt(from, middle, to)} d="M 0 0 l -11 -6 v 12 z" />
            <text
              class="edgetext"
              x={(from.x + to.x) / 4 + middle.x / 2}
              y={(from.y + to.y) / 4 + middle.y / 2 - 4}
              text-anchor="middle"
            >
              {cut(lock?.name || lock?.kind || '', 22)}
            </text>
          </g>
        )
      })}
      {links.map(({ party }, at) => {
        const { x, y } = place(at)
        return (
          <g key={party.tid} transform={`translate(${x - BOX / 2} ${y - 19})`}>
            <rect class="box bad" width={BOX} height="38" rx="6" />
            <text x={BOX / 2} y="24" text-anchor="middle" class="strong">
              {cut(party.name, 26)}
            </text>
          </g>
        )
      })}
    </svg>
  )
}

interface Point {
  readonly x: number
  readonly y: number
}

/** The control point of an arc that leaves room between the arrows there and back. */
function bent(from: Point, to: Point): Point {
  const [dx, dy] = [to.x - from.x, to.y - from.y]
  return { x: (from.x + to.x) / 2 + dy * 0.45, y: (from.y + to.y) / 2 - dx * 0.45 }
}

/** Where the arc reaches the box of its end: the place and the direction of the tip. */
function tipAt(from: Point, middle: Point, to: Point): string {
  let [x, y, dx, dy] = [to.x, to.y, 0, 1]
  for (let t = 1; t > 0; t -= 0.01) {
    x = (1 - t) ** 2 * from.x + 2 * (1 - t) * t * middle.x + t ** 2 * to.x
    y = (1 - t) ** 2 * from.y + 2 * (1 - t) * t * middle.y + t ** 2 * to.y
    dx = 2 * (1 - t) * (middle.x - from.x) + 2 * t * (to.x - middle.x)
    dy = 2 * (1 - t) * (middle.y - from.y) + 2 * t * (to.y - middle.y)
    if (Math.abs(x - to.x) > HALF.x || Math.abs(y - to.y) > HALF.y) break
  }
  return `translate(${x} ${y}) rotate(${(Math.atan2(dy, dx) * 180) / Math.PI})`
}

function cut(text: string, letters: number): string {
  return text.length <= letters ? text : `${text.slice(0, letters - 1)}…`
}
