import { type Ambient, currentAmbient, type CurrentTask, setAmbient } from '../../futex/core/ambient.ts'
import type { Futexes } from '../../futex/core/futexes.ts'
import { setHandoffHere } from '../../handoff/current.ts'
import { taskWaiterOf } from './taskwaiter.ts'
import { runningCpu } from './running.ts'
import type { KernelView } from '../boot/view.ts'

/**
 * What a thread of the kernel waits with: the tasks that run on it park, the thread itself blocks or gets a
 * promise. A simulated machine has all its CPUs on the booting thread: while a task runs, it is the running
 * CPU's view that counts.
 */
class KernelAmbient implements Ambient {
  readonly view: KernelView

  constructor(view: KernelView) {
    this.view = view
  }

  get futexes(): Futexes {
    return runningCpu()?.view.futexes ?? this.view.futexes
  }

  get tid(): number {
    return this.futexes.self.tid
  }

  get mayBlock(): boolean {
    return this.view.thread.mayBlock
  }

  currentTask(): CurrentTask | null {
    const on = runningCpu()
    return on === null || on.job === 0 ? null : taskWaiterOf(on)
  }
}

/** The kernels that this thread has booted or is a CPU of, the newest last: that one it waits in. */
const joined: KernelView[] = []

/** This thread waits in the kernel's domain from now on. */
export function joinAmbient(view: KernelView): void {
  joined.push(view)
  install(view)
}

function install(view: KernelView): void {
  setAmbient(new KernelAmbient(view))
  setHandoffHere(() => (runningCpu()?.view ?? view).handoff)
}

/** The kernel as this thread sees it right now; null: it waits in no kernel's domain. */
export function currentView(): KernelView | null {
  const installed = currentAmbient()
  return installed instanceof KernelAmbient ? (runningCpu()?.view ?? installed.view) : null
}

/** The kernel is gone: the thread waits in the one before, or as it would without any. */
export function leaveAmbient(view: KernelView): void {
  const at = joined.indexOf(view)
  if (at < 0) return
  joined.splice(at, 1)
  const last = joined.at(-1)
  if (last !== undefined) {
    install(last)
    return
  }
  setAmbient(null)
  setHandoffHere(null)
}
