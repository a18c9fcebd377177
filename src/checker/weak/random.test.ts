import { expect, test } from 'vitest'
import { check, CheckFailure, type CheckResult, type Program } from '../check.ts'
import {
  COMPARE_EXCHANGE,
  DATAVIEW_READ,
  DATAVIEW_WRITE,
  LOAD,
  PLAIN_READ,
  PLAIN_WRITE,
  STORE,
  XOR,
} from '../machine/operations.ts'
import { loop, op, turn } from '../machine/pending.ts'
import { Random } from '../search/random.ts'
import {
  bruteForce,
  bytesOf,
  fold,
  type Operation,
  type Spin,
} from '../../../testing/checker/weak/bruteforce.ts'

const numberOf = (bytes: readonly number[]): number =>
  bytes.reduce((sum, byte, i) => sum + byte * 256 ** i, 0)
const digitsOf = (value: number, size: number): number[] =>
  Array.from({ length: size }, (_, i) => (value >>> (8 * i)) & 255)

/**
 * A thread body, for the checker, that performs these operations and returns the bytes that its reads found.
 */
function bodyOf(
  operations: readonly Operation[],
  bytes: Uint8Array,
  data: DataView,
  words: Uint16Array,
  spinsAt = -1,
) {
  return function* body(): Generator<number, unknown, unknown> {
    let register = 0
    const log: string[] = []
    for (const [at, { does, atomic, data: torn, byte, size, value, copies }] of operations.entries()) {
      const view = size === 1 ? bytes : words
      const index = size === 1 ? byte : byte / 2
      const given = numberOf(bytesOf(copies ? register : value, size))
      let found: unknown
      if (does === 'write') {
        if (torn)
          yield op(DATAVIEW_WRITE, 0, data, byte, given, [size === 1 ? 'setUint8' : 'setUint16', true])
        else yield op(atomic ? STORE : PLAIN_WRITE, 0, view, index, given)
        continue
      }
      if (at === spinsAt) {
        const entered = loop(0)
        while (turn(entered)) {
          if (does === 'cas') found = yield op(COMPARE_EXCHANGE, 0, view, index, 0, given)
          else found = yield op(atomic ? LOAD : PLAIN_READ, 0, view, index)
          if ((found === 0) === (does === 'cas')) break
        }
      } else if (does === 'rmw') found = yield op(XOR, 0, view, index, given)
      else if (does === 'cas') found = yield op(COMPARE_EXCHANGE, 0, view, index, 0, given)
      else if (torn)
        found = yield op(DATAVIEW_READ, 0, data, byte, undefined, [
          size === 1 ? 'getUint8' : 'getUint16',
          true,
        ])
      else found = yield op(atomic ? LOAD : PLAIN_READ, 0, view, index)
      const digits = digitsOf(found as number, size)
      register = fold(register, digits)
      log.push(digits.join(''))
    }
    return log.join(' ')
  }
}

function programOf(threads: readonly (readonly Operation[])[], spin?: Spin): () => Program {
  const others = threads.slice(0, -1)
  return () => {
    const memory = new SharedArrayBuffer(2)
    const [bytes, data, words] = [new Uint8Array(memory), new DataView(memory), new Uint16Array(memory)]
    const bodies = others.map((operations, thread) =>
      bodyOf(operations, bytes, data, words, spin?.thread === thread ? spin.at : -1),
    )
    const final = bodyOf(threads.at(-1)!, bytes, data, words)
    return {
      threads: bodies,
      *final({ results }) {
        const read = yield* final()
        return [...results, read].map(log => `(${String(log)})`).join('')
      },
    }
  }
}

function randomOperation(random: Random): Operation {
  const does = (['read', 'read', 'write', 'write', 'write', 'rmw', 'cas'] as const)[random.below(7)]!
  const atomic = does === 'rmw' || does === 'cas' || random.below(2) === 0
  const size = random.below(4) === 0 ? 2 : 1
  return {
    does,
    atomic,
    data: !atomic && random.below(5) === 0,
    byte: size === 2 ? 0 : random.below(2),
    size,
    value: 1 + random.below(3),
    copies: random.below(3) === 0,
  }
}

/** Two or three threads of a few operations each, and a last thread that reads when they have ended. */
function randomProgram(random: Random): Operation[][] {
  const events = 3 + random.below(2)
  const threads: Operation[][] = Array.from({ length: 2 + random.below(2) }, () => [])
  for (let n = 0; n < events; n++)
    threads[n < threads.length ? n : random.below(threads.length)]!.push(randomOperation(random))
  const final =
    random.below(3) === 0 ? [{ ...randomOperation(random), does: 'read', atomic: false } as const] : []
  return [...threads, final]
}

test('random programs have the outcomes that the brute-force model of the specification finds', () => {
  const seed = Number(process.env['HEDDLE_SEED'] ?? 1)
  const count = process.env['HEDDLE_LONG'] === '1' ? 5000 : 250
  const random = new Random(seed)
  const forms = new Map<string, number>()
  const note = (form: string): void => void forms.set(form, (forms.get(form) ?? 0) + 1)
  for (let n = 0; n < count; n++) {
    const threads = randomProgram(random)
    const result = check('random', { memory: 'weak' }, programOf(threads))
    const name = `seed ${seed}, program ${n}: ${JSON.stringify(threads)}`
    expect(result.complete, name).toBe(true)
    const expected = bruteForce(threads)
    expect(
      result.outcomes!.map(({ text }) => JSON.parse(text) as string),
      name,
    ).toEqual(expected)
    for (const { does, atomic, data, size } of threads.flat()) note(`${does} ${atomic} ${data} ${size}`)
    if (threads.at(-1)!.length === 0) {
      const plainly = (): Program => ({ threads: programOf(threads)().threads })
      const sequential = check('sequential', { races: false, expectOutcomes: [] }, plainly).outcomes!
      if (sequential.length < expected.length) note('more than interleavings')
    }
  }
  // The programs cover every kind of access, and many allow more outcomes than interleavings do.
  expect(forms.size).toBeGreaterThan(14)
  expect(forms.get('more than interleavings')).toBeGreaterThan(count / 10)
})

/** The outcomes of a program in which a thread may spin for ever. */
function outcomesOf(setup: () => Program): CheckResult {
  try {
    return check('spins', { memory: 'weak', keepGoing: true }, setup)
  } catch (error) {
    if (error instanceof CheckFailure && error.result.failure?.kind === 'livelock') return error.result
    throw error
  }
}

test('a waiting loop has the outcomes of its last turn', () => {
  const random = new Random(2)
  let spun = 0
  let endless = 0
  for (let n = 0; n < 120; n++) {
    const threads = randomProgram(random)
    const thread = threads.findIndex(operations =>
      operations.some(({ does, data, size }) => size === 1 && !data && (does === 'read' || does === 'cas')),
    )
    if (thread < 0 || thread === threads.length - 1) continue
    const at = threads[thread]!.findIndex(
      ({ does, data, size }) => size === 1 && !data && (does === 'read' || does === 'cas'),
    )
    const expected = bruteForce(threads, { thread, at })
    const result = outcomesOf(programOf(threads, { thread, at }))
    expect(
      result.outcomes!.map(({ text }) => JSON.parse(text) as string),
      JSON.stringify({ threads, thread, at }),
    ).toEqual(expected)
    spun++
    if (result.failure !== undefined) endless++
  }
  expect(spun).toBeGreaterThan(40)
  expect(endless).toBeGreaterThan(5)
  expect(endless).toBeLessThan(spun)
})
