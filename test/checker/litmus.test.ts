/**
 * The litmus tests of the literature, under the memory model of ECMA-262. `x=1` is a plain access, `x:=1` one by Atomics. An outcome is what
 * the registers and, after `;`, the final reads found, in order. Each expected set is derived beside it, from the axioms as
 * docs/weakmemory.md numbers them; "SC" means the outcomes of interleavings: all accesses are atomic and there is no race.
 */
import { describe, expect, test } from 'vitest'
import { check, CheckedMutex, CheckFailure, History, type Program } from '../../src/checker/check.ts'

const places: Record<string, number> = { x: 0, y: 1, z: 2 }

interface Op {
  readonly place: number
  readonly atomic: boolean
  /** Undefined: it reads. */
  readonly value: number | undefined
}

function parse(text: string): Op[] {
  return text
    .trim()
    .split(/\s+/)
    .filter(word => word !== '')
    .map(word => {
      const [, left = '', assign, right = ''] = /^(\w+)(:?=)(\w+)$/.exec(word)!
      const reads = right in places
      return {
        place: places[reads ? right : left]!,
        atomic: assign === ':=',
        value: reads ? undefined : Number(right),
      }
    })
}

/** `x=1 y=1 | r=y s=x ; x` */
function program(text: string): () => Program {
  const [threads, last = ''] = text.split(';')
  const finals = last
    .trim()
    .split(/\s+/)
    .filter(word => word !== '')
    .map(word => places[word]!)
  return () => {
    const memory = new Int32Array(new SharedArrayBuffer(12))
    return {
      threads: threads!.split('|').map(part => {
        const ops = parse(part)
        return () => {
          const seen: number[] = []
          for (const { place, atomic, value } of ops) {
            if (value === undefined) seen.push(atomic ? Atomics.load(memory, place) : memory[place]!)
            else if (atomic) Atomics.store(memory, place, value)
            else memory[place] = value
          }
          return seen
        }
      }),
      final: ({ results }) => {
        const read: number[] = []
        for (const place of finals) read.push(memory[place]!)
        return [...(results as number[][]).flat(), ...read].join('')
      },
    }
  }
}

/** All strings of so many digits, each below `base`. */
function all(digits: number, base = 2): string[] {
  return digits === 0
    ? ['']
    : all(digits - 1, base).flatMap(text => Array.from({ length: base }, (_, n) => text + n))
}

const without = (list: readonly string[], ...gone: string[]): string[] =>
  list.filter(text => !gone.includes(text))

