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

const views = new WeakMap<object, KernelView>()

/** The kernel's state as the thread that booted it sees it. */
export function viewOf(kernel: object): KernelView {
  const view = views.get(kernel)
  if (view === undefined) throw new TypeError('kernel: not a kernel that was booted on this thread')
  return view
}

/** Runs the hooks for a kernel whose CPUs run. Returns what undoes them all. */
export function runBootHooks(kernel: object, view: KernelView, options: BootHookOptions): () => void {
  views.set(kernel, view)
  const undo = hooks.map(hook => hook(view, options))
  return () => {
    for (const one of undo.reverse()) one?.()
  }
}
