import { endsWithin } from '../timekeeper/alarm.ts'
import { ownFolder } from '../core/ownfolder.ts'
import { SourceMap, type SourceMapPayload } from 'node:module'
import type { Worker } from 'node:worker_threads'

/**
 * Gets the stack of a thread that does not answer: the inspector pauses it briefly in its JavaScript code. A
 * thread inside native code (a long regular expression, a blocking call) pauses when that returns, which may
 * be too late for the caller.
 *
 *   caller                                     target thread
 *   ------                                     -------------
 *   requests a pause
 *   (A) waits for an answer, with a limit      in native code, or without a core
 *   detaches
 *                                              (B) pauses: no session is attached to resume it
 *
 * Detaching from a paused thread does not always resume it either. So the session stays attached until the
 * thread reports that it has resumed or ended. Only the caller stops waiting, at the limit of (A).
 *
 * V8 also pauses by itself: a thread whose debugger is enabled, when its heap is full. So the debugger is
 * disabled together with the resumption (C), and the session stays until the thread has done both. Otherwise:
 *
 *   caller                                     target thread
 *   ------                                     -------------
 *   resumes it, and detaches
 *                                              its heap is full: it pauses, instead of dying
 *
 * Node reports each thread while it walks its list of threads. A thread that ends removes itself from the
 * list as soon as any JavaScript runs, and Node continues at freed memory. So the listener only notes the
 * thread, and the first message to it is sent in a microtask (D), when the walk is over.
 */
const ANSWER_MS = 1000

/** A call on a paused thread, as the inspector reports it. */
export interface CallFrame {
  readonly functionName: string
  /** Both numbers count from 0. */
  readonly location: {
    readonly scriptId: string
    readonly lineNumber: number
    readonly columnNumber?: number
  }
}

interface Message {
  /** The number of the request that this answers. */
  readonly id?: number
  readonly method?: string
  readonly params?: {
    readonly callFrames?: readonly CallFrame[]
    readonly scriptId?: string
    readonly url?: string
    readonly sourceMapURL?: string
  }
}

/**
 * The lines of the stack as in an Error, innermost first; null: the thread did not pause in time, or is being
 * debugged.
 */
export async function stackOfThread(worker: Worker, answerMs: number = ANSWER_MS): Promise<string[] | null> {
  let late: ReturnType<typeof setTimeout> | undefined
  const tooLate = new Promise<null>(resolve => (late = setTimeout(() => resolve(null), answerMs)))
  const stack = await Promise.race([pauses.get(worker) ?? pause(worker), tooLate])
  clearTimeout(late)
  return stack
}

/**
 * Pauses under way: one for each thread, shared by all callers. A session that sees the pause of another
 * session would take it for its own.
 */
const pauses = new WeakMap<Worker, Promise<string[] | null>>()

/** For each paused thread, a promise that resolves when it has resumed or ended. */
const resumptions = new WeakMap<Worker, Promise<void>>()

function pause(worker: Worker): Promise<string[] | null> {
  let ended = (): void => undefined
  resumptions.set(worker, new Promise(resolve => (ended = resolve)))
  const looking = stackByInspector(worker, () => {
    pauses.delete(worker)
    resumptions.delete(worker)
    ended()
  })
  pauses.set(worker, looking)
  return looking
}

/**
 * Terminates a thread, but not while a session is attached to it: Node 26 crashes then (a segmentation fault
 * in six of six processes, within 25 threads each). A thread that does not answer the session is terminated
 * after ANSWER_MS.
 *
 * Node does not end a thread that a debugger has paused: it waits for a session that resumes the thread. So a
 * thread that still exists after ANSWER_MS is resumed. While the program itself is debugged (`--inspect`),
 * its user decides.
 */
export async function terminateThread(worker: Worker): Promise<void> {
  const ended = resumptions.get(worker)
  if (ended !== undefined) await endsWithin(ended, ANSWER_MS)
  const gone = worker.terminate()
  if (!(await endsWithin(gone, ANSWER_MS))) await resumeThread(worker)
  await gone
}

/**
 * Resumes the thread, whichever session has paused it. This session stays until the thread runs or is gone: a
 * thread in native code answers when that returns. The thread is about to end: it gets no message after its
 * resumption, because Node aborts when a message finds the thread half gone.
 */
async function resumeThread(worker: Worker): Promise<void> {
  const inspector = await import('node:inspector')
  if (inspector.url() !== undefined) return
  const session = new inspector.Session()
  session.connect()
  const over = new AbortController()
  const detach = (): void => {
    over.abort()
    session.post('NodeWorker.disable', () => session.disconnect())
  }
  if (worker.threadId < 0) return detach()
  worker.once('exit', detach)
  onAttached(session, worker, over.signal, (send, hear) => {
    hear(({ method }) => {
      if (method === 'Debugger.paused') send('Debugger.resume')
    })
    send('Debugger.enable')
  })
}

