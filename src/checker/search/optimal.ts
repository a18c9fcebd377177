import { Awaits, UNKNOWN, WAITS } from './awaits.ts'
import { conflict, WATCHED, WRITES, WRITES_WATCHED } from '../machine/eventlog.ts'
import type { Ended, Explorer } from './explorer.ts'
import { HappensBefore } from './happensbefore.ts'
import type { Machine } from '../machine/machine.ts'
import { SPINNING } from '../machine/threadstates.ts'
import { BeginAgain } from '../machine/memory.ts'
import type { Setup } from '../machine/program.ts'
import { WAIT, WAIT_ASYNC } from '../machine/operations.ts'
import { GUESS, WakeupTree } from './wakeuptree.ts'

/**
 * Optimal dynamic partial-order reduction (Abdulla, Aronis, Jonsson, Sagonas: source sets and wakeup trees).
 * Executions that differ only in the order of events that do not conflict are one Mazurkiewicz trace; each is
 * run once.
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
export interface Root {
  /** The threads of the first events: nothing before is tried another way. */
  readonly prefix: readonly number[]
  /** Who is asleep after them, with footprints. */
  readonly asleep: readonly Asleep[]
}

export interface Asleep {
  readonly thread: number
  readonly from: number
  readonly to: number
  readonly from2: number
  readonly to2: number
  readonly flags: number
}

export class Optimal implements Explorer {
  private readonly machine: Machine
  private readonly setup: Setup
  private happens: HappensBefore | undefined = undefined
  private readonly awaits: Awaits
  private tree = new WakeupTree()
  /**
   * Per depth: the threads asleep, the first node of the wakeup tree, and per thread the footprint of who
   * sleeps.
   */
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
  /**
   * The first event of those that stand at the end of an execution only to show for what its threads wait.
   */
  private tail = 0
  readonly stepsMax: number
  /**
   * Steps of one thread, while others could move: a thread that waits for another without a loop must let it
   * come.
   */
  private readonly inRowMax: number
  /** A part of a search that is shared out: only what begins like this. */
  private readonly root: Root | undefined
  /** An execution had to be cut at `stepsMax`. */
  truncated: boolean = false
  /** A thread had to rest: see spinwatch.ts. */
  rested: boolean = false

  /** `awaits`: what searches of the same threads before this one have found out. */
  constructor(machine: Machine, setup: Setup, stepsMax: number, root?: Root, awaits: Awaits = new Awaits()) {
    this.root = root
    this.awaits = awaits
    this.machine = machine
    this.setup = setup
    this.stepsMax = stepsMax
    this.inRowMax = Math.max(8, Math.min(500, stepsMax >> 2))
    machine.spin.stopsForGood = true
  }

  common: number = 0

  /** How the last execution ended. */
  ended: Ended = 'complete'

  /** Runs the next execution; `hasMore` says after it whether there is another. */
  execute(): void {
    const { machine } = this
    const { log } = machine
    const branch = Math.max(this.branch, 0)
    this.common = branch
    this.tail = Number.POSITIVE_INFINITY
    machine.begin(this.setup)
    if (this.branch >= 0 || this.root === undefined) machine.replay(branch)
    const happens = this.happens ?? this.begin()
    happens.shrink(branch)
    if (this.capacity < log.capacity + 1) this.grow(log.capacity + 1)
    if (machine.diverged >= 0) return
    if (this.branch < 0 && this.root !== undefined) this.descend(this.root, happens)
    this.ended = this.explore(happens)
    if (this.ended === 'again') {
      this.forget()
      return
    }
    this.reverseRaces(happens)
    this.backtrack()
  }

  /** Whether the search is not over. */
  get hasMore(): boolean {
    return this.branch >= 0 || this.ended === 'again'
  }

  private begin(): HappensBefore {
    const { machine } = this
    this.happens = new HappensBefore(machine.log, machine.threads)
    this.awaits.watch(machine, this.happens)
    return this.happens
  }

