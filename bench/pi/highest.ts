import { needResched } from '../../src/coroutine/core/safepoint.ts'
import { sleep } from '../../src/index.ts'
import { Mutex } from '../../src/sync/mutex/mutex.ts'
import type { SyncHandle } from '../../src/sync/wait/place.ts'

/**
 * Tasks of three priorities on one CPU: a low one has a lock that a high one wants, and those between want
 * nothing of it.
 */

function* busy(ms: number): Generator<number, void, unknown> {
  for (const end = performance.now() + ms; performance.now() < end; ) if (needResched()) yield 0
}

/** Has the lock most of the time, until `stop[0]` is set. */
export function* holds(handle: SyncHandle, stop: Int32Array): Generator<number, void, unknown> {
  const mutex = Mutex.from(handle)
  while (Atomics.load(stop, 0) === 0) {
    const token = yield* mutex.lock()
    yield* busy(1)
    token.unlock()
    yield* busy(0.1)
  }
}

/** Works, and rests for a moment, so that the low one gets a lock at all. */
export function* hogs(stop: Int32Array, ms: number): Generator<number, void, unknown> {
  while (Atomics.load(stop, 0) === 0) {
    yield* busy(ms)
    yield* sleep(3)
  }
}

/** How long it waits for the lock, in milliseconds, each time. */
export function* wants(
  handle: SyncHandle,
  stop: Int32Array,
  times: number,
): Generator<number, number[], unknown> {
  const mutex = Mutex.from(handle)
  const waits: number[] = []
  for (let time = 0; time < times; time++) {
    yield* sleep(1 + (time % 7))
    const begun = performance.now()
    const token = yield* mutex.lock()
    waits.push(performance.now() - begun)
    token.unlock()
  }
  Atomics.store(stop, 0, 1)
  return waits
}
