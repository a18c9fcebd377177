import { show } from '../../coroutine/core/knownoptions.ts'
import type { CpuDeath } from '../../machine/core/machine.ts'
import type { UnjoinedFailure } from '../join/collector.ts'
import type { Deadlock } from '../recovery/deadlock.ts'
import type { CrashLoopError, KernelFaultError, RecoveryError, ThreadLeftError } from '../join/errors.ts'

/**
 * A task has kept its CPU for too long: it runs code without safepoints, or the event loop runs the
 * continuations of its awaits without end.
 */
export interface StuckTask {
  readonly name: string
  /** The task's id; 0: it has ended in the meantime. */
  readonly id: number
  readonly cpu: number
  /** What occupies the CPU's thread: the task's own code, or the event loop. */
  readonly where: 'task' | 'event loop'
  /** Milliseconds since its CPU was asked to reschedule. */
  readonly ms: number
  /** Its CPU is being taken from it. */
  readonly evicted: boolean
  /**
   * The stack of the task, as that of an error; null if it is not available: in native code, in a browser.
   */
  readonly stack: string | null
}

export interface KernelEvents {
  /** A task has failed, and nothing had joined it. With a listener, the failure is not reported otherwise. */
  failure: UnjoinedFailure
  /** The watchdog has found a task without safepoints. */
  stuck: StuckTask
  /**
   * Tasks or threads wait for each other in a cycle. Found within a second; without a listener it is a
   * warning.
   */
  deadlock: Deadlock
  /** A CPU has died. Recovery is under way. */
  death: CpuDeath
  /** A CPU that had died was replaced. */
  restart: { readonly cpu: number }
  /**
   * Code on a CPU has called `parentPort.postMessage`, in a browser `postMessage`. Without heddle it would be
   * a 'message' event of the worker.
   */
  message: { readonly cpu: number; readonly message: unknown }
  /** A CPU begins to take tasks: one more was needed, or a dead one was replaced. */
  online: { readonly cpu: number }
  /** A CPU takes no more tasks: it was idle, and there are enough without it. */
  offline: { readonly cpu: number }
  /**
   * The kernel has lost a CPU, the ability to recover from a death, or itself for good; or it has closed and
   * a thread still exists. Without a listener it is printed as a warning.
   */
  error: CrashLoopError | KernelFaultError | RecoveryError | ThreadLeftError
}

/** The listeners of a kernel. */
export class KernelListeners {
  private readonly listeners = new Map<keyof KernelEvents, Set<(event: never) => void>>()
  private readonly watchers = new Map<keyof KernelEvents, Set<(event: never) => void>>()

  /** Returns a function that removes the listener. */
  add<K extends keyof KernelEvents>(event: K, listener: (event: KernelEvents[K]) => void): () => void {
    checkListener('kernel.on', event, kernelEvents, listener)
    const heard = this.listeners.get(event) ?? new Set()
    heard.add(listener)
    this.listeners.set(event, heard)
    return () => heard.delete(listener)
  }

  /** As `add`, for an observer: a failure without other listeners is still reported to the program. */
  watch<K extends keyof KernelEvents>(event: K, watcher: (event: KernelEvents[K]) => void): () => void {
    const watching = this.watchers.get(event) ?? new Set()
    watching.add(watcher)
    this.watchers.set(event, watching)
    return () => watching.delete(watcher)
  }

  /** False: there is no listener. */
  emit<K extends keyof KernelEvents>(event: K, about: KernelEvents[K]): boolean {
    for (const watcher of this.watchers.get(event) ?? []) callListener(watcher, about)
    const heard = this.listeners.get(event)
    if (heard === undefined || heard.size === 0) return false
    for (const listener of heard) callListener(listener, about)
    return true
  }
}

const kernelEvents: Readonly<Record<keyof KernelEvents, true>> = {
  failure: true,
  stuck: true,
  deadlock: true,
  death: true,
  restart: true,
  message: true,
  online: true,
  offline: true,
  error: true,
}

/** Refuses an event that does not exist, which would never be heard, and a listener that is no function. */
export function checkListener(
  what: string,
  event: string,
  events: Readonly<Record<string, true>>,
  listener: unknown,
): void {
  if (typeof event !== 'string' || !Object.hasOwn(events, event))
    throw new TypeError(
      `${what}(${show(event)}): there is no such event; give ${Object.keys(events).join(', ')}`,
    )
  if (typeof listener !== 'function')
    throw new TypeError(
      `${what}('${event}', ${show(listener)}): the listener is not a function; give a function`,
    )
}

/**
 * An error of a listener is an uncaught error of the program. The kernel, which may be in the middle of an
 * operation, goes on.
 */
export function callListener(listener: (event: never) => void, about: unknown): void {
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

/** Warns the user of a probable mistake. */
export function warn(message: string, code: string): void {
  const { process } = globalThis as unknown as Globals
  if (process?.emitWarning === undefined) console.warn(message)
  else process.emitWarning(message, { type: 'HeddleWarning', code })
}
