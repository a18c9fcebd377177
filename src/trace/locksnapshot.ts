import { findOwner } from '../futex/core/owner.ts'
import { lockTag } from '../futex/core/locktag.ts'
import { Futex, Mapping, Owner, PI_LOCK, PROMISE, TASK, Waiter } from '../futex/core/records.ts'
import { readCounts } from '../handoff/handoff.ts'
import type { HandoffCounts } from '../handoff/handoff.ts'
import type { KernelView } from '../kernel/boot/view.ts'
import { Entity } from '../sched/core/entity.ts'
import { taskName } from '../sched/core/taskname.ts'
import { TaskRecord } from '../sched/core/taskrecord.ts'
import { LockTable, type TableEntry } from '../sync/debug/locktable.ts'

/**
 * The locks that have waiters, read from the arena without a lock: their holders and their queues. Which
 * owner holds a lock is known
 *
 *   [1] of a lock that passes priorities on: its futex names the owner
 *   [2] in debug mode: the table of debug mode has each hold and each wait, with their stacks
 *   [3] of any other lock once a waiter has waited for long: then the waiter publishes the holder's TID
 */
export interface LockParty {
  readonly tid: number
  /** The slot of the task; -1: a thread, or async code. */
  readonly slot: number
  readonly name: string
  readonly priority: number
  readonly basePriority: number
  /** Where it took the lock, or waits for it; empty: not recorded. */
  readonly stack: string
}

export interface LockSnapshot {
  readonly key: string
  readonly kind: string
  /** The numbers that events may have for it. */
  readonly numbers: readonly number[]
  /** The name that the program gave it, or empty. */
  readonly name: string
  readonly holders: readonly LockParty[]
  /** In the order in which they will get it, as far as their queue shows it. */
  readonly waiters: readonly LockParty[]
}

export interface LocksSnapshot {
  readonly locks: readonly LockSnapshot[]
  /** Of all hand-off locks since boot; null: there was none. */
  readonly handoff: HandoffCounts | null
}

interface Found {
  readonly numbers: Set<number>
  kind: string
  name: string
  readonly holders: Map<number, LockParty>
  readonly waiters: Map<number, LockParty>
}

export function takeLocks(view: KernelView): LocksSnapshot {
  const found = new Map<string, Found>()
  const at = (key: string): Found => {
    let lock = found.get(key)
    if (lock === undefined)
      found.set(
        key,
        (lock = { numbers: new Set(), kind: '', name: '', holders: new Map(), waiters: new Map() }),
      )
    return lock
  }
  const { context } = view.futexes
  context.enter()
  try {
    const keyOfWaiter = readQueues(view, at)
    readTable(view, at, keyOfWaiter)
  } finally {
    context.leave()
  }
  const locks = [...found]
    .filter(([, { holders, waiters }]) => holders.size > 0 || waiters.size > 0)
    .map(([key, { numbers, kind, name, holders, waiters }]) => ({
      key,
      numbers: [...numbers],
      kind,
      name,
      holders: [...holders.values()],
      waiters: [...waiters.values()].sort((a, b) => a.priority - b.priority),
    }))
  const counts = readCounts(view.i32, view.plan.handoff)
  return { locks, handoff: counts.acquisitions + counts.contended === 0 ? null : counts }
}

/** [1] and [3]. Returns by TID the key of the lock that the owner waits for. */
function readQueues(view: KernelView, at: (key: string) => Found): Map<number, string> {
  const { i32 } = view
  const { layout } = view.futexes.context
  const keys = new Map<number, string>()
  const owners = ownersOfTasks(view)
  for (let n = 0; n < layout.waiters.capacity; n++) {
    const waiter = layout.waiters.pointerAt(n)
    if (!layout.waiters.isAllocated(i32, waiter)) continue
    const futex = Atomics.load(i32, waiter + Waiter.queue)
    if (futex <= 0) continue
    const isLock = i32[waiter + Waiter.pi] === PI_LOCK
    const task = i32[waiter + Waiter.kind] === TASK ? i32[waiter + Waiter.task] : 0
    const record = i32[waiter + Waiter.lockOwner] || (owners.get(task) ?? 0)
    const holder = isLock ? i32[futex + Futex.pi] : wantedBy(view, record)
    // Any other futex is no lock: a sleep, a channel, a condition.
    if (!isLock && holder === 0) continue
    const key = keyOf(i32[futex + Futex.owner], i32[futex + Futex.index])
    const lock = at(key)
    for (const number of numbersOf(view, futex)) lock.numbers.add(number)
    if (lock.kind === '') lock.kind = isLock ? 'lock that inherits' : 'lock'
    const party = partyOf(view, record, task)
    lock.waiters.set(party.tid, party)
    keys.set(party.tid, key)
    if (holder !== 0) {
      const held = partyOf(view, holder, 0)
      lock.holders.set(held.tid, held)
    }
  }
  return keys
}

