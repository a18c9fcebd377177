import type { AsyncEvent, EventKind } from './agenda.ts'
import type { Execution } from './execution.ts'

const LONGEST_MS = 2 ** 31 - 1

/** As Node does: a value that is not a valid delay is 1 ms. */
function millisecondsOf(delay: unknown): number {
  const ms = Number(delay)
  return ms >= 1 && ms <= LONGEST_MS ? Math.trunc(ms) : 1
}

type Callback = (...args: unknown[]) => void

/** The result of setTimeout, setInterval and setImmediate inside a check. */
class VirtualTimer {
  private event: AsyncEvent | undefined
  private kept: boolean
  private readonly execution: Execution
  private readonly kind: EventKind
  private readonly delay: number
  private readonly callback: () => void
  private readonly id: number

  constructor(execution: Execution, id: number, kind: EventKind, delay: number, callback: () => void) {
    this.execution = execution
    this.id = id
    this.kind = kind
    this.delay = delay
    this.callback = callback
    // An interval never ends, so it does not keep an execution open.
    this.kept = kind !== 'interval'
    this.arm()
  }

  private arm(): void {
    const { execution, kind, delay } = this
    const isImmediate = kind === 'immediate'
    this.event = execution.add({
      kind,
      name: isImmediate ? 'immediate' : `${kind} ${delay} ms`,
      task: execution.task,
      time: isImmediate ? 'bounded' : 'exact',
      // The next turn of the event loop is soon, but a timer of 1 ms may be due before it.
      delay: isImmediate ? 1 : delay,
      line: isImmediate ? 'immediate' : undefined,
      keeps: this.kept,
      happen: () => this.fire(),
    })
  }

  private fire(): void {
    const { event } = this
    if (this.kind !== 'interval') this.event = undefined
    try {
      this.callback()
    } finally {
      if (this.kind === 'interval' && this.event === event) this.arm()
    }
  }

  clear(): void {
    if (this.event !== undefined) this.execution.agenda.remove(this.event)
    this.event = undefined
  }

  close(): this {
    this.clear()
    return this
  }

  refresh(): this {
    const armed = this.event
    if (armed !== undefined) this.execution.agenda.remove(armed)
    if (armed !== undefined || this.kind === 'timeout') this.arm()
    return this
  }

  ref(): this {
    return this.keep(this.kind !== 'interval', true)
  }

  unref(): this {
    return this.keep(false, false)
  }

  hasRef(): boolean {
    return this.referenced
  }

  private referenced = true

  private keep(kept: boolean, referenced: boolean): this {
    this.kept = kept
    this.referenced = referenced
    if (this.event !== undefined) this.event.keeps = kept
    return this
  }

  [Symbol.toPrimitive](): number {
    return this.id
  }

  [Symbol.dispose](): void {
    this.clear()
  }
}

/** The timers of one execution, as globals and as `node:timers/promises` has them. */
export class Timers {
  private readonly known = new Map<number, VirtualTimer>()
  private readonly execution: Execution

  constructor(execution: Execution) {
    this.execution = execution
  }

  start(kind: EventKind, callback: unknown, delay: unknown, args: readonly unknown[]): VirtualTimer {
    if (typeof callback !== 'function') {
      const error = new TypeError('The "callback" argument must be of type function.')
      throw Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' })
    }
    const id = this.known.size + 1
    const call = this.execution.host.bind(() => (callback as Callback)(...args))
    const timer = new VirtualTimer(
      this.execution,
      id,
      kind,
      kind === 'immediate' ? 0 : millisecondsOf(delay),
      call,
    )
    this.known.set(id, timer)
    return timer
  }

  /** Clears a timer. False if it does not belong to this execution. */
  clear(timer: unknown): boolean {
    const known = timer instanceof VirtualTimer ? timer : this.known.get(Number(timer))
    known?.clear()
    return known !== undefined
  }

  /** `setTimeout` and `setImmediate` of `node:timers/promises`. */
  async wait(kind: EventKind, delay: unknown, value: unknown, options: WaitOptions = {}): Promise<unknown> {
    const { signal } = options
    if (signal?.aborted === true) throw aborted(signal)
    return await new Promise((resolve, reject) => {
      const timer = this.start(
        kind,
        () => {
          signal?.removeEventListener('abort', abort)
          resolve(value)
        },
        delay,
        [],
      )
      if (options.ref === false) timer.unref()
      const abort = (): void => {
        timer.clear()
        reject(aborted(signal))
      }
      signal?.addEventListener('abort', abort, { once: true })
    })
  }

  /** `setInterval` of `node:timers/promises`. */
  async *every(
    delay: unknown,
    value: unknown,
    options: WaitOptions = {},
  ): AsyncGenerator<unknown, void, void> {
    const { signal } = options
    if (signal?.aborted === true) throw aborted(signal)
    let ticks = 0
    let wake: (() => void) | undefined
    const timer = this.start(
      'interval',
      () => {
        ticks++
        wake?.()
      },
      delay,
      [],
    )
    const abort = (): void => wake?.()
    signal?.addEventListener('abort', abort, { once: true })
    try {
      for (;;) {
        if ((signal as AbortSignal | undefined)?.aborted === true) throw aborted(signal)
        if (ticks === 0)
          await new Promise<void>(resolve => {
            wake = resolve
          })
        for (; ticks > 0; ticks--) yield value
      }
    } finally {
      timer.clear()
      signal?.removeEventListener('abort', abort)
    }
  }
}

export interface WaitOptions {
  readonly signal?: AbortSignal
  readonly ref?: boolean
}

function aborted(signal: AbortSignal | undefined): Error {
  const error = new Error('The operation was aborted', { cause: signal?.reason })
  error.name = 'AbortError'
  return Object.assign(error, { code: 'ABORT_ERR' })
}
