import { endsWithin } from '../timekeeper/alarm.ts'
import { ownFolder } from '../core/ownfolder.ts'
import { SourceMap, type SourceMapPayload } from 'node:module'
import type { Worker } from 'node:worker_threads'

/**
 * The stack of a thread that does not answer: the inspector stops it for a moment, in whatever JavaScript it
 * runs. A thread that is inside native code (a long regular expression, a blocking call) stops when it comes
 * back, which may be too late for the caller.
 *
 *   caller                                     the thread
 *   ------                                     ----------
 *   asks for a pause
 *   (A) waits for an answer, not for ever      in native code, or without a core
 *   detaches
 *                                              (B) pauses: no session is attached that would tell it to go on
 *
 * Detaching from a thread that is stopped does not always let it go on either. So the session stays, for as
 * long as it takes, until the thread says that it has resumed, or has ended. Only the caller waits no longer
 * than (A).
 */
const ANSWER_MS = 1000

/** A call on a thread that is stopped, as the inspector tells it. */
export interface CallFrame {
  readonly functionName: string
  /** Both from 0. */
  readonly location: {
    readonly scriptId: string
    readonly lineNumber: number
    readonly columnNumber?: number
  }
}

interface Message {
  readonly method?: string
  readonly params?: {
    readonly callFrames?: readonly CallFrame[]
    readonly scriptId?: string
    readonly url?: string
    readonly sourceMapURL?: string
  }
}

/**
 * The lines of the stack, innermost first, as an error's; null: the thread did not stop in time, or is being
 * debugged.
 */
export async function stackOfThread(worker: Worker, answerMs: number = ANSWER_MS): Promise<string[] | null> {
  let late: ReturnType<typeof setTimeout> | undefined
  const tooLate = new Promise<null>(resolve => (late = setTimeout(() => resolve(null), answerMs)))
  const stack = await Promise.race([looks.get(worker) ?? look(worker), tooLate])
  clearTimeout(late)
  return stack
}

/**
 * Looks that are under way: one for each thread, for all callers. A session that sees the pause of another
 * would take it for its own.
 */
const looks = new WeakMap<Worker, Promise<string[] | null>>()

/** When each of them has let its thread go on. */
const ends = new WeakMap<Worker, Promise<void>>()

function look(worker: Worker): Promise<string[] | null> {
  let ended = (): void => undefined
  ends.set(worker, new Promise(resolve => (ended = resolve)))
  const looking = stackByInspector(worker, () => {
    looks.delete(worker)
    ends.delete(worker)
    ended()
  })
  looks.set(worker, looking)
  return looking
}

/**
 * Terminates a thread, and not while a session is attached to it: Node 26 crashes of that (a segmentation
 * fault in six of six processes, within 25 threads each). A thread that does not answer the session is
 * terminated all the same, after ANSWER_MS.
 *
 * Node does not end a thread that a debugger has stopped: it waits for a session that tells the thread to go
 * on. So a thread that is still there after ANSWER_MS is told that. While the program itself is debugged
 * (`--inspect`), its user decides.
 */
export async function terminateUnseen(worker: Worker): Promise<void> {
  const ended = ends.get(worker)
  if (ended !== undefined) await endsWithin(ended, ANSWER_MS)
  const gone = worker.terminate()
  if (!(await endsWithin(gone, ANSWER_MS))) await tellToGoOn(worker)
  await gone
}

/**
 * Resumes the thread, whichever session has stopped it. This session stays until the thread runs, or is gone:
 * one in native code answers when it comes back.
 */
async function tellToGoOn(worker: Worker): Promise<void> {
  const inspector = await import('node:inspector')
  if (inspector.url() !== undefined) return
  const session = new inspector.Session()
  session.connect()
  const detach = (): void => {
    worker.off('exit', detach)
    session.post('NodeWorker.disable', () => session.disconnect())
  }
  if (worker.threadId < 0) return detach()
  worker.once('exit', detach)
  onAttached(session, worker, (send, hear) => {
    hear(({ method }) => {
      if (method === 'Debugger.paused') send('Debugger.resume')
      if (method === 'Debugger.resumed') detach()
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
  return frames === null ? null : linesOf(frames, scripts)
}

/** What the thread has told of a script. */
export interface Script {
  readonly url: string
  readonly sourceMapURL: string
}

/**
 * This package's own code, but for what it exports to tasks: below the first of it nothing belongs to the
 * task.
 */
const machinery = new RegExp(`^${ownFolder}(?:machine|sched|coroutine|kernel|vitest)/.*$`)

/** The lines of a stack as they were written, without what is Node's or this package's around them. */
export function linesOf(frames: readonly CallFrame[], scripts: ReadonlyMap<string, Script>): string[] {
  const lines: string[] = []
  for (const { functionName, location } of frames) {
    const { lineNumber, columnNumber = 0, scriptId } = location
    const { url, sourceMapURL } = scripts.get(scriptId) ?? { url: '', sourceMapURL: '' }
    const isMachinery = machinery.test(url) || url.startsWith('node:')
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

/** `stopped`: these are its frames. `ended`, once: it runs again, or it is gone. */
function stop(
  session: import('node:inspector').Session,
  worker: Worker,
  scripts: Map<string, Script>,
  stopped: (frames: readonly CallFrame[] | null) => void,
  ended: () => void,
): void {
  const gone = (): void => {
    worker.off('exit', gone)
    stopped(null)
    ended()
  }
  // One that has ended has no number, and nothing is told of it.
  if (worker.threadId < 0) return gone()
  worker.once('exit', gone)
  onAttached(session, worker, (send, hear) => {
    hear(({ method, params: told }) => {
      if (method === 'Debugger.scriptParsed') {
        scripts.set(told!.scriptId!, { url: told!.url ?? '', sourceMapURL: told!.sourceMapURL ?? '' })
      }
      if (method === 'Debugger.resumed') {
        worker.off('exit', gone)
        ended()
      }
      if (method !== 'Debugger.paused') return
      send('Debugger.resume')
      stopped(told?.callFrames ?? [])
    })
    send('Debugger.enable')
    send('Debugger.pause')
  })
}

/**
 * Attaches the session to the thread. `attached` is given how to send it a method, and how to hear what it
 * says.
 */
function onAttached(
  session: import('node:inspector').Session,
  { threadId }: Worker,
  attached: (send: (method: string) => void, hear: (listener: (message: Message) => void) => void) => void,
): void {
  session.on('NodeWorker.attachedToWorker', ({ params }) => {
    // The inspector counts sessions; the thread's own number stands in the title: [worker 3] heddle cpu 1.
    if (!params.workerInfo.title.startsWith(`[worker ${threadId}]`)) return
    const { sessionId } = params
    let id = 0
    attached(
      method => {
        const message = JSON.stringify({ id: ++id, method })
        session.post('NodeWorker.sendMessageToWorker', { sessionId, message })
      },
      listener =>
        session.on('NodeWorker.receivedMessageFromWorker', received => {
          if (received.params.sessionId === sessionId)
            listener(JSON.parse(received.params.message) as Message)
        }),
    )
  })
  session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
}

/** The map that stands in the script itself: what the compiler's loader writes there. */
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
