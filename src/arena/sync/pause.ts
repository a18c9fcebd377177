/** Tells the processor that this thread spins, where the platform can (`Atomics.pause`). */
export const pause: (iterations?: number) => void =
  (Atomics as { pause?: (iterations?: number) => void }).pause ?? (() => undefined)
