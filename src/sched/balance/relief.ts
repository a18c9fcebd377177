import { acquire, release } from '../../arena/sync/spinlock.ts'
import { listFirst, ListNode, listNext } from '../../arena/trees/list.ts'
import { fairList } from '../classes/fairlist.ts'
import { taskAccount } from '../core/account.ts'
import { maskHas } from '../core/cpumask.ts'
import { Entity } from '../core/entity.ts'
import { FAIR_MAJOR_PRIORITY } from '../core/priority.ts'
import { ClassRq, classRq, RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { isIdle } from '../core/selectcpu.ts'
import { TaskRecord } from '../core/taskrecord.ts'

/**
 * Which CPU should take the started task that has just stopped here. Asked at the end of a slice, by the CPU
 * that has more than one runnable task: a CPU alone with its task has no ticks, and nothing to give away.
 *
 *   [1] an idle CPU
 *   [2] a CPU with at least two runnable tasks less than this one
 *   [3] a CPU with one less, if its task has waited much less than the task that has waited longest here. The
 *       task that has waited longest stays, and has more of this CPU from now on; another one goes
 *
 * Of five equal tasks on four CPUs two share a CPU, and always the same two without [3]: they end when the
 * other three CPUs have been idle for a third of the time. By [3] all tasks take turns in sharing.
 *
 * The costs. A move writes and reads the state of the task: some 50 microseconds, and 1 ms for each 500 kB.
 * So a task moves at most once in RAN_SLICES slices, in which it must have run so long that the move costs at
 * most a tenth of that; and [3] asks for a wait that grows with the age of the task: a task of an hour moves
 * no more often in an hour than a task of a second does in a second.
 */
const RAN_SLICES = 2
export const STATE_BYTES_A_MS = 50_000
/** [3]: what the longest wait here must be ahead by, in slices and as a part of the age of its task. */
const LAG_SLICES = 2
const LAG_PART = 1 / 16
/** [3] is for few tasks: with more, one more or less makes no difference, and the search takes time. */
const ROTATED_LOAD_MOST = 8

/**
 * Whether a task that has run `ran` milliseconds on this CPU, with a state of so many bytes, may be moved.
 */
export function isWorthMoving(s: Scheduler, ran: number, stateBytes: number): boolean {
  return ran >= RAN_SLICES * s.slice && stateBytes <= ran * STATE_BYTES_A_MS
}

/**
 * The CPU that should take the current task; -1: it stays. No lock is held; all other CPUs' words are hints.
 */
export function reliefFor(s: Scheduler, task: number): number {
  const { i32, queue } = s
  const load = Atomics.load(i32, queue + RunQueue.load)
  if (load < 2) return -1
  const low = i32[task + TaskRecord.allowed] & s.activeHalf(0)
  const high = i32[task + TaskRecord.allowed + 1] & s.activeHalf(1)
  let least = -1
  let leastLoad = load
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    if (cpu === s.cpu || !maskHas(low, high, cpu) || s.arrivals.has(cpu)) continue
    if (isIdle(s, cpu)) return cpu // [1]
    const there = Atomics.load(i32, s.queueOf(cpu) + RunQueue.load)
    if (there >= leastLoad) continue
    least = cpu
    leastLoad = there
  }
  if (least < 0 || leastLoad <= load - 2) return least // [2]
  if (load > ROTATED_LOAD_MOST) return -1
  return rotates(s, i32[task + TaskRecord.entity], low, high, load) // [3]
}

function rotates(s: Scheduler, se: number, low: number, high: number, load: number): number {
  const { i32, f64 } = s
  if (i32[se + Entity.priority] >> 2 !== FAIR_MAJOR_PRIORITY) return -1
  s.readClock()
  const waits = new LongestWait(s)
  const own = f64[(se + Entity.waitTime) >> 1]
  if (waits.se === 0 || waits.ms < own) return -1
  const age = waits.ms + f64[(waits.se + Entity.runTime) >> 1]
  const limit = waits.ms - Math.max(LAG_SLICES * s.slice, age * LAG_PART)
  let best = -1
  let least = limit
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    if (cpu === s.cpu || !maskHas(low, high, cpu)) continue
    const there = s.queueOf(cpu)
    if (Atomics.load(i32, there + RunQueue.load) !== load - 1) continue
    const running = Atomics.load(i32, there + RunQueue.current)
    if (running === i32[there + RunQueue.idle]) continue
    if (i32[running + Entity.priority] !== i32[se + Entity.priority]) continue
    const { waitTime } = taskAccount(i32, running)
    if (waitTime >= least) continue
    best = cpu
    least = waitTime
  }
  return best
}

/** The queued fair task of this CPU that has waited longest since it was made. */
class LongestWait {
  se = 0
  ms = 0

  constructor(s: Scheduler) {
    const { i32, thread, queue } = s
    acquire(thread, queue + RunQueue.lock)
    const rq = classRq(queue, FAIR_MAJOR_PRIORITY)
    this.visit(s, i32[rq + ClassRq.root])
    const list = fairList(rq)
    for (let node = listFirst(i32, list); node !== 0; node = listNext(i32, list, node)) {
      this.see(s, node - Entity.links)
    }
    release(thread, queue + RunQueue.lock)
  }

  private visit(s: Scheduler, se: number): void {
    if (se === 0) return
    this.see(s, se)
    this.visit(s, s.i32[se + Entity.links + ListNode.next])
    this.visit(s, s.i32[se + Entity.links + ListNode.prev])
  }

  private see({ f64, clock }: Scheduler, se: number): void {
    const ms = f64[(se + Entity.waitTime) >> 1] + Math.max(0, clock - f64[(se + Entity.execStart) >> 1])
    if (this.se === 0 || ms > this.ms) {
      this.se = se
      this.ms = ms
    }
  }
}
