/** A simulated run as plain data: what the panel shows, and what it may ask. */

/** `starting`: no kernel has booted yet. */
export type SimulationState = 'starting' | 'paused' | 'running' | 'ended'

/** A stretch in which a CPU ran one task. */
export interface SimulatedRun {
  readonly cpu: number
  /** A number of its own for each task, from 0. */
  readonly task: number
  readonly name: string
  /** Virtual milliseconds. The last stretch of a CPU has no end yet. */
  readonly from: number
  readonly to: number | null
  /** A tick ended its slice. */
  readonly ticked: boolean
}

export interface SimulatedCpuState {
  readonly cpu: number
  readonly clock: number
  readonly running: string | null
  readonly queued: number
  readonly switches: number
}

export interface SimulatedTaskState {
  readonly id: number
  readonly name: string
  readonly state: string
  readonly cpu: number
  readonly priority: number
  readonly runTime: number
  readonly waitTime: number
  readonly waitsFor: string | null
}

export interface SimulationData {
  readonly seed: number
  readonly state: SimulationState
  readonly steps: number
  /** The clock of the CPU that is furthest ahead. */
  readonly time: number
  readonly cpus: readonly SimulatedCpuState[]
  readonly tasks: readonly SimulatedTaskState[]
  /** The last stretches, oldest first. */
  readonly runs: readonly SimulatedRun[]
  readonly exitCode: number | null
}

/** One step of one CPU; up to the next switch; up to the end of a slice; on without a stop; stop. */
export const simulationSteps = ['step', 'switch', 'slice', 'run', 'pause'] as const
export type SimulationStep = (typeof simulationSteps)[number]

export type SimulationRequest =
  | { readonly kind: SimulationStep }
  /** Starts the program again. */
  | { readonly kind: 'seed'; readonly seed: number }

/** The request in a message of a page; undefined when it is none. */
export function asSimulationRequest(data: unknown): SimulationRequest | undefined {
  const { kind, seed } = (data ?? {}) as { kind?: unknown; seed?: unknown }
  if (kind === 'seed')
    return Number.isSafeInteger(seed) && (seed as number) >= 0 ? { kind, seed: seed as number } : undefined
  const known = simulationSteps.find(step => step === kind)
  return known && { kind: known }
}

export function emptySimulation(seed: number): SimulationData {
  return { seed, state: 'starting', steps: 0, time: 0, cpus: [], tasks: [], runs: [], exitCode: null }
}
