import { Owner } from '../futex/core/records.ts'
import { ENQUEUE_SLICE_ENDED, type Policy } from '../sched/ext/policy.ts'
import type { PolicyContext } from '../sched/ext/policycontext.ts'
import { TaskRecord } from '../sched/core/taskrecord.ts'
import { flushCounts } from './handoff.ts'
import { Hints } from './hints.ts'
import { handoffOf } from './layout.ts'

/**
 * The hand-off policy: the scheduler's half of the lock shim (contend.ts). It reads the hints, and a wrong
 * hint costs at most one turn.
 *
 *   a waiter      goes to the lock-wait queue of the CPU that the lock's holder is on, if it may run there, else to its own CPU's.
 *                 A CPU serves its lock-wait queue first: when the holder yields after its unlock, the waiter is next
 *   a holder      that was preempted inside its critical section runs again first, on the same CPU, and its slice is
 *                 extended while the section lasts
 *   a waiter that has started, and can move, goes there as well (`moveTo`), if waits for the lock are longer than a move
 *   the bound     EXTENSIONS a turn, and PREFERRED returns in a row: after that it waits like any other task, so a section
 *                 that never ends does not keep a CPU
 *
 * Each CPU has two queues: one for waiters, one for tasks that can run on this CPU only. All other tasks are
 * on the global queue.
 */
const SLICE_MS = 4
const EXTENSION_MS = 4
const EXTENSIONS = 3
const PREFERRED = 4
/** A wait must be longer than this before its task moves: several times what a move takes. */
const FOLLOW_MS = 0.25

/** The task's words: extensions of this turn, and how often it was preferred in a row. */
const EXTENDED = 0
const FAVOURS = 1

export default function handoffPolicy(): Policy {
  let hints: Hints | undefined
  let globalsTurn = false

  return {
    name: 'handoff',
    slice: SLICE_MS,
    takesLast: true,

    enable(context) {
      const { arena, i32 } = context.scheduler
      const layout = handoffOf(arena)
      if (layout === undefined)
        throw new Error('this arena has no hand-off tables: reserveHandoff was not called')
      hints = new Hints(i32, layout)
      for (let cpu = 0; cpu < context.cpus; cpu++) {
        lockWait(context, cpu)
        normal(context, cpu)
      }
    },

    selectCpu(context, task, last) {
      const tid = tidOf(context, task)
      if (hints === undefined || tid === 0) return -1
      if (hints.waits(tid)) return targetOf(context, task, hints.ownersCpu(tid))
      return hints.isInside(tid) ? last : -1
    },

    enqueue(context, task, flags) {
      const tid = tidOf(context, task)
      const favours = context.taskAt(task) + FAVOURS
      const cpu = homeOf(context, task)
      if (hints !== undefined && tid !== 0) {
        if (hints.waits(tid)) {
          const owners = targetOf(context, task, hints.ownersCpu(tid))
          const target = owners < 0 ? cpu : owners
          context.dispatch(task, lockWait(context, target))
          kickIdle(context, target)
          return
        }
        const preferred = (flags & ENQUEUE_SLICE_ENDED) === 0 && context.taskWords[favours] < PREFERRED
        if (preferred && hints.isInside(tid)) {
          context.taskWords[favours]++
          context.dispatch(task, context.localOf(cpu), 0, true)
          return
        }
      }
      context.taskWords[favours] = 0
      if (!context.isPinned(task)) {
        context.dispatch(task, context.global)
        return
      }
      context.dispatch(task, normal(context, cpu))
      kickIdle(context, cpu)
    },

    dispatch(context, cpu) {
      if (context.consume(lockWait(context, cpu))) return
      // Tasks of this CPU only and tasks of any CPU, in turn: neither group waits for the other to end.
      globalsTurn = !globalsTurn
      const first = globalsTurn ? context.global : normal(context, cpu)
      if (context.consume(first)) return
      context.consume(globalsTurn ? normal(context, cpu) : context.global)
    },

    moveTo(context, task) {
      const tid = tidOf(context, task)
      if (hints === undefined || tid === 0 || !hints.waits(tid)) return -1
      const cpu = hints.ownersCpu(tid)
      if (cpu === context.cpu || !context.mayMoveTo(task, cpu)) return -1
      return hints.expectedMs(tid, context.scheduler.now()) >= FOLLOW_MS ? cpu : -1
    },

    running(context, task) {
      context.taskWords[context.taskAt(task) + EXTENDED] = 0
    },

    tick(context, task) {
      const tid = tidOf(context, task)
      if (hints === undefined || tid === 0) return
      const inside = hints.isInside(tid)
      if (hints.takeGivesWay(tid) && !inside) {
        context.setSlice(task, 0)
        return
      }
      const extended = context.taskAt(task) + EXTENDED
      if (!inside || context.taskWords[extended] >= EXTENSIONS || context.sliceLeft(task) > 0) return
      context.taskWords[extended]++
      context.setSlice(task, EXTENSION_MS)
    },

    exit(context) {
      flushCounts(context.scheduler.arena)
    },
  }
}

/** The task's TID as an owner of locks, or 0: it has not used a lock yet. */
function tidOf({ scheduler: { i32 } }: PolicyContext, task: number): number {
  const owner = Atomics.load(i32, task + TaskRecord.owner)
  return owner === 0 ? 0 : Atomics.load(i32, owner + Owner.tid)
}

function lockWait(context: PolicyContext, cpu: number): number {
  return context.queue(2 * cpu)
}

function normal(context: PolicyContext, cpu: number): number {
  return context.queue(2 * cpu + 1)
}

/** The CPU of the task, or another one if its mask has changed since. */
function homeOf(context: PolicyContext, task: number): number {
  const cpu = context.cpuOf(task)
  return context.mayRun(task, cpu) ? cpu : context.cpusOf(task)[0]
}

/** The CPU of a hint, if there is such a CPU and the task may run there; else -1. */
function targetOf(context: PolicyContext, task: number, cpu: number): number {
  return cpu >= 0 && cpu < context.cpus && context.mayRun(task, cpu) ? cpu : -1
}

/** A CPU polls only its own queues. */
function kickIdle(context: PolicyContext, cpu: number): void {
  if (cpu !== context.cpu && context.isIdle(cpu)) context.kick(cpu)
}
