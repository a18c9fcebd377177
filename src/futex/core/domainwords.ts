import type { FutexContext } from './context.ts'

/**
 * Words that a domain has once, on the cache line of the futexes' order counter.
 *
 *   order    numbers waits (waitwake.ts)
 *   objects  numbers the objects that someone has waited at
 *   tag      tells this domain from any other of the process; never 0 once asked for
 */
const OBJECTS = 1
const TAG = 2

const POSITIVE = 0x7fff_ffff

/** A number that no other object of the domain has: from 1 up. */
export function nextObject({ i32, layout }: FutexContext): number {
  for (;;) {
    const id = (Atomics.add(i32, layout.counter + OBJECTS, 1) + 1) & POSITIVE
    if (id !== 0) return id
  }
}

/** Which domain this is. */
export function domainTag({ i32, layout }: FutexContext): number {
  const at = layout.counter + TAG
  const tag = Atomics.load(i32, at)
  if (tag !== 0) return tag
  const mine = 1 + Math.floor(Math.random() * POSITIVE)
  const before = Atomics.compareExchange(i32, at, 0, mine)
  return before === 0 ? mine : before
}
