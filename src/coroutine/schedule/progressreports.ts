import type { Co } from './co.ts'

/**
 * The listeners for the progress of coroutines. A listener receives the last report of each slice, after it.
 */
export class ProgressReports {
  readonly #listeners = new Map<Co<any>, (value: any) => void>()
  #told: Co<any> | null = null

  listen(co: Co<any>, listener: (value: any) => void): void {
    this.#listeners.set(co, listener)
  }

  tell(co: Co<any>, value: unknown): void {
    co.progress = value
    this.#told = co
  }

  /** Between two slices. */
  deliver(): void {
    const co = this.#told
    if (co === null) return
    this.#told = null
    const listener = this.#listeners.get(co)
    if (listener !== undefined) callSafely(() => listener(co.progress))
  }

  forget(co: Co<any>): void {
    this.#listeners.delete(co)
  }
}

/** An error of a listener becomes an unhandled rejection, and the other listeners still run. */
export function callSafely(listener: () => void): void {
  try {
    listener()
  } catch (error) {
    void Promise.reject(error)
  }
}
