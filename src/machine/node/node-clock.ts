/**
 * One clock for all threads of a process. `performance.now()` is the cheap call, but each thread counts from
 * its own start; `process.hrtime` counts from one moment for all. So the difference is taken once a thread.
 */
export function hrtimeMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}

/** Milliseconds since `origin`, an `hrtimeMs()` that some thread took at boot. */
export function clockSince(origin: number): () => number {
  let offset = -Infinity
  // Whatever comes between the two readings makes the difference smaller: the largest was disturbed least.
  for (let i = 0; i < 20; i++) offset = Math.max(offset, hrtimeMs() - performance.now())
  offset -= origin
  return () => performance.now() + offset
}
