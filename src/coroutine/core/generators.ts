/**
 * Coroutines made of generators, resumed at their innermost one.
 *
 * A chain of calls is a chain of `yield*`, and the engine resumes it from the outermost generator inward: a
 * switch costs time for each level. Here the chain is kept as a list, and only the innermost is resumed. When
 * it ends, its parent is resumed, still inside its `yield*`, and calls `next` of the ended generator, which
 * returns the value that was kept for it.
 *
 *   stop at depth 3, for the first time      the next switch       the innermost returns 7
 *   driver > root > a > b: yield             driver > b: yield     driver > b: done, 7
 *   on the way out b, then a join the list                         b leaves the list; 7 is kept for b
 *                                                                  driver > a: its yield* calls b: done, 7
 *
 * A generator joins the list in `next`, which its prototype overrides. So this works for generator functions
 * with that prototype (`resumable`; the compiler's twins have it). Other generators in the chain are not on
 * the list.
 *
 * The list must hold the chain that has just stopped, and nothing else. Code may call a generator by hand,
 * see it stop, and continue without stopping itself; then the list has a stale end. A stop that passes
 * through `yield*` keeps one result object. So (A) a generator whose result is not the last one seen is where
 * the stop began, and the generators that joined before it, since the driver resumed, are stale.
 */
import { put } from './define.ts'
import { ran } from './faces.ts'
import { PREEMPTED, SUSPENDED } from './stops.ts'

type AnyGenerator = Generator<number, any, any>

const prototype = Object.getPrototypeOf(function* () {}).prototype as AnyGenerator
const { next: nativeNext, throw: nativeThrow } = prototype

/**
 * The generators that have joined since the driver resumed, innermost first, from `base` to `count`. Those
 * before `base` belong to a driver further out. This is not the list of a coroutine: most coroutines never
 * have one, and the others get one of just the needed length.
 */
const joined: (AnyGenerator | undefined)[] = []
let count = 0
/** -1: nothing is being driven. */
let base = -1
let passing: IteratorResult<number, any> | null = null

/** The generator that has ended, and the value for its parent's `yield*`. */
let ended: AnyGenerator | null = null
let endedWith: unknown
/** The generator whose error is on its way to its parent. */
let failed: AnyGenerator | null = null

export type OnPass = (error: unknown, below: (...args: any[]) => unknown) => void

/** Called for each frame that an error passes. See uncaught.ts, which needs names of this file. */
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
  ran(this)
  const result = nativeNext.call(this, value)
  if (!result.done && base >= 0) join(this, result)
  return result
}

function heddleThrow(this: AnyGenerator, error: unknown): IteratorResult<number, any> {
  if (failed === this) {
    failed = null
    onPass?.(error, heddleThrow)
    throw error
  }
  const result = nativeThrow.call(this, error)
  if (!result.done && base >= 0) join(this, result)
  return result
}

function join(generator: AnyGenerator, result: IteratorResult<number, any>): void {
  if (result !== passing) {
    passing = result
    count = base // (A)
  }
  put(joined, count++, generator)
}

const chained: object = Object.create(prototype, {
  next: { value: heddleNext, writable: true, configurable: true },
  throw: { value: heddleThrow, writable: true, configurable: true },
})

/**
 * Lets coroutines be resumed inside this generator function without going through its callers. Returns the
 * function. For other code that iterates them, its generators do not change.
 */
export function resumable<F extends (...args: any[]) => Generator<any, any, any>>(fn: F): F {
  // A bound function has no prototype of its own; its generators are those of the function that was bound.
  if (Object.hasOwn(fn, 'prototype')) fn.prototype = chained
  return fn
}

/**
 * The same for a function of the program, unless the program has given its generators a prototype.
 */
export function adopt(fn: (...args: any[]) => unknown): void {
  const { prototype: own } = fn
  if (own === chained || typeof own !== 'object' || own === null) return
  if (Object.getPrototypeOf(own) !== prototype || Reflect.ownKeys(own).length > 0) return
  Reflect.set(fn, 'prototype', chained)
}

/** Instead of a stop: it has ended, and `value` is the returned or thrown value. */
export const RETURNED = -1
export const THREW = -2

/** A chain of generators that is being run. */
export interface Chain {
  root: AnyGenerator
  /** The root and those inside it, outermost first, from when there was a second one. */
  frames: AnyGenerator[] | null
  /** The returned or thrown value. */
  value: unknown
}

/** A chain that is not also a coroutine. */
export class GeneratorChain implements Chain {
  root: AnyGenerator
  frames: AnyGenerator[] | null = null
  value: unknown = undefined

  constructor(root: AnyGenerator) {
    this.root = root
  }
}

/** Runs the chain to its next stop, and returns SUSPENDED or PREEMPTED, or to the end: RETURNED or THREW. */
export function advance(chain: Chain, raising: boolean, sent: unknown): number {
  const outerBase = base
  const outerCount = count
  base = count
  try {
    return resumeInnermost(chain, raising, sent)
  } finally {
    base = outerBase
    count = outerCount
    ended = null
    failed = null
  }
}

/**
 * Deeper than any stack: endless recursion ends as it does in plain code, before memory is exhausted.
 */
const FRAMES_MAX = 50_000

function resumeInnermost(chain: Chain, raising: boolean, sent: unknown): number {
  const { frames } = chain
  let depth = frames === null ? 1 : frames.length
  if (depth > FRAMES_MAX && !raising) {
    raising = true
    sent = new RangeError('Maximum call stack size exceeded')
  }
  for (;;) {
    const innermost = depth === 1 ? chain.root : frames![depth - 1]
    count = base
    let result: IteratorResult<number, any>
    try {
      result = raising ? nativeThrow.call(innermost, sent) : nativeNext.call(innermost, sent)
    } catch (error) {
      if (depth === 1) return finish(chain, error, THREW)
      failed = innermost
      raising = true
      sent = error
      frames!.length = --depth
      continue
    }
    if (!result.done) {
      if (count > base) settle(chain, result)
      passing = null
      return result.value === SUSPENDED ? SUSPENDED : PREEMPTED
    }
    if (depth === 1) return finish(chain, result.value, RETURNED)
    ended = innermost
    endedWith = result.value
    raising = false
    sent = undefined
    frames!.length = --depth
  }
}

function finish(chain: Chain, value: unknown, how: number): number {
  chain.value = value
  return how
}

/**
 * The machinery in stack traces: functions whose frames are left out, and the one that ends the coroutine's
 * part.
 */
export const machineryNames: readonly string[] = [heddleNext.name, heddleThrow.name]
export const floorName: string = resumeInnermost.name

/** The generators that have joined since the driver resumed are the chain that stopped, or stale (A). */
function settle(chain: Chain, result: IteratorResult<number, any>): void {
  if (result === passing) append(chain)
  joined.fill(undefined, base, count)
}

function append(chain: Chain): void {
  const { frames } = chain
  if (frames !== null) {
    for (let at = count - 1; at >= base; at--) put(frames, frames.length, joined[at]!)
    return
  }
  // Of just this length: grown by a push, it would have room for sixteen more.
  put(joined, count++, chain.root)
  chain.frames = joined.slice(base, count).toReversed() as AnyGenerator[]
}

export function isGenerator(value: unknown): value is AnyGenerator {
  return typeof value === 'object' && Object.prototype.toString.call(value) === '[object Generator]'
}
