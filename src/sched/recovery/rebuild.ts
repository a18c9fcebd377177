import { initList, ListHead, ListNode } from '../../arena/trees/list.ts'
import { publishQueue, rqEnqueueTask, rqRestoreTask } from '../classes/classrq.ts'
import { Entity } from '../core/entity.ts'
import { fifoClass, subqueue } from '../classes/fifo.ts'
import { IDLE_MAJOR_PRIORITY, MAJOR_LEVELS, MINOR_LEVELS } from '../core/priority.ts'
import { notePushable } from '../balance/pushable.ts'
import { ReadyMask, setReady } from '../classes/readymask.ts'
import { ClassRq, classRq, pushList, RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { TaskRecord } from '../core/taskrecord.ts'
import { isArmedOn } from '../core/timer.ts'

/**
 * Rebuilds what a lock of the scheduler guards from facts in the records, whatever step its holder died in.
 * The caller holds that lock, and takes only locks that are inner to it: so each rebuild can run alone, in
 * any order, also on a thread that holds outer locks.
 *
 *   structure              the fact                                       one store changes it, under
 *   run queue of a CPU     entity.onRq is 1 and entity.cpu is that CPU    the queue that it names
 *     order within it      FIFO: the links from the head on; fair: the deadline
 *     what runs there      RunQueue.current, while its onRq is 0
 *   timers of a CPU        task.timerArmed, task.timerCpu                 the timers of the CPU that it names
 *   wait tree              task.channel is not 0                          the sleep lock
 *
 * Everything else (links, trees, counts, masks, sums, published words) is derived. The facts are read in the
 * order that makes them exact while other threads work on other queues:
 *
 *   recovering thread, holds Q's lock         enqueuer: moves a task that was on Q to queue P
 *   ---------------------------------         -----------------------------------------------
 *   (C) onRq: 1                               (A) cpu = P
 *   (D) cpu: it is P, so it is not on Q       (B) onRq = 1
 *
 * (A) before (B) and (C) before (D): an entity that is seen with onRq 1 and still has Q as its CPU has been
 * on Q all along, because no entity is added to Q or removed from it without Q's lock.
 */

/** Whether the entity is on this CPU's queue. Exact while the queue's lock is held. */
export function isQueuedOn(s: Scheduler, se: number, cpu: number): boolean {
  return Atomics.load(s.i32, se + Entity.onRq) === 1 && Atomics.load(s.i32, se + Entity.cpu) === cpu // (C) (D)
}

/** The run queue at `queue`. Its lock is held. */
export function rebuildRunQueue(s: Scheduler, queue: number): void {
  const { i32, f64 } = s
  const cpu = i32[queue + RunQueue.cpu]
  const queued = collectQueued(s, cpu)
  const order = inOrder(s, queue, queued)
  // An entity that its class had linked is restored as it was; any other is enqueued again.
  const linked = order.filter(se => i32[se + Entity.links + ListNode.list] !== 0)
  const between = order.filter(se => i32[se + Entity.links + ListNode.list] === 0)
  emptyRunQueue(s, queue)
  for (const se of queued) {
    clearLinks(i32, se)
    notePushable(s, se)
  }
  for (const se of linked) rqRestoreTask(s, classRq(queue, i32[se + Entity.priority] >> 2), se)
  for (const se of between) rqEnqueueTask(s, classRq(queue, i32[se + Entity.priority] >> 2), se)
  for (let level = 0; level < MAJOR_LEVELS; level++) publishLevel(i32, classRq(queue, level))
  publishQueue(s, queue)
  s.setPushCpu(cpu, i32[queue + RunQueue.pushCount] !== 0)
  // The tick may have been written down and not armed: the next interrupt of the CPU arms it.
  f64[(queue + RunQueue.tickAt) >> 1] = 0
}

/** The entities on the queue. An entity that was being stopped leaves the queue here. */
function collectQueued(s: Scheduler, cpu: number): Set<number> {
  const { i32, entities } = s
  const queued = new Set<number>()
  for (let se = entities.after(i32, 0); se !== 0; se = entities.after(i32, se)) {
    if (!isQueuedOn(s, se, cpu)) continue
    if (i32[i32[se + Entity.task] + TaskRecord.stopped] === 0) {
      queued.add(se)
    } else {
      clearLinks(i32, se)
      Atomics.store(i32, se + Entity.onRq, 0)
    }
  }
  return queued
}

/** Recovery: the entity is on no list and no tree. Its run queue's lock is held. */
export function clearLinks(i32: Int32Array, se: number): void {
  for (let field = 0; field < ListNode.words; field++) {
    i32[se + Entity.links + field] = 0
    i32[se + Entity.pushLinks + field] = 0
  }
}

/**
 * The queued entities in the order that the FIFO lists have them in: the links from a head on are whole at
 * every step of an insertion, a removal and a rotation. Entities that no list leads to come last, by how long
 * they have waited.
 */
function inOrder(s: Scheduler, queue: number, queued: ReadonlySet<number>): number[] {
  const { i32, f64 } = s
  const found = new Set<number>()
  for (let level = 0; level < MAJOR_LEVELS; level++) {
    const rq = classRq(queue, level)
    if (s.classes[level] !== fifoClass) continue
    for (let minor = 0; minor < MINOR_LEVELS; minor++) {
      const head = subqueue(rq, minor)
      if (i32[head + ListHead.list] !== head) continue
      let se = i32[head + ListNode.next] - Entity.links
      while (queued.has(se) && !found.has(se)) {
        found.add(se)
        se = i32[se + Entity.links + ListNode.next] - Entity.links
      }
    }
  }
  const rest = [...queued].filter(se => !found.has(se))
  rest.sort((a, b) => f64[(a + Entity.execStart) >> 1] - f64[(b + Entity.execStart) >> 1])
  return [...found, ...rest]
}

function emptyRunQueue(s: Scheduler, queue: number): void {
  const { i32 } = s
  const current = i32[queue + RunQueue.current]
  const runs = current !== i32[queue + RunQueue.idle] && Atomics.load(i32, current + Entity.onRq) === 0
  const level = runs ? i32[current + Entity.priority] >> 2 : -1
  if (runs) {
    // A change of its priority may have been under way, during which it is queued at the old one.
    clearLinks(i32, current)
    i32[current + Entity.rq] = classRq(queue, level)
  } else {
    i32[queue + RunQueue.contender] = 0
  }
  for (let at = 0; at < MAJOR_LEVELS; at++) {
    const rq = classRq(queue, at)
    s.classes[at].reset?.(s, rq, at === level ? current : 0)
    i32[rq + ClassRq.taskCount] = 0
    for (let minor = 0; minor < MINOR_LEVELS; minor++) i32[rq + ClassRq.counts + minor] = 0
    initList(i32, pushList(queue, at))
  }
  for (let field = 0; field < ReadyMask.words; field++) {
    i32[queue + RunQueue.readyMask + field] = 0
    i32[queue + RunQueue.pushMask + field] = 0
  }
  setReady(i32, queue + RunQueue.readyMask, IDLE_MAJOR_PRIORITY)
  i32[queue + RunQueue.taskCount] = 0
  i32[queue + RunQueue.pushCount] = 0
}

function publishLevel(i32: Int32Array, rq: number): void {
  for (let minor = 0; minor < MINOR_LEVELS; minor++) {
    const count = i32[rq + ClassRq.counts + minor]
    if (i32[rq + ClassRq.published + minor] !== count) {
      Atomics.store(i32, rq + ClassRq.published + minor, count)
    }
  }
}

/**
 * The timers of a CPU. The lock of its timers is held. Other nodes are not written: they may be on another
 * CPU's queue by now. A timer that has expired is armed until its sleeper cancels it (cancelTimer): it is put
 * back, and expires again. The CPU that expired it may have died before the wakeup; if not, the second expiry
 * finds the sleeper awake.
 */
export function rebuildTimers(s: Scheduler, cpu: number): void {
  const { i32, tasks } = s
  const armed: number[] = []
  for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) {
    if (tasks.isPublished(i32, task) && isArmedOn(s, task, cpu)) armed.push(task + TaskRecord.timer)
  }
  s.timers[cpu].rebuild(armed)
}

/** The wait tree. The sleep lock is held. */
export function rebuildWaitTree(s: Scheduler): void {
  const { i32, tasks, waitTree } = s
  const waiting: number[] = []
  for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) {
    if (tasks.isPublished(i32, task) && i32[task + TaskRecord.channel] !== 0) waiting.push(task)
  }
  waitTree.rebuild(waiting)
}
