import type { Waker } from '../../thread/runner.ts'
import type { Cpu } from '../../machine/core/machine.ts'
import type { ToBooter, ToCpu } from './mail.ts'
import { receivedError, type SentError } from './questions.ts'
import type { PublishedObjects } from '../../payload/publishedobjects.ts'

/** The messages that one task has not taken yet, or its wait for the next one. */
class Inbox {
  private readonly messages: unknown[] = []
  private readonly wakers: Waker[] = []

  put(message: unknown): void {
    const waker = this.wakers.shift()
    if (waker === undefined) this.messages.push(message)
    else waker.wake({ message })
  }

  /** The oldest message; undefined: the inbox is empty. */
  take(): { readonly message: unknown } | undefined {
    return this.messages.length === 0 ? undefined : { message: this.messages.shift() }
  }

  wait(waker: Waker): void {
    this.wakers.push(waker)
  }

  /** The wait ended without a message. */
  forget(waker: Waker): void {
    const at = this.wakers.indexOf(waker)
    if (at >= 0) this.wakers.splice(at, 1)
  }
}

/** A CPU's end of the mail (mail.ts). */
export class CpuMail {
  private readonly cpu: Cpu
  private readonly published: PublishedObjects
  private readonly args = new Map<number, readonly unknown[]>()
  private readonly arrivals = new Map<number, () => void>()
  /** By the number of the task. */
  private readonly inboxes = new Map<number, Inbox>()
  private readonly stackOf: (task: number) => string
  /** The questions of tasks of this CPU that have no answer yet. */
  private readonly asked = new Map<number, Waker>()
  private lastQuestion = 0

  /** `stackOf`: the stack of a task that has begun on this CPU, by its number. */
  constructor(cpu: Cpu, published: PublishedObjects, stackOf: (task: number) => string) {
    this.stackOf = stackOf
    this.cpu = cpu
    this.published = published
    published.poll = () => cpu.poll()
    cpu.onMail = message => this.receive(message as ToCpu)
  }

  /** Whether a message moves the buffers that it transfers. A simulated machine has one heap: it does not. */
  get movesBuffers(): boolean {
    return !this.cpu.stepwise
  }

  send(message: ToBooter, transfer: readonly object[] = []): void {
    this.cpu.post(message, transfer)
  }

  /** Asks the booting thread; `waker` gets the answer. Returns the number of the question. */
  ask(task: number, question: unknown, waker: Waker): number {
    const id = ++this.lastQuestion
    this.asked.set(id, waker)
    this.send({ kind: 'question', task, cpu: this.cpu.id, id, question })
    return id
  }

  /** The same without an answer. */
  tell(task: number, question: unknown): void {
    this.send({ kind: 'question', task, cpu: this.cpu.id, id: 0, question })
  }

  /** The wait for the answer has ended. */
  forgetQuestion(id: number): void {
    this.asked.delete(id)
  }

  /** The inbox of a task that has begun. */
  inboxOf(task: number): Inbox {
    let inbox = this.inboxes.get(task)
    if (inbox === undefined) {
      inbox = new Inbox()
      this.inboxes.set(task, inbox)
    }
    return inbox
  }

  /** The task has ended. */
  close(task: number): void {
    if (this.inboxes.size !== 0) this.inboxes.delete(task)
  }

  /** Null: the arguments have arrived. Else a promise for their arrival. */
  missing(id: number): Promise<void> | null {
    if (!this.args.has(id)) this.cpu.poll()
    if (this.args.has(id)) return null
    return new Promise(resolve => this.arrivals.set(id, resolve))
  }

  /** Takes arguments that have arrived. */
  takeArgs(id: number): readonly unknown[] {
    const args = this.args.get(id)
    if (args === undefined) throw new Error('the arguments that were sent to the task have not arrived')
    this.args.delete(id)
    return args
  }

  private receive(message: ToCpu): void {
    if (message.kind === 'message') {
      this.inboxOf(message.task).put(message.value)
    } else if (message.kind === 'published') {
      this.published.accept(message.id, message.object)
    } else if (message.kind === 'answer') {
      const waker = this.asked.get(message.id)
      if (message.threw) waker?.fail(receivedError(message.value as SentError))
      else waker?.wake({ answer: message.value })
    } else if (message.kind === 'stack') {
      this.send({ kind: 'stack', task: message.task, stack: this.stackOf(message.task) })
    } else if (message.kind === 'drop') {
      this.args.delete(message.id)
    } else {
      this.args.set(message.id, message.args)
      this.arrivals.get(message.id)?.()
      this.arrivals.delete(message.id)
    }
  }
}
