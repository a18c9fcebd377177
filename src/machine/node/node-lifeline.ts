import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'

/**
 * Detects without a turn of the event loop that a worker thread is gone: a thread that waits for a lock of a
 * dead one would never receive its `exit` event. The two ends of a channel are entangled. When a thread ends
 * in any way, its end is closed after its last line of JavaScript, and a close notice is put into the queue
 * of the other end.
 *
 *   receiveMessageOnPort    takes a close notice from the queue, and closes this end
 *   postMessage(_, [end])   throws if this end is closed, before it reads the message; else reading the
 *                           message throws `alive`
 *
 * So no message is ever sent, and no object is created that only a turn of the event loop would free.
 */
export class Lifeline {
  private readonly near: MessagePort
  private isCut = false

  /** `near`: an end that another thread created. */
  constructor(near: MessagePort) {
    this.near = near
  }

  /** Creates a lifeline. The watched thread receives and keeps `far`. */
  static make(): { readonly lifeline: Lifeline; readonly far: MessagePort } {
    const { near, far } = lifelineEnds()
    return { lifeline: new Lifeline(near), far }
  }

  /** Whether the thread has run its last line. Takes some microseconds: call it only when a wait fails. */
  get cut(): boolean {
    if (this.isCut) return true
    receiveMessageOnPort(this.near)
    asks ??= new MessageChannel().port1
    try {
      asks.postMessage(unreadable, [this.near])
    } catch (error) {
      this.isCut = error !== alive
    }
    return this.isCut
  }

  close(): void {
    if (!this.isCut) this.near.close()
    this.isCut = true
  }
}

/** The timekeeper's data for one start of a CPU. */
export interface LifelineEnd {
  readonly cpu: number
  readonly start: number
  readonly near: MessagePort
}

/** Creates both ends. The near one may be sent to the watching thread. */
export function lifelineEnds(): { readonly near: MessagePort; readonly far: MessagePort } {
  const { port1: near, port2: far } = new MessageChannel()
  return { near, far }
}

/** The port that `cut` posts through. */
let asks: MessagePort | undefined
const alive = new Error('the end can be sent')
const unreadable: object = Object.defineProperty({}, 'asked', {
  enumerable: true,
  get() {
    throw alive
  },
})
