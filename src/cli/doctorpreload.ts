/**
 * Loaded into each thread of a program that `heddle doctor` runs: records a CPU profile, and the times
 * without a safepoint.
 */
import { appendFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import Module from 'node:module'
import * as workers from 'node:worker_threads'
import '../compiler/loading/register.ts'
import { watchSafepoints } from '../coroutine/core/safepoint.ts'
import {
  type CallFrame,
  DOCTOR_VARIABLE,
  type Gap,
  type Profile,
  type Stretch,
  stretchesOf,
  type ThreadReport,
} from './stretches.ts'

/** Shorter gaps between safepoints are not recorded. */
const GAP_US_LEAST = 2000
const STRETCHES_MOST = 200
const SAMPLE_US = 500

const report = process.env[DOCTOR_VARIABLE]
if (report !== undefined) watch(report)

function watch(file: string): void {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US })
  session.post('Profiler.start')
  const gaps: Gap[] = []
  let last = now()
  const safepoint = (): void => {
    const at = now()
    if (at - last > GAP_US_LEAST) gaps.push({ from: last, to: at })
    last = at
  }
  watchSafepoints(safepoint)
  process.on('exit', () => {
    safepoint()
    session.post('Profiler.stop', (error, result) => {
      if (error !== null) return
      const stretches = stretchesOf(result.profile as Profile, gaps, isOwn).slice(0, STRETCHES_MOST)
      const line: ThreadReport = { thread: threadName(), stretches: stretches.map(written) }
      appendFileSync(file, `${JSON.stringify(line)}\n`)
    })
  })
}

const { isMainThread, threadId } = workers

/** Microseconds on the profile's clock. */
function now(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e6 + nanoseconds / 1e3
}

const own = new URL('../', import.meta.url).href

/** Code of the program, or of its packages. */
function isOwn(url: string): boolean {
  const isFile = (url.startsWith('file:') && !url.startsWith(own)) || url.startsWith('/')
  return isFile && !/\/node_modules\/(?:@oxc-parser|oxc-parser|magic-string)\//.test(url)
}

function threadName(): string {
  if (isMainThread) return 'main thread'
  const { threadName } = workers as { threadName?: string }
  return threadName ? threadName.replace(/^heddle cpu/, 'CPU') : `worker ${threadId}`
}

/** The stretch with the lines of the source, where the code was compiled. */
function written(stretch: Stretch): Stretch {
  return { ...stretch, hot: original(stretch.hot), entry: original(stretch.entry) }
}

function original(frame: CallFrame): CallFrame {
  const entry = Module.findSourceMap(frame.url)?.findEntry(frame.lineNumber, frame.columnNumber)
  if (entry === undefined || !('originalLine' in entry)) return frame
  return { ...frame, lineNumber: entry.originalLine, columnNumber: entry.originalColumn }
}
