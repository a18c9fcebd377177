import { type MessagePort, parentPort, receiveMessageOnPort, type Transferable } from 'node:worker_threads'
import { Arena } from '../../arena/memory/arena.ts'
import type { Region } from '../../arena/memory/arena.ts'
import type { CpuProgram } from '../core/machine.ts'
import { sealed } from '../core/mail.ts'
import { importByUrl } from '../core/moduleimport.ts'
import { clockSince } from './node-clock.ts'
import { runCpu, WorkerCpu } from '../core/workercpu.ts'

/** The data that the worker thread of a CPU starts with. */
export interface CpuBoot {
  readonly buffer: SharedArrayBuffer
  readonly region: Region
  readonly id: number
  readonly origin: number
  /** A module whose default export is the program. */
  readonly program: string
  readonly data: unknown
  /**
   * Closed when this thread ends in any way (node-lifeline.ts): for the thread that created it, and for the
   * timekeeper.
   */
  readonly lifelines: readonly MessagePort[]
}

/** Runs the CPU of this worker thread until it ends. */
export async function runNodeCpu(): Promise<void> {
  const port = parentPort
  if (port === null) throw new Error('node-cpu.ts is the entry of a worker thread; use NodeMachine')
  // A listener keeps the thread alive while a halt runs the event loop: waitAsync alone does not.
  let receive: (message: unknown) => void = () => undefined
  const booted = new Promise<unknown>(resolve => (receive = resolve))
  port.on('message', message => receive(message))
  const boot = (await booted) as CpuBoot
  const cpu = new WorkerCpu(Arena.attach(boot.buffer), boot.region, boot.id, clockSince(boot.origin))
  cpu.post = (message, transfer) => port.postMessage(sealed(message), transfer as Transferable[])
  receive = message => cpu.receive(message)
  cpu.poll = () => {
    for (let taken = receiveMessageOnPort(port); taken !== undefined; taken = receiveMessageOnPort(port))
      cpu.receive(taken.message)
  }
  const { default: program } = (await importByUrl(boot.program)) as { default: CpuProgram }

  for (const stream of [process.stdout, process.stderr]) writeAtOnce(stream)

  try {
    await runCpu(cpu, program, boot.data, () => new Promise(resolve => setImmediate(resolve)))
  } catch (error) {
    dieOf(error)
    return
  }
  for (const lifeline of boot.lifelines) lifeline.close()
  // Exit even if tasks left a timer or a socket in the event loop.
  process.exit(0)
}

/**
 * The program of the CPU has failed: ends the thread, even if a task registered a handler for uncaught errors
 * or an option of Node ignores unhandled rejections.
 */
function dieOf(error: unknown): void {
  process.removeAllListeners('uncaughtException')
  process.removeAllListeners('uncaughtExceptionMonitor')
  process.setUncaughtExceptionCaptureCallback(null)
  setImmediate(() => {
    throw error
  })
}

/**
 * A thread's output goes to the booting thread as messages, and each next write waits until the booting
 * thread has asked for more, in a turn of the event loop that a CPU may not make for a long time. So each
 * write completes as soon as it is sent.
 */
function writeAtOnce(stream: NodeJS.WriteStream): void {
  const send = stream._writev
  if (typeof send !== 'function') return
  stream._writev = function (chunks, done) {
    send.call(this, chunks, () => undefined)
    done()
  }
}
