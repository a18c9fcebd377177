import {
  FUTEX2_SIZE_U32,
  FUTEX_PRIVATE_FLAG,
  FUTEX_WAIT,
  FUTEX_WAKE,
  type Timespec,
} from '../../../src/futex/operations/call.ts'
import type { Bench, Pending } from '../bench.ts'

/** One row is one behaviour of Linux. */
export type Row = [name: string, run: (bench: Bench) => Promise<void> | void]

export const P: number = FUTEX_PRIVATE_FLAG
export const SOON: Timespec = { sec: 0, nsec: 2_000_000 }
export const LATE: Timespec = { sec: 1000, nsec: 0 }
export const U32: number = FUTEX2_SIZE_U32

export const wait = (
  word: number,
  val = 0,
  more: object = {},
): { op: number; word: number; val: number } => ({
  op: FUTEX_WAIT,
  word,
  val,
  ...more,
})
export const many = async (bench: Bench, count: number, word = 0): Promise<Pending[]> => {
  const started: Pending[] = []
  for (let i = 0; i < count; i++) started.push(await bench.start(wait(word)))
  return started
}
export const doneCount = async (pending: Pending[]): Promise<number> => {
  let count = 0
  for (const one of pending) if (await one.isDone()) count++
  return count
}
export const results = (pending: Pending[]): Promise<number[]> => Promise.all(pending.map(one => one.result))
export const wakeAll = (bench: Bench, ...words: number[]): void => {
  for (const word of words) bench.call(FUTEX_WAKE, word, 1000)
}
