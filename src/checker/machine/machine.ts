import { type Twin, twinOf } from '../../coroutine/core/coroutine.ts'
import { Watch } from '../spec/always.ts'
import { asCheckError, CheckError } from '../errors.ts'
import { CHANGED, EventLog, WATCHED, WRITES_WATCHED } from './eventlog.ts'
import { locate } from './locate.ts'
import type { Memory } from './memory.ts'
import { COMPARE_EXCHANGE, CRASH, LOAD, PLAIN_READ, STORE } from './operations.ts'
import { accessAgain, perform, SLEEPS } from './perform.ts'
import {
  bodiesOf,
  namesOf,
  type Outcome,
  type Program,
  resumable,
  resumableRecovery,
  type Setup,
} from './program.ts'
import { pending, THREADS_MAX } from './pending.ts'
import { readable } from '../report/failure.ts'
import { SpinWatch } from '../search/spinwatch.ts'
import { RUNNABLE, ASLEEP, FINISHED, CRASHED, UNBORN } from './threadstates.ts'
import { type Sleeper, WaiterLists } from './waiters.ts'

/** A thread threw, or the machine detected an error. */
export interface Fault {
  readonly kind: 'exception' | 'use-after-free' | 'invariant'
  /** -1: the set-up. */
  readonly thread: number
  /** The number of events in the log at that time. */
  readonly at: number
  readonly error: unknown
  /** An earlier event that is part of the fault, or -1. */
  readonly other: number
}

/**
 * Virtual threads in one JavaScript thread. The explorer calls `begin`, then `step(thread)` with any thread
 * of the mask `enabled` until that is 0. Between two calls the next operation of each living thread is known
 * (`pending`, `from` … `to2`) and not yet performed.
 */
export class Machine {
  readonly memory: Memory
  readonly log: EventLog = new EventLog()
  readonly waiters: WaiterLists = new WaiterLists()
  readonly spin: SpinWatch
  /** The number of threads, with the recovery thread. */
  threads = 0
  /** The number of threads without it. */
  mortal = 0
  names: string[] = []
  /** Bit t: thread t can be stepped. */
  enabled = 0
  readonly status: Int32Array = new Int32Array(THREADS_MAX)
  /** The cells of the next operation of each thread. */
  readonly from: Int32Array = new Int32Array(THREADS_MAX)
  readonly to: Int32Array = new Int32Array(THREADS_MAX)
  readonly from2: Int32Array = new Int32Array(THREADS_MAX)
  readonly to2: Int32Array = new Int32Array(THREADS_MAX)
  readonly sleepers: (Sleeper | undefined)[] = Array.from({ length: THREADS_MAX })
  /** The event of another thread that unblocked this one after its own last event: -1 for none. */
  readonly enabledBy: Int32Array = new Int32Array(THREADS_MAX)
  readonly results: unknown[] = []
  faults: Fault[] = []
  /** The result of the final assertion; without one, the results of the threads, if there are any. */
  outcome: unknown = undefined
  final: ((outcome: Outcome) => unknown) | undefined = undefined
  watch: Watch | undefined = undefined
  /** Thread t dies before its step number crashAt[t]; -1 for never. */
  readonly crashAt: Int32Array = new Int32Array(THREADS_MAX).fill(-1)
  /** The first event of a replay that differed from the run before; -1 when there was none. */
  diverged = -1
  /** The values that operations read or returned; kept only for a report. */
  values: unknown[] | undefined = undefined
  plainSeen = false
  steps = 0
  readonly freedCells: Map<number, number> = new Map()
  /** The sleepers that the last operation woke. */
  readonly woken: Sleeper[] = []

  /** The threads whose next operation `replay` has not located: the log has its cells. */
  private unlocated = 0

  /** Set by `perform`: the flags of the operation that it performed. */
  flags = 0
  wrote = 0

  /**
   * Whether the threads can be created again from the same bodies, without another set-up. That is so as long
   * as an execution changes nothing but shared memory.
   */
  reuse = true
  /** The limit of turns of a loop in a row that change private state but nothing shared. */
  turns: number = TURNS_MAX
  /** Whether the threads start in reverse order. */
  backwards = false
  private reusable = false
  private bodies: Twin[] = []
  private generators: Generator<number, unknown, unknown>[] = []
  private recover: ((dead: number) => unknown) | undefined

  constructor(memory: Memory) {
    this.memory = memory
    this.spin = new SpinWatch(this)
  }

  /**
   * Runs the set-up, and each thread up to its first operation, which it returns as text. No cell is located.
   */
  rehearse(setup: Setup): string {
    this.forget()
    this.begin(setup, false)
    const refusal = asCheckError(pending.refusal)
    if (refusal !== undefined) throw refusal
    this.forget()
    const { kind, site, index } = pending
    return this.names
      .map(
        (_, t) => `${this.status[t]} ${kind[t]} ${site[t]} ${typeof index[t] === 'number' ? index[t] : ''}`,
      )
      .join()
  }

