/** `Array.from` and the like, with a mapping and an iterable that may suspend. */
import { needResched, PREEMPTED } from '../../../coroutine/core/coroutine.ts'
import { callsBetween, type Callable, callable, resumableOf } from './callback.ts'
import { iterateBy, paused, wait } from '../generator.ts'
import { define } from '../../../coroutine/core/define.ts'
import { emptyArray } from './arraymethods.ts'

type Stops = Generator<number, any, unknown>

export function* arrayFrom(maker: any, items: any, fn: Callable | undefined, self: unknown): Stops {
  const resumable = fn === undefined ? undefined : resumableOf(fn)
  const plain = fn === undefined ? undefined : callable(fn)
  const constructs = isConstructor(maker)
  const method = items[Symbol.iterator]
  if (method !== undefined && method !== null) {
    const made = constructs ? new maker() : []
    let k = 0
    const source = iterateBy(items, method, `${typeof method} is not a function`)
    for (const item of source) {
      if (item === paused) {
        yield* wait(source)
        continue
      }
      let value = item
      if (resumable !== undefined) value = yield* resumable.call(self, item, k)
      else if (plain !== undefined) value = plain.call(self, item, k)
      define(made, k, value)
      if ((k++ & callsBetween) === 0 && needResched()) yield PREEMPTED
    }
    made.length = k
    return made
  }
  const list = Object(items)
  const length = Math.max(0, Math.min(Math.trunc(Number(list.length)) || 0, Number.MAX_SAFE_INTEGER))
  const made = constructs ? new maker(length) : emptyArray(length)
  for (let k = 0; k < length; k++) {
    let value = list[k]
    if (resumable !== undefined) value = yield* resumable.call(self, value, k)
    else if (plain !== undefined) value = plain.call(self, value, k)
    define(made, k, value)
    if ((k & callsBetween) === 0 && needResched()) yield PREEMPTED
  }
  made.length = length
  return made
}

export function* typedFrom(maker: any, items: any, fn: Callable, self: unknown): Stops {
  const resumable = resumableOf(fn)
  const plain = callable(fn)
  const iterator = items[Symbol.iterator]
  const opened = (): Iterator<unknown> => Reflect.apply(iterator, items, []) as Iterator<unknown>
  const values: any =
    iterator === undefined || iterator === null ? Object(items) : [...{ [Symbol.iterator]: opened }]
  const length = Math.max(0, Math.trunc(Number(values.length)) || 0)
  const made = new maker(length)
  for (let k = 0; k < length; k++) {
    made[k] =
      resumable !== undefined ? yield* resumable.call(self, values[k], k) : plain.call(self, values[k], k)
    if ((k & callsBetween) === 0 && needResched()) yield PREEMPTED
  }
  return made
}

function isConstructor(maker: unknown): boolean {
  if (typeof maker !== 'function') return false
  try {
    Reflect.construct(Object, [], maker)
    return true
  } catch {
    return false
  }
}
