/** Decides whether threads that spin without effect may spin for ever. */
import { validate } from './axioms.ts'
import { covers, keyOf, sameRange, type WeakEvent } from './event.ts'
import type { ThreadNode } from './threads.ts'

/**
 * True when the last turn of each spinning thread can be repeated for ever. In the model no atomic write has
 * infinitely many reads of its range before it in the memory order, so the turn must also be possible after
 * all atomic writes. The model gives no such guarantee for plain reads: an engine may move a plain read out
 * of the loop, and then the loop never ends.
 *
 * A turn that cannot be repeated needs no report: the search also explores the same execution without that
 * turn.
 */
export function isLivelock(events: readonly WeakEvent[], nodes: readonly ThreadNode[]): boolean {
  const repeated = [...events]
  for (const { state, thread, turn } of nodes) {
    if (state === 'spins') repeated.push(...turnAgain(events, thread, turn))
  }
  const last: [number, number][] = []
  for (let r = events.length; r < repeated.length; r++) {
    const read = repeated[r]
    if (read.sources === undefined || !read.access.atomic) continue
    for (const [v, { thread, wrote, access }] of events.entries()) {
      const isOthers = thread !== read.thread && wrote !== undefined && access.atomic
      if (isOthers && sameRange(access, read.access)) last.push([v, r])
    }
  }
  return validate(repeated, -1, last) !== undefined
}

/**
 * Copies the events of a turn and places them after it. A copy finds the value that the turn itself wrote.
 */
function turnAgain(events: readonly WeakEvent[], thread: number, turn: number): WeakEvent[] {
  const own = events.filter(event => event.thread === thread && event.at >= turn).sort((a, b) => a.at - b.at)
  const line = [...own]
  for (const event of own) {
    const at = event.at + own.length
    const sources = event.sources?.map((source, i) => {
      const mine = line.findLast(
        ({ wrote, access }) => wrote !== undefined && covers(access, event.access.address + i),
      )
      return mine === undefined ? source : keyOf(thread, mine.at)
    })
    line.push({ ...event, at, sources })
  }
  return line.slice(own.length)
}
