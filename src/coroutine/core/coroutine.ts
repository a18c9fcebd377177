import {
  type CodeKind,
  COMPILED,
  type FaceUser,
  GENERATOR,
  isUnrun,
  NO_COROUTINE,
  PLAIN,
  runFace,
  setCodeKind,
  swapFaceUser,
  unrunError,
} from './faces.ts'
import { enter, FrameChain, frames, type Reenter, rest, type SavedFrame } from './frames.ts'
import { adopt, advance, type Chain, isGenerator, resumable, THREW } from './generators.ts'
import { PREEMPTED, SUSPENDED } from './stops.ts'

/**
 * A coroutine can be started, resumed and thrown into. Its runner does not depend on how it is made: of
 * generators, or of the saved frames of compiled functions.
 *
 * A function may be one that unwinds (frames.ts). Or it may carry a resumable form of itself, its twin, under
 * the symbol `twin`: a generator function that takes the same parameters and the same `this`, and is driven
 * through `next`, `throw` and `return`. A coroutine that stops yields one small integer, the reason:
 *
 *   PREEMPTED  it reached a safepoint while its CPU's word was up: still runnable
 *   SUSPENDED  it has queued itself somewhere and blocks: its waker makes it runnable
 */

export { PREEMPTED, SUSPENDED }
export { needResched, setSafepointFlag } from './safepoint.ts'

/** Under this symbol a function carries its resumable form. */
export const twin: unique symbol = Symbol.for('heddle.twin') as never

/**
 * Under this symbol a function that unwinds carries itself. It carries a twin too, where plain generators may
 * call it.
 */
export const itself: unique symbol = Symbol.for('heddle.itself') as never

/**
 * A resumable form made of generators: the runner of the coroutine drives the generator that a call returns.
 */
export type Twin = (this: any, ...args: any[]) => Generator<number, any, any>

/**
 * The twin that `fn` carries, or one that is made for a function that unwinds; or undefined. Never throws.
 */
export function twinOf(fn: unknown): Twin | undefined {
  const found = (fn as { [twin]?: Twin } | null | undefined)?.[twin]
  return found === undefined && unwinds(fn) ? entering(fn) : found
}

/** A twin for a function that unwinds: for generators that call it. */
export function entering(fn: (...args: any[]) => unknown): Twin {
  return resumable(function* (this: unknown, ...args: unknown[]) {
    const value = enter(fn, this, args)
    return frames.u === 0 ? value : yield* rest()
  })
}

/**
 * The state of a coroutine.
 *   ready      made, not started
 *   preempted  stopped at a safepoint
 *   suspended  blocked
 *   running    inside start, resume or raise
 *   returned   finished; `result` is the value
 *   threw      finished; `result` is the thrown value
 */
export type CoroutineState = 'ready' | 'preempted' | 'suspended' | 'running' | 'returned' | 'threw'

export interface Coroutine<T = unknown> {
  readonly state: CoroutineState
  /** The returned or thrown value; undefined before the end. */
  readonly result: T | unknown
  /** Its depth of preemption off while it does not run. The runner keeps it. */
  preemptionDepth: number
  /** Runs from the beginning to the first stop. True: finished. */
  start(): boolean
  /** Continues after the last stop, which returns `value`. True: finished. */
  resume(value?: unknown): boolean
  /** Continues by throwing `error` at the last stop (or before the first line). True: finished. */
  raise(error: unknown): boolean
}

/** True for a function that can unwind. */
export function unwinds(fn: unknown): fn is (...args: any[]) => unknown {
  return typeof fn === 'function' && (fn as { [itself]?: unknown })[itself] === fn
}

const UNWOUND: readonly unknown[] = []

/**
 * A coroutine that runs one function: through its twin, through its generator, or in one go. It is small,
 * because there may be a hundred thousand: it is also the chain of its generators, and three of its fields
 * have another meaning before it starts.
 *
 *                    root                frames                        value
 *   before           the function        its arguments                 its `this`
 *   of generators    the outermost one   all of them, if two or more
 *   of saved frames  the FrameChain      UNWOUND
 *   ended                                                              the returned or thrown value
 */
export class FunctionCoroutine<T = unknown> implements Coroutine<T>, Chain, FaceUser {
  state: CoroutineState = 'ready'
  preemptionDepth = 0
  kind: CodeKind = NO_COROUTINE
  unrun: Map<object, string> | null = null
  root: any
  frames: any
  value: unknown

  constructor(fn: (...args: any[]) => unknown, args: readonly unknown[], self: unknown) {
    this.root = fn
    this.frames = args
    this.value = self
  }

  get result(): T | unknown {
    return this.state === 'returned' || this.state === 'threw' ? this.value : undefined
  }

  start(): boolean {
    if (this.state !== 'ready') throw new Error(`coroutine started while ${this.state}`)
    this.kind = kindOf(this.root)
    const outer = swapFaceUser(this)
    try {
      return beginCoroutine(this)
    } finally {
      swapFaceUser(outer)
    }
  }

  /** Becomes `other`, which has stopped, and is not used any more. */
  become({ state, preemptionDepth, kind, root, frames }: FunctionCoroutine): void {
    this.state = state
    this.preemptionDepth = preemptionDepth
    this.kind = kind
    this.root = root
    this.frames = frames
    this.value = undefined
  }

  resume(value?: unknown): boolean {
    if (this.state !== 'preempted' && this.state !== 'suspended') {
      throw new Error(`coroutine resumed while ${this.state}`)
    }
    this.state = 'running'
    return this.goOn(false, value)
  }

  raise(error: unknown): boolean {
    if (this.state === 'ready') return this.finish('threw', error)
    if (this.state !== 'preempted' && this.state !== 'suspended') {
      throw new Error(`coroutine thrown into while ${this.state}`)
    }
    this.state = 'running'
    return this.goOn(true, error)
  }

