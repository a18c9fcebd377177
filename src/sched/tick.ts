import { CpuRecord, cpuRecord } from '../machine/cpurecord.ts'
import { armSlice, disarmSlice, isBefore, momentOf } from '../machine/timekeeper.ts'
import { Entity, POLICY_ROUND_ROBIN } from './entity.ts'
import { fairClass, fairSliceEnd } from './fair.ts'
import { fifoClass } from './fifo.ts'
import { ClassRq, RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'

/**
 * The tick: the machine raises `needResched` at the moment that is armed here. It is armed only while the running task
 * shares its CPU with an equal, or a timer is due; so a CPU with one task, or with FIFO tasks proper, has no ticks.
 * The run queue's lock is held: whoever enqueues on a CPU arms its tick for it.
 */

/** When the slice of the current entity ends, or Infinity: it has no equals waiting, or no slices at all. */
function sliceEnd(s: Scheduler, queue: number): number {
  const { i32, f64 } = s
  const current = i32[queue + RunQueue.current]
  const rq = i32[current + Entity.rq]
  const schedClass = s.classes[i32[rq + ClassRq.classId]]
  if (schedClass === fairClass) {
    return i32[rq + ClassRq.taskCount] === 0 ? Infinity : fairSliceEnd(s, current)
  }
  if (schedClass === fifoClass && (i32[current + Entity.policy] & POLICY_ROUND_ROBIN) === 0) return Infinity
  if (i32[rq + ClassRq.counts + (i32[current + Entity.priority] & 3)] === 0) return Infinity
  return f64[(current + Entity.deadline) >> 1]
}

/**
 * Arms the tick for what runs on this queue, if it needs one. A tick that is armed already and comes earlier is left: it
 * finds nothing to do, and this is called again.
 */
export function armTick(s: Scheduler, queue: number): void {
  const { i32 } = s
  let end = sliceEnd(s, queue)
  if (queue === s.queue && s.nextTimer < end) end = s.nextTimer
  if (end === Infinity) {
    if (i32[queue + RunQueue.tickArmed] !== 0 && queue === s.queue) {
      i32[queue + RunQueue.tickArmed] = 0
      disarmSlice(i32, cpuRecord(s.machine, s.cpu))
    }
    return
  }
  const cpu = cpuRecord(s.machine, i32[queue + RunQueue.cpu])
  if (i32[queue + RunQueue.tickArmed] !== 0) {
    const armed = Atomics.load(i32, cpu + CpuRecord.sliceEnd)
    if (armed !== 0 && !isBefore(momentOf(end), armed)) return
  }
  i32[queue + RunQueue.tickArmed] = 1
  armSlice(i32, s.machine, cpu, end)
}
