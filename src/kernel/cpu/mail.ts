import { warn } from '../boot/kernelevents.ts'
import { Job, OUTCOME_PENDING } from '../spawn/job.ts'
import type { KernelMachine } from '../boot/machines.ts'
import { messageWaits } from './mailwords.ts'
import { type Answerer, type QuestionMail, Questions } from './questions.ts'
import type { Task } from '../join/task.ts'
import type { KernelView } from '../boot/view.ts'

/**
 * Mail: what travels as messages and not in shared memory (src/machine/core/mail.ts). These are messages
 * between a task and the booting thread, and arguments and results with objects that only `postMessage`
 * moves, such as ports and streams.
 *
 * A message for a task goes to the CPU that runs it. The messages of a task that has not begun wait on the
 * booting thread, and its CPU asks for them when it begins the task.
 *
 *   booting thread                           CPU
 *   --------------                           ---
 *   (A) or(control, JOB_HAS_MAIL)              (C) cpu = its own number + 1: the task has begun
 *   (B) cpu is not 0: sends them there       (D) control has JOB_HAS_MAIL: asks for them
 *
 * (A) before (B) and (C) before (D): at least one side sees the other. If both do, the first to take the
 * messages off the list sends them.
 */
export type ToCpu =
  | { readonly kind: 'args'; readonly id: number; readonly args: readonly unknown[] }
  | { readonly kind: 'drop'; readonly id: number }
  | { readonly kind: 'message'; readonly task: number; readonly value: unknown }
  | { readonly kind: 'published'; readonly id: number; readonly object: object }
  /** Asks for the stack of a task that has begun there. */
  | { readonly kind: 'stack'; readonly task: number }
  /** The answer to the question `id` of a task that waits for it there (questions.ts). */
  | { readonly kind: 'answer'; readonly id: number; readonly threw: boolean; readonly value: unknown }

export type ToBooter =
  | { readonly kind: 'began'; readonly task: number }
  | { readonly kind: 'result'; readonly task: number; readonly value: unknown }
  | { readonly kind: 'message'; readonly task: number; readonly value: unknown }
  /** The task has ended: this is its last message. */
  | { readonly kind: 'end'; readonly task: number }
  | { readonly kind: 'stack'; readonly task: number; readonly stack: string }
  | QuestionMail
  /** Debug mode: a probable mistake in the code of the task. */
  | { readonly kind: 'warning'; readonly task: number; readonly text: string }

/** What the job holds in place of arguments that travel as a message. */
export interface MailedArgs {
  readonly id: number
  /** The CPU that they were sent to. */
  readonly cpu: number
}

interface Letter {
  readonly value: unknown
  readonly transfer: readonly object[]
}

/** A CPU that runs code without safepoints does not answer. */
const STACK_MS = 1000

/** The booting thread's end of the mail. */
export class BooterMail {
  private readonly view: KernelView
  private readonly machine: KernelMachine
  private readonly tasks = new Map<number, Task<any>>()
  private readonly waiting = new Map<number, Letter[]>()
  /** Results that have arrived, before or after the outcomes of their jobs. */
  private readonly results = new Map<number, { readonly value: unknown } | { readonly error: unknown }>()
  /** Tasks that had posted messages, all of which have arrived. */
  private readonly ended = new Set<number>()
  /** By CPU: the tasks whose arguments were sent there. */
  private readonly sentTo = new Map<number, Set<Task<any>>>()
  private nextArgs = 1
  private readonly stacks = new Map<number, ((stack: string | null) => void)[]>()
  private readonly questions = new Questions((cpu, answer) => this.machine.post?.(cpu, answer))

  constructor(view: KernelView, machine: KernelMachine) {
    this.view = view
    this.machine = machine
  }

  /** Sends arguments to the CPU that the task will run on. Throws what `postMessage` throws. */
  sendArgs(cpu: number, args: readonly unknown[], transfer: readonly object[]): MailedArgs {
    const id = this.nextArgs++
    const message: ToCpu = { kind: 'args', id, args }
    this.machine.post?.(cpu, message, transfer)
    return { id, cpu }
  }

  /**
   * Sends the objects that a payload refers to to a CPU that is starting: it may not be among the threads
   * that they were published to, and this thread may block before the CPU can ask for them.
   */
  sendPublished(cpu: number, objects: readonly { readonly id: number; readonly object: object }[]): void {
    for (const { id, object } of objects) {
      const message: ToCpu = { kind: 'published', id, object }
      this.machine.post?.(cpu, message)
    }
  }

  /** The task for these arguments could not be made. */
  dropArgs({ id, cpu }: MailedArgs): void {
    const message: ToCpu = { kind: 'drop', id }
    this.machine.post?.(cpu, message)
  }

