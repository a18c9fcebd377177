import { beforeAll, describe, expect, test } from 'vitest'
import {
  check,
  CheckError,
  CheckFailure,
  type CheckOptions,
  type CheckResult,
  type Program,
} from '../check.ts'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'
import { parseSchedule } from '../machine/schedule.ts'

type Behaviours = typeof import('../../../testing/checker/programs/behaviours.ts')
type Counted = typeof import('../../../testing/checker/programs/counted.ts')

let programs: Behaviours
let counted: Counted
beforeAll(async () => {
  programs = await loadInstrumented<Behaviours>(
    new URL('../../../testing/checker/programs/behaviours.ts', import.meta.url),
  )
  counted = await loadInstrumented<Counted>(
    new URL('../../../testing/checker/programs/counted.ts', import.meta.url),
  )
})

/** The result of a check and all values that its threads returned, over all executions. */
function outcomes(
  setup: () => Program,
  options: CheckOptions = {},
): { result: CheckResult; seen: Set<string> } {
  const seen = new Set<string>()
  const result = check('outcomes', { allowIncomplete: true, ...options }, () => {
    const program = setup()
    return {
      ...program,
      final(outcome) {
        seen.add(outcome.results.join())
        program.final?.(outcome)
      },
    }
  })
  return { result, seen }
}

function failureOf(setup: () => Program, options: CheckOptions = {}): CheckResult {
  return errorOf(setup, options).result
}

function errorOf(setup: () => Program, options: CheckOptions): CheckFailure {
  try {
    check('fails', options, setup)
  } catch (error) {
    if (error instanceof CheckFailure) return error
    throw error
  }
  throw new Error('the check passes')
}

function wrong(setup: () => Program, options: CheckOptions = {}): CheckError {
  try {
    check('wrong', options, setup)
  } catch (error) {
    if (error instanceof CheckError) return error
    throw error
  }
  throw new Error('the check passes')
}

describe('blocking', () => {
  test('a wait with a timeout is woken, times out, or finds another value', () => {
    const { result, seen } = outcomes(() => programs.timedWait())
    expect(new Set([...seen].map(text => text.split(',')[0]))).toEqual(
      new Set(['ok', 'timed-out', 'not-equal']),
    )
    expect(result.complete).toBe(true)
  })

  test('a notify wakes the first sleeper', () => {
    const { seen } = outcomes(() => programs.fifoWake())
    expect(seen.size).toBeGreaterThan(1)
  })

  test('waitAsync is woken or finds another value, and with a timeout its promise may also time out', () => {
    const without = outcomes(() => programs.asyncWait(undefined)).seen
    expect([...without].sort()).toEqual(['not-equal,0', 'ok,1'])
    const within = outcomes(() => programs.asyncWait(10)).seen
    expect([...within].sort()).toEqual(['not-equal,0', 'ok,1', 'timed-out,0'])
  })

  test('a lock order mistake with the checker’s own mutex is a deadlock', () => {
    expect(failureOf(() => programs.mutexOrder(false)).failure?.kind).toBe('deadlock')
    expect(outcomes(() => programs.mutexOrder(true)).result).toMatchObject({ executions: 2, complete: true })
    expect(outcomes(() => programs.mutexOrder(true, 'unnamed')).result).toMatchObject({
      executions: 2,
      complete: true,
    })
    expect(wrong(() => programs.mutexOrder(true, 'alike')).message).toContain(
      'two CheckedMutex have the id 7',
    )
  })
})

describe('loops', () => {
  test('a spin that no thread ends is a livelock', () => {
    const { failure } = failureOf(() => programs.spinsForever())
    expect(failure?.kind).toBe('livelock')
    expect(failure?.detail.join()).toMatch(/behaviours\.ts:\d+/)
  })

  test('a spin that another thread ends is not, and adds no executions', () => {
    expect(outcomes(() => programs.spinsUntil()).result).toMatchObject({ ok: true, complete: true })
    expect(outcomes(() => programs.spinsWithPause()).result).toMatchObject({ executions: 1, complete: true })
  })

  test('counted turns are all taken, with the count in a variable or in an object', () => {
    for (const program of [programs.boundedSpin, programs.boundedSpinInObject]) {
      const { result, seen } = outcomes(() => program())
      expect([...seen].sort()).toEqual(['gave up,1', 'seen,1'])
      expect(result).toMatchObject({ executions: 4, redundant: 0, complete: true })
    }
  })

  test('threads that yield to each other for ever are a livelock', () => {
    const { failure } = failureOf(() => programs.politeLivelock(), { steps: 200, shrink: 0 })
    expect(failure?.kind).toBe('livelock')
  })

  test('a thread that never ends is reported at the step limit', () => {
    const { failure } = failureOf(() => programs.endlessSteps(), { steps: 100, shrink: 0 })
    expect(failure?.kind).toBe('livelock')
    expect(failure?.detail.join()).toContain('raise `steps`')
  })

  test('an execution that never ends costs a few executions, and a part of its steps is shown', () => {
    for (const program of [programs.endlessSteps, programs.recursiveWait]) {
      const { result, steps, message } = errorOf(() => program(), { steps: 400 })
      expect(result.failure?.kind).toBe('livelock')
      expect(steps.length).toBeGreaterThan(400)
      expect(message).toMatch(/^ +… {3}\d+ steps left out/m)
      expect(message.split('\n').length).toBeLessThan(300)
    }
  })
})

