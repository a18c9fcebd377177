/** Whether `await` would wait for the value. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  )
}

/** The same for a value of which nothing is known. `await` throws what its `then` throws, if that is read. */
export function isAwaited(value: unknown): value is PromiseLike<unknown> {
  try {
    return isThenable(value)
  } catch {
    return true
  }
}

/**
 * Reports how an `await` of the value ends: later, and once, also if its `then` calls back while it is
 * called, throws, or gives another thenable.
 */
export async function follow(
  value: unknown,
  onValue: (value: unknown) => void,
  onError: (error: unknown) => void,
): Promise<void> {
  let settled: unknown
  try {
    settled = await value
  } catch (error) {
    // An `await` of a promise whose `constructor` throws has thrown while it was called.
    await undefined
    onError(error)
    return
  }
  onValue(settled)
}
