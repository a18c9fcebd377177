import type { Worker } from 'node:worker_threads'
import { NodeMachine } from '../machine/node/nodemachine.ts'
import { Kernel } from '../kernel/boot/kernel.ts'
import { nodeMachineOf } from '../kernel/boot/node-host.ts'
import type { KernelEvents } from '../kernel/boot/kernelevents.ts'
import type { KernelOptions } from '../kernel/boot/options.ts'
import type { FunctionReference } from '../kernel/spawn/modules.ts'

/** Receives the events of a pool's CPUs. */
interface CpuListener {
  online(cpu: number): void
  died(death: KernelEvents['death']): void
  message(message: unknown): void
}

/**
 * A kernel whose CPUs a pool starts and ends one by one. Its arena has room for more CPUs than the pool may
 * have, because an ending CPU keeps its slot until it is gone.
 */
export class PoolCpus {
  readonly kernel: Kernel
  private readonly functions: readonly FunctionReference[]

  /**
   * `worker` is the module with the pool's own functions, listed in `names`. Each CPU loads it before it
   * takes a task.
   */
  constructor(
    options: KernelOptions,
    worker: { readonly url: URL; readonly names: readonly string[] },
    listener: CpuListener,
  ) {
    this.kernel = Kernel.bootNow(
      options,
      ({ arena, plan, data }, filled) => nodeMachineOf(NodeMachine, arena, plan, filled, data),
      false,
    )
    this.functions = this.kernel.declare(worker.url.href, worker.names)
    this.kernel.on('online', ({ cpu }) => listener.online(cpu))
    this.kernel.on('death', death => listener.died(death))
    this.kernel.on('message', ({ message }) => listener.message(message))
    // The pool itself reports failures to the caller of `run`.
    this.kernel.on('failure', () => undefined)
  }

  /** The function of the pool's module with this name. */
  function(name: string): FunctionReference {
    const found = this.functions.find(one => one.name === name)
    if (found === undefined) throw new TypeError(`the pool's module has no function ${name}`)
    return found
  }

  /**
   * Starts a CPU, and returns its number and its thread. Null if all slots are taken until an ending CPU is
   * gone.
   */
  start(): { readonly cpu: number; readonly thread: Worker } | null {
    const { cpuSet, machine } = this.kernel.internals
    const cpu = cpuSet.grow()
    if (cpu < 0) return null
    const thread = (machine as NodeMachine).threadOf(cpu)
    // The thread could not be made; its start reported the reason.
    return thread === undefined ? null : { cpu, thread }
  }

  /** Ends a CPU when it has no task. */
  retire(cpu: number): void {
    void this.kernel.internals.cpuSet.retire(cpu)
  }

  /** Ends a CPU immediately; its thread is then gone. */
  terminate(cpu: number): Promise<void> {
    return this.kernel.internals.machine.terminate(cpu)
  }

  /** Ends all CPUs, and the kernel. */
  end(): Promise<void> {
    return this.kernel.abandon()
  }
}