  /** Runs the set-up again and runs each thread up to its first operation. */
  begin(setup: Setup, locates = true): void {
    const { log } = this
    log.length = 0
    this.enabled = 0
    if (this.faults.length > 0) this.faults = []
    this.diverged = -1
    this.unlocated = 0
    this.waiters.clear()
    this.spin.clear()
    if (this.freedCells.size > 0) this.freedCells.clear()
    pending.steps.fill(0)
    pending.effects.fill(0)
    pending.writes.fill(0)
    pending.spunFrom.fill(-1)
    pending.idleFrom.fill(-1)
    pending.idleEpoch.fill(0)
    pending.idleMax = this.turns
    pending.site.fill(-1)
    pending.refusal = undefined
    pending.mutexes.fill(0)
    if (this.reusable && this.reuse && pending.heapEffects === 0) {
      this.memory.rewind()
    } else {
      this.memory.begin()
      this.adopt(setup())
      if (this.reusable && this.reuse) this.memory.keep()
    }
    pending.heapEffects = 0
    if (this.watch !== undefined) this.checkAlways(-1)
    this.start(locates)
  }

  private adopt(program: Program): void {
    const bodies = bodiesOf(program)
    const count = bodies.length + (program.recover === undefined ? 0 : 1)
    if (bodies.length < 1 || count > THREADS_MAX) {
      throw new CheckError(
        'ERR_CHECK_THREADS',
        `the set-up returned ${bodies.length} thread bodies; return 1 to ${THREADS_MAX - 1}; a useful check has at least two`,
      )
    }
    if (this.threads !== 0 && this.threads !== count) {
      throw new CheckError(
        'ERR_CHECK_NONDETERMINISTIC',
        `the set-up returned ${bodies.length} thread bodies, and a different number the last time; it must return the same bodies every time`,
      )
    }
    if (this.names.length === 0) this.names = namesOf(program)
    pending.names = this.names
    this.threads = count
    this.mortal = bodies.length
    this.final = program.final
    this.recover = program.recover
    this.watch = program.always === undefined ? undefined : new Watch(program.always, this.memory)
    this.bodies = bodies.map((body, thread) => resumable(body, thread, this.names[thread]))
    // Only a function that the compiler instrumented is known to have no effects beside its operations.
    this.reusable = bodies.every(body => twinOf(body) !== undefined) && program.recover === undefined
  }

  /** Makes the next execution run the set-up. */
  forget(): void {
    this.reusable = false
  }

  /** Creates the threads again and runs each up to its first operation. */
  private start(locates: boolean): void {
    const { bodies } = this
    this.generators.length = 0
    this.results.length = 0
    for (let thread = 0; thread < bodies.length; thread++) {
      this.generators.push(bodies[thread].call(undefined))
      this.results.push(undefined)
      this.status[thread] = RUNNABLE
      this.enabledBy[thread] = -1
      this.sleepers[thread] = undefined
    }
    if (this.recover !== undefined) {
      this.status[bodies.length] = UNBORN
      this.enabledBy[bodies.length] = -1
      this.results.push(undefined)
    }
    for (let n = 0; n < bodies.length; n++) {
      const thread = this.backwards ? bodies.length - 1 - n : n
      if (this.advance(thread, undefined, false) && locates) this.arrive(thread)
    }
  }

  /** Whether the threads changed anything beside shared memory, or may have changed it. */
  get mayShareMore(): boolean {
    return !this.reusable || pending.heapEffects > 0
  }

  /** Performs the next operation of a thread, logs it, and runs the thread up to the operation after it. */
  step(thread: number): void {
    const { log } = this
    const at = log.length
    if (at === log.capacity) log.grow()
    const kind = pending.kind[thread]
    const site = pending.site[thread]
    log.from[at] = this.from[thread]
    log.to[at] = this.to[thread]
    this.flags = 0
    this.wrote = 0
    log.enabledBy[at] = this.enabledBy[thread]
    log.from2[at] = this.from2[thread]
    log.to2[at] = this.to2[thread]
    log.thread[at] = thread
    const index = pending.index[thread]
    log.index[at] = typeof index === 'number' ? index : -1
    log.ordinal[at] = ++pending.steps[thread]
    let value: unknown
    let failed = false
    try {
      value = perform(this, thread, kind, at)
    } catch (error) {
      value = error
      failed = true
    }
    const watched = this.watch?.covers(log.from[at], log.to[at]) === true
    const flags = watched ? this.flags | WATCHED : this.flags
    log.kind[at] = kind
    log.site[at] = site
    log.flags[at] = flags
    log.wrote[at] = this.wrote
    log.result[at] = value
    log.length = at + 1
    this.steps++
    this.enabledBy[thread] = -1
    if (this.values !== undefined) this.values[at] = value
    if ((flags & WRITES_WATCHED) === WRITES_WATCHED) this.checkAlways(thread)
    if ((flags & CHANGED) !== 0) {
      pending.effects[thread]++
      pending.writes[thread]++
      if (this.spin.any) this.spin.changed(at)
    }
    if (this.woken.length > 0) this.wake(at)
    if (value !== SLEEPS) this.resume(thread, value, failed)
    else if (kind === CRASH) this.crash(thread, at)
    if (this.enabled === 0 && this.spin.any) this.spin.allRest()
  }

