/**
 * Coroutines made of saved frames.
 *
 * A compiled function is a plain function. After each call that may suspend it checks `frames.u`. When that
 * is 1 it saves its position and its live variables and returns, and so does its caller: the stack becomes a
 * list. To continue, only the innermost frame is entered again, through a second form of its function that
 * starts at the saved position. Its result or error goes to the frame of its caller, which is entered only
 * then.
 *
 *   stop at depth 3, for the first time     the next switch        the innermost returns 7
 *   driver > root > a > b: unwinds          driver > b: unwinds    driver > b: 7
 *   on the way out b, a and root are saved  only b is saved again  driver > a, where it waits for b: 7
 *
 * The words of `frames`:
 *
 *   u   | ok  | means
 *   ----+-----+-----------------------------------------------------------------------------------------
 *   0   | 0   | code runs. Plain code called the compiled function that is entered now: it must not unwind
 *   0   | 1   | [1] between a compiled call and the first line of its callee, which clears the permission
 *   1   | 0   | [2] unwinding: only the saving of frames runs, up to the driver
 *   1   | 1   | never
 *
 * No other code runs in [1]: arguments are evaluated before. So a compiled function that `sort` or a getter
 * calls finds `ok` at 0, runs as plain code, and passes no permission on.
 */
import { advance, GeneratorChain, type OnPass, RETURNED, THREW } from './generators.ts'
import { checkPlainDeadline, isRaised, needResched, type Words, words } from './safepoint.ts'
import { type StopTrace, takeStopTrace } from './stoptrace.ts'
import { PREEMPTED } from './stops.ts'

/** Enters a function again: at this position, with these variables. */
export type Reenter = (this: any, place: number, values: unknown[]) => unknown

interface Frame {
  self: unknown
  place: number
  values: unknown[]
  /** Null: by the function that was being entered again when this frame was saved. */
  reenter: Reenter | null
  /** The frame of its caller. */
  below: Frame | null
  /**
   * The stack when this frame was saved, and how many of the frames that were saved with it were further out.
   */
  trace: StopTrace | null
  traced_below: number
}

/** A frame as it is shown in a stack. */
export type SavedFrame = Readonly<Frame>

/**
 * The words. The object is also the permission itself between compiled functions: a last argument that no
 * other code passes, which costs less than a word in memory.
 */
export const frames: Words = words

/** Why the task unwinds. */
let stop: number = PREEMPTED
/** The frames saved since unwinding began: the first one, the last one, and how many. */
let innermost: Frame | null = null
let outermost: Frame | null = null
let saved_count = 0
/** The value for the frame that is being entered, and whether it is thrown. */
let sent: unknown
let raising = false

let onPass: OnPass | null = null
let onThrow: OnThrow | null = null

/** `caller`: the next frame that the error reaches. */
export type OnThrow = (error: unknown, caller: SavedFrame | null) => void

/**
 * Sets the listeners for each error that leaves the innermost frame, and for each frame that it passes after
 * that: uncaught.ts, which needs names of this file and so cannot be imported here.
 */
export function setOnFramePass(throws: OnThrow, passes: OnPass): void {
  onThrow = throws
  onPass = passes
}

/*
 * `look` and `lookInTime` begin with a text that never runs, because `pace` is never 0. It makes them longer
 * than V8 inlines (460 bytes of bytecode; the test reads it from the engine). Loops call them often enough to
 * be inlined, and then they take half of the 920 bytes that V8 inlines into one function: tasks 1.9 instead
 * of 1.5, constraints 1.45 instead of 1.25.
 */

/** Checks the safepoint. Does nothing where the caller may not unwind. True: unwinding has begun. */
export function look(ok: unknown): boolean {
  if (pace === 0)
    return (
      `${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}
    ${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}
    ${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}
    ${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}
    ${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}
    ${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}
    ${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}` === ''
    )
  if (!ok) {
    checkPlainDeadline(look)
    return false
  }
  return unwindsHere()
}

