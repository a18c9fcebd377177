/**
 * Vitest's timer of a terminated call. The promise for which vitest would have waited is gone, so the timer
 * rejects a promise that nothing handles. Such a rejection is dropped while `isExpected()`; all others are
 * reported as usual.
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
