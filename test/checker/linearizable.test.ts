import { describe, expect, test } from 'vitest'
import {
  check,
  found,
  History,
  linearizable,
  type Specification,
  specifications,
} from '../../src/checker/check.ts'

const { counter, map, mutex, queue, register, set, stack } = specifications

/** A history that is written by hand: the time of each call, and its result. */
function written(
  ...calls: readonly (readonly [
    operation: string,
    args: readonly unknown[],
    result: unknown,
    began: number,
    ended: number,
  ])[]
): History {
  const history = new History()
  for (const [operation, args, result, began, ended] of calls) {
    history.calls.push({ thread: `at ${began}`, operation, args, began, ended, result, threw: false })
  }
  return history
}

describe('a history', () => {
  test('of calls that overlap may have happened in either order', () => {
    linearizable(register(0), written(['write', [1], undefined, 0, 1], ['read', [], 0, 0, 0]))
    linearizable(register(0), written(['write', [1], undefined, 0, 1], ['read', [], 1, 0, 0]))
  })

  test('of calls one after the other has their order', () => {
    const late = written(['write', [1], undefined, 0, 0], ['read', [], 0, 1, 1])
    expect(() => linearizable(register(0), late)).toThrow(
      [
        'no order of these calls explains their results by the specification of a register:',
        '  at 0  write(1)    ├┤',
        '  at 1  read() → 0    ├┤',
        'The longest order that fits: write(1). Then:',
        '  read() → 0: would give 1',
      ].join('\n'),
    )
  })

  test('two readers do not see a write appear and disappear', () => {
    const calls = written(
      ['write', [1], undefined, 0, Infinity],
      ['read', [], 1, 0, 0],
      ['read', [], 0, 1, 1],
    )
    expect(() => linearizable(register(0), calls)).toThrow('read() → 0: would give 1')
  })

  test('a call that never ended may have happened, or not', () => {
    const pending = ['enqueue', [1], undefined, 0, Infinity] as const
    linearizable(queue(), written(pending, ['dequeue', [], 1, 0, 1]))
    linearizable(queue(), written(pending, ['dequeue', [], undefined, 0, 1]))
    expect(() => linearizable(queue(), written(pending, ['dequeue', [], 2, 0, 1]))).toThrow('would give 1')
  })

  const sequences: readonly [
    Specification<any>,
    readonly (readonly [string, readonly unknown[], unknown])[],
  ][] = [
    [
      register(5),
      [
        ['read', [], 5],
        ['exchange', [6], 5],
        ['compareExchange', [6, 7], 6],
        ['read', [], 7],
      ],
    ],
    [
      counter(),
      [
        ['increment', [], 1],
        ['add', [2], 1],
        ['decrement', [], 2],
        ['read', [], 2],
      ],
    ],
    [
      queue(),
      [
        ['enqueue', ['a'], undefined],
        ['enqueue', ['b'], undefined],
        ['dequeue', [], 'a'],
        ['size', [], 1],
      ],
    ],
    [
      queue(1),
      [
        ['put', [1], true],
        ['put', [2], false],
        ['take', [], 1],
        ['take', [], undefined],
      ],
    ],
    [
      stack(),
      [
        ['push', [1], undefined],
        ['push', [2], undefined],
        ['pop', [], 2],
        ['pop', [], 1],
        ['pop', [], undefined],
      ],
    ],
    [
      map(),
      [
        ['set', ['k', 1], undefined],
        ['get', ['k'], 1],
        ['has', ['l'], false],
        ['delete', ['k'], true],
        ['size', [], 0],
      ],
    ],
    [
      set(),
      [
        ['add', [1], true],
        ['add', [1], false],
        ['has', [1], true],
        ['delete', [1], true],
        ['delete', [1], false],
      ],
    ],
    [
      mutex(),
      [
        ['lock', [], undefined],
        ['tryLock', [], false],
        ['unlock', [], undefined],
        ['tryLock', [], true],
      ],
    ],
  ]
  test.each(sequences.map(([specification, calls]) => [specification.name, specification, calls] as const))(
    'of a %s follows its specification, and no other result does',
    (_, specification, calls) => {
      const timed = calls.map(([operation, args, result], at) => [operation, args, result, at, at] as const)
      linearizable(specification, written(...timed))
      for (let at = 0; at < timed.length; at++) {
        const wrong = timed.map((call, other) =>
          other === at ? ([call[0], call[1], 'something else', call[3], call[4]] as const) : call,
        )
        expect(() => linearizable(specification, written(...wrong))).toThrow('no order')
      }
    },
  )

  test('that is empty, or has an operation that the specification lacks, is an error of the check', () => {
    expect(() => linearizable(queue(), new History())).toThrow('the history is empty')
    expect(() => linearizable(queue(), written(['frobnicate', [], 1, 0, 0]))).toThrow(
      "the specification of a queue has no operation 'frobnicate'; it has enqueue",
    )
  })
})

