import { MARK, MARK_NAME } from '../arena/events.ts'
import { actorOf } from '../sched/events.ts'
import type { Scheduler } from '../sched/scheduler.ts'
import { runningCpu } from '../task/running.ts'

const NAME_BYTES = 48
const EVENT_BYTES = 16
const encoder = new TextEncoder()
const value64 = new Float64Array(1)
const value32 = new Int32Array(value64.buffer)

/** The thread that booted a kernel has its own ring: the last kernel booted here. */
let booter: Scheduler | null = null

export function setMarkingThread(s: Scheduler | null): void {
  booter = s
}

/**
 * Puts a mark into the trace, at this moment, in the task that runs or on the thread that booted the kernel; with a number, if
 * given. While nothing is recorded it does nothing. Names are cut at 48 bytes.
 */
export function mark(name: string, value: number = Number.NaN): void {
  const s = runningCpu()?.view.s ?? booter
  if (s === null || s.events === null || s.i32[s.recording] === 0) return
  const bytes = new Uint8Array(NAME_BYTES)
  const { written } = encoder.encodeInto(name, bytes)
  const words = new Int32Array(bytes.buffer)
  const time = s.now()
  const actor = actorOf(s)
  for (let at = 0; at < written; at += EVENT_BYTES) {
    const word = at >> 2
    s.events.write(MARK_NAME, time, actor, words[word], words[word + 1], words[word + 2], words[word + 3])
  }
  value64[0] = value
  s.events.write(MARK, time, actor, value32[0], value32[1], 0, 0)
}
