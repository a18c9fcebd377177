import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
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
  /** Closed when this thread ends, in whatever way (node-lifeline.ts). */
  readonly lifeline: MessagePort
}

const boot = workerData as CpuBoot
const cpu = new WorkerCpu(Arena.attach(boot.buffer), boot.region, boot.id, clockSince(boot.origin))
const { default: program } = (await import(boot.program)) as { default: CpuProgram }
const port = parentPort
if (port === null) throw new Error('node-cpu.ts is the entry of a worker thread; use NodeMachine')

for (const stream of [process.stdout, process.stderr]) writeAtOnce(stream)

// A listener keeps the thread alive while a halt lets the event loop turn: waitAsync alone does not.
port.on('message', () => Atomics.sub(cpu.i32, cpu.record + CpuRecord.mail, 1))
await runCpu(cpu, program, boot.data, () => new Promise(resolve => setImmediate(resolve)))
boot.lifeline.close()
// Whatever its tasks left in the event loop (a timer, a socket) does not keep the thread.
process.exit(0)

/**
 * What a thread prints goes to the booting thread as messages, and the next one waits until that has asked for more: in a
 * turn of an event loop that a CPU may not take for a long time. So each write is done when it has been sent.
 */
function writeAtOnce(stream: NodeJS.WriteStream): void {
  const send = stream._writev
  if (typeof send !== 'function') return
  stream._writev = function (chunks, done) {
    send.call(this, chunks, () => undefined)
    done()
  }
}
