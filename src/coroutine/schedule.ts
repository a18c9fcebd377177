import { assert } from '../arena/assert.ts'
import { SpscRing, spscWords } from '../arena/spsc.ts'
import { hostPlatform, type Platform } from '../machine/platform.ts'
import { type Blocking, checkTime, sleep, suspend, timeoutError } from './blocking.ts'
import { Co, Outcome } from './co.ts'
import { coroutineOf } from './coroutine.ts'
import { CoroutineError } from './errors.ts'
import { LoopKeeper } from './loopkeeper.ts'
import { type Priority, priorityLevel } from './priority.ts'
import { ReadyQueue } from './readyqueue.ts'
import { exitedError, isExitedError, refuseForeign, refuseResume, refuseUnlessRunning } from './refusal.ts'
import { Rest } from './rest.ts'
import { type Runner, swapRunner, TIMED_OUT, type Waker } from './runner.ts'
import {
  type AnyFunction,
  checkSlice,
  type GoOptions,
  type ResultOf,
  type RunOptions,
  type ScheduleOptions,
  splitCall,
} from './scheduleoptions.ts'
import { SleepQueue, Timer } from './sleepqueue.ts'
import { ClockSlices } from './slices.ts'
import { Switch } from './switch.ts'
import { TickSource } from './ticksource.ts'
import { captureOrigin, signError } from './uncaught.ts'

const RING_CAPACITY = 256
const SLICE_MS = 10

/**
 * Coroutines on one thread, preempted every slice, beside the thread's event loop. The design's `Schedule`.
 *
 * The schedule's own code runs on the thread that made it, between coroutines or called by one; nothing here is
 * shared but the tick. Each coroutine that has not ended is in exactly one place: see the states in co.ts.
 */
export class Schedule {
  readonly slice: number
  readonly platform: Platform
  /** Every coroutine that has not ended, by id. */
  readonly coroutines: Map<number, Co<any>> = new Map()
  readonly #switch: Switch
  readonly #ready = new ReadyQueue<Co<any>>()
  readonly #sleepers = new SleepQueue<Co<any>>()
  readonly #ticks: TickSource
  readonly #keeper: LoopKeeper
  readonly #rest: Rest
  readonly #runner: Runner
  readonly #onError: ((error: unknown, co: Co<any>) => void) | undefined
  readonly #progressed: Co<any>[] = []
  readonly #listeners = new Map<Co<any>, (value: any) => void>()
  #ids = 0
  #exited = false
  #dropAt = Infinity
  #looping: Promise<void> | null = null
  #stays = false
  #driving = false
  #switches = 0

