import type { ArenaPlan, Region } from '../../arena/memory/arena.ts'
import { ListHead } from '../../arena/trees/list.ts'
import { type Layout, LINE_WORDS, ownLine, record, roundUp, word, words } from '../../arena/memory/record.ts'
import { Lock } from '../../arena/sync/spinlock.ts'
import type { KernelThread } from '../../arena/sync/thread.ts'
import { ClassRq } from '../core/runqueue.ts'

/**
 * The ext class in the arena. `state` is the state of the policy:
 *
 *   state          meaning                                                 moved by
 *   [0] NONE       no policy; level 33 is round robin                      a loader -> [1]
 *   [1] LOADING    a loader writes down the policy to load                 that loader -> [2]
 *   [2] ACTIVE     CPUs that have enabled the policy call it               an ejecting thread -> [3]
 *   [3] REPORTING  no CPU calls it any more; the reason is written down    that thread -> [4]
 *   [4] EJECTED    its tasks must move to the fair class                   a draining thread -> [5]
 *   [5] DRAINING   that thread moves them                                  that thread -> [6]
 *   [6] LEAVING    CPUs that still have it call its `exit`                 the last of them -> [0]
 *
 * In every state a task at level 33 belongs to some CPU and can run: a CPU that does not call the policy runs
 * its tasks in turn.
 *
 * [1], [3] and [5] belong to one thread, and the higher bits of the word name it. So the one compare-exchange
 * that takes the state also names the thread whose death leaves it there (extrecover.ts). With a second word,
 * stored after the state, a thread that dies between the two would leave a state that no thread ends.
 */
export const NONE = 0
export const LOADING = 1
export const ACTIVE = 2
export const REPORTING = 3
export const EJECTED = 4
export const DRAINING = 5
export const LEAVING = 6

const STATE_MASK = 0xff
const THREAD_SHIFT = 8

/** The word for a state that belongs to this thread. */
export function ownState(state: number, thread: KernelThread): number {
  return state | (thread.ownerTag << THREAD_SHIFT)
}

/** The state in the word. */
export function stateIn(word: number): number {
  return word & STATE_MASK
}

/** Whether the state in the word belongs to that thread. */
export function isStateOf(word: number, thread: number): boolean {
  return word >>> THREAD_SHIFT === thread + 1
}

export const extStateNames: readonly string[] = [
  'none',
  'loading',
  'active',
  'reporting',
  'ejected',
  'draining',
  'leaving',
]

export const ExtRecord: Layout<
  | 'state'
  | 'generation'
  | 'takes'
  | 'enabled'
  | 'hold'
  | 'reason'
  | 'task'
  | 'cpu'
  | 'dequeues'
  | 'reportBytes'
  | 'hrefBytes'
  | 'nameBytes'
  | 'listBytes'
> = record('ext', {
  state: ownLine(word),
  /** Counts policies: a CPU with another count has a new policy to fetch. */
  generation: word,
  /** The ordinary tasks that the policy gets without a call for each: TAKES_ below. */
  takes: word,
  /** CPUs that have enabled the policy. */
  enabled: words(2),
  /** CPUs that start wait while this is not 0. */
  hold: word,
  /** Why the policy was ejected (eject.ts), and the task and the CPU that caused it. */
  reason: word,
  task: word,
  cpu: word,
  /** Bits set in the map of tasks that wait for a call of `dequeue`. A hint. */
  dequeues: word,
  reportBytes: word,
  hrefBytes: word,
  nameBytes: word,
  listBytes: word,
})

/** None. */
export const TAKES_NONE = 0
/** All, new ones too. */
export const TAKES_ALL = 1
/** New ones that the allowlist in `list` names. The thread that starts a task compares. */
export const TAKES_LISTED = 2

