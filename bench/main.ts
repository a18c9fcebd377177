import { readdirSync } from 'node:fs'
import { cpus } from 'node:os'
import { meets, type Part, type Row } from './harness.ts'
import { goal, reportPage } from './report.ts'
import { describeRun, reportFile, resultsFile, saveResults } from './results.ts'

/**
 * `npm run bench -- [part …] [--json]`: runs every part in this folder, or the named ones. A run of all parts
 * is saved, with a page of plots: bench/results.
 */
const support = new Set([
  'main.ts',
  'harness.ts',
  'report.ts',
  'results.ts',
  'figures.ts',
  'latency.ts',
  'packages.ts',
  'switches.ts',
])
const parts = readdirSync(import.meta.dirname)
  .filter(file => file.endsWith('.ts') && !file.endsWith('.test.ts') && !support.has(file))
  .map(file => file.slice(0, -3))
  .sort()

// `npm run bench | head` closes the pipe early: print no stack trace then.
process.stdout.on('error', () => process.exit(0))

const args = process.argv.slice(2)
const json = args.includes('--json')
const wanted = args.filter(arg => !arg.startsWith('--'))
const unknown = [
  ...wanted.filter(part => !parts.includes(part)),
  ...args.filter(arg => arg.startsWith('--') && arg !== '--json'),
]
if (unknown.length > 0) {
  console.error(
    `bench: no such part or option: ${unknown.join(', ')}. Parts: ${parts.join(', ')}. Option: --json`,
  )
  process.exit(2)
}

if (!json) {
  console.log(
    `${cpus().length} × ${cpus()[0].model.trim()}, Node ${process.version}, ${process.platform} ${process.arch}`,
  )
  console.log(
    'ratio: cost against the baseline in the same run, or, with “at least”, how many times better\n',
  )
}
const started = performance.now()
const chosen = wanted.length > 0 ? wanted : parts
const measured: Row[] = []
const omitted: string[] = []
let failed = 0
for (const [at, part] of chosen.entries()) {
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  if (!json) console.log(`${at > 0 ? '\n' : ''}[${at + 1}/${chosen.length}] ${part}, after ${seconds} s`)
  const { rows, ...rest } = (await import(`./${part}.ts`)) as Part
  for await (const row of rows()) {
    measured.push(row)
    if (json) {
      const { target: _, ...plain } = row
      console.log(JSON.stringify(plain))
    } else {
      console.log(line(row))
    }
    if (meets(row) === false) failed++
  }
  for (const left of rest.omitted ?? []) {
    omitted.push(left)
    if (!json) console.log(`  left out: ${left}`)
  }
}
if (!json && failed > 0) console.log(`\n${failed} below target; docs/performance.md says what was tried`)
if (wanted.length === 0) {
  const results = describeRun(measured, omitted, (performance.now() - started) / 1000)
  saveResults(results, reportPage(results))
  if (!json) console.log(`\n${results.seconds} s; saved: ${resultsFile}\nplots: ${reportFile}`)
}
// Peers and workers of some parts would keep the process alive.
process.exit()

function line(row: Row): string {
  const met = meets(row)
  const mark = met === undefined ? ' ' : met ? '✓' : '✗'
  const value = `${row.value.toLocaleString('en')} ${row.unit}`
  const ratio = row.ratio === undefined ? '' : `${row.ratio}×  [${row.spread.join(' – ')}]`
  const against =
    row.against === undefined ? '' : `against ${row.against} (${row.base?.toLocaleString('en')} ${row.unit})`
  return `${mark} ${row.row.padEnd(32)} ${value.padStart(18)}  ${ratio.padEnd(24)} ${goal(row).padEnd(16)} ${against}`
}