/** A counter that is right, and one that reads and writes in two steps. */
class Counter {
  readonly words = new Int32Array(new SharedArrayBuffer(4))
  increment(): number {
    return Atomics.add(this.words, 0, 1) + 1
  }
  read(): number {
    return Atomics.load(this.words, 0)
  }
}

class LossyCounter extends Counter {
  override increment(): number {
    const value = Atomics.load(this.words, 0) + 1
    Atomics.store(this.words, 0, value)
    return value
  }
}

/** A ring of two for one producer and one consumer; `late` publishes the slot before it is filled. */
class Ring {
  readonly words = new Int32Array(new SharedArrayBuffer(16))
  readonly late: boolean
  constructor(late: boolean) {
    this.late = late
  }
  put(value: number): boolean {
    const tail = Atomics.load(this.words, 1)
    if (tail - Atomics.load(this.words, 0) === 2) return false
    if (this.late) Atomics.store(this.words, 1, tail + 1)
    Atomics.store(this.words, 2 + (tail & 1), value)
    if (!this.late) Atomics.store(this.words, 1, tail + 1)
    return true
  }
  take(): number | undefined {
    const head = Atomics.load(this.words, 0)
    if (head === Atomics.load(this.words, 1)) return undefined
    const value = Atomics.load(this.words, 2 + (head & 1))
    Atomics.store(this.words, 0, head + 1)
    return value
  }
}

/** A register whose reads return the last value that this reader saw, without an access. */
class CachedRegister {
  readonly words = new Int32Array(new SharedArrayBuffer(4))
  cached = 0
  write(value: number): void {
    Atomics.store(this.words, 0, value)
  }
  read(): number {
    return this.cached
  }
}

describe('a check whose final assertion is that the history is linearizable', () => {
  const counting = (made: () => Counter) => () => {
    const history = new History()
    const shared = history.of(made())
    return {
      threads: [() => shared.increment(), () => void [shared.increment(), shared.read()]],
      final: () => linearizable(counter(), history),
    }
  }

  test('passes for a counter, and finds a lost update with the history that shows it', () => {
    expect(
      check(
        'counter',
        counting(() => new Counter()),
      ).complete,
    ).toBe(true)
    const report = found(counting(() => new LossyCounter()))
    expect(report).toContain(
      'no order of these calls explains their results by the specification of a counter',
    )
    expect(report).toMatch(/thread 0\s+increment\(\) → 1\s+├/)
  })

  test('shows a failing history whole, however many calls it has', () => {
    const setup = () => {
      const history = new History()
      const shared = history.of(new LossyCounter())
      for (let before = 0; before < 20; before++) shared.increment()
      return {
        threads: [() => void shared.increment(), () => void shared.increment()],
        final: () => linearizable(counter(), history),
      }
    }
    const report = found(setup)
    expect(report.match(/set-up\s+increment\(\) → \d+/g)).toHaveLength(20)
    expect(report).toMatch(/The longest order that fits: .*\n.*would give 22/)
  })

  const ringing = (late: boolean) => () => {
    const history = new History()
    const ring = history.of(new Ring(late))
    return {
      threads: {
        producer: () => void [ring.put(7), ring.put(8)],
        consumer: () => void [ring.take(), ring.take()],
      },
      final: () => linearizable(queue(2), history),
    }
  }

  test('passes for a ring, and finds one that publishes a slot before it is filled', () => {
    expect(check('ring', ringing(false)).complete).toBe(true)
    expect(found(ringing(true))).toContain('take() → 0')
  })

  test('orders calls that touch nothing in common by time alone', () => {
    const setup = () => {
      const history = new History()
      const cell = history.of(new CachedRegister())
      return {
        threads: [() => cell.write(1), () => cell.read()],
        final: () => linearizable(register(0), history),
      }
    }
    expect(found(setup)).toContain('read() → 0: would give 1')
  })

  test('with crashes, the unfinished call of a dead thread may have happened or not', () => {
    const setup = () => {
      const history = new History()
      const shared = history.of(new Counter())
      return {
        threads: [() => shared.increment(), () => shared.read()],
        final: () => linearizable(counter(), history),
      }
    }
    const result = check('a counter whose caller may die', { crashes: 1 }, setup)
    expect(result.complete).toBe(true)
  })
})
