/** Whether threads that turn in a loop without effect may turn for ever. */
import { validate } from './axioms.ts'
import { covers, keyOf, sameRange, type WeakEvent } from './event.ts'
import type { ThreadNode } from './threads.ts'

/**
 * True when the last turn of every thread that spins can be repeated without end. By the model no atomic
 * write has endlessly many reads of its range before it in the memory order: so the turn must be possible
 * after all of them. Of plain reads nothing is said: an engine may read once, before the loop, and then a
 * loop that reads plainly never ends.
 *
 * Where it cannot be repeated, the execution without that turn is explored too, and is the same but for it.
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

/** The events of a turn once more, after it. What it wrote (what was there) it finds in its own place now. */
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
