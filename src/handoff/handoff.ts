import type { Arena } from '../arena/memory/arena.ts'
import type { FutexContext } from '../futex/core/context.ts'
import { recordAcquired, recordContended } from '../futex/core/events.ts'
import { Owner } from '../futex/core/records.ts'
import { CpuRecord, cpuRecord } from '../machine/core/cpurecord.ts'
import { maskHas } from '../sched/core/cpumask.ts'
import { Entity } from '../sched/core/entity.ts'
import { RunQueue } from '../sched/core/runqueue.ts'
import type { Scheduler } from '../sched/core/scheduler.ts'
import { TaskRecord } from '../sched/core/taskrecord.ts'
import { tellHandedOver } from './events.ts'
import {
  ACTIVE,
  BUCKET_WORDS,
  HandoffCounters,
  type HandoffLayout,
  INACTIVE,
  LockEntry,
  rememberHandoff,
  SectionSlot,
  WAITER_COUNT,
  WAITER_SLOT_SHIFT,
  WaiterSlot,
} from './layout.ts'

const { tag: TAG, owner: OWNER, where: WHERE, waiters: WAITERS, expected: EXPECTED } = LockEntry
const CPU = 0xff
const GENERATION = 0x100
/** 30 bits: small integers to an engine. */
const WHERE_MASK = 0x3fff_ffff

/** A lock entry's `where`, one generation on. */
export function nextGeneration(where: number): number {
  return (where + GENERATION) & WHERE_MASK
}

const WAY = LockEntry.words
/** The part of a new wait in `expected`, as a shift; and the longest that counts, in microseconds. */
const EXPECTED_SHIFT = 3
const EXPECTED_MOST = 1e8
/** A power of two: others see this thread's counts after so many contended locks, or when it is asked. */
const FLUSH_EVERY = 64

export interface HandoffOptions {
  /** The scheduler of this thread, where it has one. */
  readonly scheduler?: Scheduler
  /** The futexes of this thread, where it has some: the event rings need the owner of a TID. */
  readonly context?: FutexContext
  /** Milliseconds. */
  readonly now?: () => number
  /**
   * How often a waiter checks a lock whose holder runs on another CPU before it yields: about a microsecond,
   * as long as a yield takes.
   */
  readonly looks?: number
  /** How often a task yields before it waits at the futex. */
  readonly yieldBudget?: number
  /** For how long, in microseconds. */
  readonly fallbackUs?: number
}

export interface HandoffCounts {
  readonly acquisitions: number
  readonly contended: number
  /** Taken after yielding, without sleeping. */
  readonly handedOff: number
  /** Taken while spinning for a moment, without yielding. */
  readonly spun: number
  readonly fallbacks: number
  readonly hintMisses: number
  /** Waits that a task left to go to the holder's CPU. */
  readonly followed: number
}

/**
 * The hand-off tables as one thread sees them. `enter` and `leave` are all that an uncontended lock pays:
 * `enter` writes the depth, the CPU and the tag; `leave` writes the depth and the tag.
 */
export class Handoff {
  readonly layout: HandoffLayout
  readonly looks: number
  readonly yieldBudget: number
  readonly fallbackMs: number
  readonly now: () => number
  /**
   * The CPU that this thread is, or -1. Simulated tasks migrate and set it, and `context` with it.
   */
  cpu: number
  context: FutexContext | null
  readonly i32: Int32Array<SharedArrayBuffer>
  /** Locks taken since the last flush. */
  acquisitions = 0
  private readonly s: Scheduler | null
  private readonly sections: number
  private readonly locks: number
  private readonly waiters: number
  private readonly lockMask: number
  private readonly tidMask: number
  private contended = 0
  private handedOff = 0
  private spun = 0
  private misses = 0
  private followed = 0