async function stackByInspector(worker: Worker, ended: () => void): Promise<string[] | null> {
  const inspector = await import('node:inspector')
  if (inspector.url() !== undefined) {
    ended()
    return null
  }
  const session = new inspector.Session()
  session.connect()
  const scripts = new Map<string, Script>()
  const frames = await new Promise<readonly CallFrame[] | null>(resolve => {
    stop(session, worker, scripts, resolve, () => {
      session.post('NodeWorker.disable', () => {
        session.disconnect()
        ended()
      })
    })
  })
  return frames === null ? null : stackLines(frames, scripts)
}

/** A script, as the thread reports it. */
export interface Script {
  readonly url: string
  readonly sourceMapURL: string
}

/**
 * Modules of this package that are not part of its interface for tasks: from the first of their frames
 * outwards no frame belongs to the task.
 */
const ownCode = new RegExp(`^${ownFolder}(?:machine|sched|coroutine|kernel|vitest)/.*$`)

/**
 * The lines of a stack with their original positions, without the frames of Node and of this package around
 * them.
 */
export function stackLines(frames: readonly CallFrame[], scripts: ReadonlyMap<string, Script>): string[] {
  const lines: string[] = []
  for (const { functionName, location } of frames) {
    const { lineNumber, columnNumber = 0, scriptId } = location
    const { url, sourceMapURL } = scripts.get(scriptId) ?? { url: '', sourceMapURL: '' }
    const isMachinery = ownCode.test(url) || url.startsWith('node:')
    if (isMachinery && lines.length === 0) continue
    if (isMachinery) break
    const origin = mapOf(sourceMapURL)?.findEntry(lineNumber, columnNumber)
    const isKnown = origin !== undefined && 'originalLine' in origin
    const row = isKnown ? origin.originalLine : lineNumber
    const column = isKnown ? origin.originalColumn : columnNumber
    lines.push(`    at ${functionName || '<anonymous>'} (${url}:${row + 1}:${column + 1})`)
  }
  return lines
}

/** Calls `stopped` with the frames of the paused thread, and `ended` once, when it runs again or is gone. */
function stop(
  session: import('node:inspector').Session,
  worker: Worker,
  scripts: Map<string, Script>,
  stopped: (frames: readonly CallFrame[] | null) => void,
  ended: () => void,
): void {
  const over = new AbortController()
  const end = (): void => {
    worker.off('exit', gone)
    over.abort()
    ended()
  }
  const gone = (): void => {
    stopped(null)
    end()
  }
  // A thread that has ended has no number, and sends no events.
  if (worker.threadId < 0) return gone()
  worker.once('exit', gone)
  onAttached(session, worker, over.signal, (send, hear) => {
    let last = 0
    hear(({ id, method, params: event }) => {
      if (method === 'Debugger.scriptParsed') {
        scripts.set(event!.scriptId!, { url: event!.url ?? '', sourceMapURL: event!.sourceMapURL ?? '' })
      }
      if (id !== undefined && id === last) return end()
      if (method !== 'Debugger.paused') return
      // (C) One message, which resumes the thread too: it may end as soon as it runs.
      last = send('Debugger.disable')
      stopped(event?.callFrames ?? [])
    })
    send('Debugger.enable')
    send('Debugger.pause')
  })
}

/**
 * Attaches the session to the thread. `attached` receives one function that sends a method to the thread and
 * returns its number, and one that subscribes to the thread's messages. Nothing is called after `over`: the
 * session may have no connection then.
 */
function onAttached(
  session: import('node:inspector').Session,
  { threadId }: Worker,
  over: AbortSignal,
  attached: (send: (method: string) => number, hear: (listener: (message: Message) => void) => void) => void,
): void {
  session.on('NodeWorker.attachedToWorker', ({ params }) => {
    // The inspector counts sessions; the title contains the thread's own number: [worker 3] heddle cpu 1.
    if (!params.workerInfo.title.startsWith(`[worker ${threadId}]`)) return
    const { sessionId } = params
    let id = 0
    const send = (method: string): number => {
      const message = JSON.stringify({ id: ++id, method })
      session.post('NodeWorker.sendMessageToWorker', { sessionId, message })
      return id
    }
    const hear = (listener: (message: Message) => void): void => {
      session.on('NodeWorker.receivedMessageFromWorker', received => {
        if (received.params.sessionId !== sessionId) return
        queueMicrotask(() => {
          if (!over.aborted) listener(JSON.parse(received.params.message) as Message)
        })
      })
    }
    queueMicrotask(() => {
      if (!over.aborted) attached(send, hear) // (D)
    })
  })
  session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
}

/** The source map inside the script itself, as the compiler's loader writes it. */
function mapOf(url: string): SourceMap | undefined {
  const data = /^data:application\/json[^,]*?(;base64)?,(.*)$/s.exec(url)
  if (data === null) return undefined
  const text = data[1] === undefined ? decodeURIComponent(data[2]) : Buffer.from(data[2], 'base64').toString()
  try {
    return new SourceMap(JSON.parse(text) as SourceMapPayload)
  } catch {
    return undefined
  }
}
