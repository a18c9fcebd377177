import { Job, OUTCOME_PENDING } from '../spawn/job.ts'
import type { KernelMachine } from '../boot/machines.ts'
import { messageWaits } from './mailwords.ts'
import type { Task } from '../join/task.ts'
import type { KernelView } from '../boot/view.ts'

/**
 * What travels as a message beside shared memory (src/machine/core/mail.ts): messages between a task and the
 * thread that spawned it, and arguments and results with objects that only `postMessage` moves, such as ports
 * and streams.
 *
 * A message for a task goes to the CPU that runs it. A task that has not started runs nowhere yet: its
 * messages wait with the booting thread, and its CPU asks for them when it begins the task.
 *
 *   booting thread                           CPU
 *   --------------                           ---
 *   (A) or(control, JOB_HAS_MAIL)              (C) cpu = its own number + 1: the task has begun
 *   (B) cpu is not 0: sends them there       (D) control has JOB_HAS_MAIL: asks for them
 *
 * (A) before (B) and (C) before (D): whichever way they fall together, one sees the other. Where both do, the
 * first to take the messages off the list sends them.
 */
export type ToCpu =
  | { readonly kind: 'args'; readonly id: number; readonly args: readonly unknown[] }
  | { readonly kind: 'drop'; readonly id: number }
  | { readonly kind: 'message'; readonly task: number; readonly value: unknown }
  | { readonly kind: 'lent'; readonly id: number; readonly object: object }

export type ToBooter =
  | { readonly kind: 'began'; readonly task: number }
  | { readonly kind: 'result'; readonly task: number; readonly value: unknown }
  | { readonly kind: 'message'; readonly task: number; readonly value: unknown }
  /** The task has ended: no message of it comes after this one. */
  | { readonly kind: 'end'; readonly task: number }

/** What the arena holds of arguments that come as a message. */
export interface MailedArgs {
  readonly id: number
  /** The CPU that they were sent to. */
  readonly cpu: number
}

interface Letter {
  readonly value: unknown
  readonly transfer: readonly object[]
}

/** The booting thread's end. */
export class BooterMail {
  private readonly view: KernelView
  private readonly machine: KernelMachine
  private readonly tasks = new Map<number, Task<any>>()
  private readonly waiting = new Map<number, Letter[]>()
  /** Results that have come before, or after, their jobs. */
  private readonly results = new Map<number, { readonly value: unknown } | { readonly error: unknown }>()
  /** Tasks that had posted messages, of which all have come. */
  private readonly ended = new Set<number>()
  /** Tasks whose arguments were sent to a CPU, by that CPU. */
  private readonly sentTo = new Map<number, Set<Task<any>>>()
  private nextArgs = 1

  constructor(view: KernelView, machine: KernelMachine) {
    this.view = view
    this.machine = machine
  }

  /**
   * Sends arguments to a CPU that the task will run on. Returns what they are called there. Throws what
   * `postMessage` throws.
   */
  sendArgs(cpu: number, args: readonly unknown[], transfer: readonly object[]): number {
    const id = this.nextArgs++
    const message: ToCpu = { kind: 'args', id, args }
    this.machine.post?.(cpu, message, transfer)
    return id
  }

  /**
   * Sends what a payload refers to to a CPU that is coming: it may not have joined the threads that it was
   * published to, and this thread may block before the CPU can ask for it.
   */
  sendLent(cpu: number, lent: readonly { readonly id: number; readonly object: object }[]): void {
    for (const { id, object } of lent) {
      const message: ToCpu = { kind: 'lent', id, object }
      this.machine.post?.(cpu, message)
    }
  }

  /** The task of these arguments was not made after all. */
  dropArgs(cpu: number, id: number): void {
    const message: ToCpu = { kind: 'drop', id }
    this.machine.post?.(cpu, message)
  }

  /** The task's arguments are on that CPU alone. */
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
    // A copy now, as postMessage makes one: what the caller changes afterwards is not sent.
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

  /** The task's messages are heard from here on. */
  listen(task: Task<any>): void {
    if (this.tasks.has(task.id)) return
    this.tasks.set(task.id, task)
    task.on('end', () => {
      this.tasks.delete(task.id)
      this.waiting.delete(task.id)
    })
  }

  /** What a CPU has sent. */
  receive(message: ToBooter): void {
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

  /** No message of the task comes any more. */
  heardAll(task: number): void {
    this.ended.add(task)
    this.view.completions.interrupt()
  }

  hasHeardAll(task: number): boolean {
    return this.ended.has(task)
  }

  /** The end of the task has been told. */
  forget(task: number): void {
    this.ended.delete(task)
  }

  hasResult(task: number): boolean {
    return this.results.has(task)
  }

  /** Gives the result that was sent, or throws why it never comes. */
  takeResult(task: number): unknown {
    const result = this.results.get(task)
    this.results.delete(task)
    if (result === undefined) throw new Error('the result of a task has not come')
    if ('error' in result) throw result.error
    return result.value
  }

  /** A CPU has died. What it had been sent is gone with it, and what it had not sent never comes. */
  died(cpu: number): void {
    for (const task of this.sentTo.get(cpu) ?? []) {
      task.kill(new Error(`CPU ${cpu} died, and with it the objects that were transferred to the task`))
    }
    this.sentTo.delete(cpu)
  }

  /** The result of a job never comes: its CPU died before it was sent. */
  loseResult(task: number): void {
    const error = new Error('the CPU of the task died before the result was sent')
    if (!this.results.has(task)) this.results.set(task, { error })
  }

  /** `cpu` is the one that has begun the task, plus 1; 0: none has. */
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
