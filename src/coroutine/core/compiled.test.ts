/** Ordinary functions as coroutines: blocking calls stand in them as plain calls. */
import { describe, expect, test } from 'vitest'
import { compile } from '../../compiler/compile.ts'
import { evaluateModule } from '../../../test/compiler/differential/evaluate.ts'
import * as runtime from '../../compiler/runtime.ts'
import * as heddle from '../index.ts'
import { Schedule } from '../schedule/schedule.ts'
import { VirtualTime } from '../schedule/virtualtime.ts'

function load(source: string): Record<string, (...args: any[]) => any> {
  const { code, diagnostics } = compile(source, 'work.js')
  expect(diagnostics).toEqual([])
  return evaluateModule(code, 'work.js', { 'heddle/runtime': runtime, heddle })
}

function virtual(safepointMs = 0.01): { schedule: Schedule; time: VirtualTime } {
  const time = new VirtualTime()
  return { schedule: new Schedule({ platform: time, ticks: time.slices(safepointMs) }), time }
}

test('sleep, wait, suspend and yieldNow are plain calls', async () => {
  const { steps } = load(`
    import { sleep, suspend, wait, yieldNow } from 'heddle'
    export function steps(now, log) {
      'use task'
      sleep(10)
      log.push('slept until ' + Math.round(now()))
      const value = wait(Promise.resolve(7))
      log.push('waited for ' + value)
      log.push('woken with ' + suspend(waker => waker.wake('a word')))
      yieldNow()
      try {
        wait(Promise.reject(new Error('refused')))
      } catch (error) {
        log.push('caught ' + error.message)
      } finally {
        sleep(5)
      }
      return Math.round(now())
    }`)
  const { schedule, time } = virtual()
  const log: string[] = []
  expect(await schedule.run(steps, time.now, log)).toBe(15)
  expect(log).toEqual(['slept until 10', 'waited for 7', 'woken with a word', 'caught refused'])
})

test('so are a schedule’s own suspend and sleep', async () => {
  const { steps } = load(`
    export function steps(schedule, log) {
      'use task'
      schedule.sleep(3)
      log.push('slept')
      log.push(schedule.suspend())
      return 'end'
    }`)
  const { schedule } = virtual()
  const log: string[] = []
  const co = schedule.go(steps, schedule, log)
  schedule.go(function* () {
    yield* heddle.sleep(10)
    schedule.resume(co, 'resumed')
  })
  await schedule.run()
  expect(log).toEqual(['slept', 'resumed'])
  expect(await co.done).toBe('end')
})

test('they work at any depth of calls, in callbacks and methods too', async () => {
  const { total } = load(`
    'use task'
    import { sleep } from 'heddle'
    class Source {
      read(i) { sleep(1); return i * 2 }
    }
    function deep(n, source) { return n === 0 ? source.read(1) : deep(n - 1, source) }
    export function total(list) {
      const source = new Source()
      return list.map(i => source.read(i)).reduce((sum, i) => sum + i, deep(40, source))
    }`)
  const { schedule, time } = virtual()
  expect(await schedule.run(total, [1, 2, 3])).toBe(14)
  expect(time.now()).toBeGreaterThanOrEqual(4)
})

test('called where no coroutine runs, they say so', () => {
  const { nap } = load(`
    import { sleep } from 'heddle'
    export function nap() { 'use task'; sleep(1) }`)
  expect(nap).toThrow('needs a coroutine, and none is running here')
})

test('many ordinary functions, all of them hogs, share the thread and end with their own results', async () => {
  const { fib, collatz } = load(`
    'use task'
    export function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
    export function collatz(limit) {
      let longest = 0
      for (let start = 1; start < limit; start++) {
        let n = start, length = 1
        while (n !== 1) { n = n % 2 === 0 ? n / 2 : 3 * n + 1; length++ }
        if (length > longest) longest = length
      }
      return longest
    }`)
  const { schedule } = virtual(0.1)
  const runs = [
    schedule.run(fib, 18),
    schedule.run(collatz, 3000),
    schedule.run(fib, 15),
    schedule.run(collatz, 100),
  ]
  expect(await Promise.all(runs)).toEqual([2584, 217, 610, 119])
  expect(schedule.statistics.switches).toBeGreaterThan(10)
})