  private goOn(raising: boolean, sent: unknown): boolean {
    const outer = swapFaceUser(this)
    try {
      return this.advance(raising, sent)
    } finally {
      swapFaceUser(outer)
    }
  }

  advance(raising: boolean, sent: unknown): boolean {
    const unwound: FrameChain | null = this.frames === UNWOUND ? this.root : null
    const stop = unwound === null ? advance(this, raising, sent) : unwound.advance(raising, sent)
    if (stop >= 0) return this.stopped(stop)
    return this.finish(stop === THREW ? 'threw' : 'returned', (unwound ?? this).value)
  }

  stopped(stop: number): false {
    this.state = stop === SUSPENDED ? 'suspended' : 'preempted'
    return false
  }

  finish(state: 'threw' | 'returned', value: unknown): true {
    const forgotten = state === 'returned' ? unrunError() : null
    const failed = forgotten !== null
    this.state = failed ? 'threw' : state
    this.value = failed ? forgotten : value
    this.root = null
    this.frames = null
    return true
  }
}

/** A function, because in a stack a method has the name of the object's class. */
function beginCoroutine(coroutine: FunctionCoroutine<any>): boolean {
  const { root: fn, frames: args, value: self, kind } = coroutine
  coroutine.state = 'running'
  coroutine.root = null
  coroutine.frames = null
  coroutine.value = undefined
  let made: unknown
  try {
    made = kind === COMPILED && unwinds(fn) ? enter(fn, self, args) : call(fn, args, self)
  } catch (error) {
    return coroutine.finish('threw', error)
  }
  if (frames.u !== 0) {
    const chain = new FrameChain()
    coroutine.root = chain
    coroutine.frames = UNWOUND
    return coroutine.stopped(chain.took())
  }
  if (kind === PLAIN && isUnrun(made)) made = runFace(made)
  if (unwinds(fn) || !isGenerator(made)) return coroutine.finish('returned', made)
  if (kind === PLAIN) setCodeKind(GENERATOR)
  coroutine.root = made
  return coroutine.advance(false, undefined)
}

/**
 * A coroutine, not yet started, that runs `fn` with this `self` and these arguments: through its twin where
 * it has one, through itself where it is a generator function, else in one go.
 */
export function coroutineOf<T>(
  fn: (...args: any[]) => T,
  args: readonly unknown[],
  self?: unknown,
): Coroutine<T> {
  if (typeof fn !== 'function') throw new TypeError('a coroutine needs a function')
  return new FunctionCoroutine<T>(fn, args, self)
}

/** The innermost frame of a coroutine that has stopped, if it consists of saved frames; else null. */
export function framesIn(coroutine: Coroutine): SavedFrame | null {
  if (!(coroutine instanceof FunctionCoroutine) || coroutine.frames !== UNWOUND) return null
  return (coroutine.root as FrameChain).top
}

/** A coroutine that has stopped with these frames, the innermost first. */
export function continued(
  saved: readonly { reenter: Reenter; place: number; self: unknown; values: unknown[] }[],
  isSuspended: boolean,
): FunctionCoroutine {
  const made = new FunctionCoroutine(neverCalled, noArguments, undefined)
  made.kind = COMPILED
  made.state = isSuspended ? 'suspended' : 'preempted'
  made.root = FrameChain.of(saved)
  made.frames = UNWOUND
  made.value = undefined
  return made
}

/** For a coroutine whose code comes later. */
export function neverCalled(): void {}
export const noArguments: readonly unknown[] = []

function call(fn: (...args: any[]) => unknown, args: unknown[], self: unknown): unknown {
  const found = twinOf(fn)
  if (found === undefined) {
    if (isGeneratorFunction(fn)) adopt(fn)
    return fn.apply(self, args)
  }
  const made = found.apply(self, args)
  return isGeneratorFunction(fn) ? throughMarked(made) : made
}

/** Whether nothing can stop `fn` before it returns: it carries no twin, and makes no generator. */
export function runsInOneGo(fn: (...args: any[]) => unknown): boolean {
  return twinOf(fn) === undefined && !unwinds(fn) && !isGeneratorFunction(fn)
}

/** The kind of code that runs when `fn` runs as a coroutine. See faces.ts. */
function kindOf(fn: unknown): CodeKind {
  if (unwinds(fn)) return COMPILED
  // A generator function without a twin runs nothing before its generator is driven.
  if ((fn as { [twin]?: Twin })[twin] === undefined) return PLAIN
  return isGeneratorFunction(fn) ? GENERATOR : COMPILED
}

function isGeneratorFunction(fn: unknown): boolean {
  return Object.prototype.toString.call(fn) === '[object GeneratorFunction]'
}

/**
 * A generator function that is marked with 'use task': its twin returns a generator whose methods carry
 * twins. As a coroutine it runs to its end, and its yields are its own stops.
 */
function* throughMarked(making: Generator<number, any, any>): Generator<number, unknown, unknown> {
  const made = (yield* making) as Generator<unknown, unknown, unknown>
  let verb: 'next' | 'throw' = 'next'
  let sent: unknown
  for (;;) {
    const found = twinOf(made[verb])
    const step: IteratorResult<unknown, unknown> =
      found === undefined ? made[verb](sent) : yield* found.call(made, sent)
    if (step.done) return step.value
    try {
      sent = yield step.value === SUSPENDED ? SUSPENDED : PREEMPTED
      verb = 'next'
    } catch (error) {
      sent = error
      verb = 'throw'
    }
  }
}

/** In a stack, the frames outside of this function do not belong to a coroutine that has not stopped yet. */
export const coroutineFloorName: string = beginCoroutine.name
