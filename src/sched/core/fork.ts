import { assert } from '../../arena/assert.ts'
import { lockRank } from '../../arena/sync/lockorder.ts'
import { Lock } from '../../arena/sync/spinlock.ts'
import { maskOf } from './cpumask.ts'
import { Entity, ENTITY_WORDS, POLICY_ROUND_ROBIN } from './entity.ts'
import { recordSpawn } from './events.ts'
import { ExtRecord } from '../ext/extlayout.ts'
import { joinPolicy } from '../ext/extload.ts'
import { FAIR_PRIORITY, IDLE_MAJOR_PRIORITY, majorPriority, PRIORITY_NONE, weightOfNice } from './priority.ts'
import { notePushable } from '../balance/pushable.ts'
import type { Scheduler } from './scheduler.ts'
import { classRq } from './runqueue.ts'
import { ENTITY_AT, TaskRecord, UNINTERRUPTIBLE, WAKE_ANY, SLEEP_WOKEN } from './taskrecord.ts'
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
  /**
   * The caller publishes it (publishTask) when it has written down what refers to it: until then recovery
   * frees it if this thread dies.
   */
  readonly unpublished?: boolean
}

const MASK_ALL = -1
const lockRankPi = lockRank('pi')

/** Makes a task that sleeps until startTask wakes it for the first time. From any thread. */
export function createTask(
  s: Scheduler,
  options: TaskOptions = {},
  unpublished: boolean = options.unpublished ?? false,
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
  const se = task + ENTITY_AT
  // Plain stores: no other thread reads the record before it is published. Zeroed locks are free.
  clear(i32, task, ENTITY_AT + ENTITY_WORDS)
  i32[task + TaskRecord.entity] = se
  i32[task + TaskRecord.slot] = s.tasks.indexOf(task)
  if (options.name !== undefined) setTaskName(s, task, options.name)
  i32[se + Entity.task] = task
  i32[se + Entity.priority] = priority
  i32[se + Entity.basePriority] = priority
  i32[se + Entity.inherited] = PRIORITY_NONE
  i32[se + Entity.cpu] = s.cpu < 0 ? 0 : s.cpu
  i32[se + Entity.policy] = options.roundRobin ? POLICY_ROUND_ROBIN : 0
  i32[se + Entity.affinityMask] = low
  i32[se + Entity.affinityMask + 1] = high
  i32[task + TaskRecord.allowed] = low
  i32[task + TaskRecord.allowed + 1] = high
  notePushable(s, se)
  i32[se + Entity.nice] = options.nice ?? 0
  i32[se + Entity.weight] = weightOfNice(options.nice ?? 0)
  f64[(se + Entity.timeSlice) >> 1] = options.slice ?? s.slice
  f64[(se + Entity.startTime) >> 1] = s.readClock()
  i32[se + Entity.piLock + Lock.rank] = lockRankPi
  i32[task + TaskRecord.state] = UNINTERRUPTIBLE
  if (!unpublished) s.tasks.publish(i32, task)
  return task
}

/** A loop, because for so few words a call of `fill` costs more. */
function clear(i32: Int32Array, start: number, words: number): void {
  for (let at = start; at < start + words; at++) i32[at] = 0
}

export function publishTask(s: Scheduler, task: number): void {
  s.tasks.publish(s.i32, task)
}

/** Starts a new task. Called once for each. */
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
