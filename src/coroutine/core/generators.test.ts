import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { coroutineOf, PREEMPTED, SUSPENDED } from './coroutine.ts'
import { advance, GeneratorChain, resumable, RETURNED, THREW } from './generators.ts'

type Log = unknown[]

/** Runs to the end, resuming with 0, 1, 2, … */
function drain(chain: GeneratorChain): { result: unknown; threw: boolean; stops: number } {
  for (let stops = 0; ; stops++) {
    const stop = advance(chain, false, stops)
    if (stop < 0) return { result: chain.value, threw: stop === THREW, stops }
  }
}

test('only the innermost generator is resumed, and its value reaches every caller', () => {
  const passes = { count: 0 }
  const counted = (inner: Generator<number, number, unknown>) => ({
    [Symbol.iterator]() {
      return {
        next: (value: unknown) => {
          passes.count++
          return inner.next(value)
        },
      }
    },
  })
  const leaf = resumable(function* (): Generator<number, number, unknown> {
    for (let i = 0; i < 100; i++) yield PREEMPTED
    return 7
  })
  const middle = resumable(function* (): Generator<number, number, unknown> {
    return (yield* counted(leaf())) + 1
  })
  const root = resumable(function* (): Generator<number, number, unknown> {
    return (yield* middle()) * 10
  })
  const chain = new GeneratorChain(root())
  expect(drain(chain)).toEqual({ result: 80, threw: false, stops: 100 })
  // Into the leaf once, and once more to be told that it has ended.
  expect(passes.count).toBe(2)
})

test('what a switch is sent arrives at the innermost stop', () => {
  const seen: Log = []
  const leaf = resumable(function* (): Generator<number, void, unknown> {
    seen.push(yield SUSPENDED)
    seen.push(yield SUSPENDED)
  })
  const root = resumable(function* (): Generator<number, void, unknown> {
    yield* leaf()
    seen.push(yield PREEMPTED)
  })
  const chain = new GeneratorChain(root())
  expect(advance(chain, false, 'lost')).toBe(SUSPENDED)
  expect(advance(chain, false, 'a')).toBe(SUSPENDED)
  expect(advance(chain, false, 'b')).toBe(PREEMPTED)
  expect(advance(chain, false, 'c')).toBe(RETURNED)
  expect(seen).toEqual(['a', 'b', 'c'])
})

test('an error passes every caller, and each may catch it', () => {
  const log: Log = []
  const leaf = resumable(function* (): Generator<number, void, unknown> {
    yield PREEMPTED
    throw new Error('leaf')
  })
  const middle = resumable(function* (): Generator<number, void, unknown> {
    try {
      yield* leaf()
    } finally {
      log.push('middle finally')
    }
  })
  const root = resumable(function* (): Generator<number, string, unknown> {
    try {
      yield* middle()
    } catch (error) {
      log.push((error as Error).message)
      yield PREEMPTED
      return 'caught'
    }
    return 'not'
  })
  expect(drain(new GeneratorChain(root()))).toEqual({ result: 'caught', threw: false, stops: 2 })
  expect(log).toEqual(['middle finally', 'leaf'])
})

test('what is thrown in arrives at the innermost stop', () => {
  const log: Log = []
  const leaf = resumable(function* (): Generator<number, string, unknown> {
    try {
      yield SUSPENDED
      return 'woken'
    } catch (error) {
      log.push(error)
      yield PREEMPTED
      return 'cancelled'
    }
  })
  const root = resumable(function* (): Generator<number, string, unknown> {
    return `leaf was ${yield* leaf()}`
  })
  const chain = new GeneratorChain(root())
  expect(advance(chain, false, undefined)).toBe(SUSPENDED)
  expect(advance(chain, true, 'stop')).toBe(PREEMPTED)
  expect(advance(chain, false, undefined)).toBe(RETURNED)
  expect(chain.value).toBe('leaf was cancelled')
  expect(log).toEqual(['stop'])
})

