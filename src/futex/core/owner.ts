import { assert } from '../../arena/assert.ts'
import { initList, listIsEmpty } from '../../arena/trees/list.ts'
import { lockRank } from '../../arena/sync/lockorder.ts'
import { acquire, Lock, release } from '../../arena/sync/spinlock.ts'
import { Entity } from '../../sched/core/entity.ts'
import { PRIORITY_NONE } from '../../sched/core/priority.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import type { FutexContext } from './context.ts'
import type { FutexLayout } from './layout.ts'
import { Owner, OWNER_ALIVE, OWNER_DEAD, OWNER_FREE, PROMISE, TASK, THREAD } from './records.ts'

/**
 * Who owns locks, and how a TID finds them again.
 *
 *   bits of a lock's word   31        30           29 … 0
 *                           WAITERS   OWNER_DIED   TID
 *
 * A TID is the number of an owner record, from 1, in its low bits, and in the bits above it how many lives
 * the record has had. Bit 29 is in none: it marks the word of a mutex between two holders (pendingword.ts). A
 * TID is looked up without a lock; the record's own `tid` word, read again under the record's lock, confirms
 * it. Records are never anything else, and their locks are never made anew, so locking one that has changed
 * hands meanwhile does no harm.
 */
export const FUTEX_WAITERS: number = 0x8000_0000 | 0
export const FUTEX_OWNER_DIED = 0x4000_0000
export const FUTEX_TID_MASK = 0x3fff_ffff
export const FUTEX_PENDING = 0x2000_0000
/** The bits of a TID, without PENDING. */
export const HOLDER_MASK = 0x1fff_ffff

/** The TID of the owner that holds a lock, by the lock's word; 0: none does. */
export function holderOf(word: number): number {
  const isBetween = (word & PENDING_FREE) === PENDING_FREE && (word & HOLDER_MASK) <= PRIORITY_NONE
  return isBetween ? 0 : word & HOLDER_MASK
}

const PENDING_FREE: number = FUTEX_WAITERS | FUTEX_PENDING
const TID_BITS = 29
const NO_THREAD = -1
const rank: number = lockRank('lock owner')

/** As many low bits as the number of the last record needs. */
function slotBits(layout: FutexLayout): number {
  return 32 - Math.clz32(layout.owners.capacity)
}

function tidOf(layout: FutexLayout, record: number, lives: number): number {
  const bits = slotBits(layout)
  const life = lives & ((1 << (TID_BITS - bits)) - 1)
  return (life << bits) | (layout.owners.indexOf(record) + 1)
}

/** The record of a TID, or 0. A snapshot: whoever goes on with it locks it and looks again. */
export function findOwner({ i32, layout }: FutexContext, tid: number): number {
  const index = (tid & ((1 << slotBits(layout)) - 1)) - 1
  if (index < 0 || index >= layout.owners.capacity) return 0
  const record = layout.owners.pointerAt(index)
  return Atomics.load(i32, record + Owner.tid) === tid ? record : 0
}

/** Whether an owner has had this TID, or has it. */
function wasGiven({ i32, layout }: FutexContext, tid: number): boolean {
  const bits = slotBits(layout)
  const index = (tid & ((1 << bits) - 1)) - 1
  if (index < 0 || index >= layout.owners.capacity) return false
  const lives = Atomics.load(i32, layout.owners.pointerAt(index) + Owner.lives)
  return tid >>> bits <= (lives & ((1 << (TID_BITS - bits)) - 1))
}

/**
 * A held word as it is when it is waited for. PENDING beside a TID that no owner ever had is another's bit,
 * and stays.
 */
export function waitedFor(context: FutexContext, word: number): number {
  const isBetween = (word & FUTEX_PENDING) !== 0 && wasGiven(context, holderOf(word))
  return (isBetween ? word & ~FUTEX_PENDING : word) | FUTEX_WAITERS
}

interface OwnerOptions {
  readonly kind: typeof THREAD | typeof PROMISE | typeof TASK
  readonly task?: number
  readonly priority: number
}

/**
 * A new owner, alive, holding nothing. Throws ArenaFullError. A thread's own dies with it, a task's is
 * settled.
 */