  /** The search begins again, with what it knows about waits and nothing else. */
  private forget(): void {
    this.branch = -1
    this.happens = undefined
    this.tree = new WakeupTree()
    this.asleep.fill(0)
    this.wakeup.fill(0)
    this.tried.fill(0)
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
    const { machine, awaits } = this
    const { log } = machine
    const start = log.length
    let previous = start > 0 ? log.thread[start - 1] : 0
    let inRow = 0
    for (;;) {
      const depth = log.length
      const waiting = awaits.waiting(machine.enabled)
      let thread = -1
      const wanted = this.wakeup[depth] !== 0
      if (wanted) {
        // A thread is asleep here only where an operation wrote less than was thought when the sequence was
        // inserted. One is at rest where it has taken more turns of a loop than it may: see spinwatch.ts.
        const unable = this.asleep[depth] | (machine.spin.any ? this.resting() : 0)
        thread = this.takeWanted(depth, unable | waiting)
        if (thread < 0 && (waiting === 0 || depth === start)) return 'asleep'
      }
      if (thread < 0) {
        const able = machine.enabled & ~waiting
        const choice = able & ~this.asleep[depth]
        if (choice === 0) {
          this.showWaiting(happens, waiting)
          if (able !== 0) return 'asleep'
          if (machine.enabled === 0) return machine.spin.redundant ? 'redundant' : 'complete'
          // A thread at rest goes on after all: see spinwatch.ts.
          this.tail = Number.POSITIVE_INFINITY
          continue
        }
        if (depth >= this.stepsMax) {
          this.truncated = true
          return 'truncated'
        }
        thread = this.nextThread(choice, previous, inRow)
        this.wakeup[depth + 1] = 0
      }
      if (((machine.enabled >>> thread) & 1) === 0) {
        // A sequence that comes from an execution which was cut need not be one that can be run.
        if (this.truncated || this.rested) return 'pruned'
        throw new Error(`the explorer chose thread ${thread} at depth ${depth}, and it cannot move`)
      }
      machine.step(thread)
      if (machine.status[thread] === SPINNING && !machine.spin.rests(thread)) {
        const learnt = awaits.learn(depth)
        if (learnt === false) return 'again'
        if (learnt === true) {
          if (!this.takeBack(depth)) return 'pruned'
          if (wanted && depth === start && this.wakeup[depth] === 0) return 'asleep'
          continue
        }
      }
      if (!this.add(happens, depth)) return 'again'
      inRow = thread === previous ? inRow + 1 : 0
      previous = thread
    }
  }

  /** The first thread that the wakeup tree wants here and that can go on; -1 when there is none. */
  private takeWanted(depth: number, unable: number): number {
    const { tree } = this
    let node = this.wakeup[depth]
    while (node !== 0 && ((unable >>> tree.thread[node]) & 1) !== 0) node = tree.next[node]
    this.wakeup[depth] = 0
    this.wakeup[depth + 1] = 0
    if (node === 0) return -1
    const thread = tree.thread[node]
    this.wakeup[depth] = tree.next[node]
    this.wakeup[depth + 1] = tree.child[node]
    tree.drop(node)
    return thread
  }

  /** The event `depth` has been performed. False when it shows that the search must begin again. */
  private add(happens: HappensBefore, depth: number): boolean {
    const { machine, awaits } = this
    const { log } = machine
    if (this.capacity < log.capacity + 1) this.grow(log.capacity + 1)
    if (!awaits.note(depth)) {
      // The other parts of the search were made without that too.
      if (this.root !== undefined)
        throw new BeginAgain(machine.memory.shift, machine.memory.mixed, awaits.unfitCells)
      return false
    }
    happens.add(depth, machine.memory.cells, depth >= this.tail)
    if (awaits.mayWait(depth)) {
      if (depth < this.tail) awaits.wentOn(depth)
      happens.addAwait(depth, awaits, depth >= this.tail)
    }
    this.inheritSleep(depth, log.thread[depth])
    this.tried[depth + 1] = 0
    if (machine.spin.rested) this.rested = true
    return true
  }

  /**
   * The event `depth`, the last, was a useless turn of a loop, and is not one of this execution. False when
   * it cannot be run again.
   */
  private takeBack(depth: number): boolean {
    const { machine } = this
    const { faults } = machine
    machine.begin(this.setup)
    machine.replay(depth)
    machine.log.length = depth
    machine.faults = faults
    return machine.diverged < 0
  }

  /** The execution ends, and some threads wait. Each takes its useless turn, so that one sees for what. */
  private showWaiting(happens: HappensBefore, waiting: number): void {
    const { machine } = this
    this.tail = Math.min(this.tail, machine.log.length)
    for (let rest = waiting; rest !== 0; rest &= rest - 1) {
      const depth = machine.log.length
      this.wakeup[depth] = 0
      machine.step(31 - Math.clz32(rest & -rest))
      this.add(happens, depth)
      this.wakeup[depth + 1] = 0
    }
  }

  /** The thread that runs goes on, unless it has had many steps in a row: then whoever comes next. */
  private nextThread(choice: number, previous: number, inRow: number): number {
    if (((choice >>> previous) & 1) !== 0 && (inRow + 1) % this.inRowMax !== 0) return previous
    const above = choice & (-2 << previous)
    const from = inRow + 1 >= this.inRowMax && above !== 0 ? above : choice
    return 31 - Math.clz32(from & -from)
  }

  /** The threads at rest. */
  private resting(): number {
    const { spin, threads } = this.machine
    let found = 0
    for (let t = 0; t < threads; t++) if (spin.rests(t)) found |= 1 << t
    return found
  }

