import { isStackLimitable } from '../../machine/core/stacklimit.ts'

/**
 * The stack when a coroutine stops. After the stop only saved frames are left, which have no line numbers; an
 * error that is thrown later shows its callers from this trace.
 */
export interface StopTrace {
  /** The text is made when it is read: taking a trace is cheap, formatting it is not. */
  readonly stack?: string
}

type CaptureStackTrace = (into: object, below?: (...args: any[]) => unknown) => void

const { captureStackTrace } = Error as unknown as { captureStackTrace?: CaptureStackTrace }
const limited = Error as { stackTraceLimit?: number }

/** More callers than a reader needs. */
export const TRACE_FRAMES = 32

/**
 * A trace takes some microseconds, and a coroutine may stop just as often: then only some stops have one. One
 * more is allowed every half millisecond, up to a few in a row.
 */
const APART_MS = 0.5
const IN_A_ROW = 8

let last = 0
let room = IN_A_ROW
let trace: StopTrace | null = null

/** Takes the stack of the callers of `below`, unless too many were taken just now or stacks are off. */
export function traceStop(below: (...args: any[]) => unknown): void {
  if (captureStackTrace === undefined || limited.stackTraceLimit === 0) return
  const now = performance.now()
  room = Math.min(IN_A_ROW, room + (now - last) / APART_MS)
  last = now
  if (room < 1) return
  room--
  trace = captureStack(below, TRACE_FRAMES)
}

/** The trace of the last stop, once; null: none was taken. */
export function takeStopTrace(): StopTrace | null {
  const taken = trace
  trace = null
  return taken
}

/** Up to `frames` callers of `below`; null where the engine has no stack traces. */
export function captureStack(below: (...args: any[]) => unknown, frames: number): StopTrace | null {
  if (captureStackTrace === undefined) return null
  const before = limited.stackTraceLimit
  const captured: StopTrace = {}
  if (!isStackLimitable) {
    captureStackTrace(captured, below)
    return captured
  }
  try {
    limited.stackTraceLimit = frames
    captureStackTrace(captured, below)
  } finally {
    if (before !== undefined) limited.stackTraceLimit = before
  }
  return captured
}
