import { parentPort, workerData } from 'node:worker_threads'
import { Arena } from '../arena/arena.ts'
import type { Region } from '../arena/arena.ts'
import { CpuRecord } from './cpurecord.ts'
import type { CpuProgram } from './machine.ts'
import { clockSince } from './node-clock.ts'
import { runCpu, WorkerCpu } from './workercpu.ts'

/** The worker thread behind a CPU of the Node machine. */
export interface CpuBoot {
  readonly buffer: SharedArrayBuffer
  readonly region: Region
  readonly id: number
  readonly origin: number
  /** A module whose default export is the program. */
  readonly program: string
  readonly data: unknown
}

const boot = workerData as CpuBoot
const cpu = new WorkerCpu(Arena.attach(boot.buffer), boot.region, boot.id, clockSince(boot.origin))
const { default: program } = (await import(boot.program)) as { default: CpuProgram }
const port = parentPort
if (port === null) throw new Error('node-cpu.ts is the entry of a worker thread; use NodeMachine')

// A listener keeps the thread alive while a halt lets the event loop turn: waitAsync alone does not.
port.on('message', () => Atomics.sub(cpu.i32, cpu.record + CpuRecord.mail, 1))
await runCpu(cpu, program, boot.data, () => new Promise(resolve => setImmediate(resolve)))
port.close()
