/**
 * One clock for all threads of a process. `performance.now()` is cheap, but each thread counts from its own
 * start. `process.hrtime` counts from the same moment on all threads. So each thread measures the difference
 * once.
 */
export function hrtimeMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}

/** Milliseconds since `origin`, an `hrtimeMs()` that some thread took at boot. */
export function clockSince(origin: number): () => number {
  let offset = -Infinity
  // A delay between the two readings makes the difference smaller: the largest one is the most exact.
  for (let i = 0; i < 20; i++) offset = Math.max(offset, hrtimeMs() - performance.now())
  offset -= origin
  return () => performance.now() + offset
}
