/** `heddle/machine`: what a kernel needs of hardware. `heddle/machine/node` and `heddle/machine/web` have the real ones. */
export * from './cpurecord.ts'
export * from './halt.ts'
export * from './machine.ts'
export * from './random.ts'
export * from './simulated.ts'
export * from './timekeeper.ts'
