import { Awaits, UNKNOWN, WAITS } from './awaits.ts'
import { WATCHED } from '../machine/eventlog.ts'
import type { Ended, Explorer } from './explorer.ts'
import { HappensBefore } from './happensbefore.ts'
import type { Machine } from '../machine/machine.ts'
import { SPINNING } from '../machine/threadstates.ts'
import { BeginAgain } from '../machine/memory.ts'
import type { Setup } from '../machine/program.ts'
import { WAIT, WAIT_ASYNC } from '../machine/operations.ts'
import { type Asleep, SleepSets } from './sleepsets.ts'
import { GUESS, WakeupTree } from './wakeuptree.ts'

/** The start of one part of a search that is split. */
export interface Root {
  /** The threads of the first events, which this part does not vary. */
  readonly prefix: readonly number[]
  /** The threads asleep after them. */
  readonly asleep: readonly Asleep[]
}

/**
 * Optimal dynamic partial-order reduction (Abdulla, Aronis, Jonsson, Sagonas: source sets and wakeup trees).
 * Executions that differ only in the order of events that do not conflict are one Mazurkiewicz trace; each
 * trace is run once.
 *
 * For every point of the current execution (depth d: before its event d) there are
 *   - a sleep set: threads whose next event from here leads only to traces that have been explored;
 *   - a wakeup tree: sequences of events that must still be tried from here.
 *
 * One execution:
 *   1. replay the events before the branch, then follow the wakeup tree, then any thread that is not asleep
 *   2. when no thread can move, for every race (e, e'): let v be the events after e that do not happen after
 *      e, then e'. Insert v into the wakeup tree before e, unless a thread asleep there could begin v
 *   3. backtrack: the last point with a wakeup tree that is not empty is the next branch
 *
 * v needs the whole execution. If it ended at e', a thread asleep might seem able to begin v when it is not,
 * and traces would be lost.
 */
export class Optimal implements Explorer {
  private readonly machine: Machine
  private readonly setup: Setup
  private happens: HappensBefore | undefined = undefined
  private readonly awaits: Awaits
  private tree = new WakeupTree()
  private readonly sleep: SleepSets
  /** Per depth: the first node of the wakeup tree. */
  private wakeup = new Int32Array(0)
  /** Per depth: the number of children tried, with the current one, for the estimate. */
  private tried = new Int32Array(0)
  private capacity = 0
  private sequence = new Int32Array(256)
  /** The depth at which the next execution differs from the last: -1 before the first one. */
  private branch = -1
  /** The first of the events at the end of an execution that only show which words its threads wait for. */
  private tail = 0
  readonly stepsMax: number
  /** The limit of steps in a row while others can move: a thread may wait without a loop. */
  private readonly inRowMax: number
  /** For a part of a search that is split: its executions begin like this. */
  private readonly root: Root | undefined
  /** An execution was cut at `stepsMax`. */
  truncated: boolean = false
  /** A thread rested: see spinwatch.ts. */
  rested: boolean = false

  /** `awaits`: the knowledge of earlier searches of the same threads. */
  constructor(machine: Machine, setup: Setup, stepsMax: number, root?: Root, awaits: Awaits = new Awaits()) {
    this.root = root
    this.awaits = awaits
    this.machine = machine
    this.sleep = new SleepSets(machine)
    this.setup = setup
    this.stepsMax = stepsMax
    this.inRowMax = Math.max(8, Math.min(500, stepsMax >> 2))
    machine.spin.stopsForGood = true
  }

  common: number = 0

  /** How the last execution ended. */
  ended: Ended = 'complete'

