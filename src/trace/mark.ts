import { MARK, MARK_NAME } from '../arena/rings/events.ts'
import { actorOf } from '../sched/core/events.ts'
import type { Scheduler } from '../sched/core/scheduler.ts'
import { here } from '../kernel/cpu/here.ts'

const NAME_BYTES = 48
const EVENT_BYTES = 16
const encoder = new TextEncoder()
const value64 = new Float64Array(1)
const value32 = new Int32Array(value64.buffer)

/**
 * The booting thread has its own ring. If several kernels were booted here, the newest open one gets the
 * marks.
 */
const booted: Scheduler[] = []

/** Returns the function to call when that kernel closes. */
export function markFrom(s: Scheduler): () => void {
  booted.push(s)
  return () => void booted.splice(booted.indexOf(s), 1)
}

/**
 * Puts a mark, with an optional number, into the trace: in the running task, or on the booting thread. Does
 * nothing while nothing is recorded. Names are cut at 48 bytes.
 */
export function mark(name: string, value: number = Number.NaN): void {
  const s = here.cpu?.view.s ?? booted.at(-1)
  if (s === undefined || s.events === null || s.i32[s.recording] === 0) return
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
