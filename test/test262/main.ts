/**
 * Runs test262, the conformance suite of the language, through the compiler:
 *
 *   npm run test262 -- <folder of the suite> [part of a path] [--mode frames-run] [--results file] [--resume]
 *     [--jobs 2] [--every 10, which runs each tenth test]
 *     [--apart, which makes a realm for each mode of a test]
 *
 * Each test becomes the body of a compiled function. A test that passes in plain Node must pass in every mode
 * (execute.ts), except for those in expected.ts. The exit code is 1 when any other test fails.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Mode, modes } from './execute.ts'
import { expectedReason } from './expected.ts'
import { testPaths } from './tests.ts'
import type { Order, Report } from './worker.ts'

/** A test without output for this long has hung its process. */
const silence_ms_most = 900_000
/** Realms are freed late: a process is replaced after this many tests. */
const tests_a_process = 600

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    mode: { type: 'string', multiple: true },
    results: { type: 'string' },
    resume: { type: 'boolean' },
    jobs: { type: 'string' },
    every: { type: 'string' },
    apart: { type: 'boolean' },
  },
})

const [folder, filter = ''] = positionals
if (folder === undefined || !existsSync(join(folder, 'harness', 'assert.js'))) {
  console.error(
    `test262: ${folder === undefined ? 'no folder is given' : `${folder} is not the folder of a checkout of test262`}. ` +
      'Clone https://github.com/tc39/test262, and give its folder: npm run test262 -- <folder>',
  )
  process.exit(2)
}
const unknown = (values.mode ?? []).find(name => !modes.some(mode => mode.startsWith(name)))
if (unknown !== undefined) {
  console.error(`test262: no mode ${unknown}; there are ${modes.join(', ')}`)
  process.exit(2)
}

const suite = resolve(folder)
const chosen = modes.filter(
  mode => values.mode === undefined || values.mode.some(name => mode.startsWith(name)),
)
const file = resolve(values.results ?? join(tmpdir(), 'heddle-test262.jsonl'))
if (values.resume !== true) rmSync(file, { force: true })

const reports = new Map<string, Report>()
if (existsSync(file)) {
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line === '') continue
    const report = JSON.parse(line) as Report
    reports.set(report.path, report)
  }
}

const every = Number(values.every ?? 1)
const paths = testPaths(suite, filter).filter((_, index) => index % every === 0)
// In random order, so that an interrupted run has covered a bit of everything.
const waiting = paths
  .filter(path => !reports.has(path))
  .map((path, index) => ({ path, turn: (index * 7919) % 10_007 }))
  .sort((left, right) => left.turn - right.turn)
  .map(({ path }) => path)
console.log(`${paths.length} tests, ${waiting.length} to run, in ${chosen.join(', ')}; results in ${file}`)

function record(report: Report): void {
  reports.set(report.path, report)
  appendFileSync(file, `${JSON.stringify(report)}\n`)
  if (reports.size % 1000 === 0) console.log(`${reports.size} of ${paths.length}`)
}

/** Runs tests in one process after the other until none is left. */
async function work(): Promise<void> {
  while (waiting.length > 0) await runSome()
}

function runSome(): Promise<void> {
  return new Promise(resolved => {
    const child: ChildProcess = fork(fileURLToPath(new URL('./worker.ts', import.meta.url)), {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      execArgv: ['--stack-size=900'],
    })
    let count = 0
    let path: string | null = null
    let timer: NodeJS.Timeout | undefined
    const next = (): void => {
      clearTimeout(timer)
      path = count++ < tests_a_process ? (waiting.pop() ?? null) : null
      if (path === null) {
        child.kill()
        return
      }
      timer = setTimeout(() => child.kill('SIGKILL'), silence_ms_most)
      child.send({ suite, path, modes: chosen, apart: values.apart === true } satisfies Order)
    }
    child.on('message', (message: 'ready' | Report) => {
      if (message !== 'ready') {
        path = null
        record(message)
      }
      next()
    })
    child.on('exit', (code, signal) => {
      clearTimeout(timer)
      if (path !== null) {
        const reason = `its process ended: ${signal ?? code}`
        const failures = chosen.map(mode => ({ mode, strict: false, reason }))
        record({ path, counted: {}, failures })
      }
      resolved()
    })
  })
}

const jobs = Number(values.jobs ?? availableParallelism())
await Promise.all(Array.from({ length: Math.max(1, jobs) }, work))

/** Failures grouped by message, so that one cause appears once. */
const groups = new Map<string, string[]>()
const rows = new Map<Mode, { counted: number; failed: number; expected: number }>()
for (const mode of chosen) rows.set(mode, { counted: 0, failed: 0, expected: 0 })
let unexpected = 0
for (const path of paths) {
  const report = reports.get(path)
  if (report === undefined) continue
  for (const mode of chosen) rows.get(mode)!.counted += report.counted[mode] ?? 0
  for (const { mode, strict, reason } of report.failures) {
    const row = rows.get(mode)
    if (row === undefined) continue
    if (expectedReason(path, mode) !== null) {
      row.expected++
      continue
    }
    row.failed++
    unexpected++
    const key = reason.replaceAll(/\d+/g, 'N').slice(0, 120)
    const list = groups.get(key)
    const text = `${path} (${mode}${strict ? ', strict' : ''})`
    if (list === undefined) groups.set(key, [text])
    else list.push(text)
  }
}
for (const [reason, list] of [...groups].sort((left, right) => right[1].length - left[1].length)) {
  console.log(`\n${list.length} × ${reason}`)
  for (const text of list.slice(0, 12)) console.log(`    ${text}`)
  if (list.length > 12) console.log(`    and ${list.length - 12} more`)
}
console.log('\nmode                  variants   failed   expected to fail')
for (const [mode, { counted, failed, expected }] of rows) {
  console.log(
    `${mode.padEnd(20)} ${String(counted).padStart(9)} ${String(failed).padStart(8)} ${String(expected).padStart(18)}`,
  )
}
process.exitCode = unexpected > 0 ? 1 : 0
