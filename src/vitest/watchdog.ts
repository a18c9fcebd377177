/** The thread that stops a test which blocks its thread beyond its time limit. See guard.ts. */
import { writeSync } from 'node:fs'
import { type Debugger, Session } from 'node:inspector'
import { parentPort, workerData } from 'node:worker_threads'
import { stackLines, type Script } from '../machine/node/node-stack.ts'
import { BEAT, CHANGES, clock, DUE, STOPPING, type Stopped, THROW, type WatchdogData } from './sharedwords.ts'

/** If the event loop has not run for this long at a call's deadline, that call blocks it. */
const still_ms = 150
/** Compiled code reaches a safepoint within this time, if there is one. */
const throw_ms = 150
/** The debugger cannot pause native code: after this time the execution is terminated without a stack. */
const pause_ms = 1000
/** An execution that has not ended by then never will. */
const end_ms = 5000
/** A request of the debugger that has no answer for so long is followed by a resume. */
const nudge_ms = 500
/** A thread that has not answered by then never will. */
const answer_ms = 20_000

const { words, base_ms } = workerData as WatchdogData

async function watch(): Promise<never> {
  for (;;) {
    const changes = Atomics.load(words, CHANGES)
    const due_ms = Atomics.load(words, DUE)
    const left_ms = due_ms === 0 ? Infinity : due_ms - clock(base_ms)
    if (left_ms > 0) {
      Atomics.wait(words, CHANGES, changes, left_ms)
      continue
    }
    const beat = Atomics.load(words, BEAT)
    Atomics.wait(words, CHANGES, changes, still_ms)
    if (Atomics.load(words, CHANGES) !== changes || Atomics.load(words, BEAT) !== beat) continue
    // Once for each block: code that catches the error and continues is terminated.
    if (beat !== thrown_at && interrupts(beat)) continue
    await stop(beat)
  }
}

let thrown_at: number | null = null

/** Makes compiled code throw at its next safepoint. Returns false if it reached none. */
function interrupts(beat: number): boolean {
  thrown_at = beat
  Atomics.store(words, THROW, 1)
  for (let waited_ms = 0; waited_ms < throw_ms; waited_ms += still_ms) {
    // A sleep: this word does not change meanwhile.
    Atomics.wait(words, STOPPING, 0, still_ms)
    if (Atomics.load(words, THROW) === 0) return true
  }
  return Atomics.exchange(words, THROW, 0) === 0
}

type Paused = Debugger.PausedEventDataType

/**
 * Stops the test thread, whose BEAT is `beat`, and reports it; unless the running call has time left.
 *
 *   watchdog                                   test thread
 *   requests a pause                           in native code, or without a core
 *   (A) waits for it, with a limit
 *   terminates the execution; waits for a job
 *                                              (B) returns, and pauses after all
 *   (C) resumes each pause but the first       its event loop runs
 *   (D) disables the debugger, and waits       no pause is under way, and none follows
 *   detaches
 *
 * Without (C), nothing would resume the thread. Without (D), it may pause when no session is attached, and
 * nothing would resume it either. (E) On a busy machine a paused thread was seen to wait for a request while
 * the watchdog waited for its answer. So a request without an answer is followed by resumes, which wake it.
 */
async function stop(beat: number): Promise<void> {
  const session = new Session()
  session.connectToMainThread()
  try {
    const scripts = new Map<string, Script>()
    session.on('Debugger.scriptParsed', ({ params: { scriptId, url, sourceMapURL = '' } }) => {
      scripts.set(scriptId, { url, sourceMapURL })
    })
    const paused = new Promise<Paused>(resolve =>
      session.on('Debugger.paused', ({ params }) => resolve(params)),
    )
    session.post('Debugger.enable')
    session.post('Debugger.pause')
    const at = await within(pause_ms, paused) // (A)
    session.on('Debugger.paused', () => session.post('Debugger.resume')) // (C)
    const running = at === null ? null : await runningIn(session, at)
    const hasTime = running !== null && running[1] > clock(base_ms)
    if (!hasTime) {
      Atomics.store(words, STOPPING, 1)
      session.post('Runtime.terminateExecution')
    }
    await answerTo(session, done => session.post('Debugger.resume', done))
    if (hasTime) {
      Atomics.wait(words, CHANGES, Atomics.load(words, CHANGES), running[1] - clock(base_ms))
      return
    }
    const turned = await within(end_ms, loopTurns(beat))
    if (turned === null) giveUp()
    const stack = at === null ? [] : stackLines(at.callFrames, scripts)
    parentPort!.postMessage({ id: running?.[0] ?? null, stack } satisfies Stopped)
  } finally {
    await answerTo(session, done => session.post('Debugger.disable', done)) // (D)
    session.disconnect()
  }
}

/**
 * Which of several concurrent calls runs on the paused thread, and its deadline; null if there is only one.
 */
async function runningIn(session: Session, { callFrames }: Paused): Promise<[number, number] | null> {
  const expression = "JSON.stringify(globalThis[Symbol.for('heddle.vitest.running')]?.() ?? null)"
  const { callFrameId } = callFrames[0]!
  let running: [number, number] | null = null
  await answerTo(session, done =>
    session.post(
      'Debugger.evaluateOnCallFrame',
      { callFrameId, expression, silent: true },
      (error, answer) => {
        // An execution that ends while it is asked has no value.
        const value: unknown = error === null ? answer.result.value : undefined
        if (typeof value === 'string') running = JSON.parse(value) as [number, number] | null
        done()
      },
    ),
  )
  return running
}

/** Resolves with the answer to a request, after nudges if it does not come. */
async function answerTo(session: Session, request: (done: () => void) => void): Promise<void> {
  const answer = new Promise<true>(resolve => request(() => resolve(true)))
  for (let waited_ms = 0; waited_ms < answer_ms; waited_ms += nudge_ms) {
    if ((await within(nudge_ms, answer)) !== null) return
    session.post('Debugger.resume') // (E)
  }
  giveUp()
}

async function loopTurns(beat: number): Promise<true> {
  while (Atomics.load(words, BEAT) === beat) await later(5)
  return true
}

function giveUp(): never {
  writeSync(
    2,
    'heddle/vitest: a test keeps its thread beyond its timeout, inside native code that cannot be stopped; its process is ended\n',
  )
  process.kill(process.pid, 'SIGKILL')
  throw new Error('unreachable')
}

function later(ms: number): Promise<null> {
  return new Promise(resolve => setTimeout(resolve, ms, null))
}

function within<T>(ms: number, promise: Promise<T>): Promise<T | null> {
  return Promise.race([promise, later(ms)])
}

void watch()