  constructor(arena: Arena, layout: HandoffLayout, options: HandoffOptions = {}) {
    const { scheduler, looks = 24, yieldBudget = 32, fallbackUs = 100 } = options
    this.layout = layout
    this.i32 = arena.i32
    this.s = scheduler ?? null
    this.context = options.context ?? null
    this.cpu = scheduler?.cpu ?? -1
    this.now = options.now ?? scheduler?.now ?? (() => performance.now())
    this.looks = looks
    this.yieldBudget = yieldBudget
    this.fallbackMs = fallbackUs / 1000
    this.sections = layout.sections
    this.locks = layout.locks
    this.waiters = layout.waiters
    this.lockMask = layout.lockMask
    this.tidMask = layout.tidMask
    rememberHandoff(arena, layout)
    const others = views.get(arena)
    if (others === undefined) views.set(arena, [this])
    else others.push(this)
  }

  /** This TID holds the lock now. Called after the compare-exchange that took it. */
  enter(tag: number, tid: number): void {
    const { i32, tidMask } = this
    this.acquisitions++
    const section = this.sections + (tid & tidMask) * SectionSlot.words
    if (i32[section + SectionSlot.tid] === tid) i32[section] = Math.max(0, i32[section]) + 1
    else {
      i32[section + SectionSlot.tid] = tid
      i32[section] = 1
    }
    let entry = this.locks + (tag & this.lockMask) * BUCKET_WORDS
    if (i32[entry] !== 0 && i32[entry] !== tag) {
      entry += WAY
      if (i32[entry] !== 0 && i32[entry] !== tag) {
        this.misses++
        return
      }
    }
    if (i32[entry + OWNER] !== tid) i32[entry + OWNER] = tid
    i32[entry + WHERE] = nextGeneration(i32[entry + WHERE] & ~CPU) | (this.cpu + 1)
    i32[entry] = tag
  }

  bucketOf(tag: number): number {
    return this.locks + (tag & this.lockMask) * BUCKET_WORDS
  }

  sectionOf(tid: number): number {
    return this.sections + (tid & this.tidMask) * SectionSlot.words
  }

  /**
   * The holder is about to unlock. Called before its compare-exchange. True: a waiter has published itself.
   */
  leave(tag: number, tid: number): boolean {
    const { i32, tidMask } = this
    const section = this.sections + (tid & tidMask) * SectionSlot.words
    if (i32[section + SectionSlot.tid] === tid && i32[section] > 0) i32[section]--
    const bucket = this.locks + (tag & this.lockMask) * BUCKET_WORDS
    if (i32[bucket] === tag) {
      if (i32[bucket + OWNER] === tid) i32[bucket] = 0
    } else if (i32[bucket + WAY] === tag && i32[bucket + WAY + OWNER] === tid) i32[bucket + WAY] = 0
    return i32[bucket + WAITERS] !== 0
  }

  /** Another TID holds the lock, and the caller is about to wait for it. Returns the time. */
  contends(tag: number): number {
    const { context, s } = this
    if (context !== null && s !== null && this.i32[s.recording] !== 0)
      recordContended(context, tag, this.ownerTid(tag))
    return this.now()
  }

  /** The caller holds the lock, after waiting since `begun`. */
  acquired(tag: number, begun: number): void {
    if (this.context !== null) recordAcquired(this.context, tag, begun)
  }

  /** The lock is free and has a waiter: the task yields this CPU at its next safepoint. */
  handOver(tag: number, tid: number): void {
    const { i32, s, cpu } = this
    if (s === null) return
    const to = this.lastWaiter(tag)
    if (i32[s.recording] !== 0 && this.context !== null) tellHandedOver(this.context, tag, to)
    if (cpu < 0) return
    const section = this.sections + (tid & this.tidMask) * SectionSlot.words
    if (i32[section + SectionSlot.tid] === tid) i32[section + SectionSlot.gives] = 1
    Atomics.store(i32, cpuRecord(s.machine, cpu) + CpuRecord.needResched, 1)
  }

  /**
   * The TID of the waiter that published itself last, or 0: it does not wait any more. In that case the count
   * may include waiters that died, so it is set to 0; live waiters count themselves again at their next turn.
   */
  private lastWaiter(tag: number): number {
    const { i32 } = this
    const waiters = this.bucketOf(tag) + WAITERS
    const seen = Atomics.load(i32, waiters)
    const slot = this.waiterSlot(seen >>> WAITER_SLOT_SHIFT)
    if (i32[slot + WaiterSlot.flags] !== ACTIVE) {
      Atomics.compareExchange(i32, waiters, seen, 0)
      return 0
    }
    return i32[slot + WaiterSlot.lock] === tag ? i32[slot + WaiterSlot.tid] : 0
  }