test('a generator driven by hand, and left in the middle, does not come back', () => {
  const log: Log = []
  const left = resumable(function* (name: string): Generator<number, void, unknown> {
    yield PREEMPTED
    log.push(`${name} went on`)
  })
  const nested = resumable(function* (name: string): Generator<number, void, unknown> {
    yield* left(name)
  })
  const root = resumable(function* (): Generator<number, string, unknown> {
    nested('abandoned').next()
    const closed = nested('closed')
    closed.next()
    closed.return()
    const finished = nested('finished')
    while (!finished.next().done) log.push('by hand')
    yield PREEMPTED
    log.push('root')
    yield* left('called')
    return 'done'
  })
  expect(drain(new GeneratorChain(root()))).toEqual({ result: 'done', threw: false, stops: 2 })
  expect(log).toEqual(['by hand', 'finished went on', 'root', 'called went on'])
})

test('a generator left in the middle is not resumed when a call after it stops', () => {
  const log: Log = []
  const left = resumable(function* (name: string): Generator<number, void, unknown> {
    yield PREEMPTED
    log.push(`${name} went on`)
  })
  const nested = resumable(function* (name: string): Generator<number, void, unknown> {
    yield* left(name)
  })
  const abandoning = resumable(function* (): Generator<number, string, unknown> {
    nested('abandoned').next()
    yield* nested('called')
    return 'done'
  })
  const root = resumable(function* (): Generator<number, string, unknown> {
    nested('abandoned before a stop').next()
    yield PREEMPTED
    log.push('root went on')
    return yield* abandoning()
  })
  expect(drain(new GeneratorChain(root()))).toEqual({ result: 'done', threw: false, stops: 2 })
  expect(log).toEqual(['root went on', 'called went on'])
})

test('a chain inside a chain keeps to itself', () => {
  const leaf = resumable(function* (n: number): Generator<number, number, unknown> {
    for (let i = 0; i < n; i++) yield PREEMPTED
    return n
  })
  const inner = resumable(function* (n: number): Generator<number, number, unknown> {
    return yield* leaf(n)
  })
  const root = resumable(function* (): Generator<number, unknown, unknown> {
    const first = yield* inner(2)
    const nested = drain(new GeneratorChain(inner(3)))
    return [first, nested.result, yield* inner(4)]
  })
  expect(drain(new GeneratorChain(root())).result).toEqual([2, 3, 4])
})

describe('as a property', () => {
  /** A call tree: what each function does, in order. */
  type Act = 'stop' | 'throw' | 'return' | { call: Act[]; plain: boolean; catches: boolean }
  const acts = fc.letrec<{ act: Act; acts: Act[] }>(tie => ({
    acts: fc.array(tie('act'), { maxLength: 4 }),
    act: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom<Act[]>('stop', 'stop', 'throw', 'return'),
      fc.record({ call: tie('acts'), plain: fc.boolean(), catches: fc.boolean() }) as fc.Arbitrary<Act>,
    ),
  })).acts

  function build(log: Log, chained: boolean) {
    function* body(list: Act[], depth: number): Generator<number, string, unknown> {
      try {
        for (const act of list) {
          if (act === 'stop') log.push(`sent ${String(yield PREEMPTED)} at ${depth}`)
          else if (act === 'throw') throw new Error(`thrown at ${depth}`)
          else if (act === 'return') return `returned at ${depth}`
          else {
            const callee = act.plain ? ordinary : own
            try {
              log.push(yield* callee(act.call, depth + 1))
            } catch (error) {
              log.push(`${depth} saw ${String(error)}`)
              if (!act.catches) throw error
            }
          }
        }
        return `end of ${depth}`
      } finally {
        log.push(`finally ${depth}`)
      }
    }
    const ordinary = function* (list: Act[], depth: number): Generator<number, string, unknown> {
      return yield* body(list, depth)
    }
    const own = function* (list: Act[], depth: number): Generator<number, string, unknown> {
      return yield* body(list, depth)
    }
    if (chained) {
      resumable(body)
      resumable(own)
    }
    return own
  }

  /** The same by the engine's own means: through every generator from the root in. */
  function step(chain: GeneratorChain, raising: boolean, sent: unknown): number {
    try {
      const { done, value } = raising ? chain.root.throw(sent) : chain.root.next(sent)
      if (done !== true) return PREEMPTED
      chain.value = value
      return RETURNED
    } catch (error) {
      chain.value = error
      return THREW
    }
  }

  test('a chain does what nested yield* does, whatever is sent or thrown in', () => {
    fc.assert(
      fc.property(acts, fc.array(fc.boolean(), { maxLength: 20 }), (tree, throws) => {
        const runs = [false, true].map(chained => {
          const log: Log = []
          const root = build(log, chained)(tree, 0)
          const chain = new GeneratorChain(root)
          for (let turn = 0; ; turn++) {
            const raising = turn > 0 && throws[turn] === true
            const stop = chained ? advance(chain, raising, turn) : step(chain, raising, turn)
            if (stop < 0) {
              log.push(stop === THREW, String(chain.value))
              return log
            }
          }
        })
        expect(runs[1]).toEqual(runs[0])
      }),
      { numRuns: 3000 },
    )
  })
})

