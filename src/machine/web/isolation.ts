/**
 * The error for a page without shared memory: a browser shares memory only on a cross-origin isolated page.
 */
const howToIsolate: string =
  'the page has no shared memory, because it is not cross-origin isolated. Serve it and its workers with ' +
  'Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp, or, where only Chromium matters, with ' +
  'Document-Isolation-Policy: isolate-and-require-corp. Without isolation, coroutines on this thread work: new Schedule()'

/** Throws if threads cannot share memory. `what`: the call that needs it. */
export function requireSharedMemory(what: string): void {
  const { crossOriginIsolated } = globalThis as { crossOriginIsolated?: boolean }
  if (typeof SharedArrayBuffer === 'undefined' || crossOriginIsolated === false) {
    throw new Error(`${what}: ${howToIsolate}`)
  }
}

/**
 * Throws in a browser that is too old for a machine: a page must not block, so it waits by
 * `Atomics.waitAsync`.
 */
export function requireWaitAsync(what: string): void {
  if (typeof (Atomics as { waitAsync?: unknown }).waitAsync !== 'function') {
    throw new Error(
      `${what}: this browser has no Atomics.waitAsync, which a page needs to wait for other threads; use a newer browser (Chromium 87 and Safari 16.4 have it).  Coroutines on this thread work: new Schedule()`,
    )
  }
}