  /** The TID of the lock's holder, or 0: there is no hint. */
  ownerTid(tag: number): number {
    const entry = this.entryOf(tag)
    return entry === 0 ? 0 : this.i32[entry + OWNER]
  }

  /** The CPU of the lock's holder, or -1: there is no hint. */
  ownerCpu(tag: number): number {
    const entry = this.entryOf(tag)
    if (entry === 0) {
      this.misses++
      return -1
    }
    return (this.i32[entry + WHERE] & CPU) - 1
  }

  /**
   * Publishes that this TID waits for the lock, whose holder is on CPU `cpu` (-1: not known). The waiter is
   * counted, so that the holder yields when it unlocks, only where that helps. Returns whether it was
   * counted, for `withdraw`. `begun`: when it began to wait.
   */
  publish(tag: number, tid: number, cpu: number, begun: number): boolean {
    const { i32 } = this
    const slot = this.waiterSlot(tid)
    const counts = this.canRunOn(cpu)
    i32[slot + WaiterSlot.tid] = tid
    i32[slot + WaiterSlot.lock] = tag
    i32[slot + WaiterSlot.cpu] = cpu
    i32[slot + WaiterSlot.since] = (begun * 1000) | 0
    i32[slot + WaiterSlot.counted] = counts ? 1 : 0
    Atomics.store(i32, slot + WaiterSlot.flags, ACTIVE)
    if (counts) this.count(tag, tid)
    return counts
  }

  private count(tag: number, tid: number): void {
    const { i32 } = this
    const waiters = this.bucketOf(tag) + WAITERS
    const last = (tid & this.tidMask) << WAITER_SLOT_SHIFT
    for (;;) {
      const seen = Atomics.load(i32, waiters)
      const count = Math.min((seen & WAITER_COUNT) + 1, WAITER_COUNT)
      if (Atomics.compareExchange(i32, waiters, seen, last | count) === seen) return
    }
  }

  /**
   * The waiter, which has published itself, goes to the holder's CPU with its slot active, and is counted
   * from now on: the holder yields to it. `came` withdraws the slot there.
   */
  follows(tag: number, tid: number, counted: boolean): void {
    const { i32 } = this
    const slot = this.waiterSlot(tid)
    this.followed++
    if (counted || i32[slot + WaiterSlot.tid] !== tid) return
    i32[slot + WaiterSlot.counted] = 1
    this.count(tag, tid)
  }

  /** The waiter continues, on whatever CPU: its slot is not active any more. */
  came(tid: number): void {
    const { i32 } = this
    const slot = this.waiterSlot(tid)
    if (i32[slot + WaiterSlot.tid] !== tid || Atomics.load(i32, slot + WaiterSlot.flags) !== ACTIVE) return
    this.withdraw(i32[slot + WaiterSlot.lock], tid, i32[slot + WaiterSlot.counted] === 1)
  }

  /** The caller has the lock, after it has waited since `begun`. */
  noteWait(tag: number, begun: number): void {
    const entry = this.entryOf(tag)
    if (entry === 0) return
    const { i32 } = this
    const us = Math.min(EXPECTED_MOST, Math.max(1, (this.now() - begun) * 1000)) | 0
    const before = i32[entry + EXPECTED]
    i32[entry + EXPECTED] = before <= 0 ? us : before + ((us - before) >> EXPECTED_SHIFT)
  }

  /**
   * Whether the caller could run on that CPU: it is this CPU, or the caller is a task that may migrate there.
   */
  private canRunOn(cpu: number): boolean {
    const s = this.context?.scheduler ?? this.s
    if (s === null || cpu === this.cpu) return true
    if (s.queue === 0) return false
    const { i32 } = s
    const mask = i32[s.queue + RunQueue.current] + Entity.affinityMask
    const [low, high] = [i32[mask], i32[mask + 1]]
    if (cpu >= 0) return maskHas(low, high, cpu)
    // It is not known where the holder is: a task that may run on several CPUs can get there.
    return (low & (low - 1)) !== 0 || (high & (high - 1)) !== 0 || (low !== 0 && high !== 0)
  }

