import type { Futexes } from '../../futex/core/futexes.ts'
import type { TaskWaiter } from '../../futex/core/sleep.ts'
import { here as threadContext, type ThreadContext } from '../../thread/context.ts'
import type { KernelView } from '../boot/view.ts'
import type { KernelCpu } from './kernelcpu.ts'

/**
 * The thread context with the types of the kernel and the futexes. It is the same record: `enterKernel` is
 * called with a `KernelView` only, and `switchTo` with a `KernelCpu` only.
 */
export interface KernelContext extends ThreadContext {
  view: KernelView | null
  futexes: Futexes | null
  cpu: KernelCpu | null
  task: TaskWaiter | null
}

export const here: KernelContext = threadContext as KernelContext
