import type { EventEmitter } from 'node:events'

/** An AbortSignal, or an object like one. */
export interface AbortSignalEventTarget {
  addEventListener(name: 'abort', listener: () => void, options?: { once: boolean }): void
  removeEventListener(name: 'abort', listener: () => void): void
  aborted?: boolean
  reason?: unknown
}

interface AbortSignalEventEmitter {
  off(name: 'abort', listener: () => void): void
  once(name: 'abort', listener: () => void): void
}

export type AbortSignalAny = AbortSignalEventTarget | AbortSignalEventEmitter

/** The rejection of an aborted task; `cause` is the signal's reason. */
export class AbortError extends Error {
  constructor(reason?: unknown) {
    super('The task has been aborted', { cause: reason })
  }

  override get name(): string {
    return 'AbortError'
  }
}

/** Calls the listener when the signal is aborted. Returns a function that removes it. */
export function onAbort(signal: AbortSignalAny, listener: () => void): () => void {
  if ('addEventListener' in signal) {
    signal.addEventListener('abort', listener, { once: true })
    return () => signal.removeEventListener('abort', listener)
  }
  signal.once('abort', listener)
  return () => void (signal as EventEmitter).removeListener('abort', listener)
}