describe('deaths', () => {
  test('a lock whose holder dies blocks the survivor', () => {
    expect(outcomes(() => programs.deadHolder(false)).result.ok).toBe(true)
    const { failure } = failureOf(() => programs.deadHolder(false), { crashes: 1 })
    expect(failure?.kind).toBe('livelock')
    expect(failure?.detail.join()).toContain('died before its step')
    expect(failure?.schedule.crashes).toHaveLength(1)
  })

  test('with a recovery every survivor ends, for each death at each step', () => {
    const { result } = outcomes(() => programs.deadHolder(true), { crashes: 1 })
    expect(result).toMatchObject({ ok: true, complete: true })
    const none = outcomes(() => programs.deadHolder(true)).result
    expect(result.executions).toBeGreaterThan(3 * none.executions)
  })

  test('only the threads that may die do', () => {
    const all = outcomes(() => programs.deadHolder(true), { crashes: 1 }).result
    const one = outcomes(() => programs.deadHolder(true), { crashes: { max: 1, threads: [1] } }).result
    const none = outcomes(() => programs.deadHolder(true)).result
    // The two threads are alike, so each has the same number of deaths.
    expect(all.executions - none.executions).toBe(2 * (one.executions - none.executions))
  })

  test('the schedule of a death replays the death', () => {
    const { failure } = failureOf(() => programs.deadHolder(false), { crashes: 1 })
    const [{ thread, step }] = failure!.schedule.crashes
    const text = `${thread}!${step}/${failure!.schedule.threads.join('.')}`
    expect(parseSchedule(text)).toEqual(failure!.schedule)
    const again = failureOf(() => programs.deadHolder(false), { explorer: 'replay', schedule: text })
    expect(again.failure?.schedule).toEqual(failure?.schedule)
  })
})

describe('memory', () => {
  test('an access after a free is reported with both steps', () => {
    const { failure } = failureOf(() => programs.useAfterFree(false))
    expect(failure?.kind).toBe('use-after-free')
    expect(failure?.marked).toHaveLength(2)
    expect(outcomes(() => programs.useAfterFree(true)).result).toMatchObject({ ok: true, complete: true })
  })

  test('each access to a view has the effect that the language defines', () => {
    const { seen } = outcomes(() => programs.everyAccess())
    const memory = new Int32Array([2, 1, 258, 5])
    const big = new BigInt64Array(memory.buffer)
    const sum = memory.reduce((a, b) => a + b, 0)
    big[1] ^= 1n
    expect([...seen]).toEqual([[2, 1, 3, 1, sum, sum, big[1], undefined].join()])
  })
})

describe('explorers', () => {
  test('each reports whether it was complete', () => {
    const setup = (): Program => counted.adders(3)
    expect(outcomes(setup).result.complete).toBe(true)
    for (const explorer of ['pct', 'random', 'round-robin'] as const) {
      const { result } = outcomes(setup, { explorer, runs: 20 })
      expect(result).toMatchObject({ ok: true, complete: false })
      expect(result.why).not.toBe('')
    }
  })

  test('a search that never reaches its bound on preemptions is complete', () => {
    const setup = (): Program => counted.adders(3)
    expect(outcomes(setup, { explorer: 'preemption-bounded', preemptions: 9 }).result).toMatchObject({
      executions: 6,
      complete: true,
    })
    const two = (): Program => counted.fibonacci(1)
    const bounded = outcomes(two, { explorer: 'preemption-bounded', preemptions: 0 }).result
    expect(bounded).toMatchObject({ executions: 6, complete: false })
    expect(bounded.why).toContain('at most 0 preemptions')
  })

  test('pct reports its probability bound', () => {
    const { result } = outcomes(() => counted.adders(4), { explorer: 'pct', depth: 2, runs: 100 })
    // Four threads, four steps, one change: at least 1/16 for each run.
    expect(result.probability).toBeCloseTo(1 - (1 - 1 / 16) ** 100, 10)
  })

  test('pct finds a bug of depth 2 at least as often as its bound says', () => {
    // The bug is one order: thread 3 adds first and thread 0 second.
    const runs = 400
    let met = 0
    check('pct', { explorer: 'pct', depth: 2, runs, allowIncomplete: true }, () => {
      const program = counted.adders(4)
      return {
        threads: program.threads,
        final({ results }) {
          if (results[3] === 0 && results[0] === 1) met++
        },
      }
    })
    expect(met / runs).toBeGreaterThan(1 / 16)
  })

  test('the same seed gives the same schedules, another seed others', () => {
    const orders = (seed: number): string => {
      const seen: string[] = []
      check('seeded', { explorer: 'random', runs: 20, seed, allowIncomplete: true }, () => ({
        threads: counted.adders(4).threads,
        final: ({ results }) => void seen.push(results.join()),
      }))
      return seen.join(' ')
    }
    expect(orders(5)).toBe(orders(5))
    expect(orders(5)).not.toBe(orders(99))
  })

  test('round robin gives each thread its quantum in turn', () => {
    const orderOf = (quantum: number): string => {
      let order = ''
      check('turns', { explorer: 'round-robin', quantum, allowIncomplete: true }, () => ({
        threads: counted.adders(2).threads,
        final: ({ results }) => void (order = results.join()),
      }))
      return order
    }
    expect(orderOf(1)).toBe('0,1')
    const { result } = outcomes(() => counted.fibonacci(2), { explorer: 'round-robin', quantum: 2 })
    expect(result).toMatchObject({ executions: 1, depth: 14, complete: false })
  })

  test('a search that reaches a bound reports it', () => {
    const { result } = outcomes(() => counted.adders(5), { executions: 7 })
    expect(result).toMatchObject({ executions: 7, complete: false })
    expect(result.why).toContain('7 executions')
  })
})