  /** The arguments of the task are on this CPU only. */
  sent(task: Task<any>, cpu: number): void {
    const tasks = this.sentTo.get(cpu) ?? new Set()
    this.sentTo.set(cpu, tasks.add(task))
    task.on('end', () => tasks.delete(task))
  }

  /** A message for a task. False: the task has ended. */
  send(task: Task<any>, value: unknown, transfer: readonly object[]): boolean {
    const { i32 } = this.view
    const { job } = task
    if (job === 0 || Atomics.load(i32, job + Job.outcome) !== OUTCOME_PENDING) return false
    // Copied now, as postMessage does: later changes by the caller are not sent.
    const letter: Letter =
      Atomics.load(i32, job + Job.cpu) === 0
        ? { value: structuredClone(value, { transfer: [...transfer] as never }), transfer: [] }
        : { value, transfer }
    const letters = this.waiting.get(task.id) ?? []
    letters.push(letter)
    this.waiting.set(task.id, letters)
    this.listen(task)
    this.flush(task, messageWaits(i32, job))
    return true
  }

  /** From here on the handle delivers the messages of its task. */
  listen(task: Task<any>): void {
    if (this.tasks.has(task.id)) return
    this.tasks.set(task.id, task)
    task.on('end', () => {
      this.tasks.delete(task.id)
      this.waiting.delete(task.id)
    })
  }

  /**
   * The stack of a task where it stopped last, from its CPU: the CPU answers between two slices. Null: it did
   * not answer in time.
   */
  stackOf(cpu: number, task: number): Promise<string | null> {
    return new Promise(resolve => {
      const waiting = this.stacks.get(task) ?? []
      this.stacks.set(task, waiting)
      waiting.push(resolve)
      setTimeout(() => this.answerStack(task, null), STACK_MS)
      const message: ToCpu = { kind: 'stack', task }
      this.machine.post?.(cpu, message)
    })
  }

  /** From here on `answerer` answers the questions of the task. */
  answers(task: Task<any>, answerer: Answerer): void {
    this.questions.answers(task, answerer)
  }

  private answerStack(task: number, stack: string | null): void {
    const waiting = this.stacks.get(task) ?? []
    this.stacks.delete(task)
    for (const resolve of waiting) resolve(stack)
  }

  /** A CPU has sent this. */
  receive(message: ToBooter): void {
    if (message.kind === 'stack') {
      this.answerStack(message.task, message.stack)
      return
    }
    if (message.kind === 'question') {
      this.questions.receive(message)
      return
    }
    if (message.kind === 'warning') {
      warn(message.text, 'HEDDLE_MODULE_STATE')
      return
    }
    if (message.kind === 'result') {
      this.results.set(message.task, { value: message.value })
      this.view.completions.interrupt()
      return
    }
    if (message.kind === 'end') {
      this.heardAll(message.task)
      return
    }
    const task = this.tasks.get(message.task)
    if (task === undefined) return
    if (message.kind === 'began') this.flush(task, Atomics.load(this.view.i32, task.job + Job.cpu))
    else task.emit('message', message.value)
  }

  /** No more messages of the task will arrive. */
  heardAll(task: number): void {
    this.ended.add(task)
    this.view.completions.interrupt()
  }

  hasHeardAll(task: number): boolean {
    return this.ended.has(task)
  }

  /** The outcome of the task has been delivered. */
  forget(task: number): void {
    this.ended.delete(task)
  }

  hasResult(task: number): boolean {
    return this.results.has(task)
  }

  /** Returns the result that was sent, or throws the reason why it will not arrive. */
  takeResult(task: number): unknown {
    const result = this.results.get(task)
    this.results.delete(task)
    if (result === undefined) throw new Error('the result of the task has not arrived')
    if ('error' in result) throw result.error
    return result.value
  }

  /** A CPU has died. Messages that were sent to it are lost, and nothing more arrives from it. */
  died(cpu: number): void {
    for (const task of this.sentTo.get(cpu) ?? []) {
      task.kill(
        new Error(`CPU ${cpu} died, and the objects that were transferred to the task were lost with it`),
      )
    }
    this.sentTo.delete(cpu)
  }

  /** The result of a job will not arrive: its CPU died before it was sent. */
  loseResult(task: number): void {
    const error = new Error('the CPU of the task died before the result was sent')
    if (!this.results.has(task)) this.results.set(task, { error })
  }

  /** `cpu`: the CPU that has begun the task, plus 1; 0: not begun. */
  private flush(task: Task<any>, cpu: number): void {
    if (task.job === 0 || cpu === 0) return
    const letters = this.waiting.get(task.id) ?? []
    this.waiting.delete(task.id)
    for (const { value, transfer } of letters) {
      const message: ToCpu = { kind: 'message', task: task.id, value }
      this.machine.post?.(cpu - 1, message, transfer)
    }
  }
}
