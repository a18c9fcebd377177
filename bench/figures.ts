/**
 * `npm run figures`: writes the figures of the last whole run (bench/results) into the pages: a selection
 * into the README; all rows of a part between `<!-- rows: part -->` and `<!-- end of rows -->`
 * (docs/figures.md); those with a target between `<!-- targets: part -->` and `<!-- end of rows -->`.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { meets, type Row } from './harness.ts'
import { goal } from './report.ts'
import { loadResults, type Results } from './results.ts'

const START = '<!-- figures: bench/figures.ts -->\n'
const END = '<!-- end of figures -->'

/** The figures that a reader wants first, each with its sentence. */
const shown: readonly (readonly [row: string, say: (row: Row) => string])[] = [
  [
    'kernel/short-behind-hogs-p99',
    row => `a short task behind long ones, p99: ${times(row)} sooner than the best of four worker pools`,
  ],
  [
    'server/short-p99',
    row =>
      `short requests to a server that resizes pictures, p99: ${times(row)} sooner on heddle/piscina than on piscina`,
  ],
  [
    'server/long-throughput',
    row => `pictures that this server resizes in the same time: ${times(row)} as many`,
  ],
  [
    'kernel/spawn-batch',
    row => `trivial tasks in a batch: ${times(row)} as many a second as the best of these pools`,
  ],
  ['kernel/spawn-single', row => `trivial tasks one after the other: ${times(row)} as many`],
  [
    'compiler/median',
    row => `a preemptible function costs ${times(row)} the plain one (median of the programs)`,
  ],
  [
    'coroutine/http-p99',
    row => `an HTTP server answers other clients ${times(row)} sooner while it computes, p99`,
  ],
  ['sync/async-mutex', row => `a mutex, uncontended: ${times(row)} faster than async-mutex`],
  ['sync/channel-cross', row => `a channel between CPUs: ${times(row)} as fast as MessagePort`],
  [
    'futex/wait-mismatch',
    row => `a futex wait whose value has changed: ${times(row)} the cost of Atomics.wait`,
  ],
  ['trace/on', row => `tracing on: ${times(row)} the cost of a yield`],
]

const times = ({ ratio = Number.NaN }: Row): string => `${ratio}×`

export function figures(results: Results): string {
  const { machine, versions, commit, rows } = results
  const byName = new Map(rows.map(row => [row.row, row]))
  const lines = shown.flatMap(([name, say]) => {
    const row = byName.get(name)
    return row === undefined ? [] : item(say(row), `(\`${name}\`)`)
  })
  const where = `${machine.cores} × ${machine.cpu}, Node ${versions.node}, commit ${commit}`
  return `${lines.join('\n')}\n\nOn ${where}; [all rows](docs/figures.md).\n`
}

/** A line of a list, or two when one would be too long. */
function item(text: string, row: string): string[] {
  const line = `- ${text} ${row}`
  return line.length <= 110 ? [line] : [`- ${text}`, `  ${row}`]
}

/** The rows of a part, as a table: all of them, or those with a target. */
export function table(results: Results, part: string, which: 'rows' | 'targets' = 'rows'): string {
  const rows = results.rows.filter(
    ({ row, series, target }) =>
      row.startsWith(`${part}/`) && series === undefined && (which === 'rows' || target !== undefined),
  )
  const lines = rows.map(row => {
    const { value, unit, ratio, spread, against, base } = row
    const met = meets(row)
    const beside = against === undefined ? '' : `${against} (${base} ${unit})`
    const cells = [
      `\`${row.row}\``,
      `${value} ${unit}`,
      ratio === undefined ? '' : `${ratio} (${spread.join(' to ')})`,
      met === undefined ? '' : `${goal(row)}: ${met ? 'met' : '**missed**'}`,
      beside,
    ]
    return `| ${cells.join(' | ')} |`
  })
  const head = '| row | value | ratio (quartiles) | target | against |\n| --- | --- | --- | --- | --- |'
  return `\`npm run bench -- ${part}\`\n\n${head}\n${lines.join('\n')}\n`
}

/** The text with the figures inserted. */
export function withFigures(text: string, results: Results): string {
  const start = text.indexOf(START) + START.length
  const end = text.indexOf(END)
  const first =
    start < START.length ? text : `${text.slice(0, start)}\n${figures(results)}\n${text.slice(end)}`
  return first.replaceAll(
    /(<!-- (rows|targets): (\w+) -->\n)[^]*?(<!-- end of rows -->)/g,
    (_, open: string, which: 'rows' | 'targets', part: string, close: string) =>
      `${open}\n${table(results, part, which)}\n${close}`,
  )
}

/** Every page with figures. */
export function pages(): string[] {
  const root = resolve(import.meta.dirname, '..')
  const docs = readdirSync(resolve(root, 'docs')).filter(file => file.endsWith('.md'))
  return [resolve(root, 'README.md'), ...docs.map(file => resolve(root, 'docs', file))]
}

if (process.argv[1] === import.meta.filename) {
  const results = loadResults()
  for (const page of pages()) {
    const text = readFileSync(page, 'utf8')
    const told = withFigures(text, results)
    if (told !== text) writeFileSync(page, told)
  }
}