/** A dispatch queue. Guarded by its lock, except `count` and `order`, which any thread may read as hints. */
export const DispatchQueue: Layout<'lock' | 'number' | 'order' | 'count' | 'root' | 'arrivals' | 'list'> =
  record('dispatch queue', {
    lock: ownLine(words(Lock.words)),
    number: word,
    /** QUEUE_UNUSED, QUEUE_FIFO or QUEUE_VTIME. */
    order: word,
    count: word,
    root: word,
    arrivals: word,
    list: words(ListHead.words),
  })

export const QUEUE_UNUSED = 0
export const QUEUE_FIFO = 1
export const QUEUE_VTIME = 2

/** The ext class's words of a class run queue. */
export const ExtRq: Readonly<{ local: number; pending: number; asks: number }> = {
  /** Tasks that this CPU will run, in order. */
  local: ClassRq.extension,
  /** Tasks that have not been passed to the policy. */
  pending: ClassRq.extension + ListHead.words,
  /** 1: this CPU has enabled the policy, and calls it. */
  asks: ClassRq.extension + 2 * ListHead.words,
}

/**
 * `extState` of an entity: the state, then flags. Changed under the lock of the run queue that the entity
 * belongs to.
 *
 *   [0] OUT       not queued at this level: it sleeps, or has another class
 *   [1] PENDING   on its CPU's pending list: not yet passed to the policy
 *   [2] HELD      passed to the policy, which has put it on no queue yet
 *   [3] QUEUED    on the dispatch queue in `extQueue`
 *   [4] LOCAL     on its CPU's local list
 *   [5] CURRENT   it runs
 *
 * In [1] to [4] it is counted on its run queue, with onRq 1, whatever list it is on.
 */
export const OUT = 0
export const PENDING = 1
export const HELD = 2
export const QUEUED = 3
export const LOCAL = 4
export const CURRENT = 5
export const EXT_STATE = 7

export const entityStateNames: readonly string[] = ['out', 'pending', 'held', 'queued', 'local', 'current']

/** selectCpu has dispatched it to the local queue of the CPU that it chose. */
export const DIRECT = 8
/** It left while the policy had it: a call of `dequeue` is due. */
export const UNTOLD = 16
/** With DIRECT: at its head. */
export const FRONT = 32
/** The flags of `enqueue`. */
export const FLAGS_SHIFT = 8
export const FLAGS_MASK = 0xff
/** The generation of the policy that has seen the task. */
export const SEEN_SHIFT = 16
export const SEEN_MASK = 0x7fff

/** The policy's words for each task. */
export const TASK_WORDS = 4

export interface ExtSizes {
  /** Dispatch queues of a policy. */
  readonly queues?: number
  /** Words that the policies on all CPUs share. */
  readonly words?: number
  /** Bytes of a report. */
  readonly report?: number
}

export interface ExtPlan {
  readonly record: number
  readonly queues: Region
  readonly queueCount: number
  readonly words: Region
  readonly taskWords: Region
  readonly dequeued: Region
  readonly href: Region
  readonly name: Region
  readonly list: Region
  readonly report: Region
}

/** How long the text of an allowlist may be. */
export const ALLOWLIST_BYTES = 4096

export function reserveExt(plan: ArenaPlan, cpus: number, tasks: number, sizes: ExtSizes = {}): ExtPlan {
  const { queues = 2 * cpus + 8, words: shared = 256, report = 4096 } = sizes
  // The first one is the global queue.
  const queueCount = queues + 1
  return {
    record: plan.reserve('ext', ExtRecord.words).start,
    queues: plan.reserve('dispatch queues', queueCount * DispatchQueue.words),
    queueCount,
    words: plan.reserve('policy words', roundUp(shared, LINE_WORDS)),
    taskWords: plan.reserve('policy words of tasks', tasks * TASK_WORDS),
    dequeued: plan.reserve('dequeued tasks', Math.ceil(tasks / 32)),
    href: plan.reserve('policy address', 256),
    name: plan.reserve('policy name', LINE_WORDS),
    list: plan.reserve('policy allowlist', ALLOWLIST_BYTES / 4),
    report: plan.reserve('policy report', Math.ceil(report / 4)),
  }
}