function unwindsHere(): boolean {
  if (!needResched()) return false
  frames.u = 1
  stop = PREEMPTED
  return true
}

/** The time between two checks: short enough for any slice, and long enough to cost nothing. */
const apart_ms_most = 0.2
const apart_ms_least = 0.05
/**
 * How many safepoints pass between two checks, where they are as frequent as calls. Not more: safepoints that
 * were nanoseconds apart may suddenly be tens of microseconds apart.
 */
const pace_most = 256
let pace = 64
/**
 * The same while the word is up and the running code may not unwind: that code is not slowed down, and the
 * first function that may unwind does so after a few safepoints.
 */
const pace_refused = 16
let looked_ms = 0
/** The clock costs more than the check: where safepoints are frequent it is read at each fourth. */
const looks_a_reading = 4
let looks = 0

/**
 * The same where safepoints are frequent and most of them only count down. Sets how many may pass before the
 * next check; in code that may not unwind, it does only that.
 */
export function lookInTime(ok: unknown): boolean {
  if (pace === 0)
    return (
      `${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}
    ${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}
    ${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}
    ${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}
    ${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}
    ${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}
    ${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}${pace}` === ''
    )
  if (!ok) {
    frames.left = isRaised() ? Math.min(pace, pace_refused) : pace
    checkPlainDeadline(lookInTime)
    return false
  }
  if (unwindsHere()) return true
  if (frames.left === 0) return false
  if (++looks < looks_a_reading && pace === pace_most) {
    frames.left = pace
    return false
  }
  const now = performance.now()
  const apart = (now - looked_ms) / looks
  looked_ms = now
  looks = 0
  if (apart > apart_ms_most) pace = Math.max(1, pace >> 2)
  else if (apart < apart_ms_least && pace < pace_most) pace <<= 1
  frames.left = pace
  return false
}

/** Saves a frame, on the way out. */
export function save(self: unknown, place: number, values: unknown[], reenter: Reenter | null): undefined {
  const frame: Frame = { self, place, values, reenter, below: null, trace: null, traced_below: 0 }
  if (outermost === null) innermost = frame
  else outermost.below = frame
  outermost = frame
  saved_count++
}

/** The value of the call at the position that is entered again; or throws its error. */
export function take(): unknown {
  const given = sent
  sent = undefined
  if (!raising) return given
  raising = false
  onPass?.(given, take)
  throw given
}

/**
 * Under this symbol an iterator carries the second form of a frame that stands for it while it has stopped:
 * so a task can move while it waits there.
 */
export const asFrame: unique symbol = Symbol('heddle.asFrame')
/** The values of that frame. Missing: it has none. */
export const frameValues: unique symbol = Symbol('heddle.frameValues')

interface AsFrame {
  readonly [asFrame]?: Reenter
  readonly [frameValues]?: unknown[]
}

/** Runs a generator inside a function that can unwind: its value, or unwinding has begun. */
export function run(made: Generator<number, any, any> & AsFrame): unknown {
  const step = made.next()
  if (step.done) return step.value
  const reenter = made[asFrame]
  if (reenter !== undefined) return stopAs(reenter, made[frameValues] ?? [], step.value)
  suspendIn(new GeneratorChain(made), step.value)
  return undefined
}

function stopAs(reenter: Reenter, values: unknown[], why: number): undefined {
  frames.u = 1
  stop = why
  return save(undefined, 0, values, reenter)
}

/**
 * In the second form of an iterator's frame: continues the iterator with the value or the error that the
 * frame is entered again with. Its value, or unwinding has begun.
 */
export function continueAs(
  made: Iterator<number, unknown, unknown>,
  reenter: Reenter,
  values: unknown[],
): unknown {
  const throws = raising
  const given = sent
  raising = false
  sent = undefined
  const step = throws ? made.throw!(given) : made.next(given)
  return step.done === true ? step.value : stopAs(reenter, values, step.value)
}

function suspendIn(chain: GeneratorChain, why: number): void {
  frames.u = 1
  stop = why
  save(chain, 0, [], resumeGenerator)
}