  /** Goes to where this part of the search begins. */
  private descend(root: Root, happens: HappensBefore): void {
    const { machine } = this
    for (const thread of root.prefix) {
      machine.step(thread)
      this.add(happens, machine.log.length - 1)
    }
    const depth = machine.log.length
    for (const sleeping of root.asleep) {
      const at = depth * machine.threads + sleeping.thread
      this.asleep[depth] |= 1 << sleeping.thread
      this.from[at] = sleeping.from
      this.to[at] = sleeping.to
      this.from2[at] = sleeping.from2
      this.to2[at] = sleeping.to2
      this.flags[at] = sleeping.flags
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

  /**
   * Those of a set of sleepers, whose footprints start at `sleepers`, that are not in conflict with an event.
   */
  private stillAsleep(asleep: number, sleepers: number, event: number, flags: number): number {
    const { log } = this.machine
    const { from, to, to2 } = this
    const eventFrom = log.from[event]
    const eventTo = log.to[event]
    const single = log.to2[event] === 0
    let still = asleep
    for (let rest = asleep; rest !== 0; rest &= rest - 1) {
      const t = 31 - Math.clz32(rest & -rest)
      const at = sleepers + t
      // Nearly all footprints are one range each.
      if (single && to2[at] === 0) {
        const apart = from[at] >= eventTo || eventFrom >= to[at]
        if (apart || ((this.flags[at] | flags) & WRITES) === 0) {
          if ((this.flags[at] & flags & WRITES_WATCHED) !== WRITES_WATCHED) continue
        }
      } else if (!this.conflictsWith(at, event, flags)) {
        continue
      }
      still &= ~(1 << t)
    }
    return still
  }

  private reverseRaces(happens: HappensBefore): void {
    const { log } = this.machine
    const { raceStart, raceWith } = happens
    if (this.sequence.length < log.length + 1) this.sequence = new Int32Array(log.capacity + 1)
    for (let later = 1; later < log.length; later++) {
      for (let race = raceStart[later]; race < raceStart[later + 1]; race++) {
        const known = this.awaits.before(raceWith[race], later)
        if (known !== WAITS) this.reverse(happens, raceWith[race], later, known)
      }
    }
  }

  /** `known`: whether the later event is known to go on when it comes before the earlier one. */
  private reverse(happens: HappensBefore, earlier: number, later: number, known: number): void {
    const { log, threads } = this.machine
    if (this.root !== undefined) {
      if (earlier >= this.root.prefix.length) this.addSource(happens, earlier, later)
      return
    }
    const { rows } = happens
    const { sequence } = this
    const end = Math.min(log.length, this.tail)
    if (earlier >= end) return
    const thread = log.thread[earlier]
    const ordinal = log.ordinal[earlier]
    const sleepers = earlier * threads
    const { thread: threadOf, flags: flagsOf } = log
    let asleep = this.asleep[earlier]
    let length = 0
    for (let at = earlier + 1, row = at * threads + thread; at < end; at++, row += threads) {
      if (rows[row] >= ordinal) continue
      sequence[length++] = at
      if (asleep === 0) continue
      if (((asleep >>> threadOf[at]) & 1) !== 0) return
      asleep = this.stillAsleep(asleep, sleepers, at, flagsOf[at])
    }
    const flags = happens.flagsBefore(earlier, later)
    // A wait that found another value joins its list when it comes first, and the other way round.
    const to2 = log.to2[later]
    const kind = log.kind[later]
    if (kind === WAIT || kind === WAIT_ASYNC)
      log.to2[later] = (flags & ~WATCHED) === 0 ? 0 : log.from2[later] + 1
    this.insertReversal(sleepers, asleep, earlier, later, length, known === UNKNOWN ? flags | GUESS : flags)
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

  /**
   * In a part of a search threads are asleep from the beginning, and wakeup trees need that nobody is. Source
   * sets do not: one thread that can begin v is tried before e, if none is yet. Some executions then end
   * asleep; none is run twice. v is made of the whole execution here too: the later event may touch more when
   * it comes first (a wait that finds its value joins a list), and what it would then conflict with has to
   * come before it in v.
   */
  private addSource(happens: HappensBefore, earlier: number, later: number): void {
    const { log } = this.machine
    const { sequence, tree } = this
    let covered = this.asleep[earlier]
    for (let node = this.wakeup[earlier]; node !== 0; node = tree.next[node])
      covered |= 1 << tree.thread[node]
    let length = 0
    let first = -1
    let seen = 0
    const end = Math.min(log.length, this.tail)
    if (earlier >= end) return
    for (let at = earlier + 1; at < end; at++) {
      if (happens.before(earlier, at)) continue
      let initial = ((seen >>> log.thread[at]) & 1) === 0
      for (let i = 0; i < length && initial; i++) initial = !happens.before(sequence[i], at)
      sequence[length++] = at
      seen |= 1 << log.thread[at]
      if (!initial) continue
      if (((covered >>> log.thread[at]) & 1) !== 0) return
      if (first < 0) first = at
    }
    if (first < 0) {
      if (((covered >>> log.thread[later]) & 1) !== 0) return
      first = later
    }
    sequence[0] = first
    this.wakeup[earlier] = tree.append(this.wakeup[earlier], log, sequence)
  }

  private backtrack(): void {
    const { log, threads } = this.machine
    const floor = this.root?.prefix.length ?? 0
    let depth = log.length - 1
    // What the tree wanted to see after the end can no longer come about.
    this.wakeup[log.length] = 0
    for (; depth >= floor; depth--) {
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
    this.branch = depth < floor ? -1 : depth
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
