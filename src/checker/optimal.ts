import { conflict } from './eventlog.ts'
import type { Ended, Explorer } from './explorer.ts'
import { HappensBefore } from './happensbefore.ts'
import type { Machine, Setup } from './machine.ts'
import { WAIT, WAIT_ASYNC } from './operations.ts'
import { WakeupTree } from './wakeuptree.ts'

/**
 * Optimal dynamic partial-order reduction (Abdulla, Aronis, Jonsson, Sagonas: source sets and wakeup trees). Executions that
 * differ only in the order of events that do not conflict are one Mazurkiewicz trace; each is run once.
 *
 * For every point of the current execution (depth d: before its event d) there are
 *   - a sleep set: threads whose next event from here leads only to traces that have been explored;
 *   - a wakeup tree: sequences of events that are still to be tried from here.
 *
 * One execution:
 *   1. replay the events before the branch, then follow the wakeup tree, then any thread that is not asleep
 *   2. when no thread can move, for every race (e, e'): let v be what comes after e and does not happen after it,
 *      then e'. Unless a thread asleep before e could begin v, v goes into the wakeup tree there
 *   3. backtrack: the last point with something left in its wakeup tree is the next branch
 *
 * v needs the whole execution: cut at e', a thread asleep might seem able to begin it that is not, and traces
 * would be lost.
 */
export class Optimal implements Explorer {
  private readonly machine: Machine
  private readonly setup: Setup
  private happens: HappensBefore | undefined = undefined
  private readonly tree = new WakeupTree()
  /** Per depth: the threads asleep, the first node of the wakeup tree, and per thread the footprint of who sleeps. */
  private asleep = new Int32Array(0)
  private wakeup = new Int32Array(0)
  private from = new Int32Array(0)
  private to = new Int32Array(0)
  private from2 = new Int32Array(0)
  private to2 = new Int32Array(0)
  private flags = new Int32Array(0)
  /** Children tried and being tried, per depth: for the estimate. */
  private tried = new Int32Array(0)
  private capacity = 0
  private sequence = new Int32Array(256)
  /** Where the next execution leaves the last: -1 before the first one. */
  private branch = -1
  readonly stepsMax: number
  /** An execution had to be cut at `stepsMax`. */
  truncated: boolean = false

  constructor(machine: Machine, setup: Setup, stepsMax: number) {
    this.machine = machine
    this.setup = setup
    this.stepsMax = stepsMax
    machine.spin.stopsForGood = true
  }

  /** How the last execution ended. */
  ended: Ended = 'complete'

  /** Runs the next execution; `hasMore` says after it whether there is another. */
  execute(): void {
    const { machine } = this
    const { log } = machine
    const branch = Math.max(this.branch, 0)
    machine.begin(this.setup)
    machine.replay(branch)
    const happens = (this.happens ??= new HappensBefore(log, machine.threads))
    happens.shrink(branch)
    if (this.capacity < log.capacity + 1) this.grow(log.capacity + 1)
    if (machine.diverged >= 0) return
    this.ended = this.explore(happens)
    this.reverseRaces(happens)
    this.backtrack()
  }

  /** Whether the search is not over. */
  get hasMore(): boolean {
    return this.branch >= 0
  }

  /** How much of the search tree is done, as far as it is known: from 0 to 1. */
  get fraction(): number {
    let done = 0
    let share = 1
    for (let depth = 0; depth <= this.branch; depth++) {
      let waiting = 0
      for (let node = this.wakeup[depth]; node !== 0; node = this.tree.next[node]) waiting++
      const children = this.tried[depth] + waiting + (depth === this.branch ? 0 : 1)
      done += (share * this.tried[depth]) / children
      share /= children
    }
    return this.branch < 0 ? 1 : Math.min(1, done)
  }

  private explore(happens: HappensBefore): Ended {
    const { machine, tree } = this
    const { log } = machine
    let previous = log.length > 0 ? log.thread[log.length - 1] : 0
    for (;;) {
      const depth = log.length
      let node = this.wakeup[depth]
      let thread: number
      if (node !== 0) {
        // A thread is asleep here only where an operation wrote less than was thought when the sequence was inserted.
        while (node !== 0 && ((this.asleep[depth] >>> tree.thread[node]) & 1) !== 0) node = tree.next[node]
        this.wakeup[depth] = 0
        if (node === 0) return 'asleep'
        thread = tree.thread[node]
        this.wakeup[depth] = tree.next[node]
        this.wakeup[depth + 1] = tree.child[node]
        tree.drop(node)
      } else {
        if (machine.enabled === 0) return machine.spin.redundant ? 'redundant' : 'complete'
        const choice = machine.enabled & ~this.asleep[depth]
        if (choice === 0) return 'asleep'
        if (depth >= this.stepsMax) {
          this.truncated = true
          return 'truncated'
        }
        thread = ((choice >>> previous) & 1) !== 0 ? previous : 31 - Math.clz32(choice & -choice)
        this.wakeup[depth + 1] = 0
      }
      if (((machine.enabled >>> thread) & 1) === 0) {
        throw new Error(`the explorer chose thread ${thread} at depth ${depth}, and it cannot move`)
      }
      machine.step(thread)
      if (this.capacity < log.capacity + 1) this.grow(log.capacity + 1)
      happens.add(depth, machine.memory.cells)
      this.inheritSleep(depth, thread)
      this.tried[depth + 1] = 0
      previous = thread
    }
  }

