/**
 * Sequential specifications of the objects that are checked most often. An operation has several names, those
 * that are usual for its object. For an object with other names or results, write a specification: it takes a
 * few lines.
 */
import type { Specification } from './linearizable.ts'

type Step<S> = { readonly state: S; readonly result: unknown } | null
type Steps<S> = Readonly<Record<string, (state: S, args: readonly unknown[]) => Step<S>>>

/** A specification made of one function for each operation. */
function specification<S>(name: string, initial: S, steps: Steps<S>): Specification<S> {
  return {
    name,
    initial,
    step(state, operation, args) {
      const step = Object.hasOwn(steps, operation) ? steps[operation] : undefined
      if (step === undefined) {
        throw new TypeError(
          `the specification of a ${name} has no operation '${operation}'; it has ${Object.keys(steps).join(', ')}`,
        )
      }
      return step(state, args)
    },
  }
}

/** The same function under several names. */
function named<S>(names: readonly string[], step: (state: S, args: readonly unknown[]) => Step<S>): Steps<S> {
  return Object.fromEntries(names.map(name => [name, step]))
}

/** `read` and `write`; also `get`, `set`, `load`, `store`, `exchange`, `compareExchange`. */
export function register(initial: unknown = 0): Specification<unknown> {
  return specification<unknown>('register', initial, {
    ...named<unknown>(['read', 'get', 'load'], state => ({ state, result: state })),
    ...named<unknown>(['write', 'set', 'store'], (_, [value]) => ({ state: value, result: undefined })),
    exchange: (state, [value]) => ({ state: value, result: state }),
    compareExchange: (state, [expected, value]) => ({
      state: Object.is(state, expected) ? value : state,
      result: state,
    }),
  })
}

/**
 * `increment` and `decrement` return the new value, `add` and `sub` the old one, as `Atomics` do; `read`,
 * `get`.
 */
export function counter(initial: number = 0): Specification<number> {
  return specification<number>('counter', initial, {
    increment: state => ({ state: state + 1, result: state + 1 }),
    decrement: state => ({ state: state - 1, result: state - 1 }),
    add: (state, [by]) => ({ state: state + (by as number), result: state }),
    sub: (state, [by]) => ({ state: state - (by as number), result: state }),
    ...named<number>(['read', 'get', 'load', 'valueOf'], state => ({ state, result: state })),
  })
}

/**
 * First in, first out. With a capacity, adding returns true, or false if the queue is full. Without one it
 * returns nothing.
 */
export function queue(capacity: number = Infinity): Specification<readonly unknown[]> {
  return specification<readonly unknown[]>('queue', [], {
    ...named<readonly unknown[]>(['enqueue', 'push', 'put', 'send', 'add', 'offer'], (state, [value]) =>
      putInto(state, value, capacity),
    ),
    ...named<readonly unknown[]>(['dequeue', 'shift', 'take', 'receive', 'poll', 'pop'], state => ({
      state: state.slice(1),
      result: state[0],
    })),
    ...named<readonly unknown[]>(['length', 'size'], state => ({ state, result: state.length })),
  })
}

/** Last in, first out; otherwise as `queue`. */
export function stack(capacity: number = Infinity): Specification<readonly unknown[]> {
  return specification<readonly unknown[]>('stack', [], {
    ...named<readonly unknown[]>(['push', 'put', 'add'], (state, [value]) => putInto(state, value, capacity)),
    ...named<readonly unknown[]>(['pop', 'take'], state => ({
      state: state.slice(0, -1),
      result: state.at(-1),
    })),
    ...named<readonly unknown[]>(['length', 'size'], state => ({ state, result: state.length })),
  })
}

function putInto(state: readonly unknown[], value: unknown, capacity: number): Step<readonly unknown[]> {
  if (capacity === Infinity) return { state: [...state, value], result: undefined }
  if (state.length >= capacity) return { state, result: false }
  return { state: [...state, value], result: true }
}

type Entries = readonly (readonly [unknown, unknown])[]

/** `get`, `set` (no result), `has`, `delete` (was it there?), `size`. */
export function map(): Specification<Entries> {
  const without = (state: Entries, key: unknown): Entries => state.filter(([known]) => !Object.is(known, key))
  const find = (state: Entries, key: unknown): readonly [unknown, unknown] | undefined =>
    state.find(([known]) => Object.is(known, key))
  return specification<Entries>('map', [], {
    ...named<Entries>(['set', 'put'], (state, [key, value]) => ({
      state: [...without(state, key), [key, value]],
      result: undefined,
    })),
    get: (state, [key]) => ({ state, result: find(state, key)?.[1] }),
    has: (state, [key]) => ({ state, result: find(state, key) !== undefined }),
    ...named<Entries>(['delete', 'remove'], (state, [key]) => ({
      state: without(state, key),
      result: find(state, key) !== undefined,
    })),
    size: state => ({ state, result: state.length }),
  })
}

/** `add` (was it new?), `has`, `delete` (was it there?), `size`. */
export function set(): Specification<readonly unknown[]> {
  const has = (state: readonly unknown[], value: unknown): boolean =>
    state.some(known => Object.is(known, value))
  return specification<readonly unknown[]>('set', [], {
    add: (state, [value]) => ({
      state: has(state, value) ? state : [...state, value],
      result: !has(state, value),
    }),
    has: (state, [value]) => ({ state, result: has(state, value) }),
    ...named<readonly unknown[]>(['delete', 'remove'], (state, [value]) => ({
      state: state.filter(known => !Object.is(known, value)),
      result: has(state, value),
    })),
    size: state => ({ state, result: state.length }),
  })
}

/** `lock` and `unlock` without a result; `tryLock` says whether it got the lock. */
export function mutex(): Specification<boolean> {
  return specification<boolean>('mutex', false, {
    ...named<boolean>(['lock', 'acquire'], held => (held ? null : { state: true, result: undefined })),
    ...named<boolean>(['unlock', 'release'], held => (held ? { state: false, result: undefined } : null)),
    ...named<boolean>(['tryLock', 'tryAcquire'], held => ({ state: true, result: !held })),
  })
}
