import type { KernelCpu } from './kernelcpu.ts'

/** The CPU whose task runs on this thread right now. A simulated machine has several on one thread. */
let running: KernelCpu | null = null

/** Part of a switch: says which CPU's task runs from here on, and returns whose did. */
export function swapRunning(next: KernelCpu | null): KernelCpu | null {
  const before = running
  running = next
  return before
}

export function runningCpu(): KernelCpu | null {
  return running
}
