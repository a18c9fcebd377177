import type { LockParty, LockSnapshot } from '../../src/trace/locksnapshot.ts'
import type { ViewData } from '../model/data.ts'
import type { LockUse } from '../model/lockuse.ts'
import { lockTitle } from './graph.ts'

/** A lock of the table: its present state, what the events say, or both. */
export interface LockRow {
  readonly key: string
  readonly title: string
  readonly holders: readonly string[]
  readonly waiters: readonly string[]
  readonly use: LockUse | undefined
  readonly now: LockSnapshot | undefined
}

/** The locks with waiters first, then by how often they were contended. */
export function lockRows({ locks, trace }: ViewData, isLive: boolean): LockRow[] {
  const rows: LockRow[] = []
  const used = new Set<number>()
  const nameOf = (track: number): string => trace.lanes.get(track)?.track.name ?? 'another thread'
  for (const now of isLive ? locks.locks : []) {
    const number = now.numbers.find(one => trace.locks.has(one)) ?? 0
    used.add(number)
    rows.push({
      key: now.key,
      title: lockTitle(now),
      holders: now.holders.map(partyText),
      waiters: now.waiters.map(partyText),
      use: trace.locks.get(number),
      now,
    })
  }
  for (const use of trace.locks.values()) {
    if (used.has(use.lock)) continue
    const { holderTrack, waiterTracks } = use
    rows.push({
      key: `event ${use.lock}`,
      title: `lock ${use.lock}`,
      // What holds it now is known from the events only as long as nothing was lost.
      holders: holderTrack === 0 ? [] : [nameOf(holderTrack)],
      waiters: waiterTracks.map(nameOf),
      use,
      now: undefined,
    })
  }
  return rows.sort(
    (a, b) => b.waiters.length - a.waiters.length || (b.use?.contended ?? 0) - (a.use?.contended ?? 0),
  )
}

function partyText({ name, priority, basePriority }: LockParty): string {
  return priority === basePriority ? name : `${name} (${basePriority} ↑ ${priority})`
}
