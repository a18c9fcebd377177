import type { Arena } from '../../arena/memory/arena.ts'
import { KernelThread } from '../../arena/sync/thread.ts'
import type { CpuDeath } from '../../machine/core/machine.ts'
import { hostPlatform } from '../../machine/core/platform.ts'
import { SimulatedMachine } from '../../machine/simulated/simulatedmachine.ts'
import { areHeld } from '../../sched/ext/extload.ts'
import { isOnline } from '../../sched/balance/hotplug.ts'
import { Scheduler } from '../../sched/core/scheduler.ts'
import { describe } from '../join/errors.ts'
import type { CodeSource } from '../spawn/functions.ts'
import { BOOTING_THREAD, type CpuBoot, createArena, type KernelPlan } from './layout.ts'
import { checkPlatform, coreCount, isNode, type KernelMachine, loaderUrl, makeMachine } from './machines.ts'
import { type BootSettings, bootSettings, handoffKnobs, type KernelOptions } from './options.ts'
import { companionModules } from '../../payload/travelling.ts'
import { bareBundle } from '../../machine/node/barebundle.ts'
import { deathInWords } from '../recovery/restarts.ts'
import { turn } from '../cpu/eventloopturn.ts'
import { KernelView } from './view.ts'

/** A kernel's arena and machine, before its CPUs are started. */
export interface BootedKernel {
  readonly settings: BootSettings
  readonly machine: KernelMachine
  readonly view: KernelView
}

/** Creates the arena and the machine. `onKick` is called after each kick of a CPU by this thread. */
export async function makeKernel(options: KernelOptions, onKick: () => void): Promise<BootedKernel> {
  const planned = planKernel(options)
  return assembleKernel(
    planned,
    await makeMachine(planned.arena, planned.plan, options, planned.data),
    onKick,
  )
}

/** A kernel with an arena but without a machine. */
export interface PlannedKernel {
  readonly settings: BootSettings
  readonly arena: Arena
  readonly plan: KernelPlan
  readonly data: { -readonly [K in keyof CpuBoot]: CpuBoot[K] }
}

/** Checks the options and creates the arena. */
export function planKernel(options: KernelOptions): PlannedKernel {
  const settings = bootSettings(options, coreCount)
  checkPlatform()
  const { cpus, tasks, heap, slice } = settings
  const sizes = {
    cpus,
    tasks,
    heap,
    futexes: options.futexes ?? {},
    events: options.events ?? 4096,
    debug: options.debug ?? false,
    handoff: handoffKnobs(options),
  }
  const { arena, kernel: plan } = createArena(sizes)
  const data: PlannedKernel['data'] = {
    sizes,
    slice,
    space: 0,
    arenaMapping: { mapping: 0, backing: 0 },
    code: codeSource(settings.compile),
    turnsIdle: options.eventLoop === 'always',
    ...((!isNode() || options.machine === 'simulated') && {
      workerData: structuredClone(options.workerData),
    }),
  }
  return { settings, arena, plan, data }
}

/** Joins the kernel to its machine, whose CPUs are not started yet. */
export function assembleKernel(
  { settings, arena, plan, data }: PlannedKernel,
  machine: KernelMachine,
  onKick: () => void,
): BootedKernel {
  const { slice } = settings
  const s = new Scheduler({
    plan: plan.scheduler,
    machine: plan.machine,
    thread: new KernelThread(arena, BOOTING_THREAD, hostPlatform().block !== undefined),
    now: () => machine.now(),
    kick: cpu => {
      machine.kick(cpu)
      onKick()
    },
    slice,
  })
  s.initialize()
  const view = new KernelView(plan, s)
  // In virtual time no wait is long, and a timer for each wait would make time pass.
  view.futexes.context.detectsDeadlocks = !(machine instanceof SimulatedMachine)
  Object.assign(data, view.domain)
  view.codec.published.open()
  return { settings, machine, view }
}

const globals = globalThis as {
  readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> }
}

/** How the threads of a kernel load the code of its tasks. */
export function codeSource(compile: readonly string[]): CodeSource {
  // A CPU may have another environment than the program.
  const asked = isNode() ? (globals.process?.env?.HEDDLE_COMPILE ?? '') : ''
  return {
    loader: loaderUrl(),
    compile: [...compile, ...asked.split(',').flatMap(part => part.trim() || [])],
    companions: companionModules(),
  }
}

/** Starts the first CPUs. If one does not start, ends all of them and throws the reason. */
export async function startCpus(machine: KernelMachine, s: Scheduler, count: number): Promise<void> {
  const deaths: CpuDeath[] = []
  let booting = true
  machine.onDeath(death => {
    if (booting) deaths.push(death)
  })
  const started = await Promise.allSettled(
    Array.from({ length: count }, (_, cpu) => startCpu(machine, s, cpu)),
  )
  booting = false
  const failed = started.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined
  if (failed === undefined) return
  await machine.close().catch(() => undefined)
  const death = deaths[0]
  const why = death === undefined ? describe(failed.reason) : deathInWords(death)
  if ((failed.reason as { name?: unknown } | null)?.name === 'DataCloneError')
    throw new TypeError(`workerData: ${why} Each CPU gets a copy: leave out what structuredClone refuses`, {
      cause: failed.reason,
    })
  const isBundle = /Cannot find module '[^']*'/.test(why) && !/node_modules.heddle|\.ts'/.test(why)
  throw new Error(
    `Kernel.boot: CPU ${death?.cpu ?? 0} did not start: ${why}${isBundle ? `; ${bareBundle}` : ''}`,
    {
      cause: death?.error ?? failed.reason,
    },
  )
}

/** Starts a CPU. Resolves when it takes tasks, which is a little after its thread runs. */
export async function startCpu(machine: KernelMachine, s: Scheduler, cpu: number): Promise<void> {
  await machine.start(cpu)
  // A held CPU comes online only when it may continue (launch.ts).
  while (!areHeld(s) && !isOnline(s, cpu)) {
    if (!machine.isActive(cpu)) throw new Error(`CPU ${cpu} ended before it took a task; its death says why`)
    if (machine instanceof SimulatedMachine) {
      machine.run({ steps: machine.cpus })
      await turn()
    } else {
      await new Promise(resolve => setTimeout(resolve, 1))
    }
  }
}

/** Ends a CPU after the tasks that are bound to it. Resolves when it is gone. */
export async function stopCpu(machine: KernelMachine, cpu: number): Promise<void> {
  await machine.stop(cpu)
  if (!(machine instanceof SimulatedMachine)) return
  while (machine.isActive(cpu)) {
    machine.run({ steps: machine.cpus })
    await turn()
  }
}
