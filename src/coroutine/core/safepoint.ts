import { assert } from '../../arena/assert.ts'
import { traceStop } from './stoptrace.ts'

/**
 * Safepoints, and preemption off: this thread's interrupt line and its mask.
 *
 * A running coroutine looks at one word now and then. While the word is up and preemption is not off, the
 * interrupt handler decides whether the coroutine stops here: what a signal handler does in the design, and
 * at the same place, on top of the running coroutine. Where no handler is set, every safepoint that finds the
 * word up stops.
 *
 *   word | preemption | what a safepoint does
 *   -----+------------+--------------------------------------------------------------
 *   0    | any        | [1] nothing: one load
 *   1    | off        | [2] nothing; the word stays up, and `preemptionOn` has the first safepoint after it fire
 *   1    | on         | [3] asks the handler; a yes means that the coroutine must now yield PREEMPTED
 *
 * Preemption off is a depth, as push_off and pop_off have it. The depth belongs to who runs, not to the
 * thread: a switch keeps the coroutine's with the coroutine and takes the scheduler's own back.
 */
export type Interrupt = () => boolean

/** Where safepoints look, and who answers. */
export interface SafepointLine {
  readonly view: Int32Array
  readonly index: number
  readonly interrupt: Interrupt | null
}

let line: SafepointLine = { view: new Int32Array(1), index: 0, interrupt: null }
let flagView: Int32Array = line.view
let flagIndex = 0
let depth = 0

/** The words that compiled code looks at: in one object, which an engine can take for granted. */
export interface Words {
  /** How many of the safepoints that come often may pass before one of them looks at the line. */
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

/** Between two looks, where safepoints come as often as calls. */
const pace_most = 64

/**
 * Points this thread's safepoints at its CPU's `needResched` word, with no handler: the word being up is
 * enough. Until then they look at a word that stays 0.
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

/** Points this thread's safepoints at a line, and returns the one before, for whoever must put it back. */
export function setSafepointLine(next: SafepointLine): SafepointLine {
  const before = line
  line = next
  flagView = watcher === null ? next.view : alwaysUp
  flagIndex = watcher === null ? next.index : 0
  words.left = 0
  return before
}

/**
 * What a safepoint asks: must the coroutine stop here? After a yes it yields PREEMPTED and nothing else. An
 * atomic load, which no engine moves out of a loop.
 */
export function needResched(): boolean {
  if (Atomics.load(flagView, flagIndex) !== 0) return fires()
  words.left = pace_most
  return false
}

const alwaysUp = Int32Array.of(1)
let watcher: (() => void) | null = null

/**
 * From here on `listener` hears of each safepoint that this thread comes to: compiled code finds a word that
 * is always up, and takes the slow path, which then looks at the real one. For `heddle doctor`.
 */
export function watchSafepoints(listener: () => void): void {
  watcher = listener
  setSafepointLine(line)
}

/** Whether the word is up, for who could not stop if it were. */
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
 * While the word is up, safepoints of compiled code that was called plainly, and so cannot be preempted, call
 * `passed`, which may throw: the one way to interrupt such code. For a thread that has no tasks.
 */
export function setPlainDeadline(view: Int32Array, index: number, passed: PlainDeadline['passed']): void {
  deadline = { view, index, passed }
  Object.defineProperty(globalThis, deadlineKey, { value: deadline, configurable: true })
}

/** What a safepoint does in code that may not unwind. `safepoint`: the function that compiled code called. */
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
    // Code that cannot be preempted goes on at its own speed: `preemptionOn` has the next safepoint look.
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

/** Part of a switch: sets the depth of who runs next, and returns that of who ran. */
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
