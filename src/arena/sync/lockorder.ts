/**
 * The kernel's lock order, outermost first. A thread may take a lock only while every lock that it holds
 * stands earlier in this list; debug builds assert it on each acquire. Two locks of one rank are never
 * held together, except where `sameRank` says by which rule.
 */
export interface LockClass {
  readonly name: string
  /** 'never', or 'by address': the lower pointer first. */
  readonly sameRank: 'never' | 'by address'
}

export const lockOrder: readonly LockClass[] = [
  { name: 'unranked', sameRank: 'by address' },
  { name: 'sleep', sameRank: 'never' },
  { name: 'space', sameRank: 'never' },
  { name: 'futex table', sameRank: 'never' },
  { name: 'futex queue', sameRank: 'by address' },
  { name: 'lock owner', sameRank: 'never' },
  { name: 'pi', sameRank: 'never' },
  { name: 'run queue', sameRank: 'by address' },
  { name: 'dispatch queue', sameRank: 'never' },
  { name: 'timer', sameRank: 'never' },
  { name: 'heap', sameRank: 'never' },
]

/** The rank of a lock class by name: what `initLock` stores beside the lock word. */
export function lockRank(name: string): number {
  const rank = lockOrder.findIndex(lockClass => lockClass.name === name)
  if (rank < 0)
    throw new RangeError(
      `lockRank('${name}'): no such lock class; see lockOrder in src/arena/sync/lockorder.ts`,
    )
  return rank
}
