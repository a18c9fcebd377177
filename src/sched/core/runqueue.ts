import { DeadlineQueue } from '../../arena/trees/deadlines.ts'
import { ListHead } from '../../arena/trees/list.ts'
import {
  float64,
  type Layout,
  LINE_WORDS,
  ownLine,
  record,
  roundUp,
  word,
  words,
} from '../../arena/memory/record.ts'
import { Lock } from '../../arena/sync/spinlock.ts'
import { MAJOR_LEVELS, MINOR_LEVELS } from './priority.ts'
import { ReadyMask } from '../classes/readymask.ts'

/**
 * Each CPU has one run queue: a lock, the ready mask, the current entity, and 64 class run queues, one for
 * each major priority.
 *
 *   guarded by `lock`    everything up to `published`, and all class run queues
 *   the published words  written under `lock`, only when they change; any thread reads them to choose a CPU
 *                        for a task. They are hints: a thread that acts on one takes the lock and reads again
 *   timers               guarded by `timerLock`
 */
export const RunQueue: Layout<
  | 'lock'
  | 'readyMask'
  | 'current'
  | 'contender'
  | 'idle'
  | 'tickAt'
  | 'taskCount'
  | 'cpu'
  | 'online'
  | 'bound'
  | 'pushMask'
  | 'pushCount'
  | 'runningPriority'
  | 'load'
  | 'pushBest'
  | 'heartbeat'
  | 'timerLock'
  | 'timers'
  | 'busyTime'
  | 'turns'
  | 'preempted'
  | 'moved'
  | 'woken'
  | 'stolen'
  | 'busyTimeHigh'
  | 'busyTimeLow'
  | 'busyTimeCheck'
  | 'switches'
  | 'preemptions'
  | 'migrations'
  | 'wakeups'
  | 'steals'
  | 'wasRunning'
  | 'moveAsked'
  | 'sends'
> = record('run queue', {
  lock: ownLine(words(Lock.words)),
  readyMask: words(ReadyMask.words),
  /** The entity that runs on this CPU; its idle entity when none does. */
  current: word,
  /** The current entity while it wants to go on; 0 when it is the idle one or is about to leave. */
  contender: word,
  idle: word,
  /** Entities queued here, without the one that runs and the idle one. */
  taskCount: word,
  cpu: word,
  /**
   * Whether tasks may be placed here. Changed under the lock, so that a placement and the CPU's going offline
   * exclude each other.
   */
  online: word,
  /** Living tasks that are bound to this CPU. Atomic. */
  bound: word,
  /** When the armed tick is due; 0: no tick is armed. */
  tickAt: float64,
  /** Which levels have tasks that another CPU could take (pushable.ts). */
  pushMask: words(ReadyMask.words),
  pushCount: word,

  runningPriority: ownLine(word),
  /** Queued tasks, and the one that runs. */
  load: word,
  /** The best priority among the tasks that another CPU could take, or PRIORITY_NONE. */
  pushBest: word,
  /** Counts interrupts: it stands still while the CPU is stuck in code without safepoints. */
  heartbeat: word,
  /** How many woken tasks were put here. On the line of `load`, which a wakeup writes too. */
  woken: word,
  timerLock: ownLine(words(Lock.words)),
  timers: words(DeadlineQueue.words),
  busyTime: float64,
  turns: word,
  preempted: word,
  moved: word,
  stolen: word,
  /**
   * Three consecutive words (account.ts), at the start of a line that is written only when figures are
   * published.
   */
  busyTimeHigh: { words: 1, align: LINE_WORDS, ownLine: false },
  busyTimeLow: word,
  busyTimeCheck: word,
  switches: word,
  preemptions: word,
  migrations: word,
  wakeups: word,
  steals: word,
  /** Of a dead CPU: the entity that it was running, for the error of the lost task; 0: none. */
  wasRunning: word,
  /** 1: a task that is bound to this CPU should move, and the CPU searches for it at its next interrupt. */
  moveAsked: word,
  /** Started tasks that this CPU has packed and sent away. Written by the CPU, read by any thread. */
  sends: word,
})

/**
 * A class run queue: the tasks of one major priority on one CPU. The words after the first four belong to the
 * class of that level; FIFO and fair share them.
 */
export const ClassRq: Layout<
  | 'classId'
  | 'taskCount'
  | 'cpu'
  | 'queue'
  | 'subqueueMask'
  | 'subqueues'
  | 'root'
  | 'order'
  | 'running'
  | 'leaving'
  | 'weight'
  | 'weightedSum'
  | 'base'
  | 'list'
  | 'latest'
  | 'newest'
  | 'centre'
  | 'marker'
  | 'chargedTo'
  | 'extension'
  | 'counts'
  | 'published'
  | 'rotates'
> = {
  /** The level: 0 to 63. The class is `classes[classId]`. */
  classId: 0,
  taskCount: 1,
  cpu: 2,
  /** The run queue that this is a part of. */
  queue: 3,
  // FIFO: four sub-queues by minor priority, and which of them have tasks
  subqueueMask: 4,
  subqueues: 5,
  // fair: the tree, the entity that runs, the one it replaces during a switch, and the sums that give the
  // average vruntime
  root: 4,
  order: 5,
  running: 6,
  leaving: 7,
  weight: 8,
  weightedSum: 10,
  base: 12,
  // fair: the list beside the tree; the first entity of its newest part, the latest deadline of the part
  // before it and of the newest part, and the average of the deadlines that joined (fairlist.ts)
  list: 14,
  marker: 19,
  latest: 20,
  newest: 6 + MINOR_LEVELS * (ListHead.words + 2),
  centre: 8 + MINOR_LEVELS * (ListHead.words + 2),
  // fair: up to when, on the machine's clock, the vruntime of the running entity is charged
  chargedTo: 22,
  /** Words for the ext class. */
  extension: 4,
  /**
   * Queued entities by minor priority; and the published copy, up to date whenever the lock is free.
   */
  counts: 5 + MINOR_LEVELS * ListHead.words,
  published: 5 + MINOR_LEVELS * ListHead.words + MINOR_LEVELS,
  /** How a yield at this level can rotate one list: ROTATES_FIFO, ROTATES_FAIR; or 0 (switch.ts). */
  rotates: 5 + MINOR_LEVELS * (ListHead.words + 2),
  words: roundUp(10 + MINOR_LEVELS * (ListHead.words + 2), LINE_WORDS),
}

export const ROTATES_FIFO = 1
export const ROTATES_FAIR = 2

const CLASS_RQS = roundUp(RunQueue.words, LINE_WORDS)
const PUSH_LISTS = CLASS_RQS + MAJOR_LEVELS * ClassRq.words

export const RUN_QUEUE_WORDS: number = roundUp(PUSH_LISTS + MAJOR_LEVELS * ListHead.words, LINE_WORDS)

/** The class run queue for a level of a run queue. */
export function classRq(queue: number, level: number): number {
  return queue + CLASS_RQS + level * ClassRq.words
}

/** The list of tasks at a level that another CPU could take. */
export function pushList(queue: number, level: number): number {
  return queue + PUSH_LISTS + level * ListHead.words
}
