import { type Twin, twinOf } from '../../coroutine/core/coroutine.ts'
import { Watch } from '../spec/always.ts'
import { CheckError } from '../errors.ts'
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
import { SpinWatch } from '../search/spinwatch.ts'
import { RUNNABLE, ASLEEP, FINISHED, CRASHED, UNBORN } from './threadstates.ts'
import { type Sleeper, WaiterLists } from './waiters.ts'

/** A thread threw, or the machine saw something that must not be. */
export interface Fault {
  readonly kind: 'exception' | 'use-after-free' | 'invariant'
  /** -1: the set-up. */
  readonly thread: number
  /** How many events the log had then. */
  readonly at: number
  readonly error: unknown
  /** An earlier event that has to do with it, or -1. */
  readonly other: number
}

/**
 * Virtual threads in one JavaScript thread. The explorer calls `begin`, then `step(thread)` with any thread
 * of the mask `enabled` until that is 0. Between two calls every living thread stands before its next
 * operation, which is known (`pending`, `from` … `to2`) and not yet performed.
 */
export class Machine {
  readonly memory: Memory
  readonly log: EventLog = new EventLog()
  readonly waiters: WaiterLists = new WaiterLists()
  readonly spin: SpinWatch
  /** How many threads, the recovery thread included. */
  threads = 0
  names: string[] = []
  /** Bit t: thread t can be stepped. */
  enabled = 0
  readonly status: Int32Array = new Int32Array(THREADS_MAX)
  /** Where the next operation of each thread lies. */
  readonly from: Int32Array = new Int32Array(THREADS_MAX)
  readonly to: Int32Array = new Int32Array(THREADS_MAX)
  readonly from2: Int32Array = new Int32Array(THREADS_MAX)
  readonly to2: Int32Array = new Int32Array(THREADS_MAX)
  readonly sleepers: (Sleeper | undefined)[] = Array.from({ length: THREADS_MAX })
  /** The event, of another thread, that let this one go on after its own last: -1 for none. */
  readonly enabledBy: Int32Array = new Int32Array(THREADS_MAX)
  readonly results: unknown[] = []
  faults: Fault[] = []
  /** What the final assertion returned; without one, what the threads returned, if they did. */
  outcome: unknown = undefined
  final: ((outcome: Outcome) => unknown) | undefined = undefined
  watch: Watch | undefined = undefined
  /** Thread t dies before its step number crashAt[t]; -1 for never. */
  readonly crashAt: Int32Array = new Int32Array(THREADS_MAX).fill(-1)
  /** The first event of a replay that was not what it had been in the run before; -1 when there was none. */
  diverged = -1
  /** Values that an operation read or returned, kept only when a report is made. */
  values: unknown[] | undefined = undefined
  plainSeen = false
  steps = 0
  readonly freedCells: Map<number, number> = new Map()
  /** Sleepers that the operation just performed has woken. */
  readonly woken: Sleeper[] = []

  /** Threads whose next operation `replay` has not placed: it is one of the log, which knows. */
  private unplaced = 0

  /** What `perform` says about the operation that it just did. */
  flags = 0
  wrote = 0

  /**
   * The threads can be made anew from the same bodies, without another set-up, as long as an execution
   * changes nothing but shared memory.
   */
  reuse = true
  /**
   * How many turns of a loop a thread may take in a row that change nothing shared, but something of its own.
   */
  turns: number = TURNS_MAX
  private reusable = false
  private bodies: Twin[] = []
  private generators: Generator<number, unknown, unknown>[] = []
  private recover: ((dead: number) => unknown) | undefined

  constructor(memory: Memory) {
    this.memory = memory
    this.spin = new SpinWatch(this)
  }

  /** Sets the check up anew and brings every thread to its first operation. */
  begin(setup: Setup): void {
    const { log } = this
    log.length = 0
    this.enabled = 0
    if (this.faults.length > 0) this.faults = []
    this.diverged = -1
    this.unplaced = 0
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
    if (this.watch !== undefined) this.look(-1)
    this.start()
  }

  private adopt(program: Program): void {
    const bodies = bodiesOf(program)
    const count = bodies.length + (program.recover === undefined ? 0 : 1)
    if (bodies.length < 1 || count > THREADS_MAX) {
      throw new CheckError(
        'ERR_CHECK_THREADS',
        `the set-up returned ${bodies.length} thread bodies; a check has 1 to ${THREADS_MAX - 1}, two or more to be of use`,
      )
    }
    if (this.threads !== 0 && this.threads !== count) {
      throw new CheckError(
        'ERR_CHECK_NONDETERMINISTIC',
        `the set-up returned ${bodies.length} thread bodies, and another number the last time; it must return the same ones every time`,
      )
    }
    if (this.names.length === 0) this.names = namesOf(program)
    pending.names = this.names
    this.threads = count
    this.final = program.final
    this.recover = program.recover
    this.watch = program.always === undefined ? undefined : new Watch(program.always, this.memory)
    this.bodies = bodies.map((body, thread) => resumable(body, thread, this.names[thread]))
    // What a function in the instrumented shape does beside its operations, only the compiler's own would
    // tell.
    this.reusable = bodies.every(body => twinOf(body) !== undefined) && program.recover === undefined
  }

