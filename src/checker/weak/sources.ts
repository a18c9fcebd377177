/** Finds the writes from which a read may take its bytes. */
import { atMostOne, happensBefore, positionsOf } from './axioms.ts'
import { type Access, covers, keyOf, sameRange, SETUP, type WeakEvent } from './event.ts'

/** A write of an execution, or a promised write. */
export interface Write {
  readonly key: number
  readonly thread: number
  readonly access: Access
  readonly wrote: Uint8Array
}

/** One way to answer a read: its sources, and the bytes that it finds. */
export interface Answer {
  readonly sources: readonly number[]
  readonly found: Uint8Array
  /** The promised writes among the sources. */
  readonly promised: readonly Write[]
}

export function writeOf({ thread, at, access, wrote }: WeakEvent): Write {
  return { key: keyOf(thread, at), thread, access, wrote: wrote! }
}

/**
 * All answers to a read at the end of its thread, without those that happens-before excludes. `initial` gives
 * the bytes of the set-up. `need` selects writes; at least one of the sources must be such a write. Returns
 * undefined when there are more than `most` answers.
 */
export function answersTo(
  access: Access,
  thread: number,
  at: number,
  events: readonly WeakEvent[],
  promises: readonly Write[],
  initial: (address: number) => number,
  joiner: number,
  need: ((key: number) => boolean) | undefined,
  most: number,
): Answer[] | undefined {
  const hidden = hiddenFrom(thread, at, events, joiner)
  const all = events.filter(({ wrote }) => wrote !== undefined).map(writeOf)
  const perByte: { key: number; write: Write | undefined; byte: number }[][] = []
  for (let i = 0; i < access.size; i++) {
    const place = access.address + i
    const options: { key: number; write: Write | undefined; byte: number }[] = []
    if (!hidden(SETUP, place)) options.push({ key: SETUP, write: undefined, byte: initial(place) })
    for (const write of all) {
      if (!covers(write.access, place) || hidden(write.key, place)) continue
      options.push({ key: write.key, write: undefined, byte: write.wrote[place - write.access.address] })
    }
    for (const write of promises) {
      if (!covers(write.access, place) || write.thread === thread) continue
      options.push({ key: write.key, write, byte: write.wrote[place - write.access.address] })
    }
    perByte.push(options)
  }
  const known = new Map<number, Access>()
  for (const write of [...all, ...promises]) known.set(write.key, write.access)
  const alike = (key: number): boolean => {
    const other = known.get(key)!
    return other.whole && sameRange(other, access)
  }
  const answers: Answer[] = []
  const sources: number[] = []
  const found: number[] = []
  const promised: (Write | undefined)[] = []
  let tried = 0
  const choose = (i: number): boolean => {
    if (i === access.size) {
      const wanted = need === undefined || sources.some(need)
      if (!wanted) return true
      answers.push({
        sources: [...sources],
        found: Bytes.from(found),
        promised: promised.filter(
          (write, at) => write !== undefined && promised.indexOf(write) === at,
        ) as Write[],
      })
      return answers.length <= most
    }
    for (const { key, write, byte } of perByte[i]) {
      if (++tried > TRIES_MAX) return false
      // A write can be promised with one value only.
      if (
        write !== undefined &&
        promised.some(other => other !== undefined && other.key === key && other !== write)
      )
        continue
      sources.push(key)
      found.push(byte)
      promised.push(write)
      const fits = !access.whole || atMostOne(sources, alike)
      const goOn = !fits || choose(i + 1)
      sources.pop()
      found.pop()
      promised.pop()
      if (!goOn) return false
    }
    return true
  }
  return choose(0) ? answers : undefined
}

const Bytes = Uint8Array
const TRIES_MAX = 1_000_000

/** Whether another write of the byte happens between a write and an access at the end of this thread. */
function hiddenFrom(
  thread: number,
  at: number,
  events: readonly WeakEvent[],
  joiner: number,
): (key: number, byte: number) => boolean {
  const positions = positionsOf(events)
  const happens = happensBefore(events, positions, joiner)
  const last = at === 0 ? undefined : positions.get(keyOf(thread, at - 1))
  const isBefore = (v: number): boolean =>
    thread === joiner
      ? events[v].thread !== joiner || events[v].at < at
      : last !== undefined && (v === last || happens?.has(v, last) === true)
  const seen = events.flatMap((event, v) => (event.wrote !== undefined && isBefore(v) ? [v] : []))
  return (key, byte) => {
    const w = key === SETUP ? undefined : positions.get(key)
    return seen.some(
      v =>
        covers(events[v].access, byte) && (key === SETUP || (w !== undefined && happens?.has(w, v) === true)),
    )
  }
}