describe('a coroutine of a generator function', () => {
  /** How often a plain iterator between a function and its own recursion is asked. */
  function recursive() {
    const asked = { count: 0 }
    function* deep(depth: number): Generator<number, number, unknown> {
      if (depth === 0) {
        for (let i = 0; i < 50; i++) yield PREEMPTED
        return 0
      }
      const inner = deep(depth - 1)
      const between = {
        [Symbol.iterator]: () => ({
          next: (value: unknown) => {
            asked.count++
            return inner.next(value)
          },
        }),
      }
      return 1 + (yield* between)
    }
    return { deep, asked }
  }

  test('that calls itself is resumed at its innermost call, without a mark', () => {
    const { deep, asked } = recursive()
    const coroutine = coroutineOf(deep, [10])
    coroutine.start()
    while (!coroutine.resume());
    expect(coroutine.result).toBe(10)
    expect(asked.count).toBe(20)
  })

  test('whose generators have a prototype of their own keeps it', () => {
    const { deep, asked } = recursive()
    Object.assign(deep.prototype as object, { mine: true })
    const coroutine = coroutineOf(deep, [10])
    coroutine.start()
    while (!coroutine.resume());
    expect(coroutine.result).toBe(10)
    expect(asked.count).toBe(10 * 51)
    expect((deep(0) as unknown as { mine: boolean }).mine).toBe(true)
  })

  test('that is frozen runs too', () => {
    const { deep } = recursive()
    const coroutine = coroutineOf(Object.freeze(deep), [3])
    coroutine.start()
    while (!coroutine.resume());
    expect(coroutine.result).toBe(3)
  })
})

describe('a coroutine of a function', () => {
  test('that is plain runs in one go, and one that throws has thrown', () => {
    const plain = coroutineOf((a: number, b: number) => a + b, [1, 2])
    expect(plain.start()).toBe(true)
    expect([plain.state, plain.result]).toEqual(['returned', 3])
    const thrower = coroutineOf(() => {
      throw new Error('no')
    }, [])
    expect(thrower.start()).toBe(true)
    expect([thrower.state, String(thrower.result)]).toEqual(['threw', 'Error: no'])
  })

  test('sees its receiver, and refuses what its state does not allow', () => {
    const coroutine = coroutineOf(
      function* (this: unknown) {
        yield SUSPENDED
        return this
      },
      [],
      'me',
    )
    expect(() => coroutine.resume()).toThrow('resumed while ready')
    expect(coroutine.start()).toBe(false)
    expect(coroutine.state).toBe('suspended')
    expect(() => coroutine.start()).toThrow('started while suspended')
    expect(coroutine.resume()).toBe(true)
    expect(String(coroutine.result)).toBe('me')
    expect(() => coroutine.raise(new Error('late'))).toThrow('thrown into while returned')
  })

  test('thrown into before it starts never runs', () => {
    let ran = false
    const coroutine = coroutineOf(function* () {
      ran = true
      yield PREEMPTED
    }, [])
    expect(coroutine.raise('early')).toBe(true)
    expect([coroutine.state, coroutine.result, ran]).toEqual(['threw', 'early', false])
  })
})
