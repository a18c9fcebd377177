import type { KernelEvents, KernelListeners } from './kernelevents.ts'
import type { KernelView } from './view.ts'

/**
 * Hooks of upper layers for each kernel that is booted on this thread: the control socket, metrics, traces.
 * A hook may return a function that undoes it, called when the kernel closes.
 */
export type BootHook = (view: KernelView, kernel: HookedKernel) => (() => void) | void

export interface HookedKernel {
  /** Whether other processes of the same user may inspect and control the kernel. */
  readonly control: boolean
  /** The kernel was booted with `debug: true`. */
  readonly debug: boolean
  readonly events: KernelListeners
}

const hooks: BootHook[] = []

export function onBoot(hook: BootHook): void {
  hooks.push(hook)
}

const views = new WeakMap<object, KernelView>()
const listeners = new WeakMap<object, KernelListeners>()

/** The kernel's view on the thread that booted it. */
export function viewOf(kernel: object): KernelView {
  const view = views.get(kernel)
  if (view === undefined)
    throw new TypeError('kernel: not a kernel that was booted on this thread; pass the result of Kernel.boot')
  return view
}

/** Observes an event of a kernel, without counting as its listener. Returns a function that ends it. */
export function watch<K extends keyof KernelEvents>(
  kernel: object,
  event: K,
  watcher: (about: KernelEvents[K]) => void,
): () => void {
  return listeners.get(kernel)?.watch(event, watcher) ?? (() => undefined)
}

/** Runs the hooks for a kernel whose CPUs run. Returns a function that undoes them all. */
export function runBootHooks(kernel: object, view: KernelView, hooked: HookedKernel): () => void {
  views.set(kernel, view)
  listeners.set(kernel, hooked.events)
  const undo = hooks.map(hook => hook(view, hooked))
  return () => {
    // oxlint-disable-next-line unicorn/no-array-reverse
    for (const one of undo.reverse()) one?.()
  }
}
