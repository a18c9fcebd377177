import type { Scheduler } from './scheduler.ts'
import { TaskRecord } from './taskrecord.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const NAME_BYTES = 32

/** The words of a name in each slot of a task: UTF-8, zero-padded. Without a name they are not touched. */
export const NAME_WORDS: number = NAME_BYTES / 4

/** Longer names are cut at NAME_BYTES. Before the task is published. */
export function setTaskName(s: Scheduler, task: number, name: string): void {
  if (name === '') return
  const bytes = new Uint8Array(NAME_BYTES)
  encoder.encodeInto(name, bytes)
  const at = s.names + s.tasks.indexOf(task) * NAME_WORDS
  s.arena.u8.set(bytes, at * 4)
  s.i32[task + TaskRecord.name] = at
}

/** The task's name, or `task <slot>`. */
export function taskName(s: Scheduler, task: number): string {
  const name = s.i32[task + TaskRecord.name]
  if (name === 0) return `task ${s.i32[task + TaskRecord.slot]}`
  const bytes = s.arena.u8.slice(name * 4, name * 4 + NAME_BYTES)
  const end = bytes.indexOf(0)
  return decoder.decode(end < 0 ? bytes : bytes.subarray(0, end))
}
