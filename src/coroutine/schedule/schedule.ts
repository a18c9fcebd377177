import { assert } from '../../arena/assert.ts'
import { hostPlatform, type Platform } from '../../machine/core/platform.ts'
import { type Blocking, checkSignal, checkTime, sleep, suspend } from '../core/blocking.ts'
import { Co, Outcome } from './co.ts'
import { type Coroutine, coroutineOf, runsInOneGo, twin, type Twin } from '../core/coroutine.ts'
import { CoroutineError } from '../core/errors.ts'
import { blocks, inside } from '../core/faces.ts'
import { resumable } from '../core/generators.ts'
import { checkOptions } from '../core/knownoptions.ts'
import { LoopKeeper } from './loopkeeper.ts'
import { tellUncompiledModuleOf } from '../core/markedmodule.ts'
import { CoQueues } from './coqueues.ts'
import { type Priority, priorityLevel } from './priority.ts'
import { callSafely, ProgressReports } from './progressreports.ts'
import {
  exitedError,
  isExitedError,
  refuseForeign,
  refuseResume,
  refuseUnlessRunning,
} from '../core/refusal.ts'
import { Rest } from './idlewait.ts'
import { here, switchTo } from '../../thread/context.ts'
import type { AfterAwait, Runner } from '../../thread/runner.ts'
import {
  type AnyFunction,
  checkSlice,
  checkTicks,
  type GoOptions,
  goOptions,
  type ResultOf,
  type RunOptions,
  runOptions,
  type ScheduleOptions,
  scheduleOptions,
  splitCall,
} from './scheduleoptions.ts'
import { Timer } from './sleepqueue.ts'
import { ClockSlices } from './slices.ts'
import { Switch } from '../core/switch.ts'
import { TickSource } from './ticksource.ts'
import { captureOrigin, signError } from '../core/uncaught.ts'
import { saysTask, tellUncompiled } from '../core/uncompiled.ts'

/**
 * A tenth of the kernel's slice. An event waits for the rest of a slice, and a turn of the event loop costs
 * some microseconds: `npm run bench -- coroutine`.
 */
const SLICE_MS = 1
/** A function that cannot be preempted may run for so long, and for so many slices, before a warning. */
const WARN_MS = 50
const WARN_SLICES = 5
const warned = new WeakSet<AnyFunction>()

/**
 * Coroutines on one thread, preempted every slice, beside the thread's event loop. The design's `Schedule`.
 *
 * The schedule's own code runs on the thread that made it, between coroutines or called by one; only the tick
 * is shared memory. Each coroutine that has not ended is in exactly one of the states of co.ts.
 */
export class Schedule {
  readonly slice: number
  readonly platform: Platform
  readonly #switch: Switch
  readonly #queues: CoQueues
  readonly #ticks: TickSource
  readonly #keeper: LoopKeeper
  readonly #rest: Rest
  readonly #runner: Runner
  readonly #onError: ((error: unknown, co: Co<any>) => void) | undefined
  readonly #reports = new ProgressReports()
  readonly #warnAfterMs: number
  #ids = 0
  #exited = false
  #dropAt = Infinity
  #looping: Promise<void> | null = null
  #stays = false
  #driving = false
  #switches = 0

