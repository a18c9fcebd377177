import { Lock } from '../../arena/sync/spinlock.ts'
import { ListNode } from '../../arena/trees/list.ts'
import { float64, type Layout, record, word, words } from '../../arena/memory/record.ts'

/**
 * The scheduling entity: what the scheduler knows of a task, apart from the task record. The locks:
 *
 *   guarded by the run queue's lock   links, rq, execStart, waitTime, runTime, the fair fields, pushLinks,
 *                                       counters
 *   changed under pi lock and run     priority, basePriority, nice, policy, timeSlice, affinityMask: read
 *     queue lock together               under either one
 *   onRq, onCpu, cpu                  changed under the run queue's lock while the task is RUNNING; by atomic
 *                                     stores when it is not, because then a waker reads them and holds only
 *                                     the pi lock (wakeup.ts)
 *   the published words               written under the run queue's lock, read by any thread (account.ts)
 *
 * A RUNNING task is on a queue (onRq 1, onCpu 0) or on a CPU (onRq 0, onCpu 1), or in between, inside a
 * switch. A sleeping task has onRq 0, and onCpu 0 from the end of its switch on.
 */
export const Entity: Layout<
  | 'links'
  | 'task'
  | 'priority'
  | 'rq'
  | 'onRq'
  | 'onCpu'
  | 'cpu'
  | 'policy'
  | 'turns'
  | 'execStart'
  | 'waitTime'
  | 'runTime'
  | 'piLock'
  | 'affinityMask'
  | 'basePriority'
  | 'nice'
  | 'preempted'
  | 'moved'
  | 'woken'
  | 'timeSlice'
  | 'vruntime'
  | 'deadline'
  | 'turnTime'
  | 'minVruntime'
  | 'lag'
  | 'weight'
  | 'pushLinks'
  | 'startTime'
  | 'runTimeHigh'
  | 'runTimeLow'
  | 'runTimeCheck'
  | 'waitTimeHigh'
  | 'waitTimeLow'
  | 'waitTimeCheck'
  | 'switches'
  | 'preemptions'
  | 'migrations'
  | 'wakeups'
  | 'awaited'
  | 'inherited'
  | 'extState'
  | 'extQueue'
  | 'extSlice'
> = record('scheduling entity', {
  /**
   * A list node (FIFO, fair), or left, right, height, order of a tree node (fair): on one queue at most, so
   * they share.
   */
  links: words(ListNode.words),
  /** Back pointer to the task record. */
  task: word,
  /** The effective priority: the better of `basePriority` and `inherited`. */
  priority: word,
  /** The class run queue that the entity is on, or last ran from; 0 before its first. */
  rq: word,
  onRq: word,
  onCpu: word,
  /** The CPU that it runs on, is queued on, or ran on last. */
  cpu: word,
  /** POLICY_ bits. */
  policy: word,
  /** How often it was switched to. Published as `switches`. */
  turns: word,
  /**
   * On a CPU: when it was switched to or last charged. On a queue: since when it waits there. In milliseconds
   * of the machine's clock.
   */
  execStart: float64,
  /**
   * The sum of its waits, in milliseconds. The last word of the cache line that a yield touches (rotate.ts).
   */
  waitTime: float64,

  /**
   * Milliseconds on a CPU, exact to the last switch. With the words up to `lag` it is on the line that a
   * yield of the fair class touches too (rotatefair.ts).
   */
  runTime: float64,
  vruntime: float64,
  /**
   * Fair: the virtual deadline. Round robin: when the slice ends, on the machine's clock; while queued,
   * milliseconds of it that are left.
   */
  deadline: float64,
  /** Fair: the length of its turns in milliseconds, a moving average of the turns that were measured. */
  turnTime: float64,
  /** Milliseconds of a slice, for the fair class and for round robin. */
  timeSlice: float64,
  weight: word,
  nice: word,
  /** The least vruntime in the subtree under this node. */
  minVruntime: float64,
  lag: float64,

  piLock: words(Lock.words),
  /** CPUs 0 to 31, CPUs 32 to 63. */
  affinityMask: words(2),
  basePriority: word,
  preempted: word,
  moved: word,
  woken: word,
  /** The best priority of the waiters for its locks, or PRIORITY_NONE. Guarded by the pi lock. */
  inherited: word,
  /** On its CPU's list of tasks that another CPU could take. */
  pushLinks: words(ListNode.words),
  /** The ext class (extlayout.ts): the state of the task there. */
  extState: word,

  startTime: float64,
  runTimeHigh: word,
  runTimeLow: word,
  runTimeCheck: word,
  waitTimeHigh: word,
  waitTimeLow: word,
  waitTimeCheck: word,
  switches: word,
  preemptions: word,
  migrations: word,
  wakeups: word,
  /** How many threads sleep until `onCpu` is 0. */
  awaited: word,
  /** The ext class: the dispatch queue that it is on or 0, and microseconds of its next slice. */
  extQueue: word,
  extSlice: word,
})

/** The words of a record that are used: the next slot has its header behind them, on the same line. */
export const ENTITY_WORDS: number = Entity.extSlice + 1

/** Round robin: a task goes to the tail of its priority when its slice ends. Without it: plain FIFO. */
export const POLICY_ROUND_ROBIN = 1
/** It yielded, or its slice ended: put-previous puts it at the tail, not at the head. */
export const POLICY_YIELDED = 2
/** Bound to the CPU whose heap holds its coroutine, until it ends: no fallback moves it. */
export const POLICY_BOUND = 4
/** It may run on more than one CPU: while it is queued, another CPU could take it. Follows from the mask. */
export const POLICY_PUSHABLE = 8
/** It was woken, and has not run since: its wait for a CPU is wakeup latency. */
export const POLICY_WOKEN = 16
/** It was put on a list of arrivals, to be started from there (arrivals.ts). */
export const POLICY_ARRIVED = 32
