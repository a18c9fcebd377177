/**
 * `heddle/coroutine`: preemptive coroutines on one thread, beside its event loop. Runs in Node, workers and
 * pages.
 */
export { type Blocking, progress, sleep, suspend, wait, type WaitOptions, yieldNow } from './core/blocking.ts'
export { Co, type CoState } from './schedule/co.ts'
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
} from './core/coroutine.ts'
export { CoroutineError, type CoroutineErrorCode } from './core/errors.ts'
export { resumable } from './core/generators.ts'
export type { Priority } from './schedule/priority.ts'
export type { Runner, Waker } from '../thread/runner.ts'
export { preemptionOff, preemptionOn, withoutPreemption } from './core/safepoint.ts'
export { Schedule, type ScheduleStatistics } from './schedule/schedule.ts'
export type { GoOptions, ResultOf, RunOptions, ScheduleOptions } from './schedule/scheduleoptions.ts'
export type { Slices } from './schedule/slices.ts'
export { VirtualTime } from './schedule/virtualtime.ts'
