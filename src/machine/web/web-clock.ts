/** One clock for all threads of a page. Each thread counts from its own start, which is its `timeOrigin`. */
export function pageMs(): number {
  return performance.timeOrigin + performance.now()
}

/** Milliseconds since `origin`, a `pageMs()` that some thread took at boot. */
export function webClock(origin: number): () => number {
  return () => pageMs() - origin
}
