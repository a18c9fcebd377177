/** Set-ups of which a part would never run, or would judge nothing. */
import type { CheckOptions } from '../../../src/checker/check.ts'

export interface Wrong {
  readonly what: string
  readonly code: string
  readonly options?: CheckOptions
  readonly setup: () => any
}

const fail = (): never => {
  throw new Error('this never runs')
}
const adder = (): { memory: Int32Array; add: () => void } => {
  const memory = new Int32Array(new SharedArrayBuffer(8))
  return { memory, add: () => void Atomics.add(memory, 0, 1) }
}
const wrong = (what: string, code: string, setup: Wrong['setup'], options: CheckOptions = {}): Wrong => ({
  what,
  code,
  setup,
  options,
})
/** Two threads that add, and this beside them. */
const beside = (what: string, more: (memory: Int32Array) => object, code = 'ERR_CHECK_SETUP'): Wrong =>
  wrong(what, code, () => {
    const { memory, add } = adder()
    return { threads: [add, add], ...more(memory) }
  })
const body = (what: string, make: () => unknown, code = 'ERR_CHECK_SETUP'): Wrong =>
  wrong(what, code, () => ({ threads: [adder().add, make()] }))
const threads = (what: string, make: (add: () => void) => unknown): Wrong =>
  wrong(what, 'ERR_CHECK_SETUP', () => ({ threads: make(adder().add) }))

let setups = 0
let files = 0

export const wrongs: readonly Wrong[] = [
  body(
    'a body is a generator function',
    () =>
      function* () {
        yield fail()
      },
  ),
  body(
    'a body is an async generator function',
    () =>
      async function* () {
        yield fail()
      },
    'ERR_CHECK_NOT_INSTRUMENTED',
  ),
  body('a body returns a generator', () => {
    const steps = function* (): Generator {
      yield fail()
    }
    return () => steps()
  }),
  body('a body returns a function', () => () => fail),
  threads('a body under a symbol', add => ({ add, [Symbol('other')]: fail })),
  threads('a body in a prototype', add => Object.assign(Object.create({ fail }), { add })),
  threads('a body that is not enumerable', add => Object.defineProperty({ add }, 'other', { value: fail })),
  threads('bodies in a Map', add => new Map([['add', add]])),
  threads('no body between two', add => Object.assign(Array.from({ length: 3 }), { 0: add, 2: add })),
  beside('final is async', () => ({ final: async () => fail() }), 'ERR_CHECK_PROMISE'),
  beside(
    'final returns a promise',
    () => ({ final: () => Promise.reject(new Error('late')) }),
    'ERR_CHECK_PROMISE',
  ),
  beside('final is a generator function', () => ({
    *final() {
      yield fail()
    },
  })),
  beside('final returns a function', () => ({ final: () => fail })),
  beside('final returns false', memory => ({ final: () => memory[0] === 3 })),
  ...['setTimeout', 'setInterval', 'setImmediate'].flatMap(name => {
    const later = (): void => void (globalThis as any)[name](fail, 0)
    const caught = (): void => {
      try {
        later()
      } catch {}
    }
    return [later, caught].flatMap(set => [
      beside(`final calls ${set.name} ${name}`, () => ({ final: set })),
      beside(`holds calls ${set.name} ${name}`, memory => ({
        always: { words: { sum: [memory, 0] }, holds: set },
      })),
    ])
  }),
  beside('final is no function', () => ({ final: 3 })),
  beside(
    'holds is async',
    memory => ({
      always: { words: { sum: [memory, 0] }, holds: async () => fail() },
    }),
    'ERR_CHECK_PROMISE',
  ),
  beside('holds returns a function', memory => ({
    always: { words: { sum: [memory, 0] }, holds: () => fail },
  })),
  beside('always watches no word', () => ({ always: { words: {}, holds: fail } })),
  wrong(
    'recover is a generator function',
    'ERR_CHECK_SETUP',
    () => {
      const { add } = adder()
      return {
        threads: [add, add],
        *recover() {
          yield fail()
        },
      }
    },
    { crashes: 1 },
  ),
  ...[
    true,
    'add',
    -1,
    0.5,
    Number.NaN,
    null,
    [0],
    { threads: [] },
    { threads: 'add' },
    { threads: 0 },
    { threads: [2] },
    { threads: [-1] },
    { threads: ['other'] },
    { thread: [0] },
    { max: '1' },
  ].map((crashes, n) =>
    wrong(
      `crashes of the wrong form, ${n}: ${JSON.stringify(crashes)}`,
      'ERR_CHECK_OPTION',
      () => ({ threads: [adder().add] }),
      { crashes: crashes as CheckOptions['crashes'] },
    ),
  ),
  wrong('modules that are no list', 'ERR_CHECK_OPTION', () => ({ threads: [adder().add] }), {
    modules: 'ring' as unknown as string[],
  }),
  wrong('the set-up makes other memory the second time', 'ERR_CHECK_NONDETERMINISTIC', () => {
    const { memory, add } = adder()
    memory[1] = setups++
    return { threads: [add, add] }
  }),
  wrong('the set-up makes other threads the second time', 'ERR_CHECK_NONDETERMINISTIC', () => {
    const { memory, add } = adder()
    const isFirst = files++ === 0
    return { threads: [() => (isFirst ? Atomics.store(memory, 0, Atomics.load(memory, 0) + 1) : add()), add] }
  }),
  wrong('the set-up reads a clock, and catches the error', 'ERR_CHECK_NONDETERMINISTIC', () => {
    const { add } = adder()
    try {
      Date.now()
    } catch {}
    return { threads: [add, add] }
  }),
]

