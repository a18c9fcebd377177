import type { Co } from './co.ts'

/**
 * Who listens to the progress of which coroutine. What is told during a slice is heard after it, the last of
 * it.
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

/** A listener that throws is an unhandled rejection, and stops nobody else. */
export function callSafely(listener: () => void): void {
  try {
    listener()
  } catch (error) {
    void Promise.reject(error)
  }
}
