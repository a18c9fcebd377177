/** Nanoseconds, in five characters or so. */
export function formatNs(ns: number): string {
  if (!Number.isFinite(ns)) return '–'
  if (ns >= 60e9) return `${Math.floor(ns / 60e9)} m ${Math.floor((ns % 60e9) / 1e9)} s`
  if (ns >= 1e9) return `${(ns / 1e9).toFixed(ns >= 10e9 ? 1 : 2)} s`
  if (ns >= 1e6) return `${(ns / 1e6).toFixed(ns >= 100e6 ? 0 : 1)} ms`
  if (ns >= 1e3) return `${(ns / 1e3).toFixed(ns >= 100e3 ? 0 : 1)} µs`
  return `${ns.toFixed(0)} ns`
}

export function formatMs(ms: number): string {
  return formatNs(ms * 1e6)
}

/** A time on the ruler, with as many digits as the step between two marks needs. */
export function formatAt(ns: number, step: number): string {
  const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / 1e9) + 1e-9)))
  if (step < 1e6 && ns < 1e9) return `${(ns / 1e6).toFixed(Math.max(0, digits - 3))} ms`
  return `${(ns / 1e9).toFixed(digits)} s`
}

export function count(n: number, noun: string): string {
  return `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`
}