describe('an invalid check gets an error that says what to change', () => {
  test('when its set-up returns an unknown part', () => {
    const error = wrong(() => ({ threads: [() => undefined], finally: () => undefined }) as never)
    expect(error.code).toBe('ERR_CHECK_SETUP')
    expect(error.message).toContain('returns `finally`, which means nothing here; there are threads, final,')
  })

  test('when its set-up throws', () => {
    const error = wrong(() => {
      throw new Error('no memory today')
    })
    expect(error.code).toBe('ERR_CHECK_SETUP')
    expect(error.message).toContain('no memory today')
    expect(error.message).toContain('must succeed each time')
  })

  test('when its set-up returns something else, or a promise', () => {
    expect(wrong(() => ({}) as Program).message).toContain('{ threads: [body, body, …], final }')
    expect(wrong((async () => ({ threads: [] })) as never).message).toContain('must be synchronous')
    expect(wrong(() => ({ threads: [1 as never] })).message).toContain('threads[0] is not a function')
    expect(wrong(() => ({ threads: [] })).code).toBe('ERR_CHECK_THREADS')
  })

  test('when its bodies are not instrumented', () => {
    const error = wrong(() => ({ threads: [() => 1, () => 2] }))
    expect(error.code).toBe('ERR_CHECK_NOT_INSTRUMENTED')
    expect(error.message).toContain('heddle check')
  })

  test('when it never ends', () => {
    const error = wrong(() => programs.endlessLoop())
    expect(error.code).toBe('ERR_CHECK_ENDLESS')
    expect(error.message).toMatch(/behaviours\.ts:\d+.*without touching shared memory/)
  })

  test('when it uses the clock or randomness', () => {
    for (const how of ['random', 'clock'] as const) {
      const error = wrong(() => programs.nondeterministic(how, { value: 0 }))
      expect(error.code).toBe('ERR_CHECK_NONDETERMINISTIC')
      expect(error.message).toContain(how === 'random' ? 'Math.random()' : 'Date.now()')
    }
    expect(Math.random()).toBeLessThan(1)
    expect(Date.now()).toBeGreaterThan(0)
    expect(new Date()).toBeInstanceOf(Date)
  })

  test('when it keeps state from one execution to the next', () => {
    const count = { value: 0 }
    const error = wrong(() => programs.nondeterministic('state', count))
    expect(error.code).toBe('ERR_CHECK_NONDETERMINISTIC')
    expect(error.message).toContain('create all changing state in the set-up')
  })

  test('when code that is not instrumented touches its memory', () => {
    for (const how of ['atomics', 'reads', 'writes'] as const) {
      const error = wrong(() => programs.uninstrumented(how))
      expect(error.code).toBe('ERR_CHECK_UNINSTRUMENTED')
      expect(error.message).toContain('not instrumented')
    }
    expect(Atomics.load(new Int32Array(new SharedArrayBuffer(4)), 0)).toBe(0)
  })

  test('when it awaits a promise that the checker did not make', () => {
    expect(wrong(() => programs.realPromise()).code).toBe('ERR_CHECK_PROMISE')
  })

  test('when an option is unknown or out of range', () => {
    const setup = (): Program => counted.adders(2)
    expect(wrong(setup, { preemption: 2 } as never).message).toContain('there is no option `preemption`')
    expect(wrong(setup, { explorer: 'magic' as never }).message).toContain("no explorer 'magic'")
    expect(wrong(setup, { runs: 0 }).message).toContain('at least 1')
    expect(wrong(setup, { explorer: 'replay' }).message).toContain('schedule')
    expect(wrong(setup, { explorer: 'replay', schedule: '0y' }).message).toContain('0x3.1.0x2')
  })
})