const tests: readonly (readonly [name: string, text: string, expected: readonly string[]])[] = [
  // Store buffering.
  ['SB', 'x=1 r=y | y=1 s=x', all(2)], // [5] speaks of atomic writes alone
  ['SB, atomic', 'x:=1 r:=y | y:=1 s:=x', without(all(2), '00')], // SC; 00 breaks [5c]: each read before the other's write
  ['SB, atomic writes', 'x:=1 r=y | y:=1 s=x', all(2)], // [5c] needs an atomic read, [5b] an atomic write to take from
  ['SB, atomic reads', 'x=1 r:=y | y=1 s:=x', all(2)], // [5] needs an atomic write between
  ['SB, one thread atomic', 'x:=1 r:=y | y=1 s=x', all(2)],
  // Load buffering. That a read takes a write does not order them, unless they synchronize: both atomic, same range.
  ['LB', 'r=x y=1 | s=y x=1', all(2)],
  ['LB, atomic', 'r:=x y:=1 | s:=y x:=1', without(all(2), '11')], // [1]: a circle
  ['LB, atomic reads', 'r:=x y=1 | s:=y x=1', all(2)],
  ['LB, atomic writes', 'r=x y:=1 | s=y x:=1', all(2)],
  ['LB, one place atomic', 'r:=x y=1 | s=y x:=1', without(all(2), '11')], // r=1: s=y happens before y=1, by way of x: [2]
  // Message passing.
  ['MP', 'x=1 y=1 | r=y s=x', all(2)],
  ['MP, atomic', 'x:=1 y:=1 | r:=y s:=x', without(all(2), '10')],
  ['MP, atomic flag', 'x=1 y:=1 | r:=y s=x', without(all(2), '10')], // [3]: x=1 happens before s=x
  ['MP, flag written atomically', 'x=1 y:=1 | r=y s=x', all(2)], // nothing synchronizes
  ['MP, flag read atomically', 'x=1 y=1 | r:=y s=x', all(2)],
  ['MP, atomic data', 'x:=1 y=1 | r=y s:=x', all(2)], // the read of x may come before its write in the memory order
  // Independent reads of independent writes.
  ['IRIW', 'x=1 | y=1 | a=x b=y | c=y d=x', all(4)],
  ['IRIW, atomic', 'x:=1 | y:=1 | a:=x b:=y | c:=y d:=x', without(all(4), '1010')],
  ['IRIW, atomic writes', 'x:=1 | y:=1 | a=x b=y | c=y d=x', all(4)],
  ['IRIW, atomic reads', 'x=1 | y=1 | a:=x b:=y | c:=y d:=x', all(4)],
  ['IRIW, second reads plain', 'x:=1 | y:=1 | a:=x b=y | c:=y d=x', all(4)], // [5c] needs atomic reads
  // Two writes each. The final reads happen after all, and find any write that no other hides.
  ['2+2W', 'x=1 y=2 | y=1 x=2 ; x y', ['11', '12', '21', '22']],
  ['2+2W, atomic', 'x:=1 y:=2 | y:=1 x:=2 ; x y', ['12', '21', '22']], // [5b]: the last in the memory order
  ['2+2W, x atomic', 'x:=1 y=2 | y=1 x:=2 ; x y', ['11', '12', '21', '22']],
  // Write to read causality.
  ['WRC', 'x=1 | r=x y=1 | s=y t=x', all(3)],
  ['WRC, atomic', 'x:=1 | r:=x y:=1 | s:=y t:=x', without(all(3), '110')],
  ['WRC, atomic flag', 'x=1 | r=x y:=1 | s:=y t=x', all(3)], // that r takes x=1 orders nothing: both are plain
  ['WRC, last read plain', 'x:=1 | r:=x y:=1 | s:=y t=x', without(all(3), '110')],
  ['WRC, first read plain', 'x:=1 | r=x y:=1 | s:=y t:=x', all(3)],
  // Coherence of one place: by happens-before alone where accesses are plain.
  ['CoRR', 'x=1 | r=x s=x', all(2)], // 10 too: nothing hides the set-up
  ['CoRR, atomic', 'x:=1 | r:=x s:=x', without(all(2), '10')],
  ['CoRR, atomic write', 'x:=1 | r=x s=x', all(2)],
  ['CoRR, atomic reads', 'x=1 | r:=x s:=x', all(2)],
  ['CoRR, first read atomic', 'x:=1 | r:=x s=x', without(all(2), '10')], // x:=1 happens before s
  ['CoWW', 'x=1 x=2 ; x', ['2']], // [3]
  ['CoWW, read by another', 'x=1 x=2 | r=x s=x', all(2, 3)],
  ['CoWW, read by another, atomic', 'x:=1 x:=2 | r:=x s:=x', ['00', '01', '02', '11', '12', '22']],
  ['CoRW1', 'r=x x=1', ['0']], // [2]
  ['CoRW2', 'r=x x=1 | x=2 ; x', ['01', '02', '21', '22']],
  ['CoRW2, atomic', 'r:=x x:=1 | x:=2 ; x', ['01', '02', '21']],
  ['CoWR', 'x=1 r=x | x=2 ; x', ['11', '12', '21', '22']], // [3] hides the set-up from r
  ['CoWR, atomic', 'x:=1 r:=x | x:=2 ; x', ['11', '12', '22']],
  // Causality through three threads.
  ['ISA2', 'x=1 y=1 | r=y z=1 | s=z t=x', all(3)],
  ['ISA2, atomic', 'x:=1 y:=1 | r:=y z:=1 | s:=z t:=x', without(all(3), '110')],
  ['ISA2, atomic flags', 'x=1 y:=1 | r:=y z:=1 | s:=z t=x', without(all(3), '110')],
  ['ISA2, one flag atomic', 'x=1 y=1 | r=y z:=1 | s:=z t=x', all(3)],
  // Store buffering behind a plain write that happens before the atomic one: 110 breaks [5c].
  [
    'SB behind a plain write',
    'x=1 z:=1 y:=1 r:=x | a:=z x:=2 s:=y',
    ['100', '101', '111', '200', '201', '210', '211'],
  ],
  // R and S.
  ['R', 'x=1 y=1 | y=2 r=x ; y', ['01', '02', '11', '12']],
  ['R, atomic', 'x:=1 y:=1 | y:=2 r:=x ; y', ['01', '11', '12']],
  ['R, y atomic', 'x=1 y:=1 | y:=2 r=x ; y', ['01', '02', '11', '12']], // two writes do not synchronize
  ['S', 'x=2 y=1 | r=y x=1 ; x', ['01', '02', '11', '12']],
  ['S, atomic', 'x:=2 y:=1 | r:=y x:=1 ; x', ['01', '02', '11']],
  ['S, y atomic', 'x=2 y:=1 | r:=y x=1 ; x', ['01', '02', '11']], // x=2 happens before x=1, which hides it
]

