import { expect, test } from 'vitest'
import { FUTEX2_PRIVATE, FUTEX2_SIZE_U32 } from '../../src/futex/operations/call.ts'
import { futex } from '../../src/sync/futex/futex.ts'
import { SeededRandom } from '../../src/machine/simulated/random.ts'
import { askLinux, buildLinuxFutex } from './linux.ts'

/**
 * A call of futex2 on 32-bit words: as a line for the C program that calls the kernel, and as a call here.
 */
interface Call {
  readonly line: string
  /** The result, or a promise of it for a wait. */
  readonly here: (view: Int32Array) => number | Promise<number>
}

const SHARED = FUTEX2_SIZE_U32
const PRIVATE = FUTEX2_SIZE_U32 | FUTEX2_PRIVATE
/** Bits that no kernel defines. */
const UNKNOWN = FUTEX2_SIZE_U32 | 32

/** A negated error number, as the kernel returns it. */
function result(call: () => number | string): number {
  try {
    const said = call()
    return said === 'not-equal' ? -11 : (said as number)
  } catch (error) {
    return (error as { errno: number }).errno
  }
}

function wait(id: number, index: number, flags: number, value: number, bitset: number): Call {
  return {
    line: `w ${id} ${index} ${flags} ${value} ${bitset}`,
    here: view =>
      futex.waitAsync(view, index, value, { flags, bitset }).then(
        said => (said === 'not-equal' ? -11 : 0),
        error => error.errno,
      ),
  }
}

function wake(index: number, flags: number, bitset: number, count: number): Call {
  return {
    line: `k ${index} ${flags} ${bitset >>> 0} ${count}`,
    here: view => result(() => futex.wake(view, index, count, { flags, bitset })),
  }
}

function requeue(index: number, value: number, index2: number, flags: number[], counts: number[]): Call {
  const [from, to, all] = flags
  const [wakes, move] = counts
  return {
    line: `r ${index} ${from} ${value} ${index2} ${to} ${all} ${wakes} ${move}`,
    here: view =>
      result(() =>
        futex.requeuev(
          [
            { view, index, value, flags: from },
            { view, index: index2, flags: to },
          ],
          { wake: wakes, move, flags: all },
        ),
      ),
  }
}

function makeCalls(seed: number): Call[] {
  const random = new SeededRandom(seed)
  const pick = <T>(...choices: readonly T[]): T => choices[random.below(choices.length)]
  const flags = (): number => pick(SHARED, SHARED, SHARED, PRIVATE, PRIVATE, PRIVATE, UNKNOWN)
  const calls: Call[] = []
  let waits = 0
  for (let step = 0; step < 60; step++) {
    const [index, index2] = [random.below(3), random.below(3)]
    const kind = random.below(8)
    if (kind < 4 && waits < 60)
      calls.push(wait(waits++, index, flags(), pick(0, 0, 0, 1), pick(1, 2, 3, 3, 0)))
    else if (kind < 6) calls.push(wake(index, flags(), pick(1, 2, 3, -1, 0), random.below(3)))
    else {
      const same = flags()
      const both = pick([same, same], [same, same], [same, flags()])
      calls.push(
        requeue(
          index,
          pick(0, 0, 0, 1),
          index2,
          [...both, pick(0, 0, 0, 1)],
          [pick(0, 1, 2, -1), pick(0, 1, 2, -1)],
        ),
      )
    }
  }
  for (const index of [0, 1, 2])
    for (const which of [SHARED, PRIVATE]) calls.push(wake(index, which, -1, 1000))
  return calls
}

const program = buildLinuxFutex()
const hasFutex2 = program !== undefined && !askLinux(program, ['k 0 2 1 1'])[0].startsWith('-38')

test.skipIf(!hasFutex2)('random calls of futex2 have the results of the kernel of this machine', async () => {
  const first = Date.now() % 100_000
  for (let seed = first; seed < first + 8; seed++) {
    const calls = makeCalls(seed)
    const told = new Map<string, string>()
    const linux = askLinux(
      program as string,
      calls.map(({ line }) => line),
    ).map(line => {
      const [result, ...waiters] = line.split(' | ')[0].split(' ')
      for (const waiter of waiters) told.set(...(waiter.split(':') as [string, string]))
      return Number(result)
    })
    const view = new Int32Array(new SharedArrayBuffer(32))
    const waits: Promise<number>[] = []
    const here: number[] = []
    for (const call of calls) {
      const answer = call.here(view)
      if (typeof answer === 'number') here.push(answer)
      else {
        waits.push(answer)
        here.push(0)
      }
    }
    const named = (answers: readonly number[]): string[] =>
      answers.map((answer, at) => `${calls[at].line} -> ${answer}`)
    expect(named(here), `seed ${seed}`).toEqual(named(linux))
    const ended = await Promise.all(waits)
    expect(ended, `seed ${seed}: the result of each wait`).toEqual(
      waits.map((_, id) => Number(told.get(String(id)))),
    )
  }
})