  constructor(options: ScheduleOptions = {}) {
    const {
      slice = SLICE_MS,
      ticks = 'auto',
      ringCapacity = RING_CAPACITY,
      platform = hostPlatform(),
    } = options
    checkSlice(slice)
    this.slice = slice
    this.platform = platform
    this.#onError = options.onError
    const words = spscWords(Number.isInteger(ringCapacity) ? Math.max(ringCapacity, 2) : 2)
    const ring = new SpscRing(new Int32Array(words), 0, ringCapacity)
    const clock = typeof ticks === 'object' ? ticks : new ClockSlices(platform.now)
    this.#switch = new Switch(ring, clock, slice, platform.now)
    const { capture } = platform
    if (capture !== undefined) {
      this.#switch.onStop = co => {
        co.context = capture()
      }
    }
    this.#ticks = new TickSource(typeof ticks === 'object' ? 'clock' : ticks, this.#switch)
    this.#keeper = new LoopKeeper(platform, slice)
    this.#rest = new Rest(platform)
    this.#runner = {
      park: ms => this.#park(ms),
      unpark: () => this.#unpark(),
      progress: value => this.#progress(value),
    }
  }

  /** The coroutine that is running, or null. */
  get runningCo(): Co<any> | null {
    return this.#switch.runningCo
  }

  get exited(): boolean {
    return this.#exited
  }

  /** Counts, for whoever watches. */
  get statistics(): ScheduleStatistics {
    return {
      coroutines: this.coroutines.size,
      ready: this.#ready.count,
      sleeping: this.#sleepers.count,
      switches: this.#switches,
      ringFull: this.#switch.ringFull,
      turns: this.#keeper.turns,
      ticks: this.#ticks.kind,
    }
  }

  /**
   * Makes a coroutine that runs `fn(...args)`: a 'use task' function, a generator function, or anything callable. It
   * runs when the loop does.
   */
  go<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Co<ResultOf<R>>
  go<A extends unknown[], R>(options: GoOptions, fn: (...args: A) => R, ...args: A): Co<ResultOf<R>>
  go(first: GoOptions | AnyFunction, ...rest: unknown[]): Co<any> {
    const { options, fn, args } = splitCall<GoOptions>('go', first, rest)
    return this.#make(options, fn, args, this.go)
  }

  /** Makes a suspended coroutine runnable; what it waits for gives `value`. Any time, from this thread. */
  resume(co: Co<any>, value?: unknown): void {
    this.#refuseAfterExit('resume')
    refuseForeign('resume', co, this.coroutines)
    refuseResume(co)
    co.sent = value
    this.#wake(co)
  }

  /**
   * Suspends the running coroutine until `resume`, whose value it gives: `yield* schedule.suspend()`, or a plain call
   * in a 'use task' function. `co`, where given, must be the one that runs.
   */
  suspend(co?: Co<any>): Blocking<any> {
    refuseUnlessRunning('suspend', this.runningCo, co)
    this.#refuseAfterExit('suspend')
    return suspend()
  }

  /** Suspends the running coroutine for `ms` milliseconds. */
  sleep(ms: number): Blocking<void> {
    refuseUnlessRunning('sleep', this.runningCo, undefined)
    this.#refuseAfterExit('sleep')
    return sleep(ms)
  }

  /** Throws `reason` into a coroutine: where it waits, or at the safepoint where it stands. One that ended stays so. */
  cancel(co: Co<any>, reason: unknown = new DOMException('the coroutine was cancelled', 'AbortError')): void {
    if (co.state === 'STOP') return
    refuseForeign('cancel', co, this.coroutines)
    this.#cancel(co, reason)
  }

  /** Changes a coroutine's priority; it counts from the next pick. */
  setPriority(co: Co<any>, priority: Priority): void {
    refuseForeign('setPriority', co, this.coroutines)
    const level = priorityLevel(priority)
    if (!co.isQueued) {
      co.priority = level
      return
    }
    this.#ready.remove(co)
    co.priority = level
    this.#ready.add(co)
    this.#preemptFor(co)
  }

  /**
   * Without arguments: runs until no coroutine is left. With a function: runs it as a coroutine and gives its result;
   * the loop runs as long as it needs to. Either way the thread's event loop stays alive.
   */
  run(): Promise<void>
  run<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<ResultOf<R>>
  run<A extends unknown[], R>(options: RunOptions, fn: (...args: A) => R, ...args: A): Promise<ResultOf<R>>
  run(first?: RunOptions | AnyFunction, ...rest: unknown[]): Promise<any> {
    if (first === undefined) return this.#loop()
    try {
      const { options, fn, args } = splitCall<RunOptions>('run', first, rest)
      return this.#runOne(options, fn, args)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Runs until `exit`, also while there is nothing to do. The design's `loop`. */
  loop(): Promise<void> {
    this.#stays = true
    this.#rest.rouse()
    return this.#loop()
  }

  /**
   * Runs until no coroutine is left, on the spot: the event loop stands still meanwhile, and sleeping blocks the
   * thread. For worker threads and for virtual time.
   */
  runSync(): void {
    this.#refuseAfterExit('runSync')
    if (this.#driving || this.runningCo !== null) {
      throw new CoroutineError(
        'ERR_HEDDLE_LOOP_RUNNING',
        'runSync: the loop of this schedule is running already',
      )
    }
    this.#driving = true
    try {
      let now = this.platform.now()
      while (!this.#isDone(now)) {
        const co = this.#checkNextCo(now)
        if (co === null) {
          this.#switch.idle()
          this.#rest.blockUntil(Math.min(this.#sleepers.next, this.#dropAt))
          now = this.platform.now()
          continue
        }
        const after = this.#switchTo(co, now)
        this.#ticks.busy(after - now)
        now = after
      }
    } finally {
      this.#driving = false
      this.#switch.idle()
      if (this.#exited) this.#ticks.close()
    }
  }

  /**
   * Ends the schedule. Every coroutine gets ScheduleExited thrown where it stands, so that what it holds is let go; the
   * loop ends when all have ended, or after `grace` milliseconds without those that have not. Whatever is asked of the
   * schedule afterwards is an error.
   */
  exit(options: { grace?: number } = {}): void {
    const { grace = 1000 } = options
    checkTime('grace', grace)
    if (this.#exited) return
    this.#exited = true
    this.#dropAt = this.platform.now() + grace
    for (const co of this.coroutines.values()) this.#cancel(co, exitedError('exit'))
    if (this.#looping === null && !this.#driving) this.#looping = this.#drive()
    this.#rest.rouse()
  }

  [Symbol.dispose](): void {
    this.exit()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.exit()
    await this.#looping
  }

  #make(options: GoOptions, fn: AnyFunction, args: unknown[], below: AnyFunction): Co<any> {
    this.#refuseAfterExit('go')
    const coroutine = coroutineOf(fn, args)
    const id = (this.#ids = (this.#ids % 0x7fff_ffff) + 1)
    assert(!this.coroutines.has(id), 'a coroutine of two thousand million starts ago is still alive')
    const name = options.name ?? (fn.name || 'anonymous')
    const co = new Co(id, name, priorityLevel(options.priority ?? 'normal'), coroutine, captureOrigin(below))
    co.context = this.platform.capture?.() ?? null
    this.coroutines.set(id, co)
    if (!options.suspended) this.#makeReady(co)
    return co
  }

  #runOne(options: RunOptions, fn: AnyFunction, args: unknown[]): Promise<any> {
    const { signal, timeout = Infinity, onProgress } = options
    checkTime('timeout', timeout)
    signal?.throwIfAborted()
    const co = this.#make(options, fn, args, this.run)
    const outcome = (co.outcome = new Outcome())
    if (onProgress !== undefined) this.#listeners.set(co, onProgress)
    if (timeout !== Infinity) {
      co.limit = new Timer(co)
      co.limitMs = timeout
      this.#sleepers.add(co.limit, this.platform.now() + timeout)
    }
    void this.#loop()
    if (signal === undefined) return outcome.promise
    const onAbort = (): void => this.cancel(co, signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    return outcome.promise.finally(() => signal.removeEventListener('abort', onAbort))
  }

  #loop(): Promise<void> {
    this.#refuseAfterExit('run')
    this.#looping ??= this.#drive()
    return this.#looping
  }

  async #drive(): Promise<void> {
    await Promise.resolve()
    if (this.#driving) return
    this.#driving = true
    try {
      let now = this.platform.now()
      let turned = now
      while (!this.#isDone(now)) {
        const co = this.#checkNextCo(now)
        if (co === null) {
          this.#switch.idle()
          await this.#rest.until(Math.min(this.#sleepers.next, this.#dropAt))
          turned = now = this.platform.now()
          continue
        }
        now = this.#switchTo(co, now)
        if (!this.#keeper.isDue(now - turned)) continue
        this.#ticks.busy(now - turned)
        await this.#keeper.turn()
        turned = now = this.platform.now()
      }
    } finally {
      this.#driving = false
      this.#looping = null
      this.#switch.idle()
      if (this.#exited) this.#ticks.close()
    }
  }

  #isDone(now: number): boolean {
    if (now >= this.#dropAt) this.#dropAll()
    return this.coroutines.size === 0 && (this.#exited || !this.#stays)
  }

  /** The design's `checkNextCo`: the ring first, then the sleepers that are due, then whoever goes first. */
  #checkNextCo(now: number): Co<any> | null {
    for (let id = this.#switch.popPreempted(); id !== 0; id = this.#switch.popPreempted()) {
      const co = this.coroutines.get(id)
      assert(co !== undefined && co.inRing && co.state === 'RUNNING', 'the ring holds coroutines that run')
      co.inRing = false
      this.#makeReady(co)
    }
    for (let timer = this.#sleepers.expire(now); timer; timer = this.#sleepers.expire(now)) {
      const co = timer.owner
      if (timer === co.limit) {
        this.#cancel(co, timeoutError(`run of ${co.name}`, co.limitMs))
      } else {
        co.sent = TIMED_OUT
        this.#wake(co)
      }
    }
    return this.#ready.take()
  }

  /** Runs one coroutine until it stops, and sees to how it did. Returns the time after. */
  #switchTo(co: Co<any>, now: number): number {
    const outer = swapRunner(this.#runner)
    this.#switches++
    co.switches++
    try {
      this.#switch.resume(co, now)
    } finally {
      swapRunner(outer)
    }
    const after = this.platform.now()
    co.runTime += after - now
    if (co.state === 'STOP') this.#ended(co)
    else if (co.state === 'RUNNING' && !co.inRing) this.#makeReady(co)
    if (this.#progressed.length > 0) this.#tellProgress()
    return after
  }

  #ended(co: Co<any>): void {
    this.coroutines.delete(co.id)
    if (co.sleeping?.isQueued) this.#sleepers.remove(co.sleeping)
    if (co.limit?.isQueued) this.#sleepers.remove(co.limit)
    this.#tellProgress()
    this.#listeners.delete(co)
    const { state, result } = co.coroutine
    if (state === 'threw' && result !== co.cancelledWith) signError(result, co)
    if (co.outcome !== null) co.outcome.settle(co.coroutine)
    else if (state === 'threw' && !isExitedError(result)) this.#report(result, co)
  }

  /** What nobody caught: `onError`, or an unhandled rejection, which is what the platform makes noise about. */
  #report(error: unknown, co: Co<any>): void {
    const onError = this.#onError
    if (onError === undefined) void Promise.reject(error)
    else calledSafely(() => onError(error, co))
  }

  #dropAll(): void {
    for (const co of this.coroutines.values()) {
      if (co.isQueued) this.#ready.remove(co)
      co.state = 'STOP'
      co.inRing = false
      this.coroutines.delete(co.id)
      this.#listeners.delete(co)
      co.outcome?.fail(exitedError(`coroutine ${co.name}`))
    }
  }

  #makeReady(co: Co<any>): void {
    if (co.state !== 'INITED') co.state = 'READY'
    this.#ready.add(co)
    this.#preemptFor(co)
    this.#rest.rouse()
  }

  /** Whoever goes before the one that runs need not wait for the slice's end. */
  #preemptFor(co: Co<any>): void {
    const running = this.#switch.runningCo
    if (running === null || running === co || co.priority >= running.priority) return
    this.#switch.preemptWanted = true
    this.#switch.slices.ask()
  }

  /** Ends the wait of a suspended coroutine. */
  #wake(co: Co<any>): void {
    assert(co.state === 'SUSPEND' || co.state === 'INITED', 'only a coroutine that waits is woken')
    co.waits++
    if (co.sleeping?.isQueued) this.#sleepers.remove(co.sleeping)
    this.#makeReady(co)
  }

  #cancel(co: Co<any>, reason: unknown): void {
    co.cancelledWith = reason
    this.#raise(co, reason)
  }

  #raise(co: Co<any>, error: unknown): void {
    co.sent = error
    co.raising = true
    if (co.state === 'SUSPEND' || (co.state === 'INITED' && !co.isQueued)) this.#wake(co)
  }

  #park(ms: number): Waker {
    const co = this.#switch.runningCo
    assert(co !== null, 'who parks is running')
    if (this.#exited) throw exitedError('the schedule')
    assert(co.state === 'RUNNING' && !co.inRing, 'who parks is running, and the ring does not have it')
    co.state = 'SUSPEND'
    const wait = ++co.waits
    if (ms !== Infinity) {
      co.sleeping ??= new Timer(co)
      this.#sleepers.add(co.sleeping, this.platform.now() + ms)
    }
    if (co.raising) {
      // Cancelled while it ran: it gets to know where it would have waited.
      this.#wake(co)
      return noWaker
    }
    return {
      wake: value => {
        if (co.waits !== wait || co.state !== 'SUSPEND') return
        co.sent = value
        this.#wake(co)
      },
      fail: error => {
        if (co.waits === wait && co.state === 'SUSPEND') this.#raise(co, error)
      },
    }
  }

  #unpark(): void {
    const co = this.#switch.runningCo
    assert(co !== null && (co.state === 'SUSPEND' || co.state === 'READY'), 'who unparks has parked')
    co.waits++
    if (co.isQueued) this.#ready.remove(co)
    if (co.sleeping?.isQueued) this.#sleepers.remove(co.sleeping)
    co.state = 'RUNNING'
  }

  #progress(value: unknown): void {
    const co = this.#switch.runningCo
    if (co === null) return
    co.progress = value
    if (this.#progressed[0] !== co) this.#progressed[0] = co
  }

  #tellProgress(): void {
    const co = this.#progressed.pop()
    const listener = co === undefined ? undefined : this.#listeners.get(co)
    if (listener !== undefined) calledSafely(() => listener(co?.progress))
  }

  #refuseAfterExit(what: string): void {
    if (this.#exited) throw exitedError(what)
  }
}

export interface ScheduleStatistics {
  readonly coroutines: number
  readonly ready: number
  readonly sleeping: number
  readonly switches: number
  /** How often a coroutine was not preempted because the ring was full. */
  readonly ringFull: number
  /** How often the event loop was let through. */
  readonly turns: number
  readonly ticks: 'clock' | 'thread'
}

const noWaker: Waker = { wake: () => {}, fail: () => {} }

/** A listener that throws is reported, and stops nobody else. */
function calledSafely(listener: () => void): void {
  try {
    listener()
  } catch (error) {
    void Promise.reject(error)
  }
}
