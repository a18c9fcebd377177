/**
 * A desk that makes long reports and answers short requests at the same time: on a plain worker pool, and on
 * heddle. Both use the same functions (report-desk/work.ts) and the same number of threads, in one run.
 *
 *     npm run example report-desk
 */
import { cpus } from 'node:os'
import { Kernel } from '../src/index.ts'
import { Pool } from './report-desk/pool.ts'
import { report } from './report-desk/work.ts'

const THREADS = Math.max(2, Math.min(4, cpus().length))
const REPORTS = THREADS * 2
const REPORT_MS = 300
const REQUESTS = 100
const REQUEST_EVERY_MS = 4
const SMALL_TASKS = 10_000

/** The interface of a desk, on either runtime. */
interface Desk {
  report(seed: number, years: number): PromiseLike<{ best: number; total: number }>
  price(cart: readonly number[], urgent: boolean): PromiseLike<{ cents: number; at: number }>
  add(a: number, b: number): PromiseLike<number>
}

interface Day {
  readonly reportsMs: number
  readonly total: number
  /** Milliseconds from request to answer, sorted. */
  readonly requests: readonly number[]
  readonly urgent: readonly number[]
  readonly smallMs: number
}

const now = (): number => performance.timeOrigin + performance.now()
const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

/**
 * One day at the desk: all reports are ordered at the start, requests arrive while they are made; then many
 * small tasks.
 */
async function work(desk: Desk, years: number): Promise<Day> {
  // Before the clock starts: code is slow on its first run, on both runtimes.
  for (let round = 0; round < 5; round++) {
    await Promise.all(Array.from({ length: 1000 }, (_, index) => desk.add(index, 1)))
  }
  const start = now()
  const reports = Array.from({ length: REPORTS }, (_, index) => desk.report(index + 1, years))
  const requests: Promise<number>[] = []
  const urgent: Promise<number>[] = []
  for (let index = 0; index < REQUESTS; index++) {
    const asked = now()
    const isUrgent = index % 4 === 3
    const served = Promise.resolve(desk.price([index, index + 1, 7], isUrgent)).then(({ at }) => at - asked)
    ;(isUrgent ? urgent : requests).push(served)
    await pause(REQUEST_EVERY_MS)
  }
  const made = await Promise.all(reports)
  const reportsMs = now() - start
  const sorted = async (latencies: Promise<number>[]): Promise<number[]> =>
    (await Promise.all(latencies)).sort((a, b) => a - b)
  const before = now()
  let sum = 0
  for (const part of await Promise.all(Array.from({ length: SMALL_TASKS }, (_, index) => desk.add(index, 1))))
    sum += part
  if (sum !== (SMALL_TASKS * (SMALL_TASKS + 1)) / 2) throw new Error('the sum of the small tasks is wrong')
  return {
    reportsMs,
    total: made.reduce((total, each) => total + each.total, 0),
    requests: await sorted(requests),
    urgent: await sorted(urgent),
    smallMs: now() - before,
  }
}

/** How many years of sales this machine adds up in REPORT_MS of CPU time. */
function calibrate(): number {
  report(1, 20)
  for (let years = 20; ; years *= 2) {
    const before = process.cpuUsage()
    report(1, years)
    const { user, system } = process.cpuUsage(before)
    const tookMs = (user + system) / 1000
    if (tookMs > 20) return Math.round((years * REPORT_MS) / tookMs)
  }
}

console.log(`heddle on ${THREADS} threads (${cpus()[0].model.trim()}, Node ${process.version})\n`)
console.log(
  `${REPORTS} long reports are ordered together; while they are made, ${REQUESTS} short requests arrive.\n`,
)
const years = calibrate()

console.log('on a worker pool …')
const pool = await Pool.start(THREADS)
const plain = await work(
  {
    report: (seed, count) => pool.run('report', [seed, count]),
    price: cart => pool.run('price', [cart]),
    add: (a, b) => pool.run('add', [a, b]),
  },
  years,
)
await pool.close()

console.log('on heddle …\n')
const kernel = await Kernel.boot({ cpus: THREADS })
const module = await kernel.import<typeof import('./report-desk/work.ts')>(
  new URL('./report-desk/work.ts', import.meta.url),
)
const ours = await work(
  {
    report: (seed, count) => kernel.spawn(module.report, [seed, count], { name: `report ${seed}` }),
    price: (cart, urgent) => kernel.spawn(module.price, [cart], urgent ? { priority: 'high' } : {}),
    add: (a, b) => kernel.spawn(module.add, [a, b]),
  },
  years,
)
await kernel.close()
if (ours.total !== plain.total) throw new Error('the pool and heddle made different reports')

const at = (sorted: readonly number[], q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))]
const ms = (value: number): string =>
  `${value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 1 : 0 })} ms`
const each = (total: number): string => `${((total * 1000) / SMALL_TASKS).toFixed(1)} µs each`
const times = (theirs: number, mine: number): string =>
  theirs / mine >= 1.05
    ? `${(theirs / mine).toLocaleString('en', { maximumSignificantDigits: 2 })} × sooner`
    : ''
const line = (what: string, a: string, b: string, c = ''): void =>
  console.log(`  ${what.padEnd(34)}${a.padStart(16)}${b.padStart(16)}   ${c}`)

line('', 'worker pool', 'heddle')
line(`${REPORTS} reports, the last after`, ms(plain.reportsMs), ms(ours.reportsMs))
for (const [what, q] of [
  ['half of the requests within', 0.5],
  ['99 of 100 requests within', 0.99],
] as const) {
  line(
    what,
    ms(at(plain.requests, q)),
    ms(at(ours.requests, q)),
    times(at(plain.requests, q), at(ours.requests, q)),
  )
}
line(
  '99 of 100 urgent ones within',
  ms(at(plain.urgent, 0.99)),
  ms(at(ours.urgent, 0.99)),
  times(at(plain.urgent, 0.99), at(ours.urgent, 0.99)),
)
line(
  `${SMALL_TASKS.toLocaleString('en')} tasks that only add`,
  each(plain.smallMs),
  each(ours.smallMs),
  times(plain.smallMs, ours.smallMs),
)
console.log(`
In the pool a request waits until a thread has finished a whole report. heddle's CPUs share their time: a report is
interrupted after 10 ms for waiting tasks, and immediately for a task of higher priority. Both ran the same functions,
examples/report-desk/work.ts, and made the same reports.`)
