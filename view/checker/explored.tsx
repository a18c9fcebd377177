import type { VNode } from 'preact'
import type { CheckView } from '../../src/checker/report/checkview.ts'

const BARS_MAX = 48

/** What a search has explored: how much, how long its executions are, and where they branch. */
export function Explored({ check }: { check: CheckView }): VNode {
  const { shape, outcomes } = check
  return (
    <section class="explored">
      <p class="progress" role="status">
        {progressOf(check)}
      </p>
      <progress max={1} value={check.fraction} aria-label="Part of the search that is done" />
      {shape !== undefined && shape.lengths.length > 0 && (
        <div class="charts">
          <Bars title="Executions by their number of steps" unit="steps" counts={shape.lengths} />
          <Bars title="Where executions branch off, by step" unit="step" counts={shape.branches} />
        </div>
      )}
      {shape !== undefined && shape.sites.length > 0 && (
        <table class="sites">
          <caption>Source lines at which executions branch off</caption>
          <thead>
            <tr>
              <th scope="col">line</th>
              <th scope="col">access</th>
              <th scope="col">executions</th>
            </tr>
          </thead>
          <tbody>
            {shape.sites.map(({ file, line, text, branches }, n) => (
              <tr key={n}>
                <td>
                  {file.replace(/\?.*$/, '').split('/').at(-1)}:{line}
                </td>
                <td>
                  <code>{text}</code>
                </td>
                <td class="count">{branches.toLocaleString('en-US')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {outcomes.length > 0 && (
        <table class="sites">
          <caption>Outcomes</caption>
          <tbody>
            {outcomes.map(({ text, executions }) => (
              <tr key={text}>
                <td>
                  <code>{text}</code>
                </td>
                <td class="count">{executions.toLocaleString('en-US')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

/** One line: how many executions, how many are expected, and the time that is left. */
export function progressOf({
  status,
  executions,
  redundant,
  steps,
  seconds,
  fraction,
  why,
  depth,
}: CheckView): string {
  const count = (n: number): string => Math.round(n).toLocaleString('en-US')
  const done = `${count(executions)} executions${redundant > 0 ? ` (and ${count(redundant)} covered by them)` : ''}, ${count(steps)} steps, the longest of ${count(depth)}, ${seconds.toFixed(1)} s`
  if (status === 'passed') return `${done}. Complete: every interleaving is covered.`
  if (status !== 'running') return why === '' ? `${done}.` : `${done}. Not complete: ${why}.`
  if (fraction < 0.001) return `${done}. No estimate yet.`
  const left = (seconds / fraction) * (1 - fraction)
  const time = left < 120 ? `${Math.ceil(left)} s` : `${Math.ceil(left / 60)} min`
  return `${done}. About ${(100 * fraction).toPrecision(3)} % done, about ${count(executions / fraction)} in all, about ${time} left.`
}

/** A bar for each number of steps, or for each range of them when there are many. */
function Bars({ title, unit, counts }: { title: string; unit: string; counts: readonly number[] }): VNode {
  const first = counts.findIndex(n => n > 0)
  const size = Math.max(1, Math.ceil((counts.length - first) / BARS_MAX))
  const bars: { from: number; to: number; count: number }[] = []
  for (let from = first; from < counts.length; from += size) {
    const to = Math.min(from + size, counts.length)
    bars.push({ from, to: to - 1, count: counts.slice(from, to).reduce((all, n) => all + n, 0) })
  }
  const most = Math.max(...bars.map(({ count }) => count))
  const width = 100 / Math.max(bars.length, 12)
  const range = (from: number, to: number): string => (from === to ? `${from}` : `${from}–${to}`)
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <svg
        viewBox="0 0 100 40"
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${bars.map(({ from, to, count }) => `${range(from, to)} ${unit}: ${count}`).join(', ')}`}
      >
        {bars.map(({ from, to, count }, n) => (
          <rect
            key={from}
            x={n * width + width * 0.1}
            width={width * 0.8}
            y={40 - (38 * count) / most}
            height={(38 * count) / most}
          >
            <title>{`${range(from, to)} ${unit}: ${count.toLocaleString('en-US')} executions`}</title>
          </rect>
        ))}
      </svg>
      <p class="axis">
        <span>{bars[0]?.from ?? ''}</span>
        <span>most: {most.toLocaleString('en-US')}</span>
        <span>{bars.at(-1)?.to ?? ''}</span>
      </p>
    </figure>
  )
}
