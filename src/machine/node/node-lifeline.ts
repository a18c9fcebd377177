import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'

/**
 * A way to see that a worker thread is gone without a turn of the event loop: a thread that waits at a lock
 * of a dead one would never get to its `exit` event. The two ends of a channel are entangled; when a thread
 * ends, in whatever way, its end is closed after its last line of JavaScript has run, and a notice of that is
 * put into the queue of the other end.
 *
 *   receiveMessageOnPort    takes the notice off the queue, if it has come, and closes this end
 *   postMessage(_, [end])   throws if this end is closed, before it reads the message; if not, reading the message throws `alive`
 *
 * So nothing is ever sent, and nothing is made that only a turn of the event loop would free.
 */
export class Lifeline {
  private readonly near: MessagePort
  private isCut = false

  /** With an end that another thread has made. */
  constructor(near: MessagePort) {
    this.near = near
  }

  /** A new one, and what the thread is given, and keeps. */
  static make(): { readonly lifeline: Lifeline; readonly far: MessagePort } {
    const { near, far } = lifelineEnds()
    return { lifeline: new Lifeline(near), far }
  }

  /** Whether the thread has run its last line. Some microseconds: for a thread that waits in vain. */
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

/** What the timekeeper is told of a start of a CPU. */
export interface LifelineEnd {
  readonly cpu: number
  readonly start: number
  readonly near: MessagePort
}

/** Both ends: the near one may be sent to the thread that watches. */
export function lifelineEnds(): { readonly near: MessagePort; readonly far: MessagePort } {
  const { port1: near, port2: far } = new MessageChannel()
  return { near, far }
}

/** Through which the question is asked. */
let asks: MessagePort | undefined
const alive = new Error('the end can be sent')
const unreadable: object = Object.defineProperty({}, 'asked', {
  enumerable: true,
  get() {
    throw alive
  },
})
