/**
 * Vitest's timer of a call that was ended. The call took the promise with it that vitest would have waited
 * for, so that the timer rejects one that nothing can handle. Such a rejection is dropped while
 * `isExpected()`; all others are reported as ever.
 */
export function dropOrphans(isExpected: () => boolean): void {
  const emit = process.emit.bind(process) as (event: string | symbol, ...args: unknown[]) => boolean
  process.emit = ((event: string | symbol, ...args: unknown[]) => {
    if (event === 'unhandledRejection' && isTimeout(args[0]) && isExpected()) return true
    return emit(event, ...args)
  }) as never
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof Error && /^(?:Test|Hook) timed out in \d+ms/.test(reason.message)
}
