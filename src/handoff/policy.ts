import { Owner } from '../futex/records.ts'
import { ENQUEUE_SLICE_ENDED, type Policy } from '../sched/policy.ts'
import type { PolicyContext } from '../sched/policycontext.ts'
import { Task } from '../sched/taskrecord.ts'
import { flushCounts } from './handoff.ts'
import { ACTIVE, type HandoffLayout, handoffOf, SectionSlot, WaiterSlot } from './layout.ts'

/**
 * The hand-off policy: the scheduler's half of the lock shim (contend.ts). It looks at the hints, and believes none of them
 * further than a turn.
 *
 *   a waiter      goes to the lock-wait queue of the CPU that the lock's owner is on, if it may run there, else to its own CPU's.
 *                 A CPU serves its lock-wait queue first: when the owner gives way after its unlock, the waiter is next
 *   an owner      inside a critical section that was preempted comes back first, on the CPU where it was, and its slice is
 *                 extended while the section lasts
 *   the bound     EXTENSIONS a turn, and PREFERRED returns in a row: after that it waits like any other, so a section that never
 *                 ends does not hold a CPU
 *
 * Each CPU has two queues, for waiters and for tasks that can run on it alone; what may run anywhere is on the global one.
 */
const SLICE_MS = 4
const EXTENSION_MS = 4
const EXTENSIONS = 3
const PREFERRED = 4

/** The task's words: extensions of this turn, and how often it was preferred in a row. */
const EXTENDED = 0
const FAVOURS = 1

export default function handoffPolicy(): Policy {
  let tables: HandoffLayout | undefined
  let i32: Int32Array = new Int32Array(0)
  let globalsTurn = false

  const tidOf = (task: number): number => {
    const owner = Atomics.load(i32, task + Task.owner)
    return owner === 0 ? 0 : Atomics.load(i32, owner + Owner.tid)
  }
  /** The waiter slot of a task that has published that it waits, or 0. */
  const waiterOf = (tid: number): number => {
    if (tid === 0 || tables === undefined) return 0
    const slot = tables.waiters + (tid & tables.tidMask) * WaiterSlot.words
    const waits = Atomics.load(i32, slot + WaiterSlot.flags) === ACTIVE
    return waits && i32[slot + WaiterSlot.tid] === tid ? slot : 0
  }
  const sectionOf = (tid: number): number => {
    if (tid === 0 || tables === undefined) return 0
    const slot = tables.sections + (tid & tables.tidMask) * SectionSlot.words
    return i32[slot + SectionSlot.tid] === tid ? slot : 0
  }
  const inSection = (tid: number): boolean => {
    const slot = sectionOf(tid)
    return slot !== 0 && i32[slot + SectionSlot.depth] > 0
  }
  const lockWait = (context: PolicyContext, cpu: number): number => context.queue(2 * cpu)
  const normal = (context: PolicyContext, cpu: number): number => context.queue(2 * cpu + 1)
  /** Where the task is, unless its mask has changed since. */
  const homeOf = (context: PolicyContext, task: number): number => {
    const cpu = context.cpuOf(task)
    return context.mayRun(task, cpu) ? cpu : context.cpusOf(task)[0]
  }
  /** Only that CPU looks at its own queues. */
  const kickIdle = (context: PolicyContext, cpu: number): void => {
    if (cpu !== context.cpu && context.isIdle(cpu)) context.kick(cpu)
  }
  /** The CPU that a waiter should go to, or -1. */
  const targetOf = (context: PolicyContext, task: number, slot: number): number => {
    const cpu = i32[slot + WaiterSlot.cpu]
    return cpu >= 0 && cpu < context.cpus && context.mayRun(task, cpu) ? cpu : -1
  }

  return {
    name: 'handoff',
    slice: SLICE_MS,
    takesLast: true,

    enable(context) {
      tables = handoffOf(context.scheduler.arena)
      if (tables === undefined)
        throw new Error('this arena has no hand-off tables: reserveHandoff was not called')
      i32 = context.scheduler.i32
      for (let cpu = 0; cpu < context.cpus; cpu++) {
        lockWait(context, cpu)
        normal(context, cpu)
      }
    },

    selectCpu(context, task, last) {
      const tid = tidOf(task)
      const slot = waiterOf(tid)
      if (slot !== 0) return targetOf(context, task, slot)
      return inSection(tid) ? last : -1
    },

    enqueue(context, task, flags) {
      const tid = tidOf(task)
      const words = context.taskAt(task)
      const cpu = homeOf(context, task)
      const slot = waiterOf(tid)
      if (slot !== 0) {
        const owners = targetOf(context, task, slot)
        const target = owners < 0 ? cpu : owners
        context.dispatch(task, lockWait(context, target))
        kickIdle(context, target)
        return
      }
      const favours = context.taskWords[words + FAVOURS]
      if (
        inSection(tid) &&
        (flags & ENQUEUE_SLICE_ENDED) === 0 &&
        favours < PREFERRED &&
        context.mayRun(task, cpu)
      ) {
        context.taskWords[words + FAVOURS] = favours + 1
        context.dispatch(task, context.localOf(cpu), 0, true)
        return
      }
      context.taskWords[words + FAVOURS] = 0
      if (!context.isPinned(task)) {
        context.dispatch(task, context.global)
        return
      }
      context.dispatch(task, normal(context, cpu))
      kickIdle(context, cpu)
    },

    dispatch(context, cpu) {
      if (context.consume(lockWait(context, cpu))) return
      // What can run here alone, and what can run anywhere, in turn: neither waits for the other to end.
      globalsTurn = !globalsTurn
      const first = globalsTurn ? context.global : normal(context, cpu)
      if (context.consume(first)) return
      context.consume(globalsTurn ? normal(context, cpu) : context.global)
    },

    running(context, task) {
      context.taskWords[context.taskAt(task) + EXTENDED] = 0
    },

    tick(context, task) {
      const section = sectionOf(tidOf(task))
      if (section === 0) return
      if (i32[section + SectionSlot.gives] !== 0) {
        i32[section + SectionSlot.gives] = 0
        if (i32[section + SectionSlot.depth] === 0) context.setSlice(task, 0)
        return
      }
      const words = context.taskAt(task)
      const extended = context.taskWords[words + EXTENDED]
      if (i32[section + SectionSlot.depth] === 0 || extended >= EXTENSIONS || context.sliceLeft(task) > 0)
        return
      context.taskWords[words + EXTENDED] = extended + 1
      context.setSlice(task, EXTENSION_MS)
    },

    exit(context) {
      flushCounts(context.scheduler.arena)
    },
  }
}
