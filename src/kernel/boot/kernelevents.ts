import type { CpuDeath } from '../../machine/core/machine.ts'
import type { UnjoinedFailure } from '../join/collector.ts'
import type { Deadlock } from '../recovery/deadlock.ts'
import type { CrashLoopError, KernelFaultError, RecoveryError, ThreadLeftError } from '../join/errors.ts'

/**
 * A task has kept its CPU for too long: it runs code without safepoints, or the event loop runs what follows
 * its awaits and does not come to an end.
 */
export interface StuckTask {
  readonly name: string
  /** The task's id; 0: it has ended meanwhile. */
  readonly id: number
  readonly cpu: number
  /** What has the CPU's thread: the task's own code, or the event loop. */
  readonly where: 'task' | 'event loop'
  /** Milliseconds since its CPU was asked to reschedule. */
  readonly ms: number
  /** Its CPU is being taken from it. */
  readonly evicted: boolean
  /** Where it is, as the stack of an error; null where that cannot be seen: in native code, in a browser. */
  readonly stack: string | null
}

export interface KernelEvents {
  /**
   * A task has failed, and nobody had asked how it would end. With a listener, the program is not told of it
   * otherwise.
   */
  failure: UnjoinedFailure
  /** The watchdog found a task without safepoints. */
  stuck: StuckTask
  /**
   * Tasks or threads wait for each other in a circle. Found within a second; without a listener it is a
   * warning.
   */
  deadlock: Deadlock
  /** A CPU has died. What it left is being seen to. */
  death: CpuDeath
  /** A CPU that had died is back. */
  restart: { readonly cpu: number }
  /**
   * Code on a CPU has called `parentPort.postMessage`, in a browser `postMessage`: what
   * `worker.on('message')` hears elsewhere.
   */
  message: { readonly cpu: number; readonly message: unknown }
  /** A CPU takes tasks that did not before: one more is needed, or one that died is back. */
  online: { readonly cpu: number }
  /** A CPU takes no more tasks: it had nothing to do, and there are enough without it. */
  offline: { readonly cpu: number }
  /**
   * The kernel has lost something for good: a CPU, the means to recover from a death, or itself; or it has
   * closed and a thread is still there. Without a listener it is printed as a warning.
   */
  error: CrashLoopError | KernelFaultError | RecoveryError | ThreadLeftError
}

/** Who listens to what of a kernel. */
export class KernelListeners {
  private readonly listeners = new Map<keyof KernelEvents, Set<(event: never) => void>>()
  private readonly watchers = new Map<keyof KernelEvents, Set<(event: never) => void>>()

  /** What is returned ends it. */
  add<K extends keyof KernelEvents>(event: K, listener: (event: KernelEvents[K]) => void): () => void {
    const heard = this.listeners.get(event) ?? new Set()
    heard.add(listener)
    this.listeners.set(event, heard)
    return () => heard.delete(listener)
  }

  /** As `add`, for what only looks on: a failure that nobody else hears of is still told to the program. */
  watch<K extends keyof KernelEvents>(event: K, watcher: (event: KernelEvents[K]) => void): () => void {
    const watching = this.watchers.get(event) ?? new Set()
    watching.add(watcher)
    this.watchers.set(event, watching)
    return () => watching.delete(watcher)
  }

  /** False: nobody listens. */
  tell<K extends keyof KernelEvents>(event: K, about: KernelEvents[K]): boolean {
    for (const watcher of this.watchers.get(event) ?? []) call(watcher, about)
    const heard = this.listeners.get(event)
    if (heard === undefined || heard.size === 0) return false
    for (const listener of heard) call(listener, about)
    return true
  }
}

/**
 * What a listener throws is an uncaught error of the program's. The kernel, which is in the middle of
 * something, goes on.
 */
function call(listener: (event: never) => void, about: unknown): void {
  try {
    listener(about as never)
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}

interface Globals {
  readonly process?: { emitWarning?(message: string, options: { type: string; code: string }): void }
}

/** Tells whoever runs the program of something that is probably not meant. */
export function warn(message: string, code: string): void {
  const { process } = globalThis as unknown as Globals
  if (process?.emitWarning === undefined) console.warn(message)
  else process.emitWarning(message, { type: 'HeddleWarning', code })
}
