/**
 * Checks of weak memory beyond the litmus tests: read-modify-writes, tearing, thin air, loops, reports,
 * refusals.
 */
import { describe, expect, test } from 'vitest'
import { check, CheckedMutex, CheckFailure, History, type Program } from '../../src/checker/check.ts'
import { program } from './litmusprogram.ts'

function outcomes(setup: () => Program): unknown[] {
  const result = check('outcomes', { memory: 'weak' }, setup)
  expect(result.complete).toBe(true)
  return result.outcomes!.map(({ text }) => text)
}

const words = (): Int32Array<SharedArrayBuffer> => new Int32Array(new SharedArrayBuffer(16))

describe('a read-modify-write', () => {
  test('is one event: no write comes between its read and its write', () => {
    expect(
      outcomes(() => {
        const m = words()
        const add = (): number => Atomics.add(m, 0, 1)
        return { threads: [add, add], final: ({ results }) => [...results, m[0]] }
      }),
    ).toEqual(['[0, 1, 2]', '[1, 0, 2]'])
  })

  test('that races with a plain write acts like plain accesses: two may take the same write', () => {
    // Only one can take 0 (5c). The write of 5 is not atomic and happens before neither, so [5] does not
    // apply.
    expect(
      outcomes(() => {
        const m = words()
        const add = (): number => Atomics.add(m, 0, 1)
        return { threads: [add, add, () => void (m[0] = 5)], final: ({ results }) => results.slice(0, 2) }
      }),
    ).toEqual(['[0, 1]', '[0, 5]', '[1, 0]', '[5, 0]', '[5, 5]', '[5, 6]', '[6, 5]'])
  })

  test('that fails writes nothing', () => {
    expect(
      outcomes(() => {
        const m = words()
        const take = (): number => Atomics.compareExchange(m, 0, 0, 7)
        return { threads: [take, take], final: ({ results }) => [...results, m[0]] }
      }),
    ).toEqual(['[0, 7, 7]', '[7, 0, 7]'])
  })
})

test('plain reads after two atomic writes agree on which was last', () => {
  // tc39/ecma262#1354: the rule (b) of [5].
  expect(
    outcomes(() => {
      const m = words()
      return {
        threads: [
          () => {
            Atomics.store(m, 0, 1)
            Atomics.store(m, 1, 1)
          },
          () => {
            Atomics.store(m, 0, 2)
            return Atomics.load(m, 1) === 1 ? [m[0], m[0]] : 'early'
          },
        ],
        final: ({ results }) => results[1],
      }
    }),
  ).toEqual(['"early"', '[1, 1]', '[2, 2]'])
})

describe('a read of more than a byte', () => {
  const halves = 0x1_0001
  const torn = [0, 1, 0x1_0000, halves].map(String)
  type Torn = [string, (m: Int32Array) => void, (m: Int32Array) => unknown, string[]]
  const cases: Torn[] = [
    [
      'an integer typed array',
      (m: Int32Array) => void (m[0] = halves),
      (m: Int32Array) => m[0],
      ['0', String(halves)],
    ],
    [
      'a DataView',
      (m: Int32Array) => new DataView(m.buffer).setInt32(0, halves, true),
      (m: Int32Array) => new DataView(m.buffer).getInt32(0, true),
      torn,
    ],
    [
      'a DataView, of what was written whole',
      (m: Int32Array) => void (m[0] = halves),
      (m: Int32Array) => new DataView(m.buffer).getInt32(0, true),
      torn,
    ],
    [
      'a typed array, of what a DataView wrote',
      (m: Int32Array) => new DataView(m.buffer).setInt32(0, halves, true),
      (m: Int32Array) => m[0],
      torn,
    ],
    [
      'Atomics, of what was written in halves',
      (m: Int32Array) => {
        const parts = new Int16Array(m.buffer)
        parts[0] = 1
        parts[1] = 1
      },
      (m: Int32Array) => Atomics.load(m, 0),
      torn,
    ],
  ]
  test.each(cases)('by %s is torn as the model says', (_, write, read, expected) => {
    const found = outcomes(() => {
      const m = words()
      return { threads: [() => write(m), () => read(m)], final: ({ results }) => results[1] }
    })
    expect(found).toEqual([...expected].sort())
  })

  test('that are bytes, or of an array, or of another type, is copied element by element', () => {
    expect(
      outcomes(() => {
        const m = words()
        const bytes = new Uint8Array(m.buffer)
        return {
          threads: [() => void m.set([halves]), () => [new Uint32Array(m)[0], bytes.slice(0, 4).join('')]],
          final: ({ results }) => results[1],
        }
      }),
    ).toEqual(
      ['0', String(halves)].flatMap(word =>
        ['0000', '0010', '1000', '1010'].map(part => `[${word}, "${part}"]`),
      ),
    )
  })

  test('of 64 bits is torn when it is plain, and not by Atomics', () => {
    const both = 0x1_0000_0001n
    for (const [atomic, expected] of [
      [false, ['0n', '1n', '4294967296n', '4294967297n']],
      [true, ['0n', '4294967297n']],
    ] as const) {
      const found = outcomes(() => {
        const m = new BigInt64Array(new SharedArrayBuffer(8))
        return {
          threads: [
            () => void (atomic ? Atomics.store(m, 0, both) : (m[0] = both)),
            () => (atomic ? Atomics.load(m, 0) : m[0]),
          ],
          final: ({ results }) => results[1],
        }
      })
      expect(found).toEqual(expected)
    }
  })
})

