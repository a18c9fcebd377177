import type { Arena } from '../../arena/memory/arena.ts'
import type { Machine } from '../../machine/core/machine.ts'
import { requireSharedMemory, requireWaitAsync } from '../../machine/web/isolation.ts'
import { SimulatedMachine } from '../../machine/simulated/simulatedmachine.ts'
import type { CpuBoot, KernelPlan } from './layout.ts'
import { loader, makeNodeMachine } from './node-host.ts'
import type { KernelOptions } from './options.ts'

/** A machine whose CPUs run the kernel's program. */
export interface KernelMachine extends Machine {
  /** The shared data of a dead CPU was repaired: it may be started again. */
  recovered(cpu: number): void
  /** The kernel closes, and this CPU's thread does not end: stops waiting for it. */
  abandon?(cpu: number): void
}

interface Globals {
  readonly process?: {
    readonly versions?: { readonly node?: string }
    getBuiltinModule?(name: string): unknown
  }
  readonly navigator?: { readonly hardwareConcurrency?: number }
}

const globals = globalThis as unknown as Globals

export function isNode(): boolean {
  return globals.process?.versions?.node !== undefined
}

/** The default number of CPUs of a kernel. */
export function coreCount(): number {
  const os = globals.process?.getBuiltinModule?.('node:os') as { availableParallelism?(): number } | undefined
  return os?.availableParallelism?.() ?? globals.navigator?.hardwareConcurrency ?? 4
}

/** Creates the machine that the options ask for. */
export async function makeMachine(
  arena: Arena,
  plan: KernelPlan,
  options: KernelOptions,
  data: CpuBoot,
): Promise<KernelMachine> {
  if (options.machine === 'simulated') {
    const { default: kernelCpu } = await import('../cpu/cpu.ts')
    return new SimulatedMachine({
      arena,
      region: plan.machine,
      program: kernelCpu,
      data,
      seed: options.seed ?? 1,
      ...(options.skew !== undefined && { skew: options.skew }),
    })
  }
  if (!isNode()) {
    for (const option of ['argv', 'env', 'execArgv', 'resourceLimits', 'trackUnmanagedFds'] as const) {
      if (options[option] !== undefined)
        throw new TypeError(`${option}: not available in browsers; leave the option out`)
    }
    return await makeWebMachine(arena, plan, data)
  }
  return await makeNodeMachine(arena, plan, options, data)
}

/**
 * The module that each CPU imports first, so that 'use task' functions are compiled as they are loaded; null
 * if a build has compiled them.
 */
export function loaderUrl(): string | null {
  return isNode() ? (loader?.href ?? null) : null
}

async function makeWebMachine(arena: Arena, plan: KernelPlan, data: CpuBoot): Promise<KernelMachine> {
  const { WebMachine } = await import('../../machine/web/webmachine.ts')
  return new WebMachine({
    arena,
    region: plan.machine,
    worker: name => new Worker(new URL('../cpu/web-cpu.ts', import.meta.url), { type: 'module', name }),
    data,
  })
}

/** Throws if this platform cannot run a kernel: it needs shared memory. */
export function checkPlatform(): void {
  if (isNode()) return
  requireSharedMemory('Kernel.boot')
  requireWaitAsync('Kernel.boot')
}
