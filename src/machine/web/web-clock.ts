/** One clock for all threads of a page: each counts from its own start, which `timeOrigin` says. */
export function pageMs(): number {
  return performance.timeOrigin + performance.now()
}

/** Milliseconds since `origin`, a `pageMs()` that some thread took at boot. */
export function webClock(origin: number): () => number {
  return () => pageMs() - origin
}
