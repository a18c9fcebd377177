import { DeadlineNode } from '../../arena/trees/deadlines.ts'
import { ListHead, ListNode } from '../../arena/trees/list.ts'
import { RcuNode } from '../../arena/sync/rcu.ts'
import { type Layout, record, word, words } from '../../arena/memory/record.ts'
import { Lock } from '../../arena/sync/spinlock.ts'

/**
 * The task: what it is, as opposed to how it is scheduled (entity.ts). The eight states, and who owns the
 * task in each:
 *
 *   [0] UNUSED           the slot is free; nobody may look but the allocator
 *   [1] RUNNING          on a queue: whoever holds that run queue's lock. On a CPU: that CPU
 *   [2] INTERRUPTIBLE    asleep; whoever claims it by compare-exchange to [6]. A signal or a kill may
 *   [3] UNINTERRUPTIBLE  asleep; as [2], but only what it waits for may
 *   [4] TIMER            asleep with a timeout; what it waits for, or its timer
 *   [5] TIMER_KILLABLE   asleep with a timeout; what it waits for, its timer, or a kill
 *   [6] WAKENING         claimed: the waker that made it so, until it stores [1]; or who recovers its CPU (lost.ts)
 *   [7] ZOMBIE           ended; its parent, once onCpu is 0
 *
 *   who moves it          from -> to
 *   the task itself       [1] -> [2] [3] [4] [5] before it waits; [1] -> [7] when it ends
 *   a waker, pi lock      [2]-[5] -> [6] by compare-exchange, then [6] -> [1]
 *   its own CPU           [2]-[5] -> [1] by compare-exchange: a wakeup from an interrupt, before it has switched away
 *   its parent            [7] -> [0]
 *
 * STOPPED is a flag beside the state, not a state: a stopped task sleeps, is woken and is RUNNING as ever,
 * but is on no queue until it is continued. Written under pi lock and run queue lock together; read under
 * either.
 */
export const UNUSED = 0
export const RUNNING = 1
export const INTERRUPTIBLE = 2
export const UNINTERRUPTIBLE = 3
export const TIMER = 4
export const TIMER_KILLABLE = 5
export const WAKENING = 6
export const ZOMBIE = 7

export const stateNames: readonly string[] = [
  'unused',
  'running',
  'interruptible',
  'uninterruptible',
  'timer',
  'timer-killable',
  'wakening',
  'zombie',
]

/** Sets of states, as bits: what a wakeup may wake. */
export const WAKE_INTERRUPTIBLE: number = 1 << INTERRUPTIBLE
export const WAKE_KILLABLE: number = (1 << INTERRUPTIBLE) | (1 << TIMER_KILLABLE)
export const WAKE_ANY: number =
  (1 << INTERRUPTIBLE) | (1 << UNINTERRUPTIBLE) | (1 << TIMER) | (1 << TIMER_KILLABLE)

export function isSleeping(state: number): boolean {
  return state >= INTERRUPTIBLE && state <= TIMER_KILLABLE
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
  | 'lock'
  | 'parent'
  | 'exitCode'
  | 'orphan'
  | 'waitLeft'
  | 'waitRight'
  | 'waitHeight'
  | 'waitPriority'
  | 'waitOrder'
  | 'timer'
  | 'timerCpu'
  | 'timerArmed'
  | 'children'
  | 'sibling'
  | 'rcu'
  | 'name'
  | 'owner'
> = record('task', {
  state: word,
  stopped: word,
  /** Its scheduling entity. */
  entity: word,
  /** The number of its slot: what a CPU finds the coroutine under. */
  slot: word,
  /** PENDING_ bits: signals and a kill that have not been seen to. Any thread sets them. */
  pending: word,
  /** Counts timed sleeps, at both ends, so that a timer that fires late does not end the next one. */
  sleeps: word,
  /**
   * Why the last sleep ended: SLEEP_WOKEN, SLEEP_TIMED_OUT, SLEEP_SIGNALLED, SLEEP_KILLED. SLEEP_LOST: it is
   * WAKENING for good, who recovers its CPU has it.
   */
  wakeReason: word,
  /** What it waits for on the wait tree; 0: nothing. Guarded by the sleep lock, as the wait fields are. */
  channel: word,
  lock: words(Lock.words),
  parent: word,
  exitCode: word,
  /** It ended without a parent: its CPU reaps it. */
  orphan: word,
  waitLeft: word,
  waitRight: word,
  waitHeight: word,
  waitPriority: word,
  waitOrder: word,
  /** Whose deadline queue the timer is on, and whether it is (timer.ts). */
  timerCpu: word,
  timerArmed: word,
  timer: { words: DeadlineNode.words, align: 2, ownLine: false },
  /** Guarded by the lock of this task; `sibling` by the parent's. */
  children: words(ListHead.words),
  sibling: words(ListNode.words),
  rcu: words(RcuNode.words),
  /** UTF-8, zero-padded. */
  name: words(8),
  /**
   * What it is as the owner of locks, in the records of the layer above; 0: it never took one. Written by the
   * task.
   */
  owner: word,
})

/** What of a record is used: its last word is left to the next slot, for the header that stands before it. */
export const TASK_WORDS: number = TaskRecord.owner + 1

export const NAME_BYTES = 32

export const PENDING_SIGNAL = 1
export const PENDING_KILL = 2

export const SLEEP_WOKEN = 0
export const SLEEP_TIMED_OUT = 1
export const SLEEP_SIGNALLED = 2
export const SLEEP_KILLED = 3
export const SLEEP_LOST = 4