  /**
   * Performs the first `length` events of the log again, after `begin`. Each event must be the same as
   * before. `diverged` becomes the first that is not, and the replay ends there.
   */
  replay(length: number): void {
    const { log, spin, generators, enabledBy, crashAt } = this
    const { kind: kinds, site: sites, index: indexes, flags: flagsOf, wrote, thread: threads } = log
    // Local names for all fields that a step needs: a search spends most of its time in this loop.
    const { kind: nextKind, site: nextSite, index: nextIndex, a: nextA, steps, effects, writes } = pending
    const { spunFrom, idleFrom } = pending
    const views = pending.view as (Record<number, number> & { length: number })[]
    let slow = this.slow
    for (let at = 0; at < length; at++) {
      const thread = threads[at]
      if (this.enabled === 0 && spin.any) spin.allRest()
      const kind = nextKind[thread]
      const index = nextIndex[thread] as number
      if (
        kind !== kinds[at] ||
        nextSite[thread] !== sites[at] ||
        ((this.enabled >>> thread) & 1) === 0 ||
        (kind <= COMPARE_EXCHANGE && index !== indexes[at])
      ) {
        this.diverged = at
        log.length = at
        return
      }
      if (kind > COMPARE_EXCHANGE || slow) {
        if (!this.stepAgain(thread, at)) return
        slow = this.slow
        continue
      }
      let value: unknown
      log.length = at + 1
      if (kind === LOAD || kind === PLAIN_READ) {
        value = views[thread][index]
      } else {
        const flags = flagsOf[at]
        value = nextA[thread]
        if (kind <= STORE && typeof value === 'number' && (value | 0) === value) {
          const view = views[thread]
          view[index] = value
          this.wrote = view[index]
          this.flags = flags
        } else {
          value = accessAgain(this, thread, kind, at)
        }
        if (
          (this.flags | (flags & WATCHED)) !== flags ||
          (flags !== 0 && !Object.is(this.wrote, wrote[at]))
        ) {
          this.diverged = at
          return
        }
        if ((flags & CHANGED) !== 0) {
          effects[thread]++
          writes[thread]++
          if (spin.any) spin.changed(at)
        }
      }
      steps[thread]++
      enabledBy[thread] = -1
      // The same as `resume`, without locating an access that the log already has.
      pending.current = thread
      pending.idleTurns = 0
      let result: IteratorResult<number, unknown>
      try {
        result = generatorNext.call(generators[thread], value)
      } catch (error) {
        pending.current = -1
        this.end(thread, FINISHED)
        this.fault('exception', thread, error, -1)
        continue
      }
      pending.current = -1
      if (result.done === true) {
        this.results[thread] = result.value
        this.end(thread, FINISHED)
        continue
      }
      const next = nextIndex[thread]
      if (
        nextKind[thread] > COMPARE_EXCHANGE ||
        typeof next !== 'number' ||
        !(next >= 0 && next < views[thread].length) ||
        spunFrom[thread] >= 0 ||
        idleFrom[thread] >= 0 ||
        crashAt[thread] === steps[thread]
      ) {
        this.arrive(thread)
      } else {
        this.unlocated |= 1 << thread
      }
    }
    this.steps += length
    for (let rest = this.unlocated; rest !== 0; rest &= rest - 1) {
      const thread = 31 - Math.clz32(rest & -rest)
      if (this.status[thread] === RUNNABLE) locate(this, thread)
    }
    this.unlocated = 0
    if (this.enabled === 0 && spin.any) spin.allRest()
  }

  /** Performs an event of the log again, on the slow path. False when it was not the same. */
  private stepAgain(thread: number, at: number): boolean {
    const { log } = this
    const flags = log.flags[at]
    const wrote = log.wrote[at]
    const from = log.from[at]
    if (((this.unlocated >>> thread) & 1) !== 0) {
      this.unlocated &= ~(1 << thread)
      locate(this, thread)
    }
    log.length = at
    this.step(thread)
    this.steps--
    const same = log.flags[at] === flags && Object.is(log.wrote[at], wrote) && log.from[at] === from
    if (!same) this.diverged = at
    return same
  }

