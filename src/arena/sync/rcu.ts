import type { ArenaPlan, Region } from '../memory/arena.ts'
import { assert } from '../assert.ts'
import { type Layout, LINE_WORDS, record, word } from '../memory/record.ts'
import { type KernelThread, THREAD_MAX } from './thread.ts'

/**
 * Read-copy-update: memory that a CPU may still refer to is freed only after every CPU has been seen
 * where it holds no such reference: at a switch, in its idle loop, offline. Readers pay nothing: a CPU reads
 * between two quiescent states, and has none in between.
 *
 * `period` counts requests. Each CPU, at a quiescent state, copies it to its own word. A callback queued
 * under number n may run when every CPU's word is at n or later:
 *
 *   writer                                 reader
 *   ------                                 ------
 *                                          (A) quiescent: seen = period
 *   (B) unlinks the object
 *   (C) n = ++period
 *                                          reads a pointer: before (B) it may get the object
 *                                          (D) quiescent: seen = period, now n or later
 *   (E) sees `seen` at n or later everywhere: no reader can hold the object
 *
 * A reader that starts after (D) started after (B). One that started before (C) has `seen` below n until (D).
 *
 * The word of a CPU, by state:
 *   [1] a period number   online: its last quiescent state
 *   [2] IDLE              halted, in a long sleep, or not a CPU at all: holds no reference, is skipped
 *   [3] OFFLINE           gone: is skipped
 * A CPU that leaves [2] stores a period number before it reads anything shared; a writer that saw [2] before
 * that store has unlinked before those reads.
 *
 * A CPU that is stuck delays callbacks and never breaks them: nothing here has a timeout.
 *
 * When a thread dies, the lists are whole (HEAD and `next` are the truth), but a node may be off its list:
 * about to be queued, or taken off and in the middle of its callback. So each node names the thread that is
 * responsible for it, from before it is unlinked until it is freed. The layer that owns such objects finds
 * those of the dead thread that are on no list (`leftBy`), and frees them.
 *
 * A thread that adopts the callbacks of one that is gone, A of G:
 *
 *   (F) puts its name on the nodes          dead here: they have A's name, and are on G's list alone
 *   (G) links them behind its own           dead here: they are on both lists
 *   (H) ends the other list                 dead inside: G's HEAD is 0, its TAIL is not
 *
 * `endAdoption` tells the cases apart. Nodes on both lists are A's, and G's list ends; otherwise the nodes of
 * G's list are G's again, and get its name. With A's name, recovery would take them for nodes on no list, and
 * free them while G's list leads to them. With the old TAIL, G's next callback would be linked behind a node
 * of A's.
 */

/**
 * Embedded in an object that is freed through `callRcu`. `callback`: the number of the callback, and from bit
 * 16 on the thread that is responsible for the node, plus 1.
 */
export const RcuNode: Layout<'next' | 'period' | 'callback'> = record('rcu node', {
  next: word,
  period: word,
  callback: word,
})

const PERIOD = 0
/**
 * The ids that have ever taken part, and a count of those changes: most ids never take part, and their words
 * are not read.
 */
const JOINS = 1
const JOINED = 2
const FIRST_CPU = LINE_WORDS
const SEEN = 0
const HEAD = 1
const TAIL = 2
const QUEUED = 3

const TAG_SHIFT = 16
const CALLBACK = 0xffff

/** Even: never equal to a period number, which moves in steps of two from 1. */
const OFFLINE = 0
const IDLE = 2
const FIRST_PERIOD = 1

/** Frees an object. Registered under the same number on every thread; runs outside the switch path. */
export type RcuCallback = (thread: KernelThread, node: number) => void

export class Rcu {
  private readonly start: number
  private readonly threads: number
  private readonly callbacks: RcuCallback[] = []
  /**
   * Every period up to this one has passed, as of this thread's last reading of all words. Numbers wrap, so
   * it is forgotten while the thread has no callback: a billion periods may come before the next one.
   */
  private passed = FIRST_PERIOD
  private knowsPassed = false
  /** What this thread's word holds while it is online. */
  private seen = OFFLINE
  private hasJoined = false
  /** The words of the ids that take part, as of `joins`. */
  private readonly words: number[] = []
  private joins = 0

  /** `threads`: how many ids take part; every CPU, and the plain threads that read. */
  constructor(region: Region, threads: number) {
    assert(threads >= 1 && threads <= THREAD_MAX, 'RCU serves as many threads as there are thread ids')
    this.start = region.start
    this.threads = threads
  }

  static reserve(plan: ArenaPlan, threads: number): Region {
    return plan.reserve('rcu', FIRST_CPU + threads * LINE_WORDS)
  }

  /** Once, by the thread that made the arena. All CPUs are offline. */
  initialize(i32: Int32Array): void {
    Atomics.store(i32, this.start + PERIOD, FIRST_PERIOD)
  }

  /** Registers a callback under a number, the same on every thread, because another may have to run it. */
  register(callback: RcuCallback, number: number = this.callbacks.length): number {
    assert(this.callbacks[number] === undefined, 'an RCU callback number is used once')
    this.callbacks[number] = callback
    return number
  }