describe('deep in a recursion', () => {
  const { descend } = load(`
    'use task'
    export function descend(depth, turns) {
      if (depth === 0) {
        let sum = 0
        for (let turn = 0; turn < turns; turn++) sum += turn & 1
        return sum
      }
      return descend(depth - 1, turns) + 1
    }`)

  test('a coroutine is preempted again and again, and returns through every caller', async () => {
    const { schedule } = virtual(0.1)
    const co = schedule.go(descend, 1000, 1_000_000)
    await schedule.run()
    expect(await co.done).toBe(501_000)
    expect(co.preemptions).toBeGreaterThan(10)
  })

  test('an error shows the callers that were left behind by a preemption', async () => {
    const { fail } = load(`
      'use task'
      import { sleep } from 'heddle'
      export function fail() { return outer() + 1 }
      function outer() { return inner() + 1 }
      function inner() { sleep(1); throw new Error('deep down') }`)
    const { schedule } = virtual()
    const error: Error = await schedule.run({ name: 'failing' }, fail).catch((reason: Error) => reason)
    const names = error.stack!.split('\n').map(line => /^ +at (\w+)/.exec(line)?.[1])
    expect(names.slice(1, 5)).toEqual(['inner', 'outer', 'fail', 'coroutine'])
  })

  test('cancelling one unwinds every caller', async () => {
    const { hold } = load(`
      'use task'
      export function hold(depth, log) {
        try {
          if (depth > 0) return hold(depth - 1, log)
          for (let turn = 0; ; turn++);
        } finally {
          log.push(depth)
        }
      }`)
    const { schedule } = virtual()
    const log: number[] = []
    await expect(schedule.run({ timeout: 100 }, hold, 5, log)).rejects.toMatchObject({ name: 'TimeoutError' })
    expect(log).toEqual([0, 1, 2, 3, 4, 5])
  })
})

test('a marked generator function is a coroutine: it runs to its end, and may block', async () => {
  const { stages } = load(`
    import { sleep } from 'heddle'
    export function* stages(log) {
      'use task'
      for (let stage = 0; stage < 3; stage++) {
        log.push(stage)
        yield 0
        sleep(1)
      }
      return 'end'
    }`)
  const { schedule } = virtual()
  const log: number[] = []
  expect(await schedule.run(stages, log)).toBe('end')
  expect(log).toEqual([0, 1, 2])
})

describe('an async function after an await', () => {
  test('is preempted: another coroutine ends what it waits for', async () => {
    const { spins } = load(`
      export async function spins(state) {
        'use task'
        await null
        state.begun = true
        for (let n = 0; !state.done; n++) if (n > 1e9) n = 0
        return 'let in'
      }`)
    const { schedule } = virtual()
    const state = { begun: false, done: false }
    const spinning = schedule.run(spins, state)
    const other = schedule.run(function* () {
      while (!state.begun) yield* heddle.sleep(1)
      state.done = true
    })
    expect(await spinning).toBe('let in')
    await other
  })

  test('may block, with its name and priority', async () => {
    const { naps } = load(`
      import { sleep } from 'heddle'
      export async function naps(schedule) {
        'use task'
        await null
        sleep(5)
        const { name, priority } = schedule.runningCo
        await null
        sleep(5)
        return [name, priority === schedule.runningCo.priority]
      }`)
    const { schedule } = virtual()
    expect(await schedule.run({ name: 'nap', priority: 'high' }, naps, schedule)).toEqual(['nap', true])
  })
})
