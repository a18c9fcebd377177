import type { KernelView } from './view.ts'

/**
 * What is to happen with each kernel that is booted on this thread, by layers above this one: the control socket, metrics,
 * traces. A hook returns what undoes it, called when the kernel closes.
 */
export type BootHook = (view: KernelView, options: BootHookOptions) => (() => void) | void

export interface BootHookOptions {
  /** Whether other processes of the same user may look at the kernel and steer it. */
  readonly control: boolean
}

const hooks: BootHook[] = []

export function onBoot(hook: BootHook): void {
  hooks.push(hook)
}

/** Runs the hooks for a kernel whose CPUs run. Returns what undoes them all. */
export function runBootHooks(view: KernelView, options: BootHookOptions): () => void {
  const undo = hooks.map(hook => hook(view, options))
  return () => {
    for (const one of undo.toReversed()) one?.()
  }
}