describe('a value', () => {
  test('does not come out of thin air', () => {
    const copies = (): Program => {
      const m = words()
      return {
        threads: [
          () => {
            const r = m[0]!
            m[1] = r
            return r
          },
          () => {
            const s = m[1]!
            m[0] = s
            return s
          },
        ],
        final: ({ results }) => results,
      }
    }
    expect(outcomes(copies)).toEqual(['[0, 0]'])
    const asks = (): Program => {
      const m = words()
      return {
        threads: [
          () => {
            const r = m[0]
            if (r === 1) m[1] = 1
            return r
          },
          () => {
            const s = m[1]
            if (s === 1) m[0] = 1
            return s
          },
        ],
        final: ({ results }) => results,
      }
    }
    expect(outcomes(asks)).toEqual(['[0, 0]'])
  })

  test('that some execution writes may be read before it is written', () => {
    // x=1 is written whatever s finds; so r=1, y=1, s=1 is a circle with a ground.
    expect(
      outcomes(() => {
        const m = words()
        return {
          threads: [
            () => {
              const r = m[0]!
              m[1] = r
              return r
            },
            () => {
              const s = m[1]
              m[0] = 1
              return s
            },
          ],
          final: ({ results }) => results,
        }
      }),
    ).toEqual(['[0, 0]', '[1, 0]', '[1, 1]'])
  })

  test('that grows from thread to thread has a bound', () => {
    expect(
      outcomes(() => {
        const m = words()
        const add = (): void => void m[0]!++
        return { threads: [add, add], final: () => m[0] }
      }),
    ).toEqual(['1', '2'])
  })
})

describe('a loop that waits', () => {
  const waits =
    (load: (m: Int32Array) => number): (() => Program) =>
    () => {
      const m = words()
      return {
        threads: {
          writer: () => {
            m[0] = 42
            Atomics.store(m, 1, 1)
          },
          reader: () => {
            while (load(m) === 0);
            return m[0]
          },
        },
        final: ({ results }) => results[1],
      }
    }

  test('for an atomic ends, and every earlier write is visible', () => {
    expect(outcomes(waits(m => Atomics.load(m, 1)))).toEqual(['42'])
  })

  test('for a plain word may never end, which is a livelock', () => {
    expect(() =>
      check(
        'plain',
        { memory: 'weak' },
        waits(m => m[1]!),
      ),
    ).toThrow(/livelock: reader may spin for ever at .*weak\.test\.ts/)
  })

  test('for a value that is never written is a livelock', () => {
    const setup = (): Program => {
      const m = words()
      return {
        threads: [
          () => void Atomics.store(m, 0, 1),
          () => {
            while (Atomics.load(m, 0) !== 2);
          },
        ],
      }
    }
    expect(() => check('never', { memory: 'weak' }, setup)).toThrow('livelock')
  })

  test('by exchange hands over the data that it guards', () => {
    expect(
      outcomes(() => {
        const m = words()
        const add = (): void => {
          while (Atomics.exchange(m, 0, 1) === 1);
          m[1]!++
          Atomics.store(m, 0, 0)
        }
        return { threads: [add, add], final: () => m[1] }
      }),
    ).toEqual(['2'])
  })
})

describe('a failure', () => {
  test('shows the steps in a memory order, the write that each read takes, and why it may', () => {
    const failing = (): unknown =>
      check('mp', { memory: 'weak' }, () => {
        const m = words()
        return {
          threads: {
            writer: () => {
              m[0] = 42
              m[1] = 1
            },
            reader: () => {
              const flag = m[1]
              const data = m[0]
              if (flag === 1 && data !== 42) throw new Error('the flag is up and the data is not there')
            },
          },
        }
      })
    expect(failing).toThrow(CheckFailure)
    expect(failing).toThrow(/read m\[0\] → 0 of the set-up/)
    expect(failing).toThrow(/read m\[1\] → 1 of step \d/)
    expect(failing).toThrow(
      /Step \d takes the value that the set-up wrote, though step \d has written since: step \d does not happen before it/,
    )
    expect(failing).not.toThrow('replay:')
  })
})