  /** Who is asleep before an event stays asleep after it unless the two are in conflict. */
  private inheritSleep(depth: number, thread: number): void {
    const { log, threads } = this.machine
    let still = 0
    for (let rest = this.asleep[depth] & ~(1 << thread); rest !== 0; rest &= rest - 1) {
      const t = 31 - Math.clz32(rest & -rest)
      const at = depth * threads + t
      if (this.conflictsWith(at, depth, log.flags[depth])) continue
      still |= 1 << t
      const below = at + threads
      this.from[below] = this.from[at]
      this.to[below] = this.to[at]
      this.from2[below] = this.from2[at]
      this.to2[below] = this.to2[at]
      this.flags[below] = this.flags[at]
    }
    this.asleep[depth + 1] = still
  }

  private conflictsWith(sleeping: number, event: number, flags: number): boolean {
    const { log } = this.machine
    return conflict(
      this.from[sleeping],
      this.to[sleeping],
      this.from2[sleeping],
      this.to2[sleeping],
      this.flags[sleeping],
      log.from[event],
      log.to[event],
      log.from2[event],
      log.to2[event],
      flags,
    )
  }

  private reverseRaces(happens: HappensBefore): void {
    const { log } = this.machine
    const { raceStart, raceWith } = happens
    if (this.sequence.length < log.length + 1) this.sequence = new Int32Array(log.capacity + 1)
    for (let later = 1; later < log.length; later++) {
      for (let race = raceStart[later]; race < raceStart[later + 1]; race++) {
        this.reverse(happens, raceWith[race], later)
      }
    }
  }

  private reverse(happens: HappensBefore, earlier: number, later: number): void {
    const { log, threads } = this.machine
    const { rows } = happens
    const { sequence } = this
    const end = log.length
    const thread = log.thread[earlier]
    const ordinal = log.ordinal[earlier]
    const sleepers = earlier * threads
    let asleep = this.asleep[earlier]
    let length = 0
    for (let at = earlier + 1; at < end; at++) {
      if (rows[at * threads + thread] >= ordinal) continue
      sequence[length++] = at
      if (asleep === 0) continue
      if (((asleep >>> log.thread[at]) & 1) !== 0) return
      for (let rest = asleep; rest !== 0; rest &= rest - 1) {
        const t = 31 - Math.clz32(rest & -rest)
        if (this.conflictsWith(sleepers + t, at, log.flags[at])) asleep &= ~(1 << t)
      }
    }
    const flags = happens.flagsBefore(earlier, later)
    // A wait that found another value joins its list when it comes first, and the other way round.
    const to2 = log.to2[later]
    const kind = log.kind[later]
    if (kind === WAIT || kind === WAIT_ASYNC) log.to2[later] = flags === 0 ? 0 : log.from2[later] + 1
    this.insertReversal(sleepers, asleep, earlier, later, length, flags)
    log.to2[later] = to2
  }

  private insertReversal(
    sleepers: number,
    asleep: number,
    earlier: number,
    later: number,
    length: number,
    flags: number,
  ): void {
    const { log } = this.machine
    const { sequence } = this
    if (((asleep >>> log.thread[later]) & 1) !== 0) return
    for (let rest = asleep; rest !== 0; rest &= rest - 1) {
      const t = 31 - Math.clz32(rest & -rest)
      if (!this.conflictsWith(sleepers + t, later, flags)) return
    }
    sequence[length] = later
    this.wakeup[earlier] = this.tree.insert(this.wakeup[earlier], log, sequence, length + 1, flags)
  }

  private backtrack(): void {
    const { log, threads } = this.machine
    let depth = log.length - 1
    // What the tree wanted to see after the end can no longer come about.
    this.wakeup[log.length] = 0
    for (; depth >= 0; depth--) {
      const thread = log.thread[depth]
      const at = depth * threads + thread
      this.asleep[depth] |= 1 << thread
      this.from[at] = log.from[depth]
      this.to[at] = log.to[depth]
      this.from2[at] = log.from2[depth]
      this.to2[at] = log.to2[depth]
      this.flags[at] = log.flags[depth]
      this.tried[depth]++
      if (this.wakeup[depth] !== 0) break
    }
    this.branch = depth
  }

  private grow(capacity: number): void {
    const size = capacity * 2
    const { threads } = this.machine
    for (const name of ['asleep', 'wakeup', 'tried'] as const) {
      const bigger = new Int32Array(size)
      bigger.set(this[name])
      this[name] = bigger
    }
    for (const name of ['from', 'to', 'from2', 'to2', 'flags'] as const) {
      const bigger = new Int32Array(size * threads)
      bigger.set(this[name])
      this[name] = bigger
    }
    this.capacity = size
  }
}
