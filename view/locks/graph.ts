import type { LockParty, LockSnapshot } from '../../src/trace/locksnapshot.ts'

/** A party waits for a lock, which the next link's party holds. The last one waits for nothing. */
export interface Link {
  readonly party: LockParty
  /** The lock that it waits for; null at the end of a chain. */
  readonly lock: LockSnapshot | null
  /** Where it took the lock that the link before waits for. */
  readonly holdStack: string
}

const LINKS_MAX = 32

/** Cycles of waits: each party waits for a lock that the next one holds, and the last for the first's. */
export function cyclesIn(locks: readonly LockSnapshot[]): Link[][] {
  const cycles: Link[][] = []
  const seen = new Set<number>()
  for (const { waiters } of locks) {
    for (const { tid } of waiters) {
      const chain = follow(locks, tid)
      const back = chain.links.findIndex(({ party }) => party.tid === chain.endsAt)
      if (back < 0) continue
      const cycle = chain.links.slice(back)
      if (cycle.some(({ party }) => seen.has(party.tid))) continue
      for (const { party } of cycle) seen.add(party.tid)
      cycles.push(cycle)
    }
  }
  return cycles
}

/**
 * Chains of waits in which a priority is lent: from each waiter that waits for nobody else's sake down to the
 * holder that runs. The most important waiter first.
 */
export function chainsIn(locks: readonly LockSnapshot[]): Link[][] {
  const holding = new Set(
    locks.flatMap(({ holders, waiters }) => (waiters.length > 0 ? holders.map(({ tid }) => tid) : [])),
  )
  const tops = locks.flatMap(({ waiters }) => waiters.filter(({ tid }) => !holding.has(tid)))
  return tops
    .map(({ tid }) => follow(locks, tid))
    .filter(({ endsAt, links }) => endsAt === 0 && links.length > 1)
    .map(({ links }) => links)
    .sort((a, b) => a[0].party.priority - b[0].party.priority)
}

/** Follows the waits from one party. `endsAt`: the TID that the chain returns to, or 0. */
function follow(locks: readonly LockSnapshot[], from: number): { links: Link[]; endsAt: number } {
  const links: Link[] = []
  let tid = from
  let holdStack = ''
  let known: LockParty | undefined
  for (;;) {
    const at = tid
    if (links.some(({ party }) => party.tid === at)) return { links, endsAt: at }
    const lock = locks.find(({ waiters }) => waiters.some(waiter => waiter.tid === at)) ?? null
    const party = lock?.waiters.find(waiter => waiter.tid === at) ?? known
    if (party === undefined || links.length === LINKS_MAX) return { links, endsAt: 0 }
    links.push({ party, lock, holdStack })
    known = lock?.holders[0]
    if (known === undefined) return { links, endsAt: 0 }
    holdStack = known.stack
    tid = known.tid
  }
}

export function lockTitle({ kind, name, key }: LockSnapshot): string {
  return name === '' ? `${kind} (${key})` : `${kind} “${name}”`
}
