import { assert } from '../../src/arena/assert.ts'
import { ListHead } from '../../src/arena/trees/list.ts'
import { Entity, POLICY_BOUND } from '../../src/sched/core/entity.ts'
import { checkExt } from './extinvariants.ts'
import { checkFair } from './fairinvariants.ts'
import { ExtRq } from '../../src/sched/ext/extlayout.ts'
import {
  EXT_MAJOR_PRIORITY,
  IDLE_MAJOR_PRIORITY,
  MAJOR_LEVELS,
  MINOR_LEVELS,
  PRIORITY_NONE,
} from '../../src/sched/core/priority.ts'
import { isReady, ReadyMask } from '../../src/sched/classes/readymask.ts'
import { ClassRq, classRq, RunQueue } from '../../src/sched/core/runqueue.ts'
import type { Scheduler } from '../../src/sched/core/scheduler.ts'
import { isSleeping, RUNNING, TaskRecord, WAKENING, ZOMBIE } from '../../src/sched/core/taskrecord.ts'

/**
 * What holds for every task whenever no CPU is inside a switch or a wakeup. Throws InvariantError if it does
 * not.
 *
 *   [1] a RUNNING task that is not stopped is on exactly one queue, or the current task of exactly one CPU
 *   [2] a sleeping task, a stopped one that is not on a CPU, and a ZOMBIE are on neither
 *   [3] onRq, onCpu, cpu and rq are right
 *   [4] the counts, the masks and the published words of every run queue are right
 *
 * Reads everything; the caller must make sure that nothing moves.
 */
export function checkInvariants(s: Scheduler): void {
  const { i32, entities } = s
  const running = new Map<number, number>()
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    const queue = s.queueOf(cpu)
    const current = i32[queue + RunQueue.current]
    assert(!running.has(current), 'two CPUs run one entity')
    if (current !== i32[queue + RunQueue.idle]) running.set(current, cpu)
  }
  const queued = new Int32Array(s.cpus)
  const atLevel = new Int32Array(s.cpus * MAJOR_LEVELS)
  for (let se = entities.after(i32, 0); se !== 0; se = entities.after(i32, se)) {
    if (i32[se + Entity.priority] >> 2 === IDLE_MAJOR_PRIORITY) continue
    checkEntity(s, se, running.get(se))
    if (i32[se + Entity.onRq] === 1) {
      const cpu = i32[se + Entity.cpu]
      queued[cpu]++
      atLevel[cpu * MAJOR_LEVELS + (i32[se + Entity.priority] >> 2)]++
    }
  }
  for (let cpu = 0; cpu < s.cpus; cpu++) checkQueue(s, cpu, queued, atLevel)
  checkExt(s)
  checkFair(s)
}

function checkEntity(s: Scheduler, se: number, cpu: number | undefined): void {
  const { i32 } = s
  const task = i32[se + Entity.task]
  const state = i32[task + TaskRecord.state]
  const onRq = i32[se + Entity.onRq] === 1
  assert(i32[task + TaskRecord.entity] === se, 'task and entity point at each other')
  assert(!(onRq && cpu !== undefined), 'an entity is both on a queue and on a CPU')
  assert(state !== WAKENING, 'a task is WAKENING only inside a wakeup')
  assert(i32[se + Entity.onCpu] === (cpu === undefined ? 0 : 1), 'onCpu does not say where the entity is')
  if (cpu !== undefined) assert(i32[se + Entity.cpu] === cpu, 'an entity does not know its CPU')
  if (state === RUNNING && i32[task + TaskRecord.stopped] === 0) {
    assert(onRq || cpu !== undefined, 'a task is runnable and nowhere')
  } else {
    assert(!onRq, 'a task that is asleep, stopped or dead is on a queue')
  }
  if (isSleeping(state) || state === ZOMBIE)
    assert(cpu === undefined, 'a task that sleeps or has ended is on a CPU')
  if (onRq) {
    const rq = i32[se + Entity.rq]
    assert(
      rq === classRq(s.queueOf(i32[se + Entity.cpu]), i32[se + Entity.priority] >> 2),
      'rq is not its queue',
    )
    const online = i32[s.queueOf(i32[se + Entity.cpu]) + RunQueue.online] !== 0
    const someActive = (s.activeHalf(0) | s.activeHalf(1)) !== 0
    const bound = (i32[se + Entity.policy] & POLICY_BOUND) !== 0
    assert(online || bound || !someActive, 'a task is queued on a CPU that is gone')
  }
}

function checkQueue(s: Scheduler, cpu: number, queued: Int32Array, atLevel: Int32Array): void {
  const { i32 } = s
  const queue = s.queueOf(cpu)
  assert(i32[queue + RunQueue.taskCount] === queued[cpu], 'a run queue miscounts its tasks')
  const busy = i32[queue + RunQueue.current] === i32[queue + RunQueue.idle] ? 0 : 1
  const published = i32[queue + RunQueue.runningPriority] !== PRIORITY_NONE
  assert(!published || i32[queue + RunQueue.load] === queued[cpu] + busy, 'the published load is wrong')
  const mask = queue + RunQueue.readyMask
  let groups = 0
  for (let level = 0; level < MAJOR_LEVELS; level++) {
    const rq = classRq(queue, level)
    const count = atLevel[cpu * MAJOR_LEVELS + level]
    assert(i32[rq + ClassRq.taskCount] === count, 'a class run queue miscounts its tasks')
    const local = level === EXT_MAJOR_PRIORITY ? i32[rq + ExtRq.local + ListHead.count] : count
    const ready = local > 0 || level === IDLE_MAJOR_PRIORITY
    assert(isReady(i32, mask, level) === ready, 'the ready mask does not say which levels have tasks')
    if (ready) groups |= 1 << (level >> 3)
    let minors = 0
    for (let minor = 0; minor < MINOR_LEVELS; minor++) {
      minors += i32[rq + ClassRq.counts + minor]
      const seen = i32[rq + ClassRq.published + minor]
      assert(seen === i32[rq + ClassRq.counts + minor], 'the published counts are wrong')
    }
    assert(minors === count, 'the sub-queues miscount their tasks')
  }
  assert(i32[mask + ReadyMask.ready] === groups, 'the two layers of the ready mask disagree')
}
