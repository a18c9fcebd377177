import { type Cpu, type CpuRequest, HALT } from '../../machine/core/machine.ts'
import { cpuLoop } from '../../sched/core/cpuloop.ts'
import { Scheduler } from '../../sched/core/scheduler.ts'
import { enterKernel } from '../../thread/context.ts'
import { KernelCpu } from './kernelcpu.ts'
import { type CpuBoot, planKernel } from '../boot/layout.ts'
import { rescueOnCpu } from '../recovery/recovery.ts'
import { KernelView } from '../boot/view.ts'
import { setWorkerData } from './workerdata.ts'

/** The program of every CPU of a kernel, on every kind of machine. */
export default function* kernelCpu(cpu: Cpu, data: unknown): Generator<CpuRequest, void, void> {
  const boot = data as CpuBoot
  const { kernel } = planKernel(boot.sizes)
  const s = Scheduler.forCpu(kernel.scheduler, cpu, boot.slice)
  for (const slab of [s.tasks, kernel.jobs]) slab.spread(cpu.id + 1, boot.sizes.cpus + 1)
  const view = new KernelView(kernel, s, boot)
  view.futexes.context.detectsDeadlocks = !cpu.stepwise
  view.codec.published.open()
  if (!cpu.stepwise) {
    enterKernel(view)
    rescueOnCpu(view)
  }
  const on = new KernelCpu(cpu, view, boot)
  if (boot.workerData !== undefined) setWorkerData(boot.workerData)
  if (boot.turnsIdle) {
    cpu.outstanding++
    s.turnAt = 0
  }
  yield* load(cpu, on)
  yield* cpuLoop(cpu, s, task => on.resume(task))
  const { futexes, waiters, owners } = kernel.futexes
  for (const slab of [s.tasks, kernel.jobs, futexes, waiters, owners]) slab.giveBack(view.i32)
}

/**
 * Lets the event loop turn until all modules are loaded or have failed. A task that needs a module that
 * failed throws the reason.
 */
function* load(cpu: Cpu, on: KernelCpu): Generator<CpuRequest, void, void> {
  const loading = on.code.loadModules()
  if (loading === undefined) return
  let isDone = false
  cpu.outstanding++
  void loading.then(() => {
    isDone = true
    cpu.kick(cpu.id)
  })
  // oxlint-disable-next-line no-unmodified-loop-condition
  while (!isDone && !cpu.stopRequested) yield HALT
  cpu.outstanding--
}
