/**
 * Replaces every operation of Atomics on this thread by one that counts its calls, and with ATOMICS_SITES set
 * also by the line of the call. Loaded before anything else (`--import`), on each thread.
 */
export interface AtomicsCount {
  readonly total: number
  readonly sites: readonly (readonly [site: string, count: number])[]
}

export interface AtomicsCounter {
  start(): void
  stop(): AtomicsCount
}

const namesSites = process.env['ATOMICS_SITES'] !== undefined
const sites = new Map<string, number>()
let isCounting = false
let total = 0

const atomics = Atomics as unknown as Record<string, (...args: unknown[]) => unknown>
for (const name of Object.getOwnPropertyNames(Atomics)) {
  const original = atomics[name]
  // A pause is no access to memory.
  if (typeof original !== 'function' || name === 'pause') continue
  atomics[name] = (...args) => {
    if (isCounting) {
      total++
      if (namesSites) countSite(name)
    }
    return original.apply(Atomics, args)
  }
}

function countSite(name: string): void {
  const line = (new Error('site').stack ?? '').split('\n')[3] ?? ''
  const caller = /at (?:new )?([\w.<>]+)/.exec(line)?.[1] ?? '?'
  const site = `${name} in ${caller}, ${/([\w-]+\.ts:\d+)/.exec(line)?.[1] ?? '?'}`
  sites.set(site, (sites.get(site) ?? 0) + 1)
}

const counter: AtomicsCounter = {
  start() {
    isCounting = true
    total = 0
    sites.clear()
  },
  stop() {
    isCounting = false
    return { total, sites: [...sites] }
  },
}
;(globalThis as { atomicsCounter?: AtomicsCounter }).atomicsCounter = counter
