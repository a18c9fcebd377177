import type { VNode } from 'preact'
import { formatNs } from './format.ts'
import type { Histogram } from './model/histogram.ts'

const WIDTH = 260
const HEIGHT = 44

/** Durations by powers of two: bars from the shortest to the longest, with the mean and the longest. */
export function HistogramChart({ title, of }: { title: string; of: Histogram }): VNode | null {
  if (of.count === 0) return null
  const first = of.counts.findIndex(count => count > 0)
  const bars = Array.from({ length: of.counts.length - first }, (_, at) => of.counts[first + at] ?? 0)
  const most = Math.max(...bars)
  const width = Math.min(26, WIDTH / bars.length)
  const text = `${of.count === 1 ? 'once' : `${of.count.toLocaleString('en')} times`}, ${formatNs(of.mean)} on average, ${formatNs(of.longest)} at most`
  return (
    <figure class="histogram">
      <figcaption>
        <strong>{title}</strong> <span class="dim">{text}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 14}`} role="img" aria-label={`${title}: ${text}`}>
        {bars.map((count, at) => {
          const tall = count === 0 ? 0 : Math.max(1.5, (count / most) * HEIGHT)
          return (
            <rect key={at} x={at * width} y={HEIGHT - tall} width={Math.max(1, width - 1.5)} height={tall}>
              <title>{`${count} of ${formatNs(2 ** (first + at))} to ${formatNs(2 ** (first + at + 1))}`}</title>
            </rect>
          )
        })}
        <text x="0" y={HEIGHT + 11}>
          {formatNs(2 ** first)}
        </text>
        <text x={Math.max(96, width * bars.length)} y={HEIGHT + 11} text-anchor="end">
          {formatNs(2 ** (first + bars.length))}
        </text>
      </svg>
    </figure>
  )
}