/** The id of an object, or the tag of a word: by its buffer, which a mapping names. */
function numbersOf({ i32 }: KernelView, futex: number): number[] {
  const owner = i32[futex + Futex.owner]
  const index = i32[futex + Futex.index]
  if (owner < 0) return [-owner]
  return [lockTag(owner, index), lockTag(i32[owner + Mapping.backing], index)]
}

/** By task: its owner record. */
function ownersOfTasks({ i32, futexes }: KernelView): Map<number, number> {
  const { owners } = futexes.context.layout
  const found = new Map<number, number>()
  for (let n = 0; n < owners.capacity; n++) {
    const record = owners.pointerAt(n)
    if (i32[record + Owner.tid] !== 0 && i32[record + Owner.task] !== 0)
      found.set(i32[record + Owner.task], record)
  }
  return found
}

function wantedBy({ i32, futexes }: KernelView, record: number): number {
  if (record === 0 || Atomics.load(i32, record + Owner.wantsSince) === 0) return 0
  const tid = Atomics.load(i32, record + Owner.wants)
  return tid === 0 ? 0 : findOwner(futexes.context, tid)
}

/** [2], and the names and stacks of [3]. */
function readTable(view: KernelView, at: (key: string) => Found, keyOfWaiter: Map<number, string>): void {
  const { context } = view.futexes
  const { holds, waits } = new LockTable(context).readNow()
  const keys = new Map<number, string>()
  for (const { object, tid } of waits) {
    const key = keyOfWaiter.get(tid)
    if (key !== undefined) keys.set(object, key)
  }
  const add = (entry: TableEntry, into: 'holders' | 'waiters'): void => {
    const lock = at(keys.get(entry.object) ?? keyOf(-entry.object, 0))
    lock.numbers.add(entry.object)
    lock.kind = entry.kind
    lock.name = entry.name ?? lock.name
    const party = partyOf(view, findOwner(context, entry.tid), 0)
    const name = party.slot >= 0 ? party.name : entry.who
    lock[into].set(entry.tid, { ...party, tid: entry.tid, name, stack: entry.stack })
  }
  for (const entry of holds) add(entry, 'holders')
  for (const entry of waits) add(entry, 'waiters')
}

/** The queue of an object has its negated id for an owner. */
function keyOf(owner: number, index: number): string {
  return owner < 0 ? `object ${-owner}` : `word ${owner}:${index}`
}

function partyOf(view: KernelView, record: number, waitingTask: number): LockParty {
  const { i32, s } = view
  const task = waitingTask !== 0 ? waitingTask : record === 0 ? 0 : i32[record + Owner.task]
  const tid = record === 0 ? 0 : i32[record + Owner.tid]
  const se = task === 0 || !s.tasks.isAllocated(i32, task) ? 0 : i32[task + TaskRecord.entity]
  if (se !== 0) {
    return {
      tid: tid === 0 ? -task : tid,
      slot: i32[task + TaskRecord.slot],
      name: taskName(s, task),
      priority: i32[se + Entity.priority],
      basePriority: i32[se + Entity.basePriority],
      stack: '',
    }
  }
  const isAsync = record !== 0 && i32[record + Owner.kind] === PROMISE
  return {
    tid,
    slot: -1,
    name: isAsync ? 'async code' : 'a thread',
    priority: record === 0 ? 0 : i32[record + Owner.priority],
    basePriority: record === 0 ? 0 : i32[record + Owner.basePriority],
    stack: '',
  }
}
