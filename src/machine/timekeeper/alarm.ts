/** The longest time for `setTimeout`: it treats a longer one as 1 ms. */
const TIMER_MS_MAX = 0x7fff_ffff

/**
 * Calls `ring` once, when at least `ms` milliseconds have passed by `performance.now()`: `setTimeout` alone
 * may fire about a millisecond early. Infinity: never. Returns a function that cancels it.
 */
export function startAlarm(ms: number, ring: () => void): () => void {
  if (ms === Infinity) return () => undefined
  const due = performance.now() + ms
  let timer: ReturnType<typeof setTimeout>
  const arm = (left: number): void => {
    timer = setTimeout(
      () => {
        const rest = due - performance.now()
        if (rest > 0) arm(rest)
        else ring()
      },
      Math.min(Math.ceil(left), TIMER_MS_MAX),
    )
  }
  arm(ms)
  return () => clearTimeout(timer)
}

/** Whether the promise settles within `ms` milliseconds. */
export async function endsWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let cancel = (): void => undefined
  const late = new Promise<boolean>(resolve => {
    cancel = startAlarm(ms, () => resolve(false))
  })
  try {
    return await Promise.race([promise.then(() => true), late])
  } finally {
    cancel()
  }
}
