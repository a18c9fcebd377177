import { countTime, SLICE_OVERRUN } from '../../arena/rings/histogram.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { cpuRecord } from '../../machine/core/cpurecord.ts'
import { armSlice, disarmSlice } from '../../machine/timekeeper/timekeeper.ts'
import { Entity, POLICY_ROUND_ROBIN } from './entity.ts'
import { extClass, extSliceEnd } from '../ext/ext.ts'
import { fairClass, fairSliceEnd } from '../classes/fair.ts'
import { fifoClass } from '../classes/fifo.ts'
import { ClassRq, RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'

/**
 * The tick: the machine raises `needResched` at the moment that is armed here. It is armed only while the
 * running task shares its CPU with an equal, or a timer is due; so a CPU with one task, or with plain FIFO
 * tasks, has no ticks. The run queue's lock is held: a thread that enqueues on a CPU arms its tick.
 */

/** The machine tells moments apart up to 17 minutes ahead (timekeeper.ts): no tick is armed further away. */
const FAR_MS = 600_000

/** When the slice of the current entity ends; Infinity: no equal task waits, or it has no slices. */
function sliceEnd(s: Scheduler, queue: number): number {
  const { i32, f64 } = s
  const current = i32[queue + RunQueue.current]
  const rq = i32[current + Entity.rq]
  const schedClass = s.classes[i32[rq + ClassRq.classId]]
  if (schedClass === fairClass) {
    return i32[rq + ClassRq.taskCount] === 0 ? Infinity : fairSliceEnd(s, current)
  }
  if (schedClass === fifoClass && (i32[current + Entity.policy] & POLICY_ROUND_ROBIN) === 0) return Infinity
  if (schedClass === extClass) return extSliceEnd(s, queue, current)
  if (i32[rq + ClassRq.counts + (i32[current + Entity.priority] & 3)] === 0) return Infinity
  return f64[(current + Entity.deadline) >> 1]
}

/**
 * Arms the tick for the current entity of this queue, if it needs one. An armed tick that is due earlier
 * stays: it will find nothing to do, and arm the next one.
 */
export function armTick(s: Scheduler, queue: number): void {
  const { i32, f64 } = s
  let end = sliceEnd(s, queue)
  if (queue === s.queue) end = Math.min(end, s.nextTimer, s.turnAt, s.moveAt)
  const armed = f64[(queue + RunQueue.tickAt) >> 1]
  if (end === Infinity) {
    if (armed === 0 || queue !== s.queue) return
    f64[(queue + RunQueue.tickAt) >> 1] = 0
    disarmSlice(i32, cpuRecord(s.machine, s.cpu))
    return
  }
  end = Math.min(end, s.clock + FAR_MS)
  if (armed !== 0 && armed <= end) return
  f64[(queue + RunQueue.tickAt) >> 1] = end
  armSlice(i32, s.machine, cpuRecord(s.machine, i32[queue + RunQueue.cpu]), end)
}

/**
 * This CPU packs tasks, or writes checkpoints, at `at` at the latest. Called by code of the CPU while a task
 * runs or is about to: the switch to that task armed the tick without `at`, and a task that is alone on its
 * CPU may not switch again before it ends.
 */
export function interruptBy(s: Scheduler, at: number): void {
  if (at >= s.moveAt) return
  s.moveAt = at
  acquire(s.thread, s.queue + RunQueue.lock)
  armTick(s, s.queue)
  release(s.thread, s.queue + RunQueue.lock)
}

/** This CPU was interrupted: the armed tick may have fired. */
export function tickFired(s: Scheduler, queue: number): void {
  const { f64 } = s
  const armed = f64[(queue + RunQueue.tickAt) >> 1]
  if (armed !== 0 && s.clock >= armed) countTime(s.i32, s.histograms, s.cpu, SLICE_OVERRUN, s.clock - armed)
  f64[(queue + RunQueue.tickAt) >> 1] = 0
}
