/**
 * The memory model of ECMA-262, clause "Memory Model", over one execution. The numbers are those of
 * docs/weakmemory.md.
 *
 *   [1] happens-before is a strict partial order
 *   [2] no read takes a byte from a write that it happens before
 *   [3] no read takes a byte from a write W that is hidden: W happens before another write V of the byte, and
 *       V before the read
 *   [4] a read that does not tear takes its bytes from at most one write of its range that does not tear
 *   [5] there is a memory order: a total order of all events that contains happens-before. Between a write W
 *       and a read R that takes bytes from W, it has no atomic write V with
 *         (a) W synchronizes with R, and V has the range of R; or
 *         (b) W and V happen before R, W is atomic, and V has the range of W; or
 *         (c) W happens before R and V, R is atomic, and V has the range of R
 *
 * An execution may be incomplete. The axioms are checked as far as it goes: a violation in it remains a
 * violation in each longer execution.
 */
import { covers, keyOf, sameRange, SETUP, type WeakEvent } from './event.ts'
import { Order } from './order.ts'

/** A valid execution: its happens-before and one memory order. */
export interface Valid {
  readonly happens: Order
  readonly memory: Order
}

/** A choice for V, W and R of [5]: V before W, or R before V. `write` is -1 for the set-up. */
interface Choice {
  readonly write: number
  readonly read: number
  readonly between: number
}

/**
 * Returns undefined when the events break an axiom. `joiner`: a thread that begins when all others have
 * ended, or -1. A source that is not among the events has not happened yet. `ordered`: pairs that the memory
 * order must contain.
 */
export function validate(
  events: readonly WeakEvent[],
  joiner: number,
  ordered: readonly (readonly [number, number])[] = [],
): Valid | undefined {
  const positions = positionsOf(events)
  const happens = happensBefore(events, positions, joiner)
  if (happens === undefined || !coherent(events, positions, happens) || !tearFree(events, positions))
    return undefined
  const memory = memoryOrder(events, positions, happens, ordered)
  return memory === undefined ? undefined : { happens, memory }
}

export function positionsOf(events: readonly WeakEvent[]): Map<number, number> {
  const positions = new Map<number, number>()
  events.forEach(({ thread, at }, position) => positions.set(keyOf(thread, at), position))
  return positions
}

/** Both events are atomic and have the same range. */
function synchronizes(write: WeakEvent, read: WeakEvent): boolean {
  return write.access.atomic && read.access.atomic && sameRange(write.access, read.access)
}

/** [1] */
export function happensBefore(
  events: readonly WeakEvent[],
  positions: ReadonlyMap<number, number>,
  joiner: number,
): Order | undefined {
  const happens = new Order(events.length)
  for (let b = 0; b < events.length; b++) {
    const event = events[b]
    const before = event.at === 0 ? undefined : positions.get(keyOf(event.thread, event.at - 1))
    if (before !== undefined && !happens.add(before, b)) return undefined
    if (event.thread === joiner && event.at === 0) {
      for (let a = 0; a < events.length; a++) {
        if (events[a].thread !== joiner && !happens.add(a, b)) return undefined
      }
    }
    for (const source of new Set(event.sources)) {
      const a = positions.get(source)
      if (a !== undefined && synchronizes(events[a], event) && !happens.add(a, b)) return undefined
    }
  }
  return happens
}

/** [2] and [3] */
function coherent(
  events: readonly WeakEvent[],
  positions: ReadonlyMap<number, number>,
  happens: Order,
): boolean {
  for (let r = 0; r < events.length; r++) {
    const { sources, access } = events[r]
    if (sources === undefined) continue
    for (let i = 0; i < sources.length; i++) {
      const w = sources[i] === SETUP ? SETUP : positions.get(sources[i])
      if (w === undefined) continue
      if (w !== SETUP && happens.has(r, w)) return false
      for (let v = 0; v < events.length; v++) {
        if (!happens.has(v, r) || events[v].wrote === undefined) continue
        if (covers(events[v].access, access.address + i) && (w === SETUP || happens.has(w, v))) return false
      }
    }
  }
  return true
}

/** [4]; the set-up counts as a write of every range. */
function tearFree(events: readonly WeakEvent[], positions: ReadonlyMap<number, number>): boolean {
  return events.every(({ access, sources }) => {
    if (sources === undefined || !access.whole) return true
    return atMostOne(sources, source => {
      const w = positions.get(source)
      return w !== undefined && events[w].access.whole && sameRange(events[w].access, access)
    })
  })
}

/** Whether at most one of the sources is `alike`; the set-up always is. */
export function atMostOne(sources: readonly number[], alike: (source: number) => boolean): boolean {
  const found = new Set(sources.filter(source => source !== SETUP && alike(source)))
  return found.size === 0 || (found.size === 1 && !sources.includes(SETUP))
}

/** [5] */
function memoryOrder(
  events: readonly WeakEvent[],
  positions: ReadonlyMap<number, number>,
  happens: Order,
  ordered: readonly (readonly [number, number])[],
): Order | undefined {
  const order = happens.copy()
  for (const [first, second] of ordered) if (!order.add(first, second)) return undefined
  const choices: Choice[] = []
  for (let read = 0; read < events.length; read++) {
    for (const source of new Set(events[read].sources)) {
      const write = source === SETUP ? SETUP : positions.get(source)
      if (write === undefined) continue
      for (let between = 0; between < events.length; between++) {
        if (between === write || between === read) continue
        if (isKeptOut(events, happens, write, between, read)) choices.push({ write, read, between })
      }
    }
  }
  return decide(order, choices)
}

function isKeptOut(events: readonly WeakEvent[], happens: Order, w: number, v: number, r: number): boolean {
  const between = events[v]
  const read = events[r]
  if (between.wrote === undefined || !between.access.atomic) return false
  const likeRead = sameRange(between.access, read.access)
  // The set-up happens before all events, so [3] already excludes case (b).
  if (w === SETUP) return read.access.atomic && likeRead
  const write = events[w]
  if (likeRead && synchronizes(write, read)) return true
  if (!happens.has(w, r)) return false
  if (happens.has(v, r) && write.access.atomic && sameRange(write.access, between.access)) return true
  return happens.has(w, v) && read.access.atomic && likeRead
}

/** An order that contains this one and fulfils every choice; undefined when there is none. */
function decide(order: Order, choices: readonly Choice[]): Order | undefined {
  let open = choices
  for (let known = -1; known !== open.length; ) {
    known = open.length
    const left: Choice[] = []
    for (const choice of open) {
      const { write, read, between } = choice
      if (order.has(read, between) || (write !== SETUP && order.has(between, write))) continue
      if (write === SETUP || order.has(write, between)) {
        if (!order.add(read, between)) return undefined
      } else if (order.has(between, read)) {
        if (!order.add(between, write)) return undefined
      } else {
        left.push(choice)
      }
    }
    open = left
  }
  if (open.length === 0) return order
  const [{ write, read, between }, ...rest] = open
  for (const [first, second] of [
    [between, write],
    [read, between],
  ]) {
    const tried = order.copy()
    const decided = tried.add(first, second) ? decide(tried, rest) : undefined
    if (decided !== undefined) return decided
  }
  return undefined
}
