/** Patterns, and object literals with a spread, whose source is a view: one step for each element. */
import { bodyStep, generatorBody } from '../../compiler/runtime/generator.ts'
import { append, call, count, get, lengthOf, type Stops } from './elementwise.ts'
import { PLAIN_READ } from '../machine/operations.ts'
import { isShared, op, realOf } from '../machine/pending.ts'
import { listed, parts } from './quiet.ts'
import { kindOf } from '../machine/views.ts'

export const isTyped: (x: unknown) => boolean = x => isShared(x) && kindOf(realOf(x)) !== undefined
export const isIndex: (key: unknown) => key is string | number = (key): key is string | number =>
  (typeof key === 'number' || typeof key === 'string') && String(Number(key)) === String(key)

/** The first `most` elements of the source of an array pattern: a view, or a generator that takes steps. */
export function* take(site: number, from: any, most: number): Stops {
  if (isTyped(from)) {
    const values: unknown[] = []
    for (let i = 0; i < most && i < (yield* count(site, from)); i++) append(values, yield* get(site, from, i))
    return values
  }
  if (generatorBody(from) === undefined) return listed(from)
  const values: unknown[] = []
  while (values.length < most) {
    const step = yield* bodyStep(from)
    if (step.done) return values
    append(values, step.value)
  }
  yield* call(from.return, from)
  return values
}

/**
 * The source of an object pattern or a spread: of a view, its own properties if `all`, and the properties
 * `names`.
 */
export function* fields(site: number, from: any, all: boolean, names: readonly string[]): Stops {
  if (!isTyped(from)) return all ? parts(from, null) : from
  const made: any = {}
  if (all) {
    const length = yield* count(site, from)
    for (let i = 0; i < length; i++) made[i] = yield* get(site, from, i)
    for (const name of Object.keys(realOf(from))) if (!isIndex(name)) made[name] = from[name]
  }
  for (const name of names) {
    if (Object.hasOwn(made, name)) continue
    const value = isIndex(name)
      ? yield op(PLAIN_READ, site, from, Number(name))
      : name === 'length' || name === 'byteLength'
        ? yield* lengthOf(site, from, name)
        : from[name]
    Object.defineProperty(made, name, { value, enumerable: !all || isIndex(name) })
  }
  return made
}
