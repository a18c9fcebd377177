import { needResched } from '../../src/coroutine/core/safepoint.ts'
import { sleep } from '../../src/index.ts'
import { Mutex } from '../../src/sync/mutex/mutex.ts'
import type { SyncHandle } from '../../src/sync/wait/objectwords.ts'

/**
 * Tasks of three priorities on one CPU: a high one waits for a lock of a low one, and those in the middle do
 * not use it.
 */

const PAUSE_EVERY_MS = 250

function* busy(ms: number): Generator<number, void, unknown> {
  for (const end = performance.now() + ms; performance.now() < end; ) if (needResched()) yield 0
}

/** Holds the lock most of the time, until `stop[0]` is set. */
export function* holds(handle: SyncHandle, stop: Int32Array): Generator<number, void, unknown> {
  const mutex = Mutex.from(handle)
  while (Atomics.load(stop, 0) === 0) {
    const token = yield* mutex.lock()
    yield* busy(1)
    token.unlock()
    yield* busy(0.1)
  }
}

/**
 * Computes with short pauses, so that the low task can run and lock. All hogs pause every quarter of a
 * second: without that, their pauses may never meet, and the low task never runs.
 */
export function* hogs(stop: Int32Array, ms: number): Generator<number, void, unknown> {
  while (Atomics.load(stop, 0) === 0) {
    yield* busy(Math.min(ms, PAUSE_EVERY_MS - (performance.now() % PAUSE_EVERY_MS)))
    yield* sleep(3)
  }
}

/** Each wait for the lock, in milliseconds. */
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
