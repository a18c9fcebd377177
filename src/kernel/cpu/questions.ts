import type { Task } from '../join/task.ts'

/**
 * Questions: a task asks the booting thread, and waits for the answer. Unlike a message, a question leaves
 * nothing in the heap of the CPU when it is answered, so the task can move before and after it.
 *
 *   CPU of the task                           booting thread
 *   ---------------                           --------------
 *   (A) remembers the waiter by a number
 *   (B) sends the question
 *                                             (C) the answerer of the task settles
 *                                             (D) sends the answer to that CPU
 *   (E) wakes the waiter of the number
 *
 * The task cannot move between (A) and (E). If its CPU dies there, the answer is lost with it, and a task
 * that goes on from its checkpoint asks again: an answerer must accept the same question twice.
 */
export interface QuestionMail {
  readonly kind: 'question'
  readonly task: number
  readonly cpu: number
  /** 0: the task waits for no answer. */
  readonly id: number
  readonly question: unknown
}

interface AnswerMail {
  readonly kind: 'answer'
  readonly id: number
  readonly threw: boolean
  readonly value: unknown
}

export type Answerer = (question: unknown) => unknown

/** On the booting thread: the answerers by task. */
export class Questions {
  private readonly answerers = new Map<number, Answerer>()
  private readonly send: (cpu: number, answer: AnswerMail) => void

  constructor(send: (cpu: number, answer: AnswerMail) => void) {
    this.send = send
  }

  answers(task: Task<any>, answerer: Answerer): void {
    this.answerers.set(task.id, answerer)
    task.on('end', () => this.answerers.delete(task.id))
  }

  receive({ task, cpu, id, question }: QuestionMail): void {
    const settled = this.settle(task, question)
    if (id === 0) return void settled.catch(() => undefined)
    void settled.then(
      value => this.send(cpu, { kind: 'answer', id, threw: false, value }),
      (error: unknown) => this.send(cpu, { kind: 'answer', id, threw: true, value: sentError(error) }),
    )
  }

  private async settle(task: number, question: unknown): Promise<unknown> {
    const answerer = this.answerers.get(task)
    if (answerer === undefined) throw new NobodyAnswersError()
    return await answerer(question)
  }
}

/** No answerer has been set for the task. */
export class NobodyAnswersError extends Error {
  override readonly name = 'NobodyAnswersError'
  readonly code = 'ERR_HEDDLE_NOBODY_ANSWERS'

  constructor() {
    super('the task asked a question, and the thread that booted the kernel answers none of this task')
  }
}

/** The texts of an error: an object could hold what does not travel, and `postMessage` drops its code. */
export interface SentError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly code: unknown
}

function sentError(error: unknown): SentError {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  const code = (error as { code?: unknown } | null)?.code
  return { name, message, stack, code: typeof code === 'string' ? code : undefined }
}

/** The error that the asking task gets. */
export function receivedError({ name, message, stack, code }: SentError): Error {
  return Object.assign(new Error(message), { name, stack, ...(code !== undefined && { code }) })
}
