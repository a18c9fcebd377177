import type { Co } from './co.ts'
import { frameFloorName, frameMachineryNames, setOnFramePass } from './frames.ts'
import { floorName, machineryNames, setOnPass } from './generators.ts'

/**
 * The stack of an error, as the coroutine's author sees it. Only the innermost generator of a coroutine is on the
 * engine's stack after a switch, and below it stands the schedule. So the stack is mended: what belongs to the
 * machinery is cut off, each caller that the error passes on its way out adds its own frame, and an error that leaves
 * the coroutine gets its name and the place where it was made.
 *
 *   Error: no such row
 *       at find (table.ts:31:11)          as thrown: the innermost function, resumed by the schedule
 *       at report (report.ts:12:20)       added when the error passed this caller
 *       at coroutine report #7            added when it left the coroutine
 *       at main (main.ts:9:12)            where the coroutine was made
 */
type Captured = { stack?: string }
type CaptureStackTrace = (into: object, below?: (...args: any[]) => unknown) => void

const { captureStackTrace } = Error as unknown as { captureStackTrace?: CaptureStackTrace }

/** Frames of where a coroutine was made that its errors show. */
const ORIGIN_FRAMES = 4

/** The errors whose stack has been cut already. */
const mended = new WeakSet<object>()

/** Takes the place that calls `below`, to be shown later: cheap, the text is made when someone reads it. */
export function captureOrigin(
  below: (...args: any[]) => unknown,
  frames: number = ORIGIN_FRAMES,
): Captured | null {
  if (captureStackTrace === undefined) return null
  const limited = Error as { stackTraceLimit?: number }
  const before = limited.stackTraceLimit
  const origin: Captured = {}
  try {
    limited.stackTraceLimit = frames
    captureStackTrace(origin, below)
  } finally {
    if (before !== undefined) limited.stackTraceLimit = before
  }
  return origin
}

/** Adds the frame that called `below` to the stack of an error that passes it. */
function addFrame(error: unknown, below: (...args: any[]) => unknown): void {
  if (captureStackTrace === undefined || !hasStack(error)) return
  const limited = Error as { stackTraceLimit?: number }
  const before = limited.stackTraceLimit
  const here: Captured = {}
  try {
    limited.stackTraceLimit = 1
    captureStackTrace(here, below)
  } finally {
    if (before !== undefined) limited.stackTraceLimit = before
  }
  const frame = framesOf(here.stack)
  if (frame.length > 0) writeStack(error, [cut(error), ...frame].join('\n'))
}

setOnPass(addFrame)
setOnFramePass(addFrame)

/** An error leaves the coroutine: its stack gets the coroutine's name and origin, and the error its name. */
export function signError(error: unknown, co: Co<any>): void {
  if (!hasStack(error)) return
  const lines = [cut(error), `    at coroutine ${co.name} #${co.id}`, ...framesOf(co.origin?.stack)]
  writeStack(error, lines.join('\n'))
  try {
    Object.defineProperty(error, 'coroutine', {
      value: { id: co.id, name: co.name },
      configurable: true,
      enumerable: false,
      writable: true,
    })
  } catch {
    // Frozen: it is told by the stack of whoever reports it.
  }
}

/** The error's stack without the machinery. Done once: what is added later stays. */
function cut(error: Captured): string {
  const stack = error.stack ?? ''
  if (mended.has(error)) return stack
  mended.add(error)
  const kept: string[] = []
  for (const line of stack.split('\n')) {
    const frame = /^\s+at (?:async )?(?:new )?([^\s(]+)/.exec(line)
    if (frame === null) {
      kept.push(line)
      continue
    }
    const name = frame[1].slice(frame[1].lastIndexOf('.') + 1)
    if (name === floorName || name === frameFloorName) break
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
  return typeof error === 'object' && error !== null && typeof (error as Captured).stack === 'string'
}

function writeStack(error: Captured, stack: string): void {
  try {
    error.stack = stack
  } catch {
    // Frozen: it keeps the stack that it was thrown with.
  }
}
