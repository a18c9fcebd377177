import { pause } from '../arena/sync/pause.ts'
import { currentRunner } from '../coroutine/core/runner.ts'
import { PREEMPTED } from '../coroutine/core/stops.ts'
import type { Handoff } from './handoff.ts'

/**
 * The contended path of a lock: the waiter publishes what it waits for and where the owner is, gives way, and
 * tries again. What makes it give up, after `yieldBudget` turns or `fallbackUs`, is that others should not
 * run around it for ever: then it waits at the lock's futex, as it would have at once without all this.
 *
 *   waiter                                    policy, at the waiter's CPU
 *   ------                                    ---------------------------
 *   trylock fails
 *   reads the owner's CPU; not here:
 *   looks on for a moment (mutex.ts)
 *   (A) publishes its slot
 *   gives way                                 enqueue: (B) the slot is active: behind the owner, on its CPU
 *   (C) withdraws the slot
 *   trylock
 *
 * (C) also when it is thrown into at (B): a slot that stays active after that would send a task that waits
 * for nothing to someone else's CPU. Were it left all the same, because its thread died there, the policy
 * would do just that, once for each time that the TID is enqueued: wrong, and harmless.
 */

/** How a task gives way: what its coroutine yields. */
export type GiveWay = () => number

const giveWayHere: GiveWay = () => {
  currentRunner('a contended lock').giveWay?.()
  return PREEMPTED
}

/** A thread that has nobody to give way to pauses so often between two looks. */
const PAUSES = 16

/**
 * How a waiter tries. `looksFree` only reads the lock's word: a try that fails takes the word's cache line
 * from the owner, who is about to need it.
 */
export interface Attempts {
  looksFree(): boolean
  /** True: the lock is had, or can never be. */
  tryLock(): boolean
}

/**
 * In a task, since `begun`. True: `tryLock` has said yes. False: it must wait. Throws the signal's reason.
 */
export function* contendTask(
  handoff: Handoff,
  tag: number,
  tid: number,
  attempts: Attempts,
  begun: number,
  signal?: AbortSignal,
  giveWay: GiveWay = giveWayHere,
): Generator<number, boolean, unknown> {
  const end = begun + handoff.fallbackMs
  for (let turns = 0; turns < handoff.yieldBudget; turns++) {
    const cpu = handoff.ownerCpu(tag)
    const counted = handoff.publish(tag, tid, cpu) // (A)
    try {
      yield giveWay() // (B)
    } finally {
      handoff.withdraw(tag, tid, counted) // (C)
    }
    signal?.throwIfAborted()
    if (attempts.looksFree() && attempts.tryLock()) return true
    if (handoff.now() >= end) break
  }
  return false
}

/** On a thread, which has nobody to give way to: it spins as long as a task would give way. */
export function contendSync(
  handoff: Handoff,
  tag: number,
  tid: number,
  attempts: Attempts,
  begun: number,
): boolean {
  const end = begun + handoff.fallbackMs
  const counted = handoff.publish(tag, tid, handoff.ownerCpu(tag))
  let locked = false
  for (let turns = 0; turns < handoff.yieldBudget && !locked; turns++) {
    for (let paused = 0; paused < PAUSES; paused++) pause()
    locked = attempts.looksFree() && attempts.tryLock()
    if (!locked && handoff.now() >= end) break
  }
  handoff.withdraw(tag, tid, counted)
  return locked
}

/** Anywhere: other code of this thread goes on between two tries. */
export async function contendAsync(
  handoff: Handoff,
  tag: number,
  tid: number,
  attempts: Attempts,
  begun: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const end = begun + handoff.fallbackMs
  const counted = handoff.publish(tag, tid, handoff.ownerCpu(tag))
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
