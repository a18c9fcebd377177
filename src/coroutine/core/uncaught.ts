import type { Co } from '../schedule/co.ts'
import { coroutineFloorName } from './coroutine.ts'
import { frameFloorName, frameMachineryNames, type SavedFrame, setOnFramePass } from './frames.ts'
import { floorName, machineryNames, setOnPass } from './generators.ts'
import { captureStack, type StopTrace, TRACE_FRAMES } from './stoptrace.ts'

/**
 * The stack of an error, as the author of the coroutine expects it. After a switch, only the innermost
 * generator of a coroutine is on the engine's stack, and the schedule called it. So the stack is repaired:
 * frames of the machinery are removed; callers whose frames were saved are shown as they were saved; each
 * caller that the error passes adds its own frame; an error that leaves the coroutine gets the coroutine's
 * name and origin.
 *
 *   Error: no such row
 *       at find (table.ts:31:11)          as thrown: the innermost function, resumed by the schedule
 *       at report (report.ts:12:20)       added when the error passed this caller
 *       at coroutine report #7            added when it left the coroutine
 *       at main (main.ts:9:12)            where the coroutine was made
 */
type Captured = { stack?: string }

/** Frames of where a coroutine was made that its errors show. */
const ORIGIN_FRAMES = 4

/**
 * A stack under repair: the lines that are final, then the callers that the error has not passed yet.
 */
interface Mending {
  readonly passed: string[]
  callers: string[]
}

const mendings = new WeakMap<object, Mending>()

/** Captures the caller of `below`, to be shown later. Cheap: the text is made when it is read. */
export function captureOrigin(
  below: (...args: any[]) => unknown,
  frames: number = ORIGIN_FRAMES,
): Captured | null {
  return captureStack(below, frames)
}

/**
 * An error leaves the frame where it was thrown: its callers are shown as they were saved.
 */
function addCallers(error: unknown, caller: SavedFrame | null): void {
  if (!hasStack(error) || mendings.has(error)) return
  const mending = mendingOf(error)
  const lines = new Map<StopTrace, string[]>()
  for (let frame = caller; frame !== null && mending.callers.length < TRACE_FRAMES; frame = frame.below) {
    const line = lineOf(frame, lines)
    if (line !== null) mending.callers.push(line)
  }
  writeStack(error, mending)
}

/** The calls in a stopped coroutine, from its innermost saved frame outwards, as lines of a stack. */
export function savedLines(top: SavedFrame | null): string[] {
  const found: string[] = []
  const lines = new Map<StopTrace, string[]>()
  for (let frame = top; frame !== null && found.length < TRACE_FRAMES; frame = frame.below) {
    const line = lineOf(frame, lines)
    if (line !== null) found.push(line)
  }
  return found
}

/** Null for frames of the machinery. */
function lineOf(
  { trace, traced_below, reenter }: SavedFrame,
  lines: Map<StopTrace, string[]>,
): string | null {
  const name = reenter?.name ?? ''
  if (frameMachineryNames.includes(name)) return null
  if (trace !== null) {
    let known = lines.get(trace)
    if (known === undefined) lines.set(trace, (known = framesOf(withoutMachinery(trace.stack ?? ''))))
    // Counted from the outermost: further in, one frame may cover the lines of several generators.
    const line = known[known.length - 1 - traced_below]
    if (line !== undefined && known.length < TRACE_FRAMES) return line
  }
  return `    at ${name || '<anonymous>'}`
}

/** Adds the frame that called `below` to the stack of an error that passes it. */
function addFrame(error: unknown, below: (...args: any[]) => unknown): void {
  if (!hasStack(error)) return
  const mending = mendingOf(error)
  if (mending.passed.length <= TRACE_FRAMES) mending.passed.push(...framesOf(captureStack(below, 1)?.stack))
  writeStack(error, mending)
}

setOnPass(addFrame)
setOnFramePass(addCallers, (error, below) => {
  if (!hasStack(error)) return
  const mending = mendingOf(error)
  const known = mending.callers.shift()
  // The captured line of the call: where a function is entered again, source maps are less exact.
  if (known === undefined || !/:\d+:\d+\)?$/.test(known)) addFrame(error, below)
  else {
    mending.passed.push(known)
    writeStack(error, mending)
  }
})

/** Takes the machinery out of the stack of an error that leaves its coroutine. */
export function mendStack(error: unknown): void {
  if (hasStack(error) && !mendings.has(error)) writeStack(error, mendingOf(error))
}

/** An error leaves the coroutine: its stack gets the coroutine's name and origin, and the error its name. */
export function signError(error: unknown, co: Co<any>): void {
  if (!hasStack(error)) return
  const mending = mendingOf(error)
  mending.callers = []
  mending.passed.push(`    at coroutine ${co.name} #${co.id}`, ...framesOf(co.origin?.stack))
  writeStack(error, mending)
  try {
    Object.defineProperty(error, 'coroutine', {
      value: { id: co.id, name: co.name },
      configurable: true,
      enumerable: false,
      writable: true,
    })
  } catch {
    // Frozen: the coroutine is not named.
  }
}

/** The repair of the error's stack. It begins with the stack of the throw, without the machinery. */
function mendingOf(error: Captured & object): Mending {
  let mending = mendings.get(error)
  if (mending === undefined) {
    mending = { passed: [withoutMachinery(stackOf(error) ?? '')], callers: [] }
    mendings.set(error, mending)
  }
  return mending
}

/**
 * Functions that begin a coroutine, or a function that runs in one go: frames further out are not its own.
 */
const floors: string[] = [coroutineFloorName]

/** Stacks of this thread end at a function of this name too, class and method: `Loop.call`. */
export function addStackFloor(name: string): void {
  if (!floors.includes(name)) floors.push(name)
}

function withoutMachinery(stack: string): string {
  const kept: string[] = []
  for (const line of stack.split('\n')) {
    const frame = /^\s+at (?:async )?(?:new )?([^\s(]+)/.exec(line)
    if (frame === null) {
      kept.push(line)
      continue
    }
    const name = frame[1].slice(frame[1].lastIndexOf('.') + 1)
    if (name === floorName || name === frameFloorName || floors.includes(frame[1])) break
    if (
      machineryNames.includes(name) ||
      frameMachineryNames.includes(name) ||
      /\.(?:next|throw) \(<anonymous>\)$/.test(line)
    )
      continue
    kept.push(line)
  }
  return kept.join('\n')
}

function framesOf(stack: string | undefined): string[] {
  return (stack ?? '').split('\n').filter(line => /^\s+at /.test(line))
}

function hasStack(error: unknown): error is Captured & object {
  return stackOf(error) !== null
}

/** Null: it has none, or it cannot be read. A getter, a proxy or `Error.prepareStackTrace` may throw. */
function stackOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null) return null
  try {
    const { stack } = error as Captured
    return typeof stack === 'string' ? stack : null
  } catch {
    return null
  }
}

function writeStack(error: Captured, { passed, callers }: Mending): void {
  try {
    error.stack = [...passed, ...callers].join('\n')
  } catch {
    // Frozen: it keeps the stack that it was thrown with.
  }
}
