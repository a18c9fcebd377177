import type { Runner } from './runner.ts'

/**
 * The thread context: the one record that says what this JavaScript thread is and runs. Every layer reads it,
 * by a plain field read. This layer declares only what it needs itself of a kernel, a CPU and a task; the
 * layers that implement them read the same record with their own types (`src/futex/core/currentfutexes.ts`,
 * `src/kernel/cpu/here.ts`).
 *
 *   field     | meaning
 *   ----------+----------------------------------------------------------------------------------------------
 *   view      | the kernel as the running CPU sees it, or as this thread does where no CPU runs a task;
 *             | null: none
 *   futexes   | the futex domain: that of the view, or one without a kernel; null: not needed so far
 *   cpu       | the CPU whose task runs; null: none does
 *   runner    | resumes the running coroutine: that CPU, or a `Schedule`; null: no coroutine runs
 *   task      | the task that runs, as a waiter at futexes; null: none runs, or it has not waited since the
 *             | switch
 *   tid       | what the running task or coroutine, or the thread where none runs, writes into lock words;
 *             | 0: not asked for since the switch
 *   uncounted | the same for fast paths that count no locks; 0 also while `counts` is true
 *   counts    | a movable task runs. Its locks are counted, because its state is not written while it holds
 *             | one: `locks` those with one holder, `shares` read locks and permits of semaphores
 *
 * A thread enters a kernel once: when it boots it, or when it becomes one of its CPUs. `switchTo` is the only
 * place that changes the running CPU and coroutine. A CPU thread always sees one view; a simulated machine
 * has all its CPUs on the booting thread, so there the view changes with the CPU. Hand-off hints are in the
 * view.
 */
export interface ThreadContext {
  view: ThreadView | null
  futexes: object | null
  cpu: ThreadCpu | null
  runner: Runner | null
  task: object | null
  tid: number
  uncounted: number
  counts: boolean
  locks: number
  shares: number
}

/** A kernel as one thread sees it: `KernelView`. */
export interface ThreadView {
  readonly futexes: object
}

/** A CPU of a kernel: `KernelCpu`. */
export interface ThreadCpu {
  readonly view: ThreadView
}

export const here: ThreadContext = {
  view: null,
  futexes: null,
  cpu: null,
  runner: null,
  task: null,
  tid: 0,
  uncounted: 0,
  counts: false,
  locks: 0,
  shares: 0,
}

/** The running code has locked something, as its only holder. */
export function countLock(): void {
  if (here.counts) here.locks++
}

export function countUnlock(): void {
  if (here.counts) here.locks--
}

/** The running code has shares of something. */
export function countShares(shares: number): void {
  if (here.counts) here.shares += shares
}

/** It releases shares. Perhaps another owner took them, as for a signal: then it had none. */
export function countReleased(shares: number): void {
  if (here.counts) here.shares = Math.max(0, here.shares - shares)
}

/** The code that runs from here on is a movable task with so many locks and shares. */
export function beginCounting(locks: number, shares: number): void {
  here.uncounted = 0
  here.counts = true
  here.locks = locks
  here.shares = shares
}

/** The task has stopped. Its locks and shares are in the record. */
export function endCounting(): void {
  here.counts = false
}

/** The kernels that this thread has entered and not left, the newest last. */
const entered: ThreadView[] = []
/** The last of them: the thread is in that one. */
let own: ThreadView | null = null

/** This thread has booted the kernel, or is a CPU of it from here on. */
export function enterKernel(view: ThreadView): void {
  entered.push(view)
  own = view
  moveTo(here.cpu)
}

/** The kernel is closed: the thread is in the one that it entered before, or in none. */
export function leaveKernel(view: ThreadView): void {
  const at = entered.indexOf(view)
  if (at < 0) return
  entered.splice(at, 1)
  own = entered.at(-1) ?? null
  moveTo(here.cpu)
}

/**
 * The switch: from here on `runner` resumes a coroutine, on `cpu` if it is a kernel's. The caller keeps the
 * two values from before, and switches back to them when the coroutine has stopped.
 */
export function switchTo(runner: Runner | null, cpu: ThreadCpu | null): void {
  here.runner = runner
  here.tid = 0
  here.uncounted = 0
  if (here.task !== null) here.task = null
  if (cpu !== here.cpu) moveTo(cpu)
}

function moveTo(cpu: ThreadCpu | null): void {
  here.cpu = cpu
  const view = cpu === null ? own : cpu.view
  if (view === here.view) return
  here.view = view
  here.futexes = view === null ? null : view.futexes
  here.tid = 0
  here.uncounted = 0
}
