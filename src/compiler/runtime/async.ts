/**
 * Async functions that are tasks. Called from a task, the part up to the first `await` runs inside that task and can
 * be preempted and can block; the caller then gets its promise, as always. What follows an `await` is a job of the
 * event loop: it belongs to no task, unless someone adopts it.
 */
import { SUSPENDED, type Twin } from '../../coroutine/coroutine.ts'
import { cannotBlock } from './generator.ts'

/** A value that the function waits for. */
export class Await {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

type Raw = Generator<unknown, unknown, unknown>
type Settle = { resolve(value: unknown): void; reject(error: unknown): void }

const { then } = Promise.prototype
const resolved = Promise.resolve.bind(Promise)

/** The twin of an async function: it finishes at the first `await`, with the promise. */
export function asyncTwin(body: Twin): Twin {
  return function* (this: unknown, ...args: unknown[]) {
    let settle!: Settle
    const promise = new Promise((resolve, reject) => {
      settle = { resolve, reject }
    })
    let raw: Raw
    try {
      raw = Reflect.apply(body, this, args) as never
    } catch (error) {
      settle.reject(error)
      return promise
    }
    let stop = advance(raw, 'next', undefined, settle)
    while (stop !== null) {
      let sent: unknown
      try {
        sent = yield stop
      } catch (error) {
        stop = advance(raw, 'throw', error, settle)
        continue
      }
      stop = advance(raw, 'next', sent, settle)
    }
    return promise as never
  }
}

/** Runs on to the next stop, which it returns, or to an await or the end, which it sees to: null. */
function advance(raw: Raw, verb: 'next' | 'throw', value: unknown, settle: Settle): number | null {
  let step: IteratorResult<unknown, unknown>
  try {
    step = raw[verb](value)
  } catch (error) {
    settle.reject(error)
    return null
  }
  if (step.done) {
    settle.resolve(step.value)
    return null
  }
  if (typeof step.value === 'number') return step.value
  const { value: awaited } = step.value as Await
  let promise: Promise<unknown>
  try {
    promise = resolved(awaited)
  } catch (error) {
    return advance(raw, 'throw', error, settle)
  }
  const carryOn = (verb: 'next' | 'throw', value: unknown): void => {
    let stop = advance(raw, verb, value, settle)
    while (stop !== null) {
      stop =
        stop === SUSPENDED
          ? advance(raw, 'throw', new Error(cannotBlock), settle)
          : advance(raw, 'next', undefined, settle)
    }
  }
  Reflect.apply(then, promise, [
    (value: unknown) => carryOn('next', value),
    (error: unknown) => carryOn('throw', error),
  ])
  return null
}
