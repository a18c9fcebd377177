import { expect } from 'vitest'
import {
  FUTEX_CMP_REQUEUE_PI,
  FUTEX_LOCK_PI,
  FUTEX_PRIVATE_FLAG,
  FUTEX_TRYLOCK_PI,
  FUTEX_UNLOCK_PI,
  FUTEX_WAIT_REQUEUE_PI,
  type Timespec,
} from '../../../src/futex/operations/call.ts'
import type { Actor, ActorBench, ActorCall, Started } from '../actors.ts'

/** One row is one behaviour of Linux. */
export type PiRow = [name: string, run: (bench: ActorBench) => Promise<void>]

export const P: number = FUTEX_PRIVATE_FLAG
export const WAITERS: number = 0x8000_0000 | 0
export const DIED = 0x4000_0000
export const NOBODY = 0x3fff_fff0
export const PAST: Timespec = { sec: 0, nsec: 0 }
export const LATE: Timespec = { sec: 4_000_000_000, nsec: 0 }

export const lock = (word: number, more: object = {}): ActorCall => ({ op: FUTEX_LOCK_PI, word, ...more })
export const unlock = (word: number, more: object = {}): ActorCall => ({ op: FUTEX_UNLOCK_PI, word, ...more })
export const tryLock = (word: number, more: object = {}): ActorCall => ({
  op: FUTEX_TRYLOCK_PI,
  word,
  ...more,
})
export const waitAt = (word: number, lockWord: number, more: object = {}): ActorCall => ({
  op: FUTEX_WAIT_REQUEUE_PI,
  word,
  word2: lockWord,
  ...more,
})
export const requeue = (word: number, lockWord: number, moves: number, more: object = {}): ActorCall => ({
  op: FUTEX_CMP_REQUEUE_PI,
  word,
  val: 1,
  val2: moves,
  word2: lockWord,
  ...more,
})

/** Waits: a thread is on the queue before its priority has gone along the chain. */
export const settles: typeof expect.poll = look => expect.poll(look, { timeout: 30_000, interval: 1 })

export async function cast(b: ActorBench, count: number, ...priorities: number[]): Promise<Actor[]> {
  const actors: Actor[] = []
  for (let at = 0; at < count; at++) actors.push(await b.actor(priorities[at]))
  return actors
}

/** The first actor holds word 0, the others wait for it, in order. */
export async function queue(
  b: ActorBench,
  count: number,
  ...priorities: number[]
): Promise<{ actors: Actor[]; waits: Started[] }> {
  const actors = await cast(b, count, ...priorities)
  expect(await actors[0].call(lock(0))).toBe(0)
  const waits: Started[] = []
  for (const actor of actors.slice(1)) waits.push(await actor.start(lock(0)))
  return { actors, waits }
}

/** Every waiter gets the lock and unlocks it. */
export async function drain({ actors, waits }: { actors: Actor[]; waits: Started[] }): Promise<void> {
  expect(await actors[0].call(unlock(0))).toBe(0)
  const left = actors.slice(1).map((actor, at) => ({ actor, wait: waits[at] }))
  while (left.length > 0) {
    let served = -1
    for (const [at, { wait }] of left.entries()) if (await wait.isDone()) served = at
    const [{ actor, wait }] = left.splice(served, 1)
    expect(await wait.result).toBe(0)
    expect(await actor.call(unlock(0))).toBe(0)
  }
}
