/** What `setTimeout` takes at the most; a longer time it takes for 1 ms. */
const TIMER_MS_MAX = 0x7fff_ffff

/**
 * Calls `ring` once, when at least `ms` milliseconds have passed by `performance.now()`: `setTimeout` alone fires up to a millisecond or so
 * early. Returns what cancels it. Infinity: never.
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