describe('a litmus test', () => {
  test.each(tests)('%s (%s) has the outcomes that the model allows', (_, text, expected) => {
    const result = check('litmus', { memory: 'weak' }, program(text))
    expect(result.complete).toBe(true)
    expect(result.outcomes?.map(({ text: outcome }) => JSON.parse(outcome))).toEqual([...expected].sort())
  })

  test('of atomics alone has the outcomes of interleavings', () => {
    for (const [name, text] of tests) {
      if (/(?<!:)=/.test(text)) continue
      // Final reads are plain, and happen after everything.
      const weak = check('weak', { memory: 'weak' }, program(text))
      const sequential = check('sequential', { expectOutcomes: [] }, program(text))
      const list = (result: typeof weak): string[] => result.outcomes!.map(({ text: outcome }) => outcome)
      expect(list(weak), name).toEqual(list(sequential))
    }
  })
})

function outcomes(setup: () => Program): unknown[] {
  const result = check('outcomes', { memory: 'weak' }, setup)
  expect(result.complete).toBe(true)
  return result.outcomes!.map(({ text }) => text)
}

const words = (): Int32Array<SharedArrayBuffer> => new Int32Array(new SharedArrayBuffer(16))

describe('a read-modify-write', () => {
  test('is one event: none comes between what it reads and what it writes', () => {
    expect(
      outcomes(() => {
        const m = words()
        const add = (): number => Atomics.add(m, 0, 1)
        return { threads: [add, add], final: ({ results }) => [...results, m[0]] }
      }),
    ).toEqual(['[0, 1, 2]', '[1, 0, 2]'])
  })

  test('that races with a plain write is no better than plain: two may take the same write', () => {
    // Of 0 only one can (5c); 5 is no atomic write and happens before neither, so nothing of [5] applies.
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

  test('that grows from thread to thread comes to an end', () => {
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

  test('for an atomic ends, and everything before it is there', () => {
    expect(outcomes(waits(m => Atomics.load(m, 1)))).toEqual(['42'])
  })

  test('for a plain word may never end, which is a livelock', () => {
    expect(() =>
      check(
        'plain',
        { memory: 'weak' },
        waits(m => m[1]!),
      ),
    ).toThrow(/livelock: reader may spin for ever at .*litmus\.test\.ts/)
  })

  test('for what is never written is a livelock', () => {
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

  test('by exchange hands what it guards over', () => {
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
  test('shows the steps in a memory order, what each read took, and why it may', () => {
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
      /Step \d takes what the set-up wrote, though step \d has written since: step \d does not happen before it/,
    )
    expect(failing).not.toThrow('replay:')
  })
})

describe('what the search cannot do', () => {
  test.each([
    [
      'Atomics.wait',
      () => {
        const m = words()
        return { threads: [() => void Atomics.wait(m, 0, 0)] }
      },
      /wait at .*litmus/,
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
      /a buffer that can grow at .*litmus/,
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
      /lock at .*litmus|lock, in/,
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

  test('other explorers and deaths are refused beside it', () => {
    expect(() => check('no', { memory: 'weak', explorer: 'pct' }, program('x=1'))).toThrow(
      "`explorer` is 'pct'",
    )
    expect(() => check('no', { memory: 'weak', crashes: 1 }, program('x=1'))).toThrow('`crashes`')
    expect(() => check('no', { memory: 'strong' as 'weak' }, program('x=1'))).toThrow(
      "must be 'sequential' or 'weak'",
    )
  })

  test('a search that meets a bound is incomplete', () => {
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

  test('threads that share more than memory are found out', () => {
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
        'must depend on nothing but what it reads',
      )
  })
})
