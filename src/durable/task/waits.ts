import { sleep as pause } from '../../coroutine/core/blocking.ts'
import { type Known, refuseUnknown } from '../../coroutine/core/knownoptions.ts'
import { TaskLocal } from '../../kernel/cpu/current.ts'
import { checkName } from '../names.ts'
import { decodeValue } from '../outcome.ts'
import { askWorker, checkTask } from './asking.ts'
import type { Message, Pause } from './questions.ts'
import { checkSpan } from './times.ts'

/**
 * The waits of a durable run. Each wait has a number, which is part of the state of the task: a wait that
 * begins again after a takeover finds its own deadline and its own message.
 *
 *   task                                      worker
 *   ----                                      ------
 *   (A) asks for the end of wait n
 *                                             (B) stores its deadline, or finds it
 *                                             (C) answers: so many milliseconds are left
 *   (D) pauses, and asks again                (E) a long wait: suspends the task to bytes, and stores them.
 *                                                 Its worker forgets it
 *   (D) in another worker: the pause ends
 *   (A) asks again: the wait is over
 *
 * Between (C) and (A) only functions that can move are on the stack. So these functions are compiled as the
 * run's own are.
 */
const waits: TaskLocal<number> = new TaskLocal(() => 0, { name: 'heddle/durable waits' })

function nextWait(call: string): number {
  checkTask(call)
  return ++waits.value
}

/**
 * Sleeps for milliseconds of the database's clock. A run that sleeps for long holds no memory and no CPU
 * anywhere meanwhile.
 */
export function sleep(ms: number): void {
  'use task movable'
  checkSpan('ms', ms)
  const wait = nextWait('sleep()')
  for (;;) {
    const left = askWorker<Pause>('sleep()', { call: 'sleep', wait, ms }).ms
    if (left <= 0) return
    pause(left)
  }
}

/** The options of `receive`. */
export interface ReceiveOptions {
  /** Milliseconds; then the wait ends by throwing a TimeoutError. Default: it waits for ever. */
  readonly timeout?: number
}

/**
 * Waits for a message that `durable.send(run, name, value)` sends, and takes it. Meanwhile the run holds no
 * memory and no CPU anywhere.
 */
export function receive<T = unknown>(name: string, options?: ReceiveOptions): T {
  'use task movable'
  const timeout = receiveTimeout(name, options)
  const wait = nextWait('receive()')
  for (;;) {
    const answer = askWorker<Message>('receive()', { call: 'receive', wait, name, timeout })
    const value = messageIn(answer, name, timeout)
    if (value !== null) return value.message as T
    pause((answer as Pause).ms)
  }
}

const receiveOptions: Known<ReceiveOptions> = { timeout: true }

function receiveTimeout(name: unknown, options: ReceiveOptions | undefined): number {
  checkName('receive(name)', name)
  refuseUnknown('receive(name, options)', options ?? {}, receiveOptions)
  const { timeout = Infinity } = options ?? {}
  if (timeout !== Infinity) checkSpan('timeout', timeout)
  return timeout
}

/** Null: there is no message yet. */
function messageIn(answer: Message, name: string, timeout: number): { readonly message: unknown } | null {
  if ('value' in answer) return { message: decodeValue(answer.value, `the message '${name}'`) }
  if ('isLate' in answer)
    throw new DOMException(`receive('${name}'): ${timeout} ms have passed`, 'TimeoutError')
  return null
}