  constructor(options: ScheduleOptions = {}) {
    checkOptions('new Schedule(options)', options, scheduleOptions)
    const { slice = SLICE_MS, ticks = 'auto', platform = hostPlatform() } = options
    checkSlice(slice)
    checkTicks(ticks)
    this.slice = slice
    this.#warnAfterMs = Math.max(WARN_MS, WARN_SLICES * slice)
    this.platform = platform
    this.#onError = options.onError
    const clock = typeof ticks === 'object' ? ticks : new ClockSlices(platform.now)
    this.#switch = new Switch(clock, slice, platform.now)
    const { capture } = platform
    if (capture !== undefined) {
      this.#switch.onStop = co => {
        co.context = capture()
      }
    }
    this.#ticks = new TickSource(typeof ticks === 'object' ? 'clock' : ticks, this.#switch)
    this.#keeper = new LoopKeeper(platform, slice)
    const rest = new Rest(platform)
    const places = new CoQueues(this.#switch, () => rest.rouse())
    this.#rest = rest
    this.#queues = places
    this.#runner = {
      park: ms => places.park(ms),
      unpark: () => places.unpark(),
      running: () => this.runningCo,
      afterAwait: () => this.#afterAwait(),
      progress: value => {
        if (this.runningCo !== null) this.#reports.tell(this.runningCo, value)
      },
    }
  }

  /** Every coroutine that has not ended, by id. */
  get coroutines(): ReadonlyMap<number, Co<any>> {
    return this.#queues.all
  }

  /** The coroutine that is running, or null. */
  get runningCo(): Co<any> | null {
    return this.#switch.runningCo
  }

  get exited(): boolean {
    return this.#exited
  }

  /** Counts, for monitoring. */
  get statistics(): ScheduleStatistics {
    return {
      coroutines: this.coroutines.size,
      ready: this.#queues.ready.count,
      sleeping: this.#queues.sleepers.count,
      switches: this.#switches,
      turns: this.#keeper.turns,
      ticks: this.#ticks.kind,
    }
  }

  /**
   * Makes a coroutine that runs `fn(...args)`: a 'use task' function, a generator function, or anything
   * callable. It runs when the loop does.
   */
  go<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Co<ResultOf<R>>
  go<A extends unknown[], R>(options: GoOptions, fn: (...args: A) => R, ...args: A): Co<ResultOf<R>>
  go(first: GoOptions | AnyFunction, ...rest: unknown[]): Co<any> {
    const { options, fn, args } = splitCall<GoOptions>('go', first, rest)
    checkOptions('go(options, fn)', options, goOptions)
    return this.#make(options, fn, args, this.go)
  }

  /** Makes a suspended coroutine runnable; its wait returns `value`. Any time, on this thread. */
  resume(co: Co<any>, value?: unknown): void {
    this.#refuseAfterExit('resume')
    refuseForeign('resume', co, this.coroutines)
    refuseResume(co)
    co.sent = value
    this.#queues.wake(co)
  }

  /**
   * Suspends the running coroutine until `resume`, whose value it returns: `yield* schedule.suspend()`, or a
   * plain call in a 'use task' function. `co`, where given, must be the running one.
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

  /**
   * Throws `reason` into a coroutine: where it waits, or at its safepoint. Does nothing to one that has
   * ended.
   */
  cancel(co: Co<any>, reason: unknown = new DOMException('the coroutine was cancelled', 'AbortError')): void {
    if (co.state === 'STOP') return
    refuseForeign('cancel', co, this.coroutines)
    this.#queues.cancel(co, reason)
  }

  /** Changes a coroutine's priority; it counts from the next pick. */
  setPriority(co: Co<any>, priority: Priority): void {
    refuseForeign('setPriority', co, this.coroutines)
    this.#queues.setPriority(co, priorityLevel(priority))
  }

  /**
   * Without arguments: runs until no coroutine is left. With a function: runs it as a coroutine and returns
   * its result; the loop runs as long as it needs to. In both forms the thread's event loop keeps turning.
   */
  run(): Promise<void>
  run<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<ResultOf<R>>
  run<A extends unknown[], R>(options: RunOptions, fn: (...args: A) => R, ...args: A): Promise<ResultOf<R>>
  run(...call: [first?: RunOptions | AnyFunction, ...rest: unknown[]]): Promise<any> {
    if (call.length === 0) return this.#loop()
    const [first, ...rest] = call
    try {
      const { options, fn, args } = splitCall<RunOptions>('run', first, rest)
      checkOptions('run(options, fn)', options, runOptions)
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
   * Runs until no coroutine is left, before the call returns: the event loop does not turn meanwhile, and
   * sleeping blocks the thread. For worker threads and for virtual time.
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
        const co = this.#queues.checkNextCo(now)
        if (co === null) {
          this.#switch.idle()
          this.#rest.blockUntil(Math.min(this.#queues.sleepers.next, this.#dropAt))
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
   * Ends the schedule. ScheduleExited is thrown into every coroutine, so that it releases what it holds. The
   * loop ends when all have ended, or after `grace` milliseconds. Later calls of the schedule throw.
   */
  exit(options: { grace?: number } = {}): void {
    checkOptions('exit(options)', options, { grace: 'checked' })
    const { grace = 1000 } = options
    checkTime('grace', grace)
    if (this.#exited) return
    this.#exited = true
    this.#queues.isClosed = true
    this.#dropAt = this.platform.now() + grace
    for (const co of this.coroutines.values()) this.#queues.cancel(co, exitedError('exit'))
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

  /** The code after an await of the running coroutine runs as a coroutine with its name and priority. */
  #afterAwait(): AfterAwait {
    const { name, priority } = this.runningCo!
    return {
      goOn: stretch => {
        if (this.#exited) return false
        const co = this.#add(name, priority, coroutineOf(stretch.run, [], stretch), null)
        this.#queues.makeReady(co)
        void this.#loop()
        return true
      },
    }
  }

  #make(options: GoOptions, fn: AnyFunction, args: unknown[], below: AnyFunction): Co<any> {
    this.#refuseAfterExit('go')
    const coroutine = coroutineOf(fn, args)
    const name = options.name ?? (fn.name || 'anonymous')
    const co = this.#add(name, priorityLevel(options.priority ?? 'normal'), coroutine, captureOrigin(below))
    if (runsInOneGo(fn)) {
      if (!tellUncompiled(fn)) tellUncompiledModuleOf(fn, co.origin)
      co.warning = ms => this.#warn(fn, co, ms)
    }
    if (!options.suspended) this.#queues.makeReady(co)
    return co
  }

  #add(name: string, priority: number, coroutine: Coroutine, origin: Co['origin']): Co<any> {
    const id = (this.#ids = (this.#ids % 0x7fff_ffff) + 1)
    assert(!this.coroutines.has(id), 'a coroutine of two thousand million starts ago is still alive')
    const co = new Co<any>(id, name, priority, coroutine, origin)
    co.context = this.platform.capture?.() ?? null
    this.#queues.all.set(id, co)
    return co
  }

  #runOne(options: RunOptions, fn: AnyFunction, args: unknown[]): Promise<any> {
    const { signal, timeout = Infinity, onProgress } = options
    checkTime('timeout', timeout)
    checkSignal(signal)
    signal?.throwIfAborted()
    const co = this.#make(options, fn, args, this.run)
    const outcome = (co.outcome = new Outcome())
    if (onProgress !== undefined) this.#reports.listen(co, onProgress)
    if (timeout !== Infinity) {
      co.limit = new Timer(co)
      co.limitMs = timeout
      this.#queues.sleepers.add(co.limit, this.platform.now() + timeout)
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
        const co = this.#queues.checkNextCo(now)
        if (co === null) {
          this.#switch.idle()
          await this.#rest.until(Math.min(this.#queues.sleepers.next, this.#dropAt))
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

  /** Runs one coroutine until it stops, and handles the stop. Returns the time after. */
  #switchTo(co: Co<any>, now: number): number {
    const { runner, cpu } = here
    switchTo(this.#runner, cpu)
    this.#switches++
    co.switches++
    try {
      this.#switch.resume(co, now)
    } finally {
      switchTo(runner, cpu)
    }
    const after = this.platform.now()
    co.runTime += after - now
    if (co.warning !== null && after - now > this.#warnAfterMs) co.warning(after - now)
    if (co.state === 'STOP') this.#ended(co)
    else if (co.state === 'RUNNING' && this.#switch.preempted !== co) this.#queues.makeReady(co)
    this.#reports.deliver()
    return after
  }

  #ended(co: Co<any>): void {
    this.#queues.remove(co)
    this.#reports.deliver()
    this.#reports.forget(co)
    const { state, result } = co.coroutine
    if (state === 'threw' && result !== co.cancelledWith) signError(result, co)
    if (co.outcome !== null) co.outcome.settle(co.coroutine)
    else if (state === 'threw' && !isExitedError(result)) this.#report(result, co)
  }

  /** Warns once of a function that kept the thread and that nothing could preempt. */
  #warn(fn: AnyFunction, co: Co<any>, ms: number): void {
    co.warning = null
    if (warned.has(fn) || saysTask(fn)) return
    warned.add(fn)
    this.platform.warn?.(
      `${co.name} ran for ${Math.round(ms)} ms in one go: nothing can preempt it. Begin it with 'use task', and load its module through heddle (node --import heddle/register, or the bundler plugin)`,
    )
  }

  /**
   * An error that was not caught: it goes to `onError`, or becomes an unhandled rejection, which the platform
   * reports.
   */
  #report(error: unknown, co: Co<any>): void {
    const onError = this.#onError
    if (onError === undefined) void Promise.reject(error)
    else callSafely(() => onError(error, co))
  }

  #dropAll(): void {
    for (const co of this.coroutines.values()) {
      this.#queues.remove(co)
      this.#reports.forget(co)
      co.outcome?.fail(exitedError(`coroutine ${co.name}`))
    }
  }

  #refuseAfterExit(what: string): void {
    if (this.#exited) throw exitedError(what)
  }
}

/** In a 'use task' function these two methods are plain calls. */
const twins: [AnyFunction, Twin][] = [
  [
    Schedule.prototype.suspend,
    function* (this: Schedule, co?: Co<any>) {
      return yield* inside(() => this.suspend(co))
    },
  ],
  [
    Schedule.prototype.sleep,
    function* (this: Schedule, ms: number) {
      yield* inside(() => this.sleep(ms))
    },
  ],
]
for (const [method, own] of twins) {
  Object.defineProperty(own, blocks, { value: true })
  Object.defineProperty(method, twin, { value: resumable(own) })
}

export interface ScheduleStatistics {
  readonly coroutines: number
  readonly ready: number
  readonly sleeping: number
  readonly switches: number
  /** How often the event loop turned. */
  readonly turns: number
  readonly ticks: 'clock' | 'thread'
}
