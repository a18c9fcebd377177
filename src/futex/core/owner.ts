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
 * Owners of locks, and how a TID leads to its owner record.
 *
 *   bits of a lock's word   31        30           29 … 0
 *                           WAITERS   OWNER_DIED   TID
 *
 * The low bits of a TID are the number of an owner record, from 1. The bits above count the lives of that
 * record. Bit 29 is never part of a TID: it marks the word of a mutex between two holders (pendingword.ts). A
 * TID is looked up without a lock; the record's own `tid` word, read again under the record's lock, confirms
 * it. The slots of owner records hold nothing else, and their locks are never initialized again. So it is
 * safe to lock a record that belongs to another owner by then.
 */
export const FUTEX_WAITERS: number = 0x8000_0000 | 0
export const FUTEX_OWNER_DIED = 0x4000_0000
export const FUTEX_TID_MASK = 0x3fff_ffff
export const FUTEX_PENDING = 0x2000_0000
/** The bits of a TID, without PENDING. */
export const HOLDER_MASK = 0x1fff_ffff

/** The TID of the holder, from the lock's word; 0: the lock is free. */
export function holderOf(word: number): number {
  const isBetween = (word & PENDING_FREE) === PENDING_FREE && (word & HOLDER_MASK) <= PRIORITY_NONE
  return isBetween ? 0 : word & HOLDER_MASK
}

const PENDING_FREE: number = FUTEX_WAITERS | FUTEX_PENDING
const TID_BITS = 29
const NO_THREAD = -1
const rank: number = lockRank('lock owner')

/** The number of low bits that the highest record number needs. */
function slotBits(layout: FutexLayout): number {
  return 32 - Math.clz32(layout.owners.capacity)
}

function tidOf(layout: FutexLayout, record: number, lives: number): number {
  const bits = slotBits(layout)
  const life = lives & ((1 << (TID_BITS - bits)) - 1)
  return (life << bits) | (layout.owners.indexOf(record) + 1)
}

/** The record of a TID, or 0. A snapshot: a caller that uses the record locks it and checks again. */
export function findOwner({ i32, layout }: FutexContext, tid: number): number {
  const index = (tid & ((1 << slotBits(layout)) - 1)) - 1
  if (index < 0 || index >= layout.owners.capacity) return 0
  const record = layout.owners.pointerAt(index)
  return Atomics.load(i32, record + Owner.tid) === tid ? record : 0
}

/** Whether an owner has, or has had, this TID. */
function wasGiven({ i32, layout }: FutexContext, tid: number): boolean {
  const bits = slotBits(layout)
  const index = (tid & ((1 << bits) - 1)) - 1
  if (index < 0 || index >= layout.owners.capacity) return false
  const lives = Atomics.load(i32, layout.owners.pointerAt(index) + Owner.lives)
  return tid >>> bits <= (lives & ((1 << (TID_BITS - bits)) - 1))
}

/**
 * The value of a held word once it has waiters. PENDING beside a TID that no owner ever had was not set by
 * this protocol, and stays.
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
 * Creates an owner, alive and without locks. Throws ArenaFullError. The owner of a thread dies with it; that
 * of a task is published and outlives the thread.
 */
export function makeOwner(context: FutexContext, options: OwnerOptions): number {
  const { i32, thread, layout } = context
  const record = layout.owners.allocate(thread)
  // Only the rank is written. The lock itself is free from the start, as the arena begins with zeros. Later
  // other threads may use it: a chain walk that knew the record's last life, or a recovery, which visits all
  // records.
  i32[record + Owner.lock + Lock.rank] = rank
  acquire(thread, record + Owner.lock)
  assert(Atomics.load(i32, record + Owner.state) === OWNER_FREE, 'the slot of a new owner is free')
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
    // The owner outlives the CPU that created it.
    layout.owners.publish(i32, record)
    i32[record + Owner.thread] = NO_THREAD
  }
  return record
}

/** Frees the record of a dead owner. Its TID finds no record from before this call on. */
export function freeOwner(context: FutexContext, record: number): void {
  const { i32, thread, layout } = context
  acquire(thread, record + Owner.lock)
  assert(Atomics.load(i32, record + Owner.state) === OWNER_DEAD, 'only a dead owner is freed')
  assert(listIsEmpty(i32, record + Owner.contended), 'a dead owner owns no contended lock')
  Atomics.store(i32, record + Owner.tid, 0)
  i32[record + Owner.task] = 0
  Atomics.store(i32, record + Owner.state, OWNER_FREE)
  release(thread, record + Owner.lock)
  layout.owners.free(i32, record)
}

/** The priority of the owner as a waiter: the better of its own and its inherited one. Its lock is held. */
export function ownerPriority({ i32, thread }: FutexContext, record: number): number {
  if (i32[record + Owner.kind] !== TASK) return i32[record + Owner.priority]
  const se = i32[i32[record + Owner.task] + TaskRecord.entity]
  acquire(thread, se + Entity.piLock)
  const priority = i32[se + Entity.priority]
  release(thread, se + Entity.piLock)
  return priority
}

/** The owner record of a task, created at its first use. Called by the task itself, on its CPU. */
export function ownerOfTask(context: FutexContext, task: number): number {
  const { i32 } = context
  const known = Atomics.load(i32, task + TaskRecord.owner)
  if (known !== 0) return known
  const record = makeOwner(context, { kind: TASK, task, priority: PRIORITY_NONE })
  Atomics.store(i32, task + TaskRecord.owner, record)
  return record
}

/** The head of an owner without a list, or with one that was not read yet. */
export const NO_LIST: Float64Array = new Float64Array(1)
export const SOMETHING: object = {}

/**
 * An owner as a JavaScript object: its TID, which fast paths write into words, and its robust list. Not
 * shared; the record is shared.
 */
export class LockOwner {
  readonly record: number
  readonly tid: number
  readonly kind: number
  /** The head of its robust list, and the head's name in list entries (robust.ts). */
  headPairs: Float64Array
  headNext = 0
  /** Its pending entry, as a view of one element, so that the fast path can write it in one step. */
  pending: Float64Array = NO_LIST
  head = 0
  /**
   * The mutex that is pending, held and consistent; SOMETHING if another one may be pending, or if it is
   * unknown; null: none is.
   */
  last: object | null = SOMETHING
  /** True while a call for this owner sleeps. */
  waiting = false

  constructor({ i32 }: FutexContext, record: number) {
    this.record = record
    this.tid = Atomics.load(i32, record + Owner.tid)
    this.kind = i32[record + Owner.kind]
    this.headPairs = NO_LIST
    assert(this.tid !== 0, 'an owner object is created from a living record')
  }
}