export function makeOwner(context: FutexContext, options: OwnerOptions): number {
  const { i32, thread, layout } = context
  const record = layout.owners.allocate(thread)
  // Only its place in the order. Free it is from the start, as the arena begins with zeros; from then on
  // someone may be at it: a walker that knew the record's last life, or a recovery, which looks at all
  // records.
  i32[record + Owner.lock + Lock.rank] = rank
  acquire(thread, record + Owner.lock)
  assert(Atomics.load(i32, record + Owner.state) === OWNER_FREE, 'a new owner was nobody before')
  initList(i32, record + Owner.contended)
  const lives = i32[record + Owner.lives] + 1
  Atomics.store(i32, record + Owner.lives, lives)
  i32[record + Owner.exiter] = 0
  i32[record + Owner.kind] = options.kind
  i32[record + Owner.task] = options.task ?? 0
  i32[record + Owner.thread] = thread.id
  i32[record + Owner.blockedOn] = 0
  Atomics.store(i32, record + Owner.wantsSince, 0)
  i32[record + Owner.basePriority] = options.priority
  i32[record + Owner.inherited] = PRIORITY_NONE
  i32[record + Owner.priority] = options.priority
  context.arena.f64[(record + Owner.robust) >> 1] = 0
  Atomics.store(i32, record + Owner.state, OWNER_ALIVE)
  Atomics.store(i32, record + Owner.tid, tidOf(layout, record, lives))
  release(thread, record + Owner.lock)
  if (options.kind === TASK) {
    // It outlives the CPU that it was made on.
    layout.owners.publish(i32, record)
    i32[record + Owner.thread] = NO_THREAD
  }
  return record
}

/** Gives the record of a dead owner back. Its TID finds nobody from before this on. */
export function freeOwner(context: FutexContext, record: number): void {
  const { i32, thread, layout } = context
  acquire(thread, record + Owner.lock)
  assert(Atomics.load(i32, record + Owner.state) === OWNER_DEAD, 'only a dead owner is given back')
  assert(listIsEmpty(i32, record + Owner.contended), 'a dead owner owns nothing that others wait for')
  Atomics.store(i32, record + Owner.tid, 0)
  i32[record + Owner.task] = 0
  Atomics.store(i32, record + Owner.state, OWNER_FREE)
  release(thread, record + Owner.lock)
  layout.owners.free(i32, record)
}

/**
 * The priority that orders it among those who wait: the better of its own and what it inherits. Its lock is
 * held.
 */
export function ownerPriority({ i32, thread }: FutexContext, record: number): number {
  if (i32[record + Owner.kind] !== TASK) return i32[record + Owner.priority]
  const se = i32[i32[record + Owner.task] + TaskRecord.entity]
  acquire(thread, se + Entity.piLock)
  const priority = i32[se + Entity.priority]
  release(thread, se + Entity.piLock)
  return priority
}

/** The owner record of a task, made at its first use. By the task itself, on its CPU. */
export function ownerOfTask(context: FutexContext, task: number): number {
  const { i32 } = context
  const known = Atomics.load(i32, task + TaskRecord.owner)
  if (known !== 0) return known
  const record = makeOwner(context, { kind: TASK, task, priority: PRIORITY_NONE })
  Atomics.store(i32, task + TaskRecord.owner, record)
  return record
}

/** The head of an owner that has no list yet, or none that was looked at. */
export const NO_LIST: Float64Array = new Float64Array(1)
export const SOMETHING: object = {}

/**
 * An owner as JavaScript holds it: its TID, which fast paths write into words, and where its robust list
 * begins. Not shared; what is shared is the record.
 */
export class LockOwner {
  readonly record: number
  readonly tid: number
  readonly kind: number
  /** Where the head of its robust list is, and what entries call it (robust.ts). */
  headPairs: Float64Array
  headNext = 0
  /** Its pending entry, as a view of one: the fast path writes it, and finds it in one step. */
  pending: Float64Array = NO_LIST
  head = 0
  /**
   * The mutex that is pending, held and consistent; SOMETHING if another may be pending, or nobody looked;
   * null: nothing is.
   */
  last: object | null = SOMETHING
  /** A call for it sleeps. */
  waiting = false

  constructor({ i32 }: FutexContext, record: number) {
    this.record = record
    this.tid = Atomics.load(i32, record + Owner.tid)
    this.kind = i32[record + Owner.kind]
    this.headPairs = NO_LIST
    assert(this.tid !== 0, 'an owner is made from a record that lives')
  }
}
