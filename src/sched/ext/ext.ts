import { assert } from '../../arena/assert.ts'
import {
  initList,
  listFirst,
  ListHead,
  listIsEmpty,
  listPush,
  listRemove,
  listUnshift,
} from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import type { SchedClass } from '../classes/class.ts'
import { DispatchQueues } from './dispatchqueue.ts'
import { Entity, POLICY_YIELDED } from '../core/entity.ts'
import {
  ACTIVE,
  CURRENT,
  DIRECT,
  DispatchQueue,
  EXT_STATE,
  type ExtPlan,
  ExtRecord,
  ExtRq,
  FLAGS_MASK,
  FLAGS_SHIFT,
  FRONT,
  HELD,
  LOCAL,
  OUT,
  PENDING,
  QUEUE_FIFO,
  QUEUE_UNUSED,
  QUEUED,
  stateIn,
  UNTOLD,
} from './extlayout.ts'
import { leastQueued } from '../classes/fifo.ts'
import { ENQUEUE_CAME, ENQUEUE_SLICE_ENDED, ENQUEUE_YIELDED, type Policy } from './policy.ts'
import type { PolicyContext } from './policycontext.ts'
import { EXT_MAJOR_PRIORITY } from '../core/priority.ts'
import { clearReady, setReady } from '../classes/readymask.ts'
import { ClassRq, classRq, RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'

/**
 * The ext class: a level whose tasks are scheduled by a policy that a user has written (policy.ts).
 *
 * A runnable task always belongs to one CPU's run queue, whatever dispatch queue it is on: that run queue's
 * lock guards its place, as for every class. So stop, kill, priorities, affinity and CPUs that go offline
 * find it without a call of the policy.
 *
 *   enqueueTask -> PENDING --`enqueue`--> HELD --dispatch--> QUEUED --consume--> LOCAL --pick--> CURRENT
 *                                          `-----dispatch to a local queue-------^
 *
 * The ten operations here are called with the run queue's lock held, from any thread; they never call the
 * policy. A CPU calls it between switches, with no lock held (extcpu.ts). So a policy that throws or hangs
 * breaks no lock, and a thread that is no CPU needs no policy to wake a task.
 *
 * The level is ready while the local list has tasks: all other tasks wait for the policy. Without a policy,
 * tasks go directly to the local list, and take turns.
 */
export class Ext {
  readonly record: number
  readonly plan: ExtPlan
  readonly queues: DispatchQueues
  /** The policy that this CPU has enabled, and what it is called with. */
  policy: Policy | null = null
  context: PolicyContext | null = null
  /** Calls its selectCpu, if it has one. */
  selectCpu: ((s: Scheduler, se: number) => number) | null = null
  /** The task that yields here must leave its CPU even if no other task waits: its policy places it again. */
  leaves = false
  /** The generation that this CPU has seen. */
  generation = 0
  /** How this CPU gets the policy of a new generation: set by the CPU loop. */
  fetch: ((s: Scheduler) => void) | null = null
  /** The default slice, in milliseconds. */
  slice: number
  private readonly i32: Int32Array<SharedArrayBuffer>

  constructor(i32: Int32Array<SharedArrayBuffer>, f64: Float64Array, plan: ExtPlan, slice: number) {
    this.i32 = i32
    this.plan = plan
    this.record = plan.record
    this.slice = slice
    this.queues = new DispatchQueues(i32, f64)
  }

  /** Once, by the thread that made the arena. */
  initialize(): void {
    for (let number = 0; number < this.plan.queueCount; number++) {
      this.queues.initialize(this.queueAt(number), number, number === 0 ? QUEUE_FIFO : QUEUE_UNUSED)
    }
  }

  /** The dispatch queue with this number; 0 is the global one. */
  queueAt(number: number): number {
    assert(number >= 0 && number < this.plan.queueCount, 'there is no dispatch queue with this number')
    return this.plan.queues.start + number * DispatchQueue.words
  }

  state(): number {
    return stateIn(Atomics.load(this.i32, this.record + ExtRecord.state))
  }

  /** Whether a policy is loaded, and is called. */
  isActive(): boolean {
    return this.state() === ACTIVE
  }
}

export const extClass: SchedClass = {
  name: 'ext',

  enqueueTask(s, rq, se) {
    const { i32 } = s
    const direct = (i32[se + Entity.extState] & DIRECT) !== 0
    if (direct || i32[rq + ExtRq.asks] === 0) {
      if (!direct) setSlice(s, se, 0)
      toLocal(s, rq, se, direct && (i32[se + Entity.extState] & FRONT) !== 0)
      return
    }
    toPending(s, rq, se, ENQUEUE_CAME)
    askSoon(s, rq)
  },

  dequeueTask(s, rq, se) {
    takeOut(s, rq, se, true)
  },

  selectTaskRq(s, se, maskLow, maskHigh) {
    return leastQueued(s, se, maskLow, maskHigh)
  },

  pickNextTask(s, rq) {
    const { i32 } = s
    const contender = i32[i32[rq + ClassRq.queue] + RunQueue.contender]
    const first = listFirst(i32, rq + ExtRq.local)
    if (contender !== 0 && i32[contender + Entity.rq] === rq) {
      if (first === 0 || keepsCpu(s, contender)) return contender
    }
    return first === 0 ? 0 : first - Entity.links
  },

  putPrevTask(s, rq, se) {
    const { i32 } = s
    const yielded = (i32[se + Entity.policy] & POLICY_YIELDED) !== 0
    const keeps = !yielded && keepsCpu(s, se)
    const flags =
      (i32[se + Entity.extState] >>> FLAGS_SHIFT) & FLAGS_MASK & (ENQUEUE_YIELDED | ENQUEUE_SLICE_ENDED)
    i32[se + Entity.policy] &= ~POLICY_YIELDED
    setState(s, se, OUT)
    if (keeps) {
      // A task of a better class preempted it: its turn is not over.
      setSlice(s, se, s.f64[(se + Entity.deadline) >> 1] - s.clock)
      toLocal(s, rq, se, true)
    } else if (i32[rq + ExtRq.asks] === 0) {
      setSlice(s, se, 0)
      toLocal(s, rq, se, false)
    } else toPending(s, rq, se, flags === 0 ? ENQUEUE_SLICE_ENDED : flags)
  },

  setNextTask(s, rq, se) {
    takeOut(s, rq, se, false)
    setState(s, se, CURRENT)
    startSlice(s, se)
  },

  taskTick(s, _rq, se) {
    if (s.clock < s.f64[(se + Entity.deadline) >> 1]) return
    giveWay(s, se, ENQUEUE_SLICE_ENDED)
  },

  taskFork() {
    // The policy's data of a task starts when the policy first sees it.
  },

  taskDead(s, _rq, se) {
    setState(s, se, OUT)
  },

  yieldTask(s, _rq, se) {
    giveWay(s, se, ENQUEUE_YIELDED)
  },

  /**
   * The dispatch queues are repaired by now (extrecover.ts). Restored tasks are passed to `enqueue` again.
   */
  reset(s, rq, running) {
    const { i32, entities } = s
    const cpu = i32[rq + ClassRq.cpu]
    for (let se = entities.after(i32, 0); se !== 0; se = entities.after(i32, se)) {
      if (Atomics.load(i32, se + Entity.cpu) !== cpu || se === running) continue
      const queue = i32[se + Entity.extQueue]
      if (queue !== 0) {
        acquire(s.thread, queue + DispatchQueue.lock)
        leaveQueue(s, queue, se)
        release(s.thread, queue + DispatchQueue.lock)
      }
      setState(s, se, OUT)
    }
    for (const list of [rq + ExtRq.local, rq + ExtRq.pending]) {
      if (i32[list + ListHead.list] !== 0) initList(i32, list)
    }
    clearReady(i32, i32[rq + ClassRq.queue] + RunQueue.readyMask, EXT_MAJOR_PRIORITY)
    if (running !== 0) setState(s, running, CURRENT)
  },
}

/** When the current entity's slice ends. An entity that keeps the CPU after that gets another slice. */
export function extSliceEnd(s: Scheduler, queue: number, se: number): number {
  const { f64 } = s
  if (queue === s.queue && f64[(se + Entity.deadline) >> 1] <= s.clock) startSlice(s, se)
  return f64[(se + Entity.deadline) >> 1]
}

/** Whether the current entity, at this level, would keep the CPU if the local list had another. */
export function keepsCpu(s: Scheduler, se: number): boolean {
  return (s.i32[se + Entity.policy] & POLICY_YIELDED) === 0 && s.f64[(se + Entity.deadline) >> 1] > s.clock
}

/** Whether this CPU's local list is empty. Called with no lock held: a task may be added right after. */
export function localIsEmpty(s: Scheduler): boolean {
  const { i32, thread, queue } = s
  acquire(thread, queue + RunQueue.lock)
  const empty = i32[classRq(queue, EXT_MAJOR_PRIORITY) + ExtRq.local + ListHead.count] === 0
  release(thread, queue + RunQueue.lock)
  return empty
}

export function stateOf(s: Scheduler, se: number): number {
  return s.i32[se + Entity.extState] & EXT_STATE
}

/** Changes the state, and clears the flags of the last state. The run queue is locked. */
export function setState(s: Scheduler, se: number, state: number): void {
  s.i32[se + Entity.extState] =
    (s.i32[se + Entity.extState] & ~(EXT_STATE | DIRECT | FRONT | (FLAGS_MASK << FLAGS_SHIFT))) | state
}

/** Milliseconds; 0: the default. Stored in microseconds; a value that does not fit means no end. */
export function setSlice(s: Scheduler, se: number, ms: number): void {
  s.i32[se + Entity.extSlice] = ms >= 2_000_000 ? -1 : Math.ceil(ms * 1000)
}

/** Puts an entity that is on no list on the local list. The run queue is locked. */
export function toLocal(s: Scheduler, rq: number, se: number, first: boolean): void {
  const { i32 } = s
  const head = rq + ExtRq.local
  if (i32[head + ListHead.list] === 0) initList(i32, head)
  setState(s, se, LOCAL)
  if (listIsEmpty(i32, head)) setReady(i32, i32[rq + ClassRq.queue] + RunQueue.readyMask, EXT_MAJOR_PRIORITY)
  if (first) listUnshift(i32, head, se + Entity.links)
  else listPush(i32, head, se + Entity.links)
}

/**
 * Puts an entity that is on no list on the pending list, with the flags for `enqueue`. The run queue is
 * locked.
 */
export function toPending(s: Scheduler, rq: number, se: number, flags: number): void {
  const { i32 } = s
  const head = rq + ExtRq.pending
  if (i32[head + ListHead.list] === 0) initList(i32, head)
  setState(s, se, PENDING)
  i32[se + Entity.extState] |= flags << FLAGS_SHIFT
  listPush(i32, head, se + Entity.links)
}

/**
 * Removes an entity from its list or queue. `tells`: a policy that has it gets a call of `dequeue`. The run
 * queue is locked.
 */
export function takeOut(s: Scheduler, rq: number, se: number, tells: boolean): void {
  const { i32 } = s
  const state = i32[se + Entity.extState] & EXT_STATE
  if (state === LOCAL) {
    listRemove(i32, rq + ExtRq.local, se + Entity.links)
    if (listIsEmpty(i32, rq + ExtRq.local)) {
      clearReady(i32, i32[rq + ClassRq.queue] + RunQueue.readyMask, EXT_MAJOR_PRIORITY)
    }
  } else if (state === PENDING) {
    listRemove(i32, rq + ExtRq.pending, se + Entity.links)
  } else if (state === QUEUED) {
    const queue = i32[se + Entity.extQueue]
    acquire(s.thread, queue + DispatchQueue.lock)
    leaveQueue(s, queue, se)
    release(s.thread, queue + DispatchQueue.lock)
  }
  setState(s, se, OUT)
  if (tells && (state === HELD || state === QUEUED) && i32[rq + ExtRq.asks] !== 0) noteDequeued(s, rq, se)
}

/**
 * `extQueue` is the fact that recovery reads: written before the links when an entity is added, after them
 * when it is removed. The queue is locked.
 */
export function joinQueue(s: Scheduler, queue: number, se: number, front: boolean): void {
  s.i32[se + Entity.extQueue] = queue
  s.ext.queues.insert(queue, se, front)
  setState(s, se, QUEUED)
}

function leaveQueue(s: Scheduler, queue: number, se: number): void {
  s.ext.queues.remove(queue, se)
  s.i32[se + Entity.extQueue] = 0
}

/** Sets the task's bit in the map; a CPU that has the policy reads the map and calls `dequeue`. */
function noteDequeued(s: Scheduler, rq: number, se: number): void {
  const { i32 } = s
  const index = s.entities.indexOf(se)
  i32[se + Entity.extState] |= UNTOLD
  Atomics.or(i32, s.ext.plan.dequeued.start + (index >> 5), 1 << (index & 31))
  Atomics.add(i32, s.ext.record + ExtRecord.dequeues, 1)
  s.resched(i32[rq + ClassRq.cpu])
}

/** Makes the CPU enter its scheduling loop and call the policy, unless its task outranks this class. */
function askSoon(s: Scheduler, rq: number): void {
  const { i32 } = s
  const queue = i32[rq + ClassRq.queue]
  const current = i32[queue + RunQueue.current]
  if (i32[current + Entity.priority] >> 2 >= EXT_MAJOR_PRIORITY) s.resched(i32[rq + ClassRq.cpu])
}

function giveWay(s: Scheduler, se: number, flag: number): void {
  const { i32 } = s
  i32[se + Entity.policy] |= POLICY_YIELDED
  i32[se + Entity.extState] =
    (i32[se + Entity.extState] & ~(FLAGS_MASK << FLAGS_SHIFT)) | (flag << FLAGS_SHIFT)
}

function startSlice(s: Scheduler, se: number): void {
  const { i32, f64 } = s
  const us = i32[se + Entity.extSlice]
  f64[(se + Entity.deadline) >> 1] = us < 0 ? Infinity : s.clock + (us === 0 ? s.ext.slice : us / 1000)
  // Used once: the next dispatch sets the next slice.
  i32[se + Entity.extSlice] = 0
}