/** Programs that fail. */
export const failing: readonly {
  readonly what: string
  readonly title: RegExp
  readonly options?: CheckOptions
  readonly setup: () => any
}[] = [
  {
    what: 'holds returns false',
    title: /an invariant does not hold after a step of .*returned false/,
    setup: () => {
      const { memory, add } = adder()
      return {
        threads: [add, add],
        always: { words: { sum: [memory, 0] }, holds: ({ sum }: any) => sum < 2 },
      }
    },
  },
  {
    what: 'holds returns 0',
    title: /an invariant does not hold after a step of .*returned 0/,
    setup: () => {
      const { memory, add } = adder()
      return {
        threads: [add, add],
        always: { words: { sum: [memory, 0] }, holds: ({ sum }: any) => (sum < 2 ? 1 : 0) },
      }
    },
  },
  ...[{ threads: ['recovery'] }, { threads: [1] }, 1].map(crashes => ({
    what: `a thread with the name recovery dies: ${JSON.stringify(crashes)}`,
    title: /the final assertion failed: 1 died/,
    options: { crashes },
    setup: () => {
      const { add } = adder()
      return {
        threads: { add, recovery: add },
        final: ({ crashed }: { crashed: readonly number[] }) => {
          if (crashed[0] === 1) throw new Error('1 died')
        },
      }
    },
  })),
  {
    what: 'a thread throws a value that has no text',
    title: /uncaught exception in .*: a value of type object that has no text/,
    setup: () => ({
      threads: [
        adder().add,
        () => {
          throw {
            get message() {
              throw 1
            },
            toString() {
              throw 2
            },
          }
        },
      ],
    }),
  },
  {
    what: 'final throws an object without a prototype',
    title: /the final assertion failed: a value of type object that has no text/,
    setup: () => ({
      threads: [adder().add],
      final: () => {
        throw Object.create(null)
      },
    }),
  },
  {
    what: 'an execution without an outcome is none that is expected',
    title: /the outcome undefined is not one that the check expects/,
    options: { expectOutcomes: ['one'], onlyOutcomes: true },
    setup: () => {
      const { memory } = adder()
      const set = (value: number) => () => void Atomics.store(memory, 0, value)
      return { threads: [set(1), set(2)], final: () => (memory[0] === 1 ? 'one' : undefined) }
    },
  },
]