  /** The next execution begins with a set-up, whatever the last one did. */
  forget(): void {
    this.reusable = false
  }

  /** Makes the threads anew and brings each to its first operation. */
  private start(): void {
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
    for (let thread = 0; thread < bodies.length; thread++) this.resume(thread, undefined, false)
  }

  /** Performs the next operation of a thread, logs it, and brings the thread to the one after. */
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
    if ((flags & WRITES_WATCHED) === WRITES_WATCHED) this.look(thread)
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
   * Performs the first `length` events of the log once more, after `begin`. They must be what they were: the
   * first that is not is put into `diverged`, and the replay ends there.
   */
  replay(length: number): void {
    const { log, spin, generators, enabledBy, crashAt } = this
    const { kind: kinds, site: sites, index: indexes, flags: flagsOf, wrote, thread: threads } = log
    // Everything that a step needs at hand: this loop is where a search spends its time.
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
        if ((this.flags | (flags & WATCHED)) !== flags || (flags !== 0 && this.wrote !== wrote[at])) {
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
      // As `resume`, without looking for the place of an access that the log already has.
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
        this.unplaced |= 1 << thread
      }
    }
    this.steps += length
    for (let rest = this.unplaced; rest !== 0; rest &= rest - 1) {
      const thread = 31 - Math.clz32(rest & -rest)
      if (this.status[thread] === RUNNABLE) locate(this, thread)
    }
    this.unplaced = 0
    if (this.enabled === 0 && spin.any) spin.allRest()
  }

  /** An event of the log once more, the long way. False when it was not the same. */
  private stepAgain(thread: number, at: number): boolean {
    const { log } = this
    const flags = log.flags[at]
    const wrote = log.wrote[at]
    const from = log.from[at]
    if (((this.unplaced >>> thread) & 1) !== 0) {
      this.unplaced &= ~(1 << thread)
      locate(this, thread)
    }
    log.length = at
    this.step(thread)
    this.steps--
    const same = log.flags[at] === flags && log.wrote[at] === wrote && log.from[at] === from
    if (!same) this.diverged = at
    return same
  }

  /**
   * Whom the event `at` woke can go on; one whose timeout might have passed instead finds that out itself.
   */
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
        // Another might have been woken in its place: a turn of a loop in which it was is not an idle one.
        pending.effects[thread]++
        pending.writes[thread]++
        this.resume(thread, 'ok', false)
      }
    }
    this.woken.length = 0
  }

  /** Lets a thread run its own code up to its next operation. */
  resume(thread: number, value: unknown, failed: boolean): void {
    if (this.advance(thread, value, failed)) this.arrive(thread)
  }

  /** Runs the thread's own code. False when it has ended. */
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

  /** The thread has yielded its next operation: finds its place, and whether it can be performed. */
  private arrive(thread: number): void {
    this.unplaced &= ~(1 << thread)
    for (;;) {
      if (this.crashAt[thread] === pending.steps[thread]) {
        this.armCrash(thread)
        return
      }
      // What is not an access to shared memory after all is done at once, without an event.
      const immediate = locate(this, thread)
      if (immediate === undefined) break
      if (!this.advance(thread, immediate.value, immediate.failed)) return
    }
    if (pending.spunFrom[thread] >= 0) this.spin.cut(thread)
    else if (pending.idleFrom[thread] >= 0) this.spin.rest(thread)
  }

  /** The next thing that this thread does is die. */
  armCrash(thread: number): void {
    pending.kind[thread] = CRASH
    this.place(thread, 0, 0)
    this.from2[thread] = this.memory.objectCell(`death ${thread}`)
    this.to2[thread] = this.from2[thread] + 1
    this.setEnabled(thread, RUNNABLE)
  }

  /** The range that the next operation of a thread touches. */
  place(thread: number, from: number, to: number): void {
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

  /**
   * A thread dies where it stands: nothing of it runs any more. The recovery thread, if there is one, is
   * born.
   */
  private crash(thread: number, at: number): void {
    this.end(thread, CRASHED)
    const recovery = this.threads - 1
    if (this.recover === undefined || this.status[recovery] !== UNBORN) return
    const { recover } = this
    this.generators[recovery] = resumableRecovery(recover).call(undefined, thread)
    this.enabledBy[recovery] = at
    this.resume(recovery, undefined, false)
  }

  /**
   * Looks at the watched words, after a step of this thread. A replay does not: it has been looked at before.
   */
  private look(thread: number): void {
    if (this.faults.length > 0) return
    try {
      this.watch?.look()
    } catch (error) {
      this.fault('invariant', thread, error, -1)
    }
  }

  fault(kind: Fault['kind'], thread: number, error: unknown, other: number): void {
    this.faults.push({ kind, thread, at: this.log.length, error, other })
  }

  /** Whether steps must be performed the long way: someone looks at each of them. */
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

/** What `turns` is where a check does not say. */
export const TURNS_MAX = 16

/** Called directly: every body is a function of its own, and a lookup on each would be slow. */
const generatorNext: (
  this: Generator<number, unknown, unknown>,
  value: unknown,
) => IteratorResult<number, unknown> = Object.getPrototypeOf(function* () {}).prototype.next
