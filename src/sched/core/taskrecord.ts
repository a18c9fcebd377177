import { DeadlineNode } from '../../arena/trees/deadlines.ts'
import { RcuNode } from '../../arena/sync/rcu.ts'
import { type Layout, LINE_WORDS, record, roundUp, word, words } from '../../arena/memory/record.ts'

/**
 * The task record: what a task is, as opposed to how it is scheduled (entity.ts). The six states, and the
 * owner of the task in each:
 *
 *   [0] UNUSED           the slot is free; the allocator
 *   [1] RUNNING          on a queue: the holder of that run queue's lock. On a CPU: that CPU
 *   [2] INTERRUPTIBLE    asleep; the waker that claims it by compare-exchange to [4]. A kill and a timer are
 *                        wakers too
 *   [3] UNINTERRUPTIBLE  asleep; as [2], but a kill does not wake it. So is a new task until it is started
 *   [4] WAKENING         claimed: the waker, until it stores [1]; or the recovering thread (lost.ts)
 *   [5] ZOMBIE           ended; the CPU that ran it, or the recovering thread
 *
 *   moved by              from -> to
 *   the task itself       [1] -> [2] [3] before it waits; [1] -> [5] when it ends
 *   a waker, pi lock      [2] [3] -> [4] by compare-exchange, then [4] -> [1]
 *   its own CPU           [2] [3] -> [1] by compare-exchange: a wakeup from an interrupt, before the task has
 *                         switched away; [5] -> [0] after the last switch
 *   the recovering thread any but [0] [5] -> [4] -> [5] -> [0], for a task that is lost with its CPU
 *
 * STOPPED is a flag beside the state, not a state: a stopped task sleeps, is woken and becomes RUNNING as
 * usual, but is on no queue until it is continued. Written under pi lock and run queue lock together; read
 * under either.
 */
export const UNUSED = 0
export const RUNNING = 1
export const INTERRUPTIBLE = 2
export const UNINTERRUPTIBLE = 3
export const WAKENING = 4
export const ZOMBIE = 5

export const stateNames: readonly string[] = [
  'unused',
  'running',
  'interruptible',
  'uninterruptible',
  'wakening',
  'zombie',
]

/** Sets of states, as bits: what a wakeup may wake. */
export const WAKE_INTERRUPTIBLE: number = 1 << INTERRUPTIBLE
export const WAKE_ANY: number = (1 << INTERRUPTIBLE) | (1 << UNINTERRUPTIBLE)

export function isSleeping(state: number): boolean {
  return state === INTERRUPTIBLE || state === UNINTERRUPTIBLE
}

export const TaskRecord: Layout<
  | 'state'
  | 'stopped'
  | 'entity'
  | 'slot'
  | 'pending'
  | 'sleeps'
  | 'wakeReason'
  | 'channel'
  | 'waitLeft'
  | 'waitRight'
  | 'waitHeight'
  | 'waitPriority'
  | 'waitOrder'
  | 'timer'
  | 'timerCpu'
  | 'timerArmed'
  | 'arrivedNext'
  | 'rcu'
  | 'name'
  | 'owner'
  | 'allowed'
  | 'packed'
  | 'moveAsked'
> = record('task', {
  state: word,
  stopped: word,
  /** Its scheduling entity. */
  entity: word,
  /** The number of its slot: a CPU finds the coroutine under it. */
  slot: word,
  /** PENDING_KILL, until the task has taken the kill. Any thread sets it. */
  pending: word,
  /** Counts the ends of timed sleeps, so that a timer that fires late does not end the next sleep. */
  sleeps: word,
  /**
   * Why the last sleep ended: SLEEP_WOKEN, SLEEP_TIMED_OUT, SLEEP_KILLED. SLEEP_LOST: it is WAKENING for
   * good, and belongs to the thread that recovers its CPU.
   */
  wakeReason: word,
  /** The channel that it waits for on the wait tree, or 0. The sleep lock guards it and the wait fields. */
  channel: word,
  waitLeft: word,
  waitRight: word,
  waitHeight: word,
  waitPriority: word,
  waitOrder: word,
  /** The CPU whose deadline queue the timer is on, and whether it is armed (timer.ts). */
  timerCpu: word,
  timerArmed: word,
  /** The next on the list of arrivals that it is on (arrivals.ts). */
  arrivedNext: word,
  timer: { words: DeadlineNode.words, align: 2, ownLine: false },
  rcu: words(RcuNode.words),
  /** Its name (taskname.ts), outside of the record, because few tasks have one; 0: none. */
  name: word,
  /** Its lock owner record, of an upper layer; 0: it never took a lock. Written by the task. */
  owner: word,
  /** The CPUs that the program allows. The entity's mask is one of them while the task is bound. */
  allowed: words(2),
  /** 1: the state of the started task is in the arena, and in no heap that may run it (move.ts). */
  packed: word,
  /** 1: the task may have to move (move.ts). A hint: any thread sets it, its CPU checks and clears it. */
  moveAsked: word,
})

/** The entity of a task is in the same slot, so many words behind the record: on a line of its own. */
export const ENTITY_AT: number = roundUp(TaskRecord.words, LINE_WORDS)

export const PENDING_KILL = 1

export const SLEEP_WOKEN = 0
export const SLEEP_TIMED_OUT = 1
export const SLEEP_KILLED = 2
export const SLEEP_LOST = 3