function resumeGenerator(this: GeneratorChain): unknown {
  const throws = raising
  const value = sent
  raising = false
  sent = undefined
  const why = advance(this, throws, value)
  if (why === THREW) throw this.value
  if (why === RETURNED) return this.value
  suspendIn(this, why)
  return undefined
}

/** Whether a frame is a generator, or a blocking call, inside functions that unwind. */
export function resumesGenerator(reenter: Reenter | null): boolean {
  return reenter === resumeGenerator
}

/** Calls a function that can unwind. Afterwards `frames.u` says whether it has. */
export function enter(fn: (...args: any[]) => unknown, self: unknown, args: readonly unknown[]): unknown {
  frames.ok = 1
  try {
    return Reflect.apply(fn, self, args)
  } finally {
    frames.ok = 0
  }
}

/**
 * In a generator, after a call that has unwound: drives the saved frames to their end, and returns the value.
 */
export function* rest(): Generator<number, any, unknown> {
  const chain = new FrameChain()
  let why = chain.took()
  for (;;) {
    let value: unknown
    let throws = false
    try {
      value = yield why
    } catch (error) {
      value = error
      throws = true
    }
    why = chain.advance(throws, value)
    if (why === THREW) throw chain.value
    if (why === RETURNED) return chain.value
  }
}

/** More frames than any stack holds and fewer than a heap does: endless recursion ends here. */
const FRAMES_MAX = 2_000_000

/** The frames of a coroutine that has stopped. */
export class FrameChain {
  /** The innermost. */
  top: Frame | null = null
  depth = 0
  value: unknown = undefined

  /** The frames of a coroutine that stopped elsewhere, the innermost first. */
  static of(frames: readonly Pick<Frame, 'self' | 'place' | 'values' | 'reenter'>[]): FrameChain {
    const chain = new FrameChain()
    chain.depth = frames.length
    for (const { self, place, values, reenter } of frames.toReversed()) {
      chain.top = { self, place, values, reenter, below: chain.top, trace: null, traced_below: 0 }
    }
    return chain
  }

  /** Takes the frames that have just been saved, and ends the unwinding. Returns its reason. */
  took(): number {
    const trace = takeStopTrace()
    if (trace !== null) {
      let below = saved_count
      for (let frame = innermost; frame !== null; frame = frame.below) {
        frame.trace = trace
        frame.traced_below = --below
      }
    }
    outermost!.below = this.top
    this.top = innermost
    this.depth += saved_count
    innermost = null
    outermost = null
    saved_count = 0
    frames.u = 0
    return stop
  }

  /** Runs to the next stop, and returns SUSPENDED or PREEMPTED, or to the end: RETURNED or THREW. */
  advance(throws: boolean, value: unknown): number {
    return resumeInnermostFrame(this, throws, value)
  }
}

function resumeInnermostFrame(chain: FrameChain, throws: boolean, value: unknown): number {
  if (chain.depth > FRAMES_MAX && !throws) {
    throws = true
    value = new RangeError('Maximum call stack size exceeded')
  }
  for (;;) {
    const frame = chain.top!
    chain.top = frame.below
    chain.depth--
    raising = throws
    sent = value
    try {
      value = frame.reenter!.call(frame.self, frame.place, frame.values)
      throws = false
    } catch (error) {
      frames.ok = 0
      onThrow?.(error, chain.top)
      value = error
      throws = true
    }
    if (frames.u !== 0) {
      outermost!.reenter ??= frame.reenter
      return chain.took()
    }
    if (chain.top === null) {
      chain.value = value
      return throws ? THREW : RETURNED
    }
  }
}

/**
 * The machinery in stack traces: functions whose frames are left out, and the one that ends the coroutine's
 * part.
 */
export const frameMachineryNames: readonly string[] = [
  take.name,
  enter.name,
  run.name,
  resumeGenerator.name,
  rest.name,
  look.name,
  lookInTime.name,
]
export const frameFloorName: string = resumeInnermostFrame.name
