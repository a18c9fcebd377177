/** `npm run figures`: writes the figures of the last whole run (bench/results) into the README. */
import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Row } from './harness.ts'
import { loadResults, type Results } from './results.ts'

const readme = resolve(import.meta.dirname, '../README.md')
const START = '<!-- figures: bench/readme.ts -->\n'
const END = '<!-- end of figures -->'

/** What a reader asks first, and how the answer is said. */
const shown: readonly (readonly [row: string, say: (row: Row) => string])[] = [
  [
    'kernel/short-behind-hogs-p99',
    row => `a short task behind long ones, p99: ${times(row)} sooner than the best of four worker pools`,
  ],
  ['kernel/spawn-batch', row => `trivial tasks, many at once: ${times(row)} as many as the best of them`],
  ['kernel/spawn-single', row => `one after the other: ${times(row)}`],
  [
    'compiler/median',
    row => `a preemptible function costs ${times(row)} the plain one (median of the programs)`,
  ],
  ['coroutine/http-p99', row => `an HTTP server that computes answers others ${times(row)} sooner, p99`],
  ['sync/async-mutex', row => `a mutex, uncontended: ${times(row)} faster than async-mutex`],
  ['sync/channel-cross', row => `a channel between CPUs: ${times(row)} MessagePort`],
  ['futex/wait-mismatch', row => `a futex wait that need not wait: ${times(row)} Atomics.wait's cost`],
  ['trace/on', row => `tracing on: ${times(row)} the cost of a yield`],
]

const times = ({ ratio = Number.NaN }: Row): string => `${ratio}×`

export function figures(results: Results): string {
  const { machine, versions, commit, rows } = results
  const byName = new Map(rows.map(row => [row.row, row]))
  const lines = shown.flatMap(([name, say]) => {
    const row = byName.get(name)
    return row === undefined ? [] : [`- ${say(row)} (\`${name}\`)`]
  })
  const where = `${machine.cores} × ${machine.cpu}, Node ${versions.node}, commit ${commit}`
  return `${lines.join('\n')}\n\nOn ${where}; [all rows](bench/results/results.json).\n`
}

/** The README with these figures in their place. */
export function withFigures(text: string, results: Results): string {
  const start = text.indexOf(START) + START.length
  const end = text.indexOf(END)
  if (start < START.length || end < start) throw new Error('README.md has no place for figures')
  return `${text.slice(0, start)}\n${figures(results)}\n${text.slice(end)}`
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(readme, withFigures(readFileSync(readme, 'utf8'), loadResults()))
}
