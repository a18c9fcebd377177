import type { Scheduler } from './scheduler.ts'
import { NAME_BYTES, TaskRecord } from './taskrecord.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Longer names are cut at NAME_BYTES. Before the task is published. */
export function setTaskName(s: Scheduler, task: number, name: string): void {
  const bytes = new Uint8Array(NAME_BYTES)
  encoder.encodeInto(name, bytes)
  s.arena.u8.set(bytes, (task + TaskRecord.name) * 4)
}

/** The task's name, or `task <slot>`. */
export function taskName(s: Scheduler, task: number): string {
  const at = (task + TaskRecord.name) * 4
  const bytes = s.arena.u8.slice(at, at + NAME_BYTES)
  const end = bytes.indexOf(0)
  return decoder.decode(end < 0 ? bytes : bytes.subarray(0, end)) || `task ${s.i32[task + TaskRecord.slot]}`
}