  /** Runs the next execution. Then `hasMore` says whether there is another. */
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
    if (this.branch < 0 && this.root !== undefined) this.runPrefix(this.root, happens)
    this.ended = this.explore(happens)
    if (this.ended === 'again') {
      this.reset()
      return
    }
    this.reverseRaces(happens)
    this.backtrack()
  }

  /** The order of the events of the last execution. */
  get order(): HappensBefore {
    return this.happens as HappensBefore
  }

  get hasMore(): boolean {
    return this.branch >= 0 || this.ended === 'again'
  }

  private begin(): HappensBefore {
    const { machine } = this
    this.happens = new HappensBefore(machine.log, machine.threads)
    this.awaits.watch(machine, this.happens)
    return this.happens
  }

  /** Begins the search again. Only the knowledge about waits is kept. */
  private reset(): void {
    this.branch = -1
    this.happens = undefined
    this.tree = new WakeupTree()
    this.sleep.clear()
    this.wakeup.fill(0)
    this.tried.fill(0)
  }

  /** The fraction of the known search tree that is done: from 0 to 1. */
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
        // A thread is asleep here only where an operation wrote less than was assumed when the sequence was
        // inserted. A thread rests here when it has reached the limit of turns: see spinwatch.ts.
        const unable = this.sleep.asleep[depth] | (machine.spin.any ? this.resting() : 0)
        thread = this.takeWanted(depth, unable | waiting)
        if (thread < 0 && (waiting === 0 || depth === start)) return 'asleep'
      }
      if (thread < 0) {
        const able = machine.enabled & ~waiting
        const choice = able & ~this.sleep.asleep[depth]
        if (choice === 0) {
          this.showWaiting(happens, waiting)
          if (able !== 0) return 'asleep'
          if (machine.enabled === 0) return machine.spin.redundant ? 'redundant' : 'complete'
          // Only resting threads are left, and go on: see spinwatch.ts.
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
        // A sequence that comes from a truncated execution is not always possible.
        if (this.truncated || this.rested) return 'pruned'
        throw new Error(`the explorer chose thread ${thread} at depth ${depth}, and it cannot move`)
      }
      machine.step(thread)
      if (machine.status[thread] === SPINNING && !machine.spin.rests(thread)) {
        const learnt = awaits.learn(depth)
        if (learnt === false) return 'again'
        if (learnt === true) {
          if (!this.removeLast(depth)) return 'pruned'
          if (wanted && depth === start && this.wakeup[depth] === 0) return 'asleep'
          continue
        }
      }
      if (!this.add(happens, depth)) return 'again'
      inRow = thread === previous ? inRow + 1 : 0
      previous = thread
    }
  }

  /** Removes the first thread that can go on from the wakeup tree here; -1 when there is none. */
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

  /** Adds the event `depth`, which was performed. False when it shows that the search must begin again. */
  private add(happens: HappensBefore, depth: number): boolean {
    const { machine, awaits } = this
    const { log } = machine
    if (this.capacity < log.capacity + 1) this.grow(log.capacity + 1)
    if (!awaits.note(depth)) {
      // The other parts of the search did not know this either.
      if (this.root !== undefined)
        throw new BeginAgain(machine.memory.shift, machine.memory.mixed, awaits.unfitCells)
      return false
    }
    happens.add(depth, machine.memory.cells, depth >= this.tail)
    if (awaits.mayWait(depth)) {
      if (depth < this.tail) awaits.wentOn(depth)
      happens.addAwait(depth, awaits, depth >= this.tail)
    }
    this.sleep.inherit(depth, log.thread[depth])
    this.tried[depth + 1] = 0
    if (machine.spin.rested) this.rested = true
    return true
  }

  /**
   * Removes the last event, `depth`, which was a useless turn of a loop, from this execution. False when the
   * events before it cannot be replayed.
   */
  private removeLast(depth: number): boolean {
    const { machine } = this
    const { faults } = machine
    machine.begin(this.setup)
    machine.replay(depth)
    machine.log.length = depth
    machine.faults = faults
    return machine.diverged < 0
  }

  /** At the end of an execution each waiting thread takes its useless turn, which shows its word. */
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

  /** The running thread goes on, up to `inRowMax` steps in a row; then the next thread by number. */
  private nextThread(choice: number, previous: number, inRow: number): number {
    if (((choice >>> previous) & 1) !== 0 && (inRow + 1) % this.inRowMax !== 0) return previous
    const above = choice & (-2 << previous)
    const from = inRow + 1 >= this.inRowMax && above !== 0 ? above : choice
    return 31 - Math.clz32(from & -from)
  }

  private resting(): number {
    const { spin, threads } = this.machine
    let found = 0
    for (let t = 0; t < threads; t++) if (spin.rests(t)) found |= 1 << t
    return found
  }

  /** Runs the prefix of this part of the search. */
  private runPrefix(root: Root, happens: HappensBefore): void {
    const { machine } = this
    for (const thread of root.prefix) {
      machine.step(thread)
      this.add(happens, machine.log.length - 1)
    }
    const depth = machine.log.length
    for (const sleeping of root.asleep) {
      const { thread, from, to, from2, to2, flags } = sleeping
      this.sleep.add(depth, thread, from, to, from2, to2, flags)
    }
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
    let asleep = this.sleep.asleep[earlier]
    let length = 0
    for (let at = earlier + 1, row = at * threads + thread; at < end; at++, row += threads) {
      if (rows[row] >= ordinal) continue
      sequence[length++] = at
      if (asleep === 0) continue
      if (((asleep >>> threadOf[at]) & 1) !== 0) return
      asleep = this.sleep.remaining(asleep, sleepers, at, flagsOf[at])
    }
    const flags = happens.flagsBefore(earlier, later)
    // When the order is reversed, a wait that found another value may join its list, and the reverse.
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
      if (!this.sleep.conflictsWith(sleepers + t, later, flags)) return
    }
    sequence[length] = later
    this.wakeup[earlier] = this.tree.insert(this.wakeup[earlier], log, sequence, length + 1, flags)
  }

  /**
   * In a part of a search threads are asleep from the start, and wakeup trees require that none is. So a part
   * uses source sets: before e it tries one thread that can begin v, unless such a thread is already there.
   * Some executions then end asleep, but no trace is run twice. Here too v needs the whole execution. The
   * later event may touch more when it comes first (a wait that finds its value joins a list), and events
   * that conflict with it then must come before it in v.
   */
  private addSource(happens: HappensBefore, earlier: number, later: number): void {
    const { log } = this.machine
    const { sequence, tree } = this
    let covered = this.sleep.asleep[earlier]
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
    const { log } = this.machine
    const floor = this.root?.prefix.length ?? 0
    let depth = log.length - 1
    // The rest of the wakeup tree after the end is no longer possible.
    this.wakeup[log.length] = 0
    for (; depth >= floor; depth--) {
      const thread = log.thread[depth]
      const { from, to, from2, to2, flags } = log
      this.sleep.add(depth, thread, from[depth], to[depth], from2[depth], to2[depth], flags[depth])
      this.tried[depth]++
      if (this.wakeup[depth] !== 0) break
    }
    this.branch = depth < floor ? -1 : depth
  }

  private grow(capacity: number): void {
    const size = capacity * 2
    for (const name of ['wakeup', 'tried'] as const) {
      const bigger = new Int32Array(size)
      bigger.set(this[name])
      this[name] = bigger
    }
    this.sleep.grow(size)
    this.capacity = size
  }
}
