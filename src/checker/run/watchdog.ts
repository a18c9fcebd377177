import { Worker } from 'node:worker_threads'

/**
 * Code that is not instrumented and does not end cannot be stopped from inside its own thread. The watchdog
 * runs in another thread: after too many seconds without progress it prints a message and ends the process.
 * It counts seconds of processor time, because a busy machine may take minutes to load a file. For code that
 * uses no processor time, it waits ten times as many seconds.
 */
export class Watchdog {
  private readonly beat = new Int32Array(new SharedArrayBuffer(4))
  private readonly worker: Worker

  constructor(seconds: number) {
    this.worker = new Worker(WATCH, { eval: true, workerData: { beat: this.beat, seconds } })
    this.worker.unref()
  }

  /** The search has made progress. */
  pat(name: string): void {
    Atomics.add(this.beat, 0, 1)
    if (name === this.name) return
    this.name = name
    this.worker.postMessage(name)
  }

  private name = ''

  async stop(): Promise<void> {
    await this.worker.terminate()
  }
}

const WATCH = `
const { parentPort, workerData } = require('node:worker_threads')
const { writeSync } = require('node:fs')
let name = ''
let last = -1
let quiet = 0
let waited = 0
let used = 0
parentPort.on('message', text => { name = text })
setInterval(() => {
  const now = Atomics.load(workerData.beat, 0)
  const { user, system } = process.cpuUsage()
  const spent = Math.min(1, (user + system - used) / 1e6)
  used = user + system
  quiet = now === last ? quiet + spent : 0
  waited = now === last ? waited + 1 : 0
  last = now
  if (quiet < workerData.seconds && waited < 10 * workerData.seconds) return
  writeSync(2, '\\n✗ ' + name + ': no progress for ' + workerData.seconds + ' s: the set-up, the final assertion or a function that is not instrumented does not end.\\n' +
    '    Bound its loops, or move them into a thread body, where the checker sees each turn. Stopped.\\n')
  process.kill(process.pid, 'SIGKILL')
}, 1000)
`
