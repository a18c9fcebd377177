import type { HandoffCounts } from '../../handoff/handoff.ts'
import type { SimulatedMachine } from '../../machine/simulated/simulatedmachine.ts'
import { refuseUnknown } from '../../coroutine/core/knownoptions.ts'
import { type KernelOptions, kernelOptions } from './options.ts'
import type { VirtualTimers } from './virtualtimers.ts'

/**
 * The settings of the launcher for the program's kernels: `heddle run --cpus 2 --slice 5 program.ts`. They
 * take precedence over the program's options. Stored under a global symbol: the launcher and the program may
 * have two copies of this module.
 */
export interface RunDefaults {
  readonly options: Pick<KernelOptions, 'cpus' | 'slice' | 'machine' | 'seed'>
  /** For a run in virtual time: the program's timers and clocks. */
  readonly timers?: VirtualTimers
  /** For simulated machines. */
  readonly stepper?: Stepper
  /** Receives the report that is otherwise printed when a kernel closes. */
  readonly report?: (report: PolicyReport) => void
}

/** Decides when a simulated machine may take steps: a debugger that stops between them. */
export interface Stepper {
  /** Waits until the machine may take a step. */
  next(machine: SimulatedMachine): Promise<void>
  /** Called after each step. True: the machine may take no further step now. */
  isOver(machine: SimulatedMachine): boolean
}

/** The final report of a policy. */
export interface PolicyReport extends HandoffCounts {
  readonly policy: string
}

const key = Symbol.for('heddle.run')
const globals = globalThis as { [key]?: RunDefaults }

export function setRunDefaults(defaults: RunDefaults): void {
  globals[key] = defaults
}

export function runDefaults(): RunDefaults | undefined {
  return globals[key]
}

/** The options that a kernel is booted with. */
export function withRunDefaults(options: KernelOptions): KernelOptions {
  const defaults = globals[key]
  if (defaults === undefined) return options
  refuseUnknown('Kernel.boot(options)', options, kernelOptions)
  return { ...options, ...defaults.options }
}
