import { conflict, type EventLog, WRITES, WRITES_WATCHED } from '../machine/eventlog.ts'

/** Flag of the last node of a sequence: it is not known whether its thread waits there, see awaits.ts. */
export const GUESS: number = 1 << 20

/**
 * The wakeup trees of the optimal search: for a point of the current execution, an ordered tree of the
 * sequences of events that must still be tried from there. A node is a future event: its thread and its
 * footprint.
 *
 * All nodes of all trees are in one pool. A list of siblings is its first node, 0 when empty.
 */
export class WakeupTree {
  thread: Int32Array = new Int32Array(256)
  private from = new Int32Array(256)
  private to = new Int32Array(256)
  private from2 = new Int32Array(256)
  private to2 = new Int32Array(256)
  private flags = new Int32Array(256)
  child: Int32Array = new Int32Array(256)
  next: Int32Array = new Int32Array(256)
  private free = 0
  private used = 1
  private sequence = new Int32Array(256)

  /**
   * Inserts the events `sequence[0 .. length)` of the log, the last with the flags `lastFlags`, into the list
   * of siblings that starts at `first`. Returns the first node of the list. Does nothing when the list
   * already has a sequence that leads to all states that the new one reaches.
   */
  insert(first: number, log: EventLog, events: Int32Array, length: number, lastFlags: number): number {
    if (this.sequence.length < length) this.sequence = new Int32Array(length * 2)
    const { sequence } = this
    for (let i = 0; i < length; i++) sequence[i] = events[i]
    const last = events[length - 1]
    let rest = length
    let parent = 0
    let siblings = first
    for (;;) {
      let found = 0
      let tail = 0
      for (let node = siblings; node !== 0; node = this.next[node]) {
        tail = node
        const at = this.weakInitial(node, log, rest, last, lastFlags)
        if (at < 0) continue
        found = node
        if (at < rest) {
          for (let i = at; i < rest - 1; i++) sequence[i] = sequence[i + 1]
          rest--
        }
        break
      }
      if (found === 0) {
        const chain = this.chain(log, rest, last, lastFlags)
        if (tail !== 0) this.next[tail] = chain
        else if (parent !== 0) this.child[parent] = chain
        return first === 0 ? chain : first
      }
      if (this.child[found] === 0 || rest === 0) return first
      parent = found
      siblings = this.child[found]
    }
  }

  /** Adds one event, `events[0]`, as the last of the siblings. Returns the first node of the list. */
  append(first: number, log: EventLog, events: Int32Array): number {
    this.sequence[0] = events[0]
    const node = this.chain(log, 1, -1, 0)
    if (first === 0) return node
    let tail = first
    while (this.next[tail] !== 0) tail = this.next[tail]
    this.next[tail] = node
    return first
  }

  /**
   * Whether the node's event can come first in the rest of the sequence: -1 when it cannot; else its
   * position, or the length of the rest when the event is not in the rest and conflicts with nothing in it.
   */
  private weakInitial(node: number, log: EventLog, rest: number, last: number, lastFlags: number): number {
    const { sequence } = this
    const { thread: threads, from: froms, to: tos, to2: tos2, flags: flagsOf } = log
    const thread = this.thread[node]
    const from = this.from[node]
    const to = this.to[node]
    const flags = this.flags[node]
    const single = this.to2[node] === 0
    for (let i = 0; i < rest; i++) {
      const event = sequence[i]
      if (threads[event] === thread) return i
      const eventFlags = event === last ? lastFlags : flagsOf[event]
      // Nearly all footprints have one range.
      if (single && tos2[event] === 0) {
        if (from < tos[event] && froms[event] < to && ((flags | eventFlags) & WRITES) !== 0) return -1
        if ((flags & eventFlags & WRITES_WATCHED) === WRITES_WATCHED) return -1
      } else if (this.conflictsWith(node, log, event, eventFlags)) {
        return -1
      }
    }
    // Events after a guess may never be tried.
    return (flags & GUESS) !== 0 ? -1 : rest
  }

  private conflictsWith(node: number, log: EventLog, event: number, flags: number): boolean {
    return conflict(
      this.from[node],
      this.to[node],
      this.from2[node],
      this.to2[node],
      this.flags[node],
      log.from[event],
      log.to[event],
      log.from2[event],
      log.to2[event],
      flags,
    )
  }

  private chain(log: EventLog, rest: number, last: number, lastFlags: number): number {
    let below = 0
    for (let i = rest - 1; i >= 0; i--) {
      const event = this.sequence[i]
      const node = this.take()
      this.thread[node] = log.thread[event]
      this.from[node] = log.from[event]
      this.to[node] = log.to[event]
      this.from2[node] = log.from2[event]
      this.to2[node] = log.to2[event]
      this.flags[node] = event === last ? lastFlags : log.flags[event]
      this.child[node] = below
      this.next[node] = 0
      below = node
    }
    return below
  }

  /** Frees a node. Its children and siblings belong to the caller. */
  drop(node: number): void {
    this.next[node] = this.free
    this.free = node
  }

  private take(): number {
    if (this.free !== 0) {
      const node = this.free
      this.free = this.next[node]
      return node
    }
    if (this.used === this.thread.length) {
      for (const name of ['thread', 'from', 'to', 'from2', 'to2', 'flags', 'child', 'next'] as const) {
        const bigger = new Int32Array(this.used * 2)
        bigger.set(this[name])
        this[name] = bigger
      }
    }
    return this.used++
  }
}
