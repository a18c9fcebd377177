import { meets, type Row } from './harness.ts'
import type { Results } from './results.ts'

/**
 * The page of the report: every row with its target, and a plot for each series of growth. One file, no
 * scripts.
 */
export function reportPage(results: Results): string {
  const { machine, versions, commit, date, seconds, omitted, rows } = results
  const parts = Map.groupBy(
    rows.filter(({ x }) => x === undefined),
    ({ row }) => row.split('/')[0],
  )
  const series = Map.groupBy(
    rows.filter(({ x }) => x !== undefined),
    ({ series: name = '' }) => name,
  )
  const version = Object.entries(versions).map(([name, number]) => `${name} ${number}`)
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>heddle: figures</title>
<meta name="viewport" content="width=device-width">
<style>
 body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1d2530; background: #fff }
 table { border-collapse: collapse; width: 100%; margin: 0 0 2rem } td, th { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #e4e8ee }
 td:first-child, th:first-child, td.text { text-align: left } .met { color: #1a7f4b } .missed { color: #b3261e }
 svg { background: #fbfcfe; border: 1px solid #e4e8ee } figure { display: inline-block; margin: 0 1rem 2rem 0; width: 30rem; vertical-align: top } figcaption { font-size: .9em }
 @media (prefers-color-scheme: dark) { body { background: #11161d; color: #d6dde6 } svg { background: #161c25 } td, th, svg { border-color: #2a333f } svg text { fill: #d6dde6 } .met { color: #57c98a } .missed { color: #ff8a80 } }
</style></head><body>
<h1>heddle: figures</h1>
<p>Commit ${escape(commit)}, ${escape(date)}, ${seconds} s on ${machine.cores} × ${escape(machine.cpu)}, ${machine.memoryGiB} GiB, ${escape(machine.system)}.<br>
${escape(version.join(', '))}.${omitted.length > 0 ? `<br>Left out: ${escape(omitted.join('; '))}.` : ''}</p>
<p>Each row is measured in turns with its baseline, in the same run. <em>Ratio</em> is ours over the baseline's cost, or, with “at least”,
how many times better ours is: the median over the rounds, with the quartiles.</p>
${[...parts].map(([part, of]) => `<h2>${escape(part)}</h2>\n${table(of)}`).join('\n')}
${series.size > 0 ? '<h2>How cost grows</h2>' : ''}
${[...series].map(([name, of]) => plot(name, of)).join('\n')}
<p>Reproduced by <code>npm run bench</code>; one part by <code>npm run bench -- ${escape([...parts.keys()][0] ?? 'sched')}</code>.</p>
</body></html>
`
}

function table(rows: readonly Row[]): string {
  const lines = rows.map(row => {
    const met = meets(row)
    const mark = met === undefined ? '' : met ? '<span class="met">✓</span>' : '<span class="missed">✗</span>'
    return `<tr><td>${mark} ${escape(row.row)}</td><td>${number(row.value)} ${escape(row.unit)}</td><td>${row.ratio === undefined ? '' : `${row.ratio}×`}</td><td>${row.ratio === undefined ? '' : `${row.spread[0]} – ${row.spread[1]}`}</td><td>${goal(row)}</td><td class="text">${row.against === undefined ? '' : `${escape(row.against)} (${number(row.base ?? 0)} ${escape(row.unit)})`}</td><td>${row.rounds}</td></tr>`
  })
  return `<table><tr><th>row</th><th>value</th><th>ratio</th><th>quartiles</th><th>target</th><th>against</th><th>rounds</th></tr>\n${lines.join('\n')}</table>`
}

/** The target, in words. */
export function goal({ target }: Row): string {
  if (target === undefined) return ''
  if ('most' in target) return `at most ${target.most}×`
  if ('least' in target) {
    const { least, valueMost } = target
    return `at least ${least}×${valueMost === undefined ? '' : `, value at most ${valueMost}`}`
  }
  if ('valueMost' in target) return `at most ${target.valueMost}`
  return `at least ${target.valueLeast}`
}

const WIDTH = 460
const HEIGHT = 260
const MARGIN = { left: 62, right: 14, top: 14, bottom: 40 }

/** Both axes logarithmic: a power of x is a straight line. */
function plot(name: string, rows: readonly Row[]): string {
  const points = rows.map(({ x = 1, value }) => ({ x, y: Math.max(value, 1e-9) }))
  const unit = rows[0].unit
  const [xLow, xHigh] = range(points.map(({ x }) => x))
  const [yLow, yHigh] = range(points.map(({ y }) => y))
  const across = (x: number): number =>
    MARGIN.left + ((Math.log10(x) - xLow) / (xHigh - xLow)) * (WIDTH - MARGIN.left - MARGIN.right)
  const up = (y: number): number =>
    HEIGHT - MARGIN.bottom - ((Math.log10(y) - yLow) / (yHigh - yLow)) * (HEIGHT - MARGIN.top - MARGIN.bottom)
  const line = points.map(({ x, y }) => `${across(x).toFixed(1)},${up(y).toFixed(1)}`).join(' ')
  const dots = points.map(
    ({ x, y }) =>
      `<circle cx="${across(x).toFixed(1)}" cy="${up(y).toFixed(1)}" r="3" fill="#3563b9"><title>${number(x)}: ${number(y)} ${escape(unit)}</title></circle>`,
  )
  const xTicks = decades(xLow, xHigh).map(
    x =>
      `<line x1="${across(x)}" x2="${across(x)}" y1="${MARGIN.top}" y2="${HEIGHT - MARGIN.bottom}" stroke="#dfe5ee"/><text x="${across(x)}" y="${HEIGHT - MARGIN.bottom + 16}" text-anchor="middle" font-size="11">${short(x)}</text>`,
  )
  const yTicks = decades(yLow, yHigh).map(
    y =>
      `<line y1="${up(y)}" y2="${up(y)}" x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" stroke="#dfe5ee"/><text x="${MARGIN.left - 6}" y="${up(y) + 4}" text-anchor="end" font-size="11">${short(y)}</text>`,
  )
  return `<figure><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escape(name)}">${xTicks.join('')}${yTicks.join('')}
<polyline points="${line}" fill="none" stroke="#3563b9" stroke-width="2"/>${dots.join('')}
<text x="${WIDTH / 2}" y="${HEIGHT - 6}" text-anchor="middle" font-size="12">${escape(rows[0].xName ?? '')}</text>
<text x="12" y="${HEIGHT / 2}" text-anchor="middle" font-size="12" transform="rotate(-90 12 ${HEIGHT / 2})">${escape(unit)}</text></svg>
<figcaption><strong>${escape(name.replace('growth/', ''))}</strong>: ${escape(growth(rows))}</figcaption></figure>`
}

/** A sentence about the order of growth: the slope of the line through the points, both axes logarithmic. */
export function growth(rows: readonly Row[]): string {
  const points = rows.map(({ x = 1, value }) => ({ x: Math.log(x), y: Math.log(Math.max(value, 1e-9)) }))
  const mean = (of: readonly number[]): number => of.reduce((sum, one) => sum + one, 0) / of.length
  const mx = mean(points.map(({ x }) => x))
  const my = mean(points.map(({ y }) => y))
  const over = points.reduce((sum, { x, y }) => sum + (x - mx) * (y - my), 0)
  const under = points.reduce((sum, { x }) => sum + (x - mx) ** 2, 0)
  const slope = under === 0 ? 0 : over / under
  const first = rows[0]
  const last = rows.at(-1) ?? first
  const range = `${number(first.value)} ${first.unit} at ${number(first.x ?? 1)}, ${number(last.value)} ${last.unit} at ${number(last.x ?? 1)} ${last.xName ?? ''}`
  return `${order(slope)} (x to the ${slope.toFixed(2)}): ${range}.`
}

function order(slope: number): string {
  if (slope < -0.1) return 'falls'
  if (slope < 0.12) return 'constant'
  if (slope < 0.4) return 'grows slower than the logarithm of large numbers shows'
  if (slope < 0.85) return 'grows slower than linearly'
  if (slope < 1.15) return 'linear'
  return 'grows faster than linearly'
}

function range(values: readonly number[]): [number, number] {
  const low = Math.floor(Math.log10(Math.min(...values)))
  const high = Math.ceil(Math.log10(Math.max(...values)))
  return low === high ? [low - 1, high + 1] : [low, high]
}

function decades(low: number, high: number): number[] {
  const step = Math.max(1, Math.ceil((high - low) / 6))
  const found: number[] = []
  for (let power = low; power <= high; power += step) found.push(10 ** power)
  return found
}

function short(value: number): string {
  if (value >= 1e9) return `${value / 1e9}G`
  if (value >= 1e6) return `${value / 1e6}M`
  if (value >= 1e3) return `${value / 1e3}k`
  return String(Number(value.toPrecision(2)))
}

const number = (value: number): string => value.toLocaleString('en', { maximumSignificantDigits: 4 })

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
