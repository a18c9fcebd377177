/**
 * The clocks and timers of a program that runs in virtual time: `performance.now`, `Date`, `Math.random`,
 * `setTimeout` and `setInterval` all depend on the simulated machine and the seed, so two runs do the same
 * things at the same times.
 *
 * While a machine runs, its driver advances the time: it fires due timers, and jumps to the next timer when
 * the machine is idle. While no machine runs, the timers advance the time themselves.
 */
export interface TimeSource {
  now(): number
}

/** `Date` at the start of a run: the first moment of the year 2000. */
const EPOCH_MS = 946_684_800_000

interface Timer {
  readonly id: number
  due: number
  readonly every: number | null
  readonly call: () => void
  readonly order: number
}

type Globals = Record<'performance' | 'Math' | 'Date', any> & Record<string, unknown>

export class VirtualTimers {
  private readonly timers = new Map<number, Timer>()
  private readonly defer: (call: () => void) => void
  private source: TimeSource | null = null
  private time = 0
  /** How far the program's time is ahead of the followed clock. */
  private ahead = 0
  private ids = 0
  private orders = 0
  private isPumping = false
  private random: number

  /** `defer` calls its argument after one turn of the event loop. */
  constructor(seed: number, defer: (call: () => void) => void) {
    this.random = seed | 0
    this.defer = defer
  }

  /** Milliseconds since the start. */
  now(): number {
    if (this.source !== null) this.time = Math.max(this.time, this.source.now() + this.ahead)
    return this.time
  }

  /** Follows a machine's time from now on; null: the machine has closed. */
  follow(source: TimeSource | null): void {
    const now = this.now()
    this.source = source
    this.ahead = source === null ? 0 : now - source.now()
    this.pump()
  }

  /** When the next timer is due, on the followed clock; Infinity: there is no timer. */
  get next(): number {
    return (this.earliest()?.due ?? Infinity) - this.ahead
  }

  get pending(): boolean {
    return this.timers.size > 0
  }

  /**
   * Fires the timers that are due, the earliest first. With `jump`, at least one: nothing else can happen
   * before it.
   */
  fire(jump: boolean): void {
    for (let fired = 0; ; fired++) {
      const timer = this.earliest()
      if (timer === undefined) return
      if (timer.due > this.now()) {
        if (!jump || fired > 0) return
        this.time = timer.due
      }
      if (timer.every === null) this.timers.delete(timer.id)
      else timer.due += Math.max(1, timer.every)
      timer.call()
    }
  }

  set(call: () => void, ms: number, repeats: boolean): number {
    const wait = Number.isFinite(ms) && ms > 1 ? ms : 1
    const id = ++this.ids
    const every = repeats ? wait : null
    this.timers.set(id, { id, due: this.now() + wait, every, call, order: ++this.orders })
    this.pump()
    return id
  }

  clear(id: unknown): void {
    this.timers.delete(Number(id))
  }

  /** A number from 0 (included) to 1 (excluded), from the seed. */
  nextRandom(): number {
    this.random = (this.random + 0x6d2b_79f5) | 0
    let mixed = Math.imul(this.random ^ (this.random >>> 15), this.random | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }

  /** Replaces the real timers and clocks. */
  install(globals: Globals): void {
    const wallClock = globals.Date as typeof Date
    const now = (): number => Math.floor(EPOCH_MS + this.now())
    globals.Date = class extends wallClock {
      constructor(...args: unknown[]) {
        super(...((args.length === 0 ? [now()] : args) as [number]))
      }
      static override now(): number {
        return now()
      }
    }
    Object.defineProperty(globals.performance, 'now', { value: () => this.now(), configurable: true })
    globals.Math.random = () => this.nextRandom()
    for (const [name, repeats] of [
      ['setTimeout', false],
      ['setInterval', true],
    ] as const) {
      globals[name] = (callback: (...args: unknown[]) => void, ms = 1, ...args: unknown[]) =>
        new VirtualTimeout(
          this,
          this.set(() => callback(...args), Number(ms), repeats),
        )
    }
    for (const name of ['clearTimeout', 'clearInterval']) {
      globals[name] = (timer: unknown) => this.clear(timer)
    }
  }

  private earliest(): Timer | undefined {
    let first: Timer | undefined
    for (const timer of this.timers.values()) {
      if (
        first === undefined ||
        timer.due < first.due ||
        (timer.due === first.due && timer.order < first.order)
      )
        first = timer
    }
    return first
  }

  private pump(): void {
    if (this.isPumping || this.source !== null || !this.pending) return
    this.isPumping = true
    this.defer(() => {
      this.isPumping = false
      if (this.source === null) this.fire(true)
      this.pump()
    })
  }
}

/** The part of Node's Timeout that programs use. */
class VirtualTimeout {
  private readonly timers: VirtualTimers
  private readonly id: number

  constructor(timers: VirtualTimers, id: number) {
    this.timers = timers
    this.id = id
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }

  close(): this {
    this.timers.clear(this.id)
    return this
  }

  [Symbol.toPrimitive](): number {
    return this.id
  }
}
