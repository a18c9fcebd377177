/**
 * Coroutines made of generators, resumed at their innermost one.
 *
 * A chain of calls is a chain of `yield*`, and the engine resumes it from the outermost generator inward: a switch
 * costs time for each level. Here the chain is kept as a list, and only the innermost is resumed. When it ends, its
 * parent is resumed, still inside its `yield*`, and asks the ended generator for its next step: it is answered with
 * the value that was kept for it.
 *
 *   stop at depth 3, for the first time      the next switch             the innermost returns 7
 *   driver > root > a > b: yield             driver > b: yield           driver > b: done, 7
 *   on the way out b, then a join the list                               b leaves the list; 7 is kept for b
 *                                                                        driver > a: its yield* asks b: done, 7
 *
 * A generator joins the list in `next`, which its prototype overrides: so this is for generator functions that were
 * given that prototype (`resumable`; the compiler's twins are). Others may stand in between: the list passes them by.
 *
 * The list must hold the chain that has just stopped, and nothing else. Code may drive a generator by hand, see it
 * stop and carry on without stopping itself; then the list holds a stale end. A stop that travels through `yield*`
 * stays one and the same result object, so (A) a generator whose result is not the one that was seen last is where
 * the stop began, and what was on the list above the driver's own part is stale.
 */
import { PREEMPTED, SUSPENDED } from './stops.ts'

type AnyGenerator = Generator<number, any, any>

const prototype = Object.getPrototypeOf(function* () {}).prototype as AnyGenerator
const { next: nativeNext, throw: nativeThrow } = prototype

/** The list that a chain joins while it stops: that of the coroutine that runs, innermost first from `base` up. */
let joining: AnyGenerator[] | null = null
let base = 0
let passing: IteratorResult<number, any> | null = null

/** The generator that has ended, and what its parent's `yield*` is to be given. */
let ended: AnyGenerator | null = null
let endedWith: unknown
/** The generator whose error is on its way to its parent. */
let failed: AnyGenerator | null = null

export type OnPass = (error: unknown, below: (...args: any[]) => unknown) => void

/** Told of each frame that an error passes on its way out. See uncaught.ts. */
let onPass: OnPass | null = null

export function setOnPass(listener: OnPass): void {
  onPass = listener
}

function heddleNext(this: AnyGenerator, value: unknown): IteratorResult<number, any> {
  if (ended === this) {
    ended = null
    const kept = endedWith
    endedWith = undefined
    return { value: kept, done: true }
  }
  const result = nativeNext.call(this, value)
  if (!result.done && joining !== null) {
    if (result !== passing) {
      passing = result
      if (joining.length > base) joining.length = base // (A)
    }
    joining.push(this)
  }
  return result
}

function heddleThrow(this: AnyGenerator, error: unknown): IteratorResult<number, any> {
  if (failed === this) {
    failed = null
    onPass?.(error, heddleThrow)
    throw error
  }
  const result = nativeThrow.call(this, error)
  if (!result.done && joining !== null) {
    if (result !== passing) {
      passing = result
      if (joining.length > base) joining.length = base // (A)
    }
    joining.push(this)
  }
  return result
}

const chained: object = Object.create(prototype, {
  next: { value: heddleNext, writable: true, configurable: true },
  throw: { value: heddleThrow, writable: true, configurable: true },
})

/**
 * Lets coroutines be resumed inside this generator function without going through its callers. Returns it. Its
 * generators stay what they were for anyone who iterates them.
 */
export function resumable<F extends (...args: any[]) => Generator<any, any, any>>(fn: F): F {
  // A bound one has none of its own; its generators are those of the function that was bound.
  if (Object.hasOwn(fn, 'prototype')) fn.prototype = chained
  return fn
}

/** The same for a function of anyone's, unless its generators have been given a prototype that means something. */
export function adopt(fn: (...args: any[]) => unknown): void {
  const { prototype: own } = fn
  if (own === chained || typeof own !== 'object' || own === null) return
  if (Object.getPrototypeOf(own) !== prototype || Reflect.ownKeys(own).length > 0) return
  Reflect.set(fn, 'prototype', chained)
}

/** A chain of generators that is being run: outermost first. */
export class GeneratorChain {
  readonly frames: AnyGenerator[]
  /** After `advance` has returned -1: what it ended with, and whether that was thrown. */
  result: unknown = undefined
  threw = false

  constructor(root: AnyGenerator) {
    this.frames = [root]
  }

  /** Runs to the next stop, and returns SUSPENDED or PREEMPTED, or to the end: then -1. */
  advance(raising: boolean, sent: unknown): number {
    const outerJoining = joining
    const outerBase = base
    try {
      return resumeInnermost(this, raising, sent)
    } finally {
      joining = outerJoining
      base = outerBase
      ended = null
      failed = null
    }
  }
}

/** Deeper than any stack: recursion that goes on and on ends as it does in plain code, not when memory does. */
const FRAMES_MAX = 50_000

function resumeInnermost(chain: GeneratorChain, raising: boolean, sent: unknown): number {
  const { frames } = chain
  joining = frames
  if (frames.length > FRAMES_MAX && !raising) {
    raising = true
    sent = new RangeError('Maximum call stack size exceeded')
  }
  for (;;) {
    const innermost = frames[frames.length - 1]
    base = frames.length
    let result: IteratorResult<number, any>
    try {
      result = raising ? nativeThrow.call(innermost, sent) : nativeNext.call(innermost, sent)
    } catch (error) {
      frames.length = base - 1
      if (base === 1) return finish(chain, error, true)
      failed = innermost
      raising = true
      sent = error
      continue
    }
    if (!result.done) {
      if (frames.length > base) settle(frames, result)
      passing = null
      return result.value === SUSPENDED ? SUSPENDED : PREEMPTED
    }
    frames.length = base - 1
    if (base === 1) return finish(chain, result.value, false)
    ended = innermost
    endedWith = result.value
    raising = false
    sent = undefined
  }
}

function finish(chain: GeneratorChain, result: unknown, threw: boolean): number {
  chain.result = result
  chain.threw = threw
  return -1
}

/** The machinery in stack traces: frames that are left out, and the one below which nothing is the coroutine's. */
export const machineryNames: readonly string[] = [heddleNext.name, heddleThrow.name]
export const floorName: string = resumeInnermost.name

/** What has joined since the driver resumed: the chain that stopped, innermost first, or a stale end. */
function settle(frames: AnyGenerator[], result: IteratorResult<number, any>): void {
  if (result === passing) reverse(frames, base)
  else frames.length = base // (A)
}

function reverse(frames: AnyGenerator[], from: number): void {
  for (let low = from, high = frames.length - 1; low < high; low++, high--) {
    const frame = frames[low]
    frames[low] = frames[high]
    frames[high] = frame
  }
}

export function isGenerator(value: unknown): value is AnyGenerator {
  return typeof value === 'object' && Object.prototype.toString.call(value) === '[object Generator]'
}
