import type { Worker } from 'node:worker_threads'
import { NodeMachine } from '../machine/node/nodemachine.ts'
import { Kernel } from '../kernel/boot/kernel.ts'
import { nodeMachineOf } from '../kernel/boot/node-host.ts'
import type { KernelEvents } from '../kernel/boot/kernelevents.ts'
import type { KernelOptions } from '../kernel/boot/options.ts'
import type { FunctionReference } from '../kernel/spawn/modules.ts'

/** Hears what happens to the CPUs of a pool. */
export interface CpuListener {
  online(cpu: number): void
  died(death: KernelEvents['death']): void
  message(message: unknown): void
}

/**
 * A kernel whose CPUs a pool starts and ends one by one. Its arena has room for more than there may be: one
 * that ends has its place until it is gone.
 */
export class PoolCpus {
  readonly kernel: Kernel
  private readonly functions: readonly FunctionReference[]

  /**
   * `worker` is the module of the pool's own functions, of which `names` are all; each CPU loads it before it
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
    // Whoever ran a task is told how it failed by the pool.
    this.kernel.on('failure', () => undefined)
  }

  /** The function of the pool's module with this name. */
  function(name: string): FunctionReference {
    const found = this.functions.find(one => one.name === name)
    if (found === undefined) throw new TypeError(`the pool's module has no function ${name}`)
    return found
  }

  /**
   * Starts a CPU: its number, and its thread, which has been made. Null: each place is taken until one that
   * ends is gone.
   */
  start(): { readonly cpu: number; readonly thread: Worker } | null {
    const { cpuSet, machine } = this.kernel.internals
    const cpu = cpuSet.grow()
    if (cpu < 0) return null
    const thread = (machine as NodeMachine).threadOf(cpu)
    // Its thread could not be made; why, its start has said.
    return thread === undefined ? null : { cpu, thread }
  }

  /** Ends a CPU when it has no task. */
  retire(cpu: number): void {
    void this.kernel.internals.cpuSet.retire(cpu)
  }

  /** Ends a CPU in the middle of whatever it does; its thread is gone then. */
  terminate(cpu: number): Promise<void> {
    return this.kernel.internals.machine.terminate(cpu)
  }

  /** Ends all of them, and the kernel. */
  end(): Promise<void> {
    return this.kernel.abandon()
  }
}
