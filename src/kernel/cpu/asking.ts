import { askToMove } from '../../sched/balance/move.ts'
import { JobImages } from '../spawn/job.ts'
import type { KernelView } from '../boot/view.ts'

/**
 * The booting thread asks a task for its state, and the CPU of the task answers at a safepoint.
 *
 *   booting thread                            CPU of the task
 *   --------------                            ---------------
 *   (A) asks = number << 2 | kind
 *   (B) interrupts the CPU                    (C) at a stop of the task: asks is not answers
 *                                             (D) writes the state
 *   (E) waits for answers to change           (F) answers = asks, or -asks: refused; wakes
 *
 * A CPU that dies before (F) answers nothing: the task restarts, and its next CPU answers at (C), or it ends,
 * and the end settles the wait. A request to suspend has no answer if it succeeds: the outcome of the job is
 * the answer.
 */
export const ASK_CHECKPOINT = 0
/** The task ends here, and its image is the outcome of the job. */
export const ASK_SUSPEND = 1
/** The task goes on, and its image is in `JobImages.reply` before (F). */
export const ASK_BYTES = 2
export type AskKind = typeof ASK_CHECKPOINT | typeof ASK_SUSPEND | typeof ASK_BYTES

export function kindOf(asks: number): number {
  return asks & 3
}

/** (A), (B). Returns the request. One request at a time, by the booting thread. */
export function ask(view: KernelView, job: number, kind: AskKind): number {
  const { i32, s } = view
  const images = view.openImages(job)
  const asks = (((i32[images + JobImages.asks] >>> 2) + 1) << 2) | kind
  Atomics.store(i32, images + JobImages.asks, asks) // (A)
  view.withTask(job, task => askToMove(s, task)) // (B)
  return asks
}

/** (F) */
export function answer(view: KernelView, job: number, answers: number): void {
  Atomics.store(view.i32, view.imagesOf(job) + JobImages.answers, answers)
  view.futexes.wake(view.answerWord(job), Infinity)
}

/** (C) The request that has no answer yet; 0: there is none. */
export function openRequest(view: KernelView, job: number): number {
  const { i32 } = view
  const images = view.imagesOf(job)
  const asks = Atomics.load(i32, images + JobImages.asks)
  return Math.abs(i32[images + JobImages.answers]) === asks ? 0 : asks
}
