import { assert } from '../../arena/assert.ts'
import { CPU_ONLINE, CPU_STARTING, CpuRecord, cpuRecord } from '../../machine/core/cpurecord.ts'
import { lowestCpu, maskHas } from './cpumask.ts'
import { Entity, POLICY_BOUND } from './entity.ts'
import { EXT_MAJOR_PRIORITY, IDLE_PRIORITY } from './priority.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'

/**
 * Which CPU a waking or new task goes to. The caller holds its pi lock, which guards the mask, and no run
 * queue lock: this reads published words, and the choice is a hint until the chosen queue's lock is held
 * (enqueue.ts).
 *
 *   [1] the active CPUs of its mask; without any, a CPU of the mask that is being started, where it waits;
 *       without that, all active CPUs. For a policy's task (ext.ts): the CPU that the policy chooses
 *   [2] an idle CPU: the one it ran on last, the waker's, any
 *   [3] the CPU that runs the least important task, if this one outranks it
 *   [4] the choice of its class; for FIFO and fair, the load-balancing rule of fifo.ts
 *
 * A task bound to a CPU goes there. With no CPU active it waits where it was last: the first CPU that comes
 * online takes it from there.
 */
export function selectTaskRq(s: Scheduler, se: number): number {
  const { i32 } = s
  if ((i32[se + Entity.policy] & POLICY_BOUND) !== 0) return i32[se + Entity.cpu]
  const activeLow = s.activeHalf(0)
  const activeHigh = s.activeHalf(1)
  let low = i32[se + Entity.affinityMask] & activeLow
  let high = i32[se + Entity.affinityMask + 1] & activeHigh
  if ((low | high) === 0) {
    const coming = comingCpu(s, se)
    if (coming >= 0) return coming
    if ((activeLow | activeHigh) === 0) return i32[se + Entity.cpu]
    low = activeLow
    high = activeHigh
  }
  const only = lowestCpu(low, high)
  if ((low & (low - 1)) === 0 && (high & (high - 1)) === 0 && (low === 0 || high === 0)) return only

  if (s.ext.selectCpu !== null && i32[se + Entity.priority] >> 2 === EXT_MAJOR_PRIORITY) {
    const said = s.ext.selectCpu(s, se)
    if (said >= 0 && said < s.cpus && maskHas(low, high, said)) return said
  }
  const idle = idleCpu(s, se, low, high) // [2]
  if (idle >= 0) return idle
  const outranked = outrankedCpu(s, se, low, high) // [3]
  if (outranked >= 0) return outranked
  const chosen = s.classes[i32[se + Entity.priority] >> 2].selectTaskRq(s, se, low, high) // [4]
  assert(maskHas(low, high, chosen), 'a class chooses among the CPUs that it is given')
  return chosen
}

/**
 * A CPU of the task's mask that is being started. -1: there is no such CPU, or the task may run on every CPU.
 */
function comingCpu(s: Scheduler, se: number): number {
  const { i32 } = s
  const low = i32[se + Entity.affinityMask]
  const high = i32[se + Entity.affinityMask + 1]
  if ((low & high) === -1) return -1
  for (let cpu = 0; cpu < s.cpus; cpu++) if (maskHas(low, high, cpu) && isComing(s, cpu)) return cpu
  return -1
}

/**
 * Whether the CPU's thread has been created, and takes no tasks yet. If it dies first, other CPUs take its
 * queue, as of any CPU that is gone.
 */
export function isComing(s: Scheduler, cpu: number): boolean {
  const { i32 } = s
  const record = cpuRecord(s.machine, cpu)
  const state = Atomics.load(i32, record + CpuRecord.state)
  if (state === CPU_STARTING) return true
  return state === CPU_ONLINE && !s.isActive(cpu) && Atomics.load(i32, record + CpuRecord.stopRequested) === 0
}

export function isIdle(s: Scheduler, cpu: number): boolean {
  const queue = s.queueOf(cpu)
  return (
    Atomics.load(s.i32, queue + RunQueue.load) === 0 &&
    Atomics.load(s.i32, queue + RunQueue.runningPriority) === IDLE_PRIORITY
  )
}

function idleCpu(s: Scheduler, se: number, low: number, high: number): number {
  const last = s.i32[se + Entity.cpu]
  if (maskHas(low, high, last) && isIdle(s, last)) return last
  if (s.cpu >= 0 && s.cpu !== last && maskHas(low, high, s.cpu) && isIdle(s, s.cpu)) return s.cpu
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    if (cpu !== last && cpu !== s.cpu && maskHas(low, high, cpu) && isIdle(s, cpu)) return cpu
  }
  return -1
}

function outrankedCpu(s: Scheduler, se: number, low: number, high: number): number {
  const { i32 } = s
  let best = -1
  let least = i32[se + Entity.priority]
  const last = i32[se + Entity.cpu]
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    if (!maskHas(low, high, cpu)) continue
    const running = Atomics.load(i32, s.queueOf(cpu) + RunQueue.runningPriority)
    // Among equals the CPU that it ran on last.
    if (running > least || (best >= 0 && running === least && cpu === last)) {
      best = cpu
      least = running
    }
  }
  return best
}
