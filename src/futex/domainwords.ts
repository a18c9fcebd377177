import { CPU_MAX } from '../arena/thread.ts'
import type { FutexContext } from './context.ts'
import type { FutexLayout } from './layout.ts'

/**
 * Words that a domain has once, on the cache line of the futexes' order counter.
 *
 *   order    numbers waits (waitwake.ts)
 *   objects  numbers the objects that someone has waited at
 *   tag      tells this domain from any other of the process; never 0 once asked for
 *   tids     numbers who may own a lock
 *   threads  numbers threads
 */
const OBJECTS = 1
const TAG = 2
const TIDS = 3
const THREADS = 4

const POSITIVE = 0x7fff_ffff
const TID_MASK = 0x3fff_ffff

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

/** A number for who may own a lock: 30 bits, never 0. */
export function nextTid({ i32, layout }: FutexContext): number {
  for (;;) {
    const tid = (Atomics.add(i32, layout.counter + TIDS, 1) + 1) & TID_MASK
    if (tid !== 0) return tid
  }
}

/** A thread id that no other thread of the domain has. */
export function nextThreadId(i32: Int32Array, layout: FutexLayout): number {
  return CPU_MAX + Atomics.add(i32, layout.counter + THREADS, 1)
}
