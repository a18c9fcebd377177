import { pause } from '../arena/sync/pause.ts'
import { currentRunner } from '../coroutine/core/runner.ts'
import { PREEMPTED } from '../coroutine/core/stops.ts'
import type { TaskWaiter } from '../futex/core/sleep.ts'
import type { Handoff } from './handoff.ts'

/**
 * The contended path of a lock. The waiter publishes which lock it waits for and where the holder is, yields
 * its CPU, and tries again. After `yieldBudget` turns or `fallbackUs` it stops trying and waits at the lock's
 * futex, as a plain lock does from the start: otherwise other tasks could overtake it for ever.
 *
 *   waiter                                    policy, at the waiter's CPU
 *   ------                                    ---------------------------
 *   trylock fails
 *   reads the holder's CPU; another CPU:
 *   spins for a moment (mutex.ts)
 *   (A) publishes its slot
 *   yields                                    enqueue: (B) the slot is active: behind the holder, on its CPU
 *   (C) withdraws the slot
 *   trylock
 *
 * The waiter does (C) also when an error is thrown into it at (B). A slot that stayed active would send a
 * task that waits for nothing to another CPU. When a thread dies there the slot does stay active, and the
 * policy does that once for each time that the TID is enqueued: wrong, and harmless.
 */

/** How a task yields its CPU; returns the value that its coroutine yields. */
export type GiveWay = () => number

const giveWayHere: GiveWay = () => {
  currentRunner('a contended lock').giveWay?.()
  return PREEMPTED
}

/** How often a thread, which cannot yield, pauses between two checks of the lock. */
const PAUSES = 16

/**
 * How a waiter tries to lock. `looksFree` only reads the lock's word: a try that fails takes the word's cache
 * line from the holder, which is about to need it.
 */
export interface Attempts {
  looksFree(): boolean
  /** True: the caller holds the lock, or can never hold it. */
  tryLock(): boolean
}

/** How a task's part of contending ends. */
export const LOCKED = 1
export const FALLS_BACK = 0
/** The call begins again on the holder's CPU. The slot stays active until then. */
export const FOLLOWS = -1
type Contended = typeof LOCKED | typeof FALLS_BACK | typeof FOLLOWS

/**
 * In a task that has waited since `begun`, from `now` on. LOCKED: `tryLock` returned true. FALLS_BACK: the
 * task must wait at the futex. Throws the signal's reason.
 */
export function* contendTask(
  handoff: Handoff,
  tag: number,
  task: TaskWaiter,
  attempts: Attempts,
  begun: number,
  now: number,
  signal?: AbortSignal,
  giveWay: GiveWay = giveWayHere,
): Generator<number, Contended, unknown> {
  const { tid } = task.owner
  const end = now + handoff.fallbackMs
  for (let turns = 0; turns < handoff.yieldBudget; turns++) {
    const cpu = handoff.ownerCpu(tag)
    const counted = handoff.publish(tag, tid, cpu, begun) // (A)
    let follows = false
    try {
      yield giveWay() // (B)
      follows = task.leaves()
    } finally {
      if (follows) handoff.follows(tag, tid, counted)
      else handoff.withdraw(tag, tid, counted) // (C)
    }
    if (follows) return FOLLOWS
    signal?.throwIfAborted()
    if (attempts.looksFree() && attempts.tryLock()) return LOCKED
    if (handoff.now() >= end) break
  }
  return FALLS_BACK
}

/** On a thread, which cannot yield: it spins as long as a task would yield. */
export function contendSync(
  handoff: Handoff,
  tag: number,
  tid: number,
  attempts: Attempts,
  begun: number,
): boolean {
  const end = begun + handoff.fallbackMs
  const counted = handoff.publish(tag, tid, handoff.ownerCpu(tag), begun)
  let locked = false
  for (let turns = 0; turns < handoff.yieldBudget && !locked; turns++) {
    for (let paused = 0; paused < PAUSES; paused++) pause()
    locked = attempts.looksFree() && attempts.tryLock()
    if (!locked && handoff.now() >= end) break
  }
  handoff.withdraw(tag, tid, counted)
  return locked
}

/** In async code: other code of this thread runs between two tries. */
export async function contendAsync(
  handoff: Handoff,
  tag: number,
  tid: number,
  attempts: Attempts,
  begun: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const end = begun + handoff.fallbackMs
  const counted = handoff.publish(tag, tid, handoff.ownerCpu(tag), begun)
  let locked = false
  try {
    for (let turns = 0; turns < handoff.yieldBudget && !locked; turns++) {
      await undefined
      signal?.throwIfAborted()
      locked = attempts.looksFree() && attempts.tryLock()
      if (!locked && handoff.now() >= end) break
    }
  } finally {
    handoff.withdraw(tag, tid, counted)
  }
  return locked
}
