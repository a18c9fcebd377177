import { type MessagePort, parentPort, receiveMessageOnPort, type Transferable } from 'node:worker_threads'
import { Arena } from '../../arena/memory/arena.ts'
import type { Region } from '../../arena/memory/arena.ts'
import type { CpuProgram } from '../core/machine.ts'
import { sealed } from '../core/mail.ts'
import { importByUrl } from '../core/moduleimport.ts'
import { clockSince } from './node-clock.ts'
import { runCpu, WorkerCpu } from '../core/workercpu.ts'

/** The worker thread behind a CPU of the Node machine. */
export interface CpuBoot {
  readonly buffer: SharedArrayBuffer
  readonly region: Region
  readonly id: number
  readonly origin: number
  /** A module whose default export is the program. */
  readonly program: string
  readonly data: unknown
  /**
   * Closed when this thread ends, in whatever way (node-lifeline.ts): for the thread that made it, and for
   * the timekeeper.
   */
  readonly lifelines: readonly MessagePort[]
}

void run()

// A function, because a bundle in CommonJS has no `await` at its top.
async function run(): Promise<void> {
  const port = parentPort
  if (port === null) throw new Error('node-cpu.ts is the entry of a worker thread; use NodeMachine')
  // A listener keeps the thread alive while a halt lets the event loop turn: waitAsync alone does not.
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
  // Whatever its tasks left in the event loop (a timer, a socket) does not keep the thread.
  process.exit(0)
}

/**
 * The program of the CPU has failed, and nothing runs here any more: the thread ends, whatever a task has
 * registered for errors that nobody catches, and whatever Node was told to do about promises that nobody
 * handles.
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
 * What a thread prints goes to the booting thread as messages, and the next one waits until that has asked
 * for more: in a turn of an event loop that a CPU may not take for a long time. So each write is done when it
 * has been sent.
 */
function writeAtOnce(stream: NodeJS.WriteStream): void {
  const send = stream._writev
  if (typeof send !== 'function') return
  stream._writev = function (chunks, done) {
    send.call(this, chunks, () => undefined)
    done()
  }
}