describe('what the search does not support', () => {
  test.each([
    [
      'Atomics.wait',
      () => {
        const m = words()
        return { threads: [() => void Atomics.wait(m, 0, 0)] }
      },
      /wait at .*weak/,
    ],
    ['always', () => ({ threads: [() => 0], always: { words: {}, holds: () => undefined } }), /`always`/],
    [
      'a History',
      () => {
        const counted = new History().of({ add: () => 1 })
        return { threads: [() => counted.add()] }
      },
      /a call that a History writes down, in/,
    ],
    [
      'memory that grows',
      () => {
        const grown = new Int32Array(new SharedArrayBuffer(4, { maxByteLength: 8 }))
        return { threads: [() => grown[0]] }
      },
      /a buffer that can grow at .*weak/,
    ],
    ...(
      [
        ['slice()', m => m.slice(0, 1)],
        ['set()', m => m.set(Int32Array.of(1))],
        ['set()', m => Int32Array.of(0, 0, 0, 0).set(m)],
        ['copyWithin()', m => m.copyWithin(0, 1, 2)],
        ['new Int32Array()', m => new Int32Array(m)],
      ] as [string, (m: Int32Array) => unknown][]
    ).map(([call, copy]): [string, () => Program, RegExp] => [
      call,
      () => {
        const m = words()
        return { threads: [() => copy(m)] }
      },
      new RegExp(
        `${call.replace(/[()]/g, '\\$&')} copied elements of shared memory byte by byte.*in thread 0`,
      ),
    ]),
    [
      'a mutex of the checker',
      () => {
        const mutex = new CheckedMutex()
        return { threads: [() => mutex.lock()] }
      },
      /lock at .*weak|lock, in/,
    ],
    [
      'memory that a thread makes',
      () => ({ threads: [() => words().fill(1)] }),
      /a thread made shared memory/,
    ],
  ] as [string, () => Program, RegExp][])('%s is refused', (_, setup, message) => {
    const shared = (): Program => {
      const memory = words()
      const { threads, ...rest } = setup()
      return { ...rest, threads: [...(threads as (() => unknown)[]), () => memory[0]] }
    }
    expect(() => check('refused', { memory: 'weak' }, shared)).toThrow(message)
  })

  test('other explorers and crashes are refused with it', () => {
    expect(() => check('no', { memory: 'weak', explorer: 'pct' }, program('x=1'))).toThrow(
      "`explorer` is 'pct'",
    )
    expect(() => check('no', { memory: 'weak', crashes: 1 }, program('x=1'))).toThrow('`crashes`')
    expect(() => check('no', { memory: 'strong' as 'weak' }, program('x=1'))).toThrow(
      "must be 'sequential' or 'weak'",
    )
  })

  test('a search that reaches a bound is incomplete', () => {
    const sb = program('x=1 r=y | y=1 s=x')
    for (const options of [{ executions: 2 }, { time: 0 }]) {
      const result = check('bound', { memory: 'weak', allowIncomplete: true, ...options }, sb)
      expect(result).toMatchObject({ complete: false, outcome: 'incomplete' })
    }
  })

  test('a loop that counts its turns is incomplete', () => {
    const counts = (): Program => {
      const memory = words()
      const wait = (): number => {
        let turns = 0
        while (Atomics.load(memory, 0) === 0) turns++
        return turns
      }
      return { threads: [() => void Atomics.store(memory, 0, 1), wait], final: ({ results }) => results[1] }
    }
    const result = check('counts', { memory: 'weak', turns: 3, allowIncomplete: true }, counts)
    expect(result).toMatchObject({ complete: false, outcome: 'incomplete' })
    expect(result.outcomes?.map(({ text }) => text)).toEqual(['0', '1', '2', '3'])
    expect(() => check('counts', { memory: 'weak', turns: 3 }, counts)).toThrow('raise `turns`')
  })

  test('threads that share more than memory are found', () => {
    const steps = (): Program => {
      const memory = words()
      let told = 0
      return { threads: [() => void (told = memory[0]! + 1), () => void (memory[1] = told)] }
    }
    const order = (): Program => {
      const memory = words()
      const log: number[] = []
      const threads = [() => void log.push(memory[0]! + 1), () => void log.push(memory[1]! + 2)]
      return { threads, final: () => log }
    }
    for (const setup of [steps, order])
      expect(() => check('shares', { memory: 'weak' }, setup)).toThrow(
        'may depend only on the values that it reads',
      )
  })
})
