import { bareBundle } from '../../machine/node/barebundle.ts'
import type { Arena } from '../../arena/memory/arena.ts'
import type { NodeMachineOptions } from '../../machine/node/nodemachine.ts'
import type { CpuBoot, KernelPlan } from './layout.ts'
import type { KernelMachine } from './machines.ts'
import type { KernelOptions } from './options.ts'

/** The part of a kernel that needs Node. Builds for browsers have machine/node/absent.ts instead. */

/**
 * The module that compiles 'use task' functions as they are loaded: part of the package, imported by each
 * CPU. Null in a bundle, where the plugin has compiled them.
 */
export const loader: URL | null = /* @__PURE__ */ besideUs(
  () => new URL('../../compiler/loading/installloader.ts', import.meta.url),
)

/** A CommonJS bundle has no import.meta, unless the plugin provides it. */
function besideUs<T>(address: () => T): T {
  try {
    return address()
  } catch (error) {
    throw new Error(bareBundle, { cause: error })
  }
}

/**
 * Creates the machine of Node's worker threads. Only this module imports it, so that no page loads
 * node:worker_threads.
 */
export async function makeNodeMachine(
  arena: Arena,
  plan: KernelPlan,
  options: KernelOptions,
  data: CpuBoot,
): Promise<KernelMachine> {
  const { NodeMachine } = await import('../../machine/node/nodemachine.ts')
  return nodeMachineOf(NodeMachine, arena, plan, options, data)
}

/** As `makeNodeMachine`, with the machine's class given. */
export function nodeMachineOf(
  NodeMachine: new (options: NodeMachineOptions) => KernelMachine,
  arena: Arena,
  plan: KernelPlan,
  options: KernelOptions,
  data: CpuBoot,
): KernelMachine {
  const { argv, env, execArgv, resourceLimits, trackUnmanagedFds, workerData } = options
  return new NodeMachine({
    arena,
    region: plan.machine,
    program: new URL('../cpu/cpu.ts', import.meta.url),
    data,
    unref: true,
    worker: {
      workerData,
      ...(argv && { argv: [...argv] }),
      ...(env && { env: env as NonNullable<NodeMachineOptions['worker']>['env'] }),
      ...(execArgv && { execArgv: [...execArgv] }),
      ...(resourceLimits && { resourceLimits }),
      ...(trackUnmanagedFds !== undefined && { trackUnmanagedFds }),
    },
  })
}