  /** The CPU takes part from here on. Before it reads anything that is freed through RCU. */
  online(thread: KernelThread): void {
    assert(thread.id < this.threads, 'this thread id has no place in RCU')
    this.quiesce(thread)
  }

  /**
   * The CPU holds no reference any more, and will not read until it is online again. Its callbacks wait or
   * are adopted.
   */
  offline(i32: Int32Array, cpu: number): void {
    Atomics.store(i32, this.wordOf(cpu) + SEEN, OFFLINE)
  }

  /** Whether the CPU is offline: its callbacks can be adopted. */
  isOffline(i32: Int32Array, cpu: number): boolean {
    return Atomics.load(i32, this.wordOf(cpu) + SEEN) === OFFLINE
  }

  /** Around a halt: an idle CPU never delays a grace period. */
  idleEnter(thread: KernelThread): void {
    Atomics.store(thread.i32, this.wordOf(thread.id) + SEEN, IDLE)
  }

  idleExit(thread: KernelThread): void {
    this.quiesce(thread)
  }

  /** A quiescent state, at each switch. While no new period has been requested it is one load. */
  quiescent(thread: KernelThread): void {
    if (Atomics.load(thread.i32, this.start + PERIOD) !== this.seen) this.quiesce(thread)
  }

  /**
   * The same for a path that calls it many million times a second: a plain read, because an atomic one costs
   * as much as the rest of such a switch. A stale value only means that a later switch sees the new period.
   */
  quiescentOften(thread: KernelThread): void {
    if (thread.i32[this.start + PERIOD] !== this.seen) this.quiescent(thread)
  }

  private quiesce(thread: KernelThread): void {
    const i32 = thread.i32
    if (!this.hasJoined) this.join(thread)
    this.seen = Atomics.load(i32, this.start + PERIOD)
    Atomics.store(i32, this.wordOf(thread.id) + SEEN, this.seen) // (A), (D)
  }

  /**
   * Before its word is stored: a writer that has not seen it join read the words before it reads anything.
   */
  private join(thread: KernelThread): void {
    const { i32, id } = thread
    this.hasJoined = true
    Atomics.or(i32, this.start + JOINED + (id >>> 5), 1 << (id & 31))
    // Always: the thread that had this id before may have died in between.
    Atomics.add(i32, this.start + JOINS, 1)
  }

  private lookForJoined(i32: Int32Array, joins: number): void {
    this.joins = joins
    this.words.length = 0
    for (let id = 0; id < this.threads; id++) {
      const bits = Atomics.load(i32, this.start + JOINED + (id >>> 5))
      if ((bits & (1 << (id & 31))) !== 0) this.words.push(this.wordOf(id))
    }
  }

  /** Opens a new grace period and returns its number: done when `hasPassed` says so. */
  requestPeriod(i32: Int32Array): number {
    return (Atomics.add(i32, this.start + PERIOD, 2) + 2) | 0 // (C)
  }

  /** Whether every CPU has been quiescent since the period was opened. */
  hasPassed(i32: Int32Array, period: number): boolean {
    if (this.knowsPassed && ((this.passed - period) | 0) >= 0) return true
    // The latest period before the words are read: a period that opens during the reading is not covered.
    const latest = Atomics.load(i32, this.start + PERIOD)
    let least = latest
    const { words } = this
    const joins = Atomics.load(i32, this.start + JOINS)
    if (joins !== this.joins) this.lookForJoined(i32, joins)
    for (let index = 0; index < words.length; index++) {
      const seen = Atomics.load(i32, words[index] + SEEN)
      if (seen !== OFFLINE && seen !== IDLE && ((seen - least) | 0) < 0) least = seen // (E)
    }
    if (this.passed !== least) this.passed = least
    if (!this.knowsPassed) this.knowsPassed = true
    // As distances from the latest period: a callback may be more than half of all numbers old.
    return (latest - least) >>> 0 <= (latest - period) >>> 0
  }

  /**
   * Queues the object for freeing on this CPU: `callbacks[callback](thread, node)` runs on this CPU, from
   * `runCallbacks`, after a grace period. The object must be unlinked already. Never blocks, and never runs
   * the callback itself.
   */
  callRcu(thread: KernelThread, node: number, callback: number): void {
    assert(
      callback >= 0 && callback < this.callbacks.length,
      'an RCU callback is registered before it is used',
    )
    const i32 = thread.i32
    const at = this.wordOf(thread.id)
    i32[node + RcuNode.next] = 0
    putName(i32, node, callback, thread.ownerTag)
    i32[node + RcuNode.period] = this.requestPeriod(i32)
    const tail = i32[at + TAIL]
    if (tail === 0) {
      this.knowsPassed = false
      i32[at + HEAD] = node
    } else i32[tail + RcuNode.next] = node
    i32[at + TAIL] = node
    Atomics.store(i32, at + QUEUED, i32[at + QUEUED] + 1)
  }