  /** The TID does not wait any more, or waits at the futex. */
  withdraw(tag: number, tid: number, counted: boolean): void {
    const { i32 } = this
    const slot = this.waiterSlot(tid)
    if (i32[slot + WaiterSlot.tid] === tid) Atomics.store(i32, slot + WaiterSlot.flags, INACTIVE)
    if (!counted) return
    const waiters = this.bucketOf(tag) + WAITERS
    // Never below zero: `lastWaiter` may have set the count to 0 meanwhile.
    for (;;) {
      const seen = Atomics.load(i32, waiters)
      const next = (seen & WAITER_COUNT) <= 1 ? 0 : seen - 1
      if (seen === next || Atomics.compareExchange(i32, waiters, seen, next) === seen) return
    }
  }

  /** A task is lost with its CPU. Called before its TID is freed. */
  forgetTask(task: number): void {
    const owner = Atomics.load(this.i32, task + TaskRecord.owner)
    if (owner !== 0) this.forget(Atomics.load(this.i32, owner + Owner.tid))
  }

  /** The owner of this TID is gone: the next owner with this number starts without its hints. */
  forget(tid: number): void {
    const { i32 } = this
    this.came(tid)
    const section = this.sections + (tid & this.tidMask) * SectionSlot.words
    if (i32[section + SectionSlot.tid] === tid) {
      i32[section] = 0
      i32[section + SectionSlot.gives] = 0
    }
  }

  /** A contended lock was taken after some yields, or its waiter goes to the futex. */
  countContended(handedOff: boolean): void {
    this.contended++
    if (handedOff) this.handedOff++
    if ((this.contended & (FLUSH_EVERY - 1)) === 0) this.flush()
  }

  /** A contended lock was acquired by spinning. */
  countSpun(): void {
    this.spun++
    this.contended++
    if ((this.contended & (FLUSH_EVERY - 1)) === 0) this.flush()
  }

  /** Adds the counts of this thread to the shared sums. */
  flush(): void {
    const { i32, layout } = this
    const at = layout.counters
    Atomics.add(i32, at + HandoffCounters.acquisitions, this.acquisitions)
    Atomics.add(i32, at + HandoffCounters.contended, this.contended)
    Atomics.add(i32, at + HandoffCounters.handedOff, this.handedOff)
    Atomics.add(i32, at + HandoffCounters.spun, this.spun)
    Atomics.add(i32, at + HandoffCounters.fallbacks, this.contended - this.handedOff - this.spun)
    Atomics.add(i32, at + HandoffCounters.hintMisses, this.misses)
    Atomics.add(i32, at + HandoffCounters.followed, this.followed)
    this.acquisitions = 0
    this.contended = 0
    this.handedOff = 0
    this.spun = 0
    this.misses = 0
    this.followed = 0
  }

  /** The sums of all threads. Counts that other threads have not added yet are missing. */
  counts(): HandoffCounts {
    this.flush()
    return readCounts(this.i32, this.layout)
  }

  private entryOf(tag: number): number {
    const { i32 } = this
    const bucket = this.bucketOf(tag)
    return i32[bucket + TAG] === tag ? bucket : i32[bucket + WAY + TAG] === tag ? bucket + WAY : 0
  }

  private waiterSlot(tid: number): number {
    return this.waiters + (tid & this.tidMask) * WaiterSlot.words
  }
}

const views = new WeakMap<Arena, Handoff[]>()

/** Adds the counts of this thread to the shared sums. */
export function flushCounts(arena: Arena): void {
  for (const handoff of views.get(arena) ?? []) handoff.flush()
}

export function readCounts(i32: Int32Array, { counters }: HandoffLayout): HandoffCounts {
  const read = (offset: number): number => Atomics.load(i32, counters + offset) >>> 0
  return {
    acquisitions: read(HandoffCounters.acquisitions),
    contended: read(HandoffCounters.contended),
    handedOff: read(HandoffCounters.handedOff),
    spun: read(HandoffCounters.spun),
    fallbacks: read(HandoffCounters.fallbacks),
    hintMisses: read(HandoffCounters.hintMisses),
    followed: read(HandoffCounters.followed),
  }
}
