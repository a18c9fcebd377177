import { assert } from '../../arena/assert.ts'
import { traceStop } from './stoptrace.ts'

/**
 * Safepoints, and preemption off: this thread's interrupt line and its mask.
 *
 * A running coroutine checks one word now and then. While the word is up and preemption is not off, the
 * interrupt handler decides whether the coroutine stops here. It does what the signal handler of the design
 * does, and it runs inside the running coroutine too. Without a handler, every safepoint that finds the word
 * up stops.
 *
 *   word | preemption | what a safepoint does
 *   -----+------------+--------------------------------------------------------------
 *   0    | any        | [1] nothing: one load
 *   1    | off        | [2] nothing; the word stays up, and the first safepoint after `preemptionOn` fires
 *   1    | on         | [3] asks the handler; after a yes the coroutine must yield PREEMPTED
 *
 * Preemption off is a depth, as with push_off and pop_off. The depth belongs to the coroutine, not to the
 * thread: a switch stores the coroutine's depth with it and restores the scheduler's own.
 */
export type Interrupt = () => boolean

/** The word that safepoints check, and the handler that decides. */
export interface SafepointLine {
  readonly view: Int32Array
  readonly index: number
  readonly interrupt: Interrupt | null
}

let line: SafepointLine = { view: new Int32Array(1), index: 0, interrupt: null }
let flagView: Int32Array = line.view
let flagIndex = 0
let depth = 0

/** The words that compiled code checks: in one object, which engines treat as a constant. */
export interface Words {
  /** How many of the frequent safepoints may pass before one of them checks the line. */
  left: number
  /** 1 while the coroutine unwinds. See frames.ts. */
  u: number
  /** 1 while a call that may unwind is on its way to its callee. See frames.ts. */
  ok: number
  /**
   * A function that unwinds, on its way to a callee that only calls it. See
   * compiler/lowering/frames/unmarkedarguments.ts.
   */
  made: unknown
}

// Written twice, so that no engine takes the words themselves for constants.
export const words: Words = { left: 1, u: 1, ok: 1, made: undefined }
words.left = 0
words.u = 0
words.ok = 0
words.made = null

/** Safepoints between two checks, where they are as frequent as calls. */
const pace_most = 64

/**
 * Points this thread's safepoints at its CPU's `needResched` word, with no handler: the word being up is
 * enough. Until then they check a word that stays 0.
 */
export function setSafepointFlag(view: Int32Array, index: number): void {
  setSafepointLine(safepointLine(view, index, null))
}

/** A line that safepoints can be pointed at. Throws unless `index` is a word of an Int32Array. */
export function safepointLine(view: Int32Array, index: number, interrupt: Interrupt | null): SafepointLine {
  if (!(view instanceof Int32Array)) throw new TypeError('the safepoint flag is a word of an Int32Array')
  if (!(Number.isInteger(index) && index >= 0 && index < view.length)) {
    throw new RangeError(`no word ${index} in a view of ${view.length}`)
  }
  return { view, index, interrupt }
}

/** Points this thread's safepoints at a line. Returns the line before, for the caller to restore. */
export function setSafepointLine(next: SafepointLine): SafepointLine {
  const before = line
  line = next
  flagView = watcher === null ? next.view : alwaysUp
  flagIndex = watcher === null ? next.index : 0
  words.left = 0
  return before
}

/**
 * Whether the coroutine must stop at this safepoint. After true it must yield PREEMPTED. The load is atomic,
 * because no engine moves an atomic load out of a loop.
 */
export function needResched(): boolean {
  if (Atomics.load(flagView, flagIndex) !== 0) return fires()
  words.left = pace_most
  return false
}

const alwaysUp = Int32Array.of(1)
let watcher: (() => void) | null = null

/**
 * From here on each safepoint of this thread calls `listener`: compiled code finds a word that is always up,
 * and takes the slow path, which then checks the real word. For `heddle doctor`.
 */
export function watchSafepoints(listener: () => void): void {
  watcher = listener
  setSafepointLine(line)
}

/** Whether the word is up, for code that cannot stop. */
export function isRaised(): boolean {
  return Atomics.load(flagView, flagIndex) !== 0
}

/** A word that is up while `passed` is to be called. */
interface PlainDeadline {
  readonly view: Int32Array
  readonly index: number
  readonly passed: (safepoint: Function) => void
}

/** Under this name on the global object, because a test runner may load this module again after each file. */
const deadlineKey = Symbol.for('heddle.plainDeadline')
let deadline: PlainDeadline = (globalThis as never as Record<symbol, PlainDeadline | undefined>)[
  deadlineKey
] ?? {
  view: new Int32Array(1),
  index: 0,
  passed: () => {},
}

/**
 * While the word is up, safepoints of compiled code that was called as plain code, and so cannot be
 * preempted, call `passed`, which may throw: the only way to interrupt such code. For a thread without tasks.
 */
export function setPlainDeadline(view: Int32Array, index: number, passed: PlainDeadline['passed']): void {
  deadline = { view, index, passed }
  Object.defineProperty(globalThis, deadlineKey, { value: deadline, configurable: true })
}

/** A safepoint in code that may not unwind. `safepoint`: the function that compiled code called. */
export function checkPlainDeadline(safepoint: Function): void {
  if (Atomics.load(deadline.view, deadline.index) !== 0) deadline.passed(safepoint)
}

function fires(): boolean {
  words.left = 0
  if (watcher !== null) {
    watcher()
    if (Atomics.load(line.view, line.index) === 0) return false
  }
  if (depth !== 0) {
    // Code that cannot be preempted is not slowed down: the first safepoint after `preemptionOn` checks.
    words.left = pace_most
    return false
  }
  const { interrupt } = line
  if (interrupt !== null && !interrupt()) return false
  traceStop(needResched)
  return true
}

/** Safepoints do not fire until the matching `preemptionOn`. Nests. */
export function preemptionOff(): void {
  depth++
}

export function preemptionOn(): void {
  assert(depth > 0, 'preemptionOn() without a preemptionOff() before it')
  if (--depth === 0) words.left = 0
}

/** How deep preemption is off; 0: it is on. */
export function preemptionDepth(): number {
  return depth
}

/** Part of a switch: sets the depth of the next coroutine, and returns that of the previous one. */
export function swapPreemptionDepth(next: number): number {
  const before = depth
  depth = next
  words.left = 0
  return before
}

/** Runs `fn` with preemption off, and puts it back whatever happens. */
export function withoutPreemption<T>(fn: () => T): T {
  preemptionOff()
  try {
    return fn()
  } finally {
    preemptionOn()
  }
}