  /**
   * Runs this CPU's callbacks whose grace period has passed, oldest first, at most `limit`. Returns how many
   * ran.
   */
  runCallbacks(thread: KernelThread, limit = 64): number {
    const i32 = thread.i32
    const at = this.wordOf(thread.id)
    let ran = 0
    while (ran < limit) {
      const node = i32[at + HEAD]
      if (node === 0 || !this.hasPassed(i32, i32[node + RcuNode.period])) break
      const next = i32[node + RcuNode.next]
      this.see(thread, node)
      i32[at + HEAD] = next
      if (next === 0) i32[at + TAIL] = 0
      ran++
      this.callbacks[i32[node + RcuNode.callback] & CALLBACK](thread, node)
    }
    if (ran !== 0) Atomics.store(i32, at + QUEUED, i32[at + QUEUED] - ran)
    return ran
  }

  /**
   * This thread is responsible for the node from here on. Called before it unlinks an object that it will
   * pass to callRcu, or before it frees it.
   */
  see(thread: KernelThread, node: number): void {
    putName(thread.i32, node, thread.i32[node + RcuNode.callback] & CALLBACK, thread.ownerTag)
  }

  /** Recovery: whether the dead thread was responsible for this node, and the node is not in `listed`. */
  leftBy(i32: Int32Array, node: number, dead: number, listed: ReadonlySet<number>): boolean {
    return Atomics.load(i32, node + RcuNode.callback) >>> TAG_SHIFT === dead + 1 && !listed.has(node)
  }

  /**
   * Recovery, before a dead thread is made offline: puts its list in order, and returns the nodes that are on
   * it.
   */
  repair(i32: Int32Array, dead: number): Set<number> {
    const at = this.wordOf(dead)
    const listed = this.listedOn(i32, dead)
    let last = 0
    for (const node of listed) last = node
    i32[at + TAIL] = last
    Atomics.store(i32, at + QUEUED, listed.size)
    return listed
  }

  /**
   * Recovery: the dead thread may have been in the middle of adopting the callbacks of `gone`: they are on
   * one list afterwards, and have the name of its thread. The caller holds what guards the list of `gone`.
   */
  endAdoption(i32: Int32Array, gone: number, dead: number): void {
    if (gone === dead) return
    const at = this.wordOf(gone)
    if (this.listedOn(i32, dead).has(i32[at + HEAD])) i32[at + HEAD] = 0
    for (const node of this.repair(i32, gone))
      putName(i32, node, i32[node + RcuNode.callback] & CALLBACK, gone + 1)
  }

  private listedOn(i32: Int32Array, thread: number): Set<number> {
    const listed = new Set<number>()
    for (let node = i32[this.wordOf(thread) + HEAD]; node !== 0 && !listed.has(node); ) {
      listed.add(node)
      node = i32[node + RcuNode.next]
    }
    return listed
  }

  /** Whether the oldest callback of this thread waits for that CPU, among others. */
  waitsFor({ i32, id }: KernelThread, cpu: number): boolean {
    const node = i32[this.wordOf(id) + HEAD]
    if (node === 0) return false
    const seen = Atomics.load(i32, this.wordOf(cpu) + SEEN)
    return seen !== OFFLINE && seen !== IDLE && ((seen - i32[node + RcuNode.period]) | 0) < 0
  }

  /** How many callbacks wait on a CPU. Exact on that CPU, a snapshot elsewhere. */
  queued(i32: Int32Array, cpu: number): number {
    return Atomics.load(i32, this.wordOf(cpu) + QUEUED)
  }

  /**
   * Recovery: the callbacks of a CPU that is dead or offline move to the end of this CPU's queue. The list is
   * written in an order that leaves it whole at every step of the dead CPU's callRcu: HEAD and `next` are the
   * truth, TAIL and QUEUED are recomputed.
   */
  adopt(thread: KernelThread, dead: number): number {
    const i32 = thread.i32
    const from = this.wordOf(dead)
    assert(Atomics.load(i32, from + SEEN) === OFFLINE, 'only the callbacks of an offline CPU can be adopted')
    const to = this.wordOf(thread.id)
    const first = i32[from + HEAD]
    let moved = 0
    let last = 0
    for (let node = first; node !== 0; node = i32[node + RcuNode.next]) {
      this.see(thread, node) // (F)
      last = node
      moved++
    }
    if (moved !== 0) {
      const tail = i32[to + TAIL]
      if (tail === 0) {
        this.knowsPassed = false
        i32[to + HEAD] = first // (G)
      } else i32[tail + RcuNode.next] = first
      i32[to + TAIL] = last
      Atomics.store(i32, to + QUEUED, i32[to + QUEUED] + moved)
    }
    i32[from + HEAD] = 0 // (H)
    i32[from + TAIL] = 0
    Atomics.store(i32, from + QUEUED, 0)
    return moved
  }

  private wordOf(cpu: number): number {
    return this.start + FIRST_CPU + cpu * LINE_WORDS
  }
}

/** Names the thread that is responsible for the node. Most often it has that name already. */
function putName(i32: Int32Array, node: number, callback: number, ownerTag: number): void {
  const at = node + RcuNode.callback
  const name = callback | (ownerTag << TAG_SHIFT)
  if (i32[at] !== name) Atomics.store(i32, at, name)
}
