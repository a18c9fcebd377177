import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'

/**
 * A way to see that a worker thread is gone without a turn of the event loop: a thread that waits at a lock of a dead one would
 * never get to its `exit` event. The two ends of a channel are entangled; when a thread ends, in whatever way, its end is
 * closed after its last line of JavaScript has run, and a notice of that is put into the queue of the other end.
 *
 *   receiveMessageOnPort    takes the notice off the queue, if it has come, and closes this end
 *   postMessage(_, [end])   throws if this end is closed; if not, moves it into a message, out of which it is taken again
 */
export class Lifeline {
  /** What the thread is given, and keeps. */
  readonly far: MessagePort
  private near: MessagePort
  private isCut = false

  constructor() {
    const { port1, port2 } = new MessageChannel()
    this.near = port1
    this.far = port2
  }

  /** Whether the thread has run its last line. Some microseconds: for a thread that waits in vain. */
  get cut(): boolean {
    if (this.isCut) return true
    receiveMessageOnPort(this.near)
    const loop = new MessageChannel()
    try {
      loop.port1.postMessage(this.near, [this.near])
      this.near = receiveMessageOnPort(loop.port2)?.message as MessagePort
    } catch {
      this.isCut = true
    }
    loop.port1.close()
    return this.isCut
  }

  close(): void {
    if (!this.isCut) this.near.close()
    this.isCut = true
  }
}
