/** `heddle/machine`: what a kernel needs of hardware. `heddle/machine/node` has the real one. */
export * from './cpurecord.ts'
export * from './halt.ts'
export * from './machine.ts'
export * from './random.ts'
export * from './simulated.ts'
export * from './timekeeper.ts'
