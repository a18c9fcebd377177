import { assert } from '../../arena/assert.ts'
import { initList, listPush } from '../../arena/trees/list.ts'
import { lockRank } from '../../arena/sync/lockorder.ts'
import { acquire, Lock, release } from '../../arena/sync/spinlock.ts'
import { maskOf } from './cpumask.ts'
import { Entity, ENTITY_WORDS, POLICY_ROUND_ROBIN } from './entity.ts'
import { recordSpawn } from './events.ts'
import { ExtRecord } from '../ext/extlayout.ts'
import { joinPolicy } from '../ext/extload.ts'
import { FAIR_PRIORITY, IDLE_MAJOR_PRIORITY, majorPriority, PRIORITY_NONE, weightOfNice } from './priority.ts'
import { notePushable } from '../balance/pushable.ts'
import type { Scheduler } from './scheduler.ts'
import { classRq } from './runqueue.ts'
import { TaskRecord, TASK_WORDS, UNINTERRUPTIBLE, WAKE_ANY, SLEEP_WOKEN, ZOMBIE } from './taskrecord.ts'
import { setTaskName } from './taskname.ts'
import { wakeup } from './wakeup.ts'

export interface TaskOptions {
  readonly name?: string
  /** 0 to 251, see priority.ts; the default is the fair class. */
  readonly priority?: number
  /** -20 to 19, for the fair class. */
  readonly nice?: number
  /** Round robin among equals of a FIFO level. */
  readonly roundRobin?: boolean
  /** Milliseconds of a slice. */
  readonly slice?: number
  /** The CPUs that it may run on; all by default. */
  readonly affinity?: readonly number[]
  /** Whoever reaps it; 0: it is reaped when it ends. */
  readonly parent?: number
  /**
   * The caller settles it (publishTask), when it has put down who knows of it: until then it goes if this
   * thread dies.
   */
  readonly unsettled?: boolean
}

const MASK_ALL = -1
const lockRankTask = lockRank('task')
const lockRankPi = lockRank('pi')

/** Makes a task that sleeps until startTask wakes it for the first time. From any thread. */
export function createTask(
  s: Scheduler,
  options: TaskOptions = {},
  unsettled: boolean = options.unsettled ?? false,
): number {
  const { i32, f64, thread } = s
  const priority = options.priority ?? FAIR_PRIORITY
  if (!Number.isInteger(priority) || priority < 0 || majorPriority(priority) >= IDLE_MAJOR_PRIORITY) {
    throw new RangeError(
      `priority: ${String(priority)} is not a task's priority; give an integer from 0 to 251`,
    )
  }
  const [low, high] = options.affinity === undefined ? [MASK_ALL, MASK_ALL] : maskOf(options.affinity)
  if ((low | high) === 0) throw new RangeError('affinity: the list is empty; give at least one CPU')
  const task = s.tasks.allocate(thread)
  const se = s.entities.allocate(thread)
  // Plain stores, all of it: nobody sees the records before they are settled. The locks are free with that.
  clear(i32, task, TASK_WORDS)
  clear(i32, se, ENTITY_WORDS)
  i32[task + TaskRecord.entity] = se
  i32[task + TaskRecord.slot] = s.tasks.indexOf(task)
  i32[task + TaskRecord.lock + Lock.rank] = lockRankTask
  initList(i32, task + TaskRecord.children)
  if (options.name !== undefined) setTaskName(s, task, options.name)
  i32[se + Entity.task] = task
  i32[se + Entity.priority] = priority
  i32[se + Entity.basePriority] = priority
  i32[se + Entity.inherited] = PRIORITY_NONE
  i32[se + Entity.cpu] = s.cpu < 0 ? 0 : s.cpu
  i32[se + Entity.policy] = options.roundRobin ? POLICY_ROUND_ROBIN : 0
  i32[se + Entity.affinityMask] = low
  i32[se + Entity.affinityMask + 1] = high
  notePushable(s, se)
  i32[se + Entity.nice] = options.nice ?? 0
  i32[se + Entity.weight] = weightOfNice(options.nice ?? 0)
  f64[(se + Entity.timeSlice) >> 1] = options.slice ?? s.slice
  f64[(se + Entity.startTime) >> 1] = s.readClock()
  i32[se + Entity.piLock + Lock.rank] = lockRankPi
  i32[task + TaskRecord.state] = UNINTERRUPTIBLE
  if (options.parent) adoptChild(s, options.parent, task)
  s.entities.publish(i32, se)
  if (!unsettled) s.tasks.publish(i32, task)
  return task
}

/** A loop: for so few words a call of `fill` costs more. */
function clear(i32: Int32Array, start: number, words: number): void {
  for (let at = start; at < start + words; at++) i32[at] = 0
}

export function publishTask(s: Scheduler, task: number): void {
  s.tasks.publish(s.i32, task)
}

/** Lets a new task run. Once. */
export function startTask(s: Scheduler, task: number): void {
  const { i32 } = s
  const se = i32[task + TaskRecord.entity]
  if (Atomics.load(i32, s.ext.record + ExtRecord.takes) !== 0) joinPolicy(s, task)
  const level = i32[se + Entity.priority] >> 2
  s.classes[level].taskFork(s, classRq(s.queueOf(i32[se + Entity.cpu]), level), se)
  if (i32[s.recording] !== 0) recordSpawn(s, task, se)
  const started = wakeup(s, task, WAKE_ANY, SLEEP_WOKEN)
  assert(started, 'a task is started once')
}

/** createTask and startTask in one. */
export function forkTask(s: Scheduler, options: TaskOptions = {}): number {
  const task = createTask(s, options)
  startTask(s, task)
  return task
}

function adoptChild(s: Scheduler, parent: number, child: number): void {
  const { i32, thread } = s
  assert(Atomics.load(i32, parent + TaskRecord.state) !== ZOMBIE, 'a task that has ended has no new children')
  acquire(thread, parent + TaskRecord.lock)
  Atomics.store(i32, child + TaskRecord.parent, parent)
  listPush(i32, parent + TaskRecord.children, child + TaskRecord.sibling)
  release(thread, parent + TaskRecord.lock)
}