  /** Unblocks the threads that the event `at` woke. A sleeper with a timeout finds out when it resumes. */
  private wake(at: number): void {
    for (const sleeper of this.woken) {
      const { thread } = sleeper
      if (sleeper.async) {
        for (let t = 0; t < this.threads; t++) {
          if (this.sleepers[t] === sleeper && this.status[t] === ASLEEP) {
            this.enabledBy[t] = at
            this.setEnabled(t, RUNNABLE)
          }
        }
      } else if (!sleeper.finite && this.status[thread] === ASLEEP) {
        this.enabledBy[thread] = at
        // Another thread might have been woken instead: the turn in which this one was woken is not idle.
        pending.effects[thread]++
        pending.writes[thread]++
        this.resume(thread, 'ok', false)
      }
    }
    this.woken.length = 0
  }

  /** Runs a thread up to its next operation. */
  resume(thread: number, value: unknown, failed: boolean): void {
    if (this.advance(thread, value, failed)) this.arrive(thread)
  }

  /** Runs the code of the thread. False when it has ended. */
  private advance(thread: number, value: unknown, failed: boolean): boolean {
    let result: IteratorResult<number, unknown>
    pending.current = thread
    pending.idleTurns = 0
    try {
      const generator = this.generators[thread]
      result = failed ? generator.throw(value) : generatorNext.call(generator, value)
    } catch (error) {
      pending.current = -1
      this.end(thread, FINISHED)
      this.fault('exception', thread, error, -1)
      return false
    }
    pending.current = -1
    if (result.done !== true) return true
    this.results[thread] = result.value
    this.end(thread, FINISHED)
    return false
  }

  /** The thread has yielded its next operation: finds its cells, and whether it can be performed. */
  private arrive(thread: number): void {
    this.unlocated &= ~(1 << thread)
    for (;;) {
      if (this.crashAt[thread] === pending.steps[thread]) {
        this.armCrash(thread)
        return
      }
      // An operation that is not an access to shared memory is performed immediately, without an event.
      const immediate = locate(this, thread)
      if (immediate === undefined) break
      if (!this.advance(thread, immediate.value, immediate.failed)) return
    }
    if (pending.spunFrom[thread] >= 0) this.spin.cut(thread)
    else if (pending.idleFrom[thread] >= 0) this.spin.rest(thread)
  }

  /** Makes the death of this thread its next event. */
  armCrash(thread: number): void {
    pending.kind[thread] = CRASH
    this.setRange(thread, 0, 0)
    this.from2[thread] = this.memory.objectCell(`death ${thread}`)
    this.to2[thread] = this.from2[thread] + 1
    this.setEnabled(thread, RUNNABLE)
  }

  /** Sets the range that the next operation of a thread touches. */
  setRange(thread: number, from: number, to: number): void {
    this.from[thread] = from
    this.to[thread] = to
    this.from2[thread] = 0
    this.to2[thread] = 0
  }

  setEnabled(thread: number, status: number): void {
    this.status[thread] = status
    if (status === RUNNABLE) this.enabled |= 1 << thread
    else this.enabled &= ~(1 << thread)
  }

  /** Ends a thread at its current operation. Starts the recovery thread, if there is one. */
  private crash(thread: number, at: number): void {
    this.end(thread, CRASHED)
    const recovery = this.threads - 1
    if (this.recover === undefined || this.status[recovery] !== UNBORN) return
    const { recover } = this
    this.generators[recovery] = resumableRecovery(recover).call(undefined, thread)
    this.enabledBy[recovery] = at
    this.resume(recovery, undefined, false)
  }

  /** Evaluates `always` after a step of this thread. A replay does not: its steps were checked before. */
  private checkAlways(thread: number): void {
    if (this.faults.length > 0) return
    try {
      this.watch?.look()
    } catch (error) {
      this.fault('invariant', thread, error, -1)
    }
  }

  fault(kind: Fault['kind'], thread: number, error: unknown, other: number): void {
    this.faults.push({ kind, thread, at: this.log.length, error: readable(error), other })
  }

  /** Whether a replay must take the slow path: for a report, or because memory can grow or was freed. */
  private get slow(): boolean {
    return this.values !== undefined || pending.grows || this.freedCells.size > 0
  }

  get crashed(): number[] {
    const dead: number[] = []
    for (let t = 0; t < this.threads; t++) if (this.status[t] === CRASHED) dead.push(t)
    return dead
  }

  private end(thread: number, status: number): void {
    this.setEnabled(thread, status)
  }
}

/** The default of `turns`. */
export const TURNS_MAX = 16

/** Called directly: each body is a separate function, and a property lookup on each would be slow. */
const generatorNext: (
  this: Generator<number, unknown, unknown>,
  value: unknown,
) => IteratorResult<number, unknown> = Object.getPrototypeOf(function* () {}).prototype.next
