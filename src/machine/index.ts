/**
 * `heddle/machine`: the hardware of a kernel. `heddle/machine/node` and `heddle/machine/web` have the real
 * machines.
 */
export * from './core/cpurecord.ts'
export * from './core/halt.ts'
export * from './core/machine.ts'
export * from './simulated/random.ts'
export * from './simulated/simulatedmachine.ts'
export * from './timekeeper/timekeeper.ts'
