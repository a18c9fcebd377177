/** `heddle/coroutine`: preemptive coroutines on one thread, beside its event loop. Runs in Node, workers and pages. */
export { type Blocking, progress, sleep, suspend, wait, type WaitOptions, yieldNow } from './blocking.ts'
export { Co, type CoState } from './co.ts'
export {
  type Coroutine,
  coroutineOf,
  type CoroutineState,
  needResched,
  PREEMPTED,
  SUSPENDED,
  twin,
  type Twin,
  twinOf,
} from './coroutine.ts'
export { CoroutineError, type CoroutineErrorCode } from './errors.ts'
export { resumable } from './generators.ts'
export type { Priority } from './priority.ts'
export type { Runner, Waker } from './runner.ts'
export { preemptionOff, preemptionOn, withoutPreemption } from './safepoint.ts'
export { Schedule, type ScheduleStatistics } from './schedule.ts'
export type { GoOptions, ResultOf, RunOptions, ScheduleOptions } from './scheduleoptions.ts'
export type { Slices } from './slices.ts'
export { VirtualTime } from './virtualtime.ts'
