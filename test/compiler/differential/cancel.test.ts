import { describe, expect, test } from 'vitest'
import { coroutineOf, setSafepointFlag, SUSPENDED, twin } from '../../../src/coroutine/core/coroutine.ts'
import { compiled } from './programs.ts'

const source = `'use task'
const enter = (log, name) => log('enter ' + name)

function nested(log, depth) {
  enter(log, 'call ' + depth)
  try {
    for (let i = 0; i < 2; i++) {
      enter(log, 'turn ' + depth + i)
      try { if (depth > 0) nested(log, depth - 1) } finally { log('leave ' + 'turn ' + depth + i); for (let i = 0; i < 2; i++) log('after') }
    }
  } finally { log('leave ' + 'call ' + depth); for (let i = 0; i < 2; i++) log('after') }
}

export function calls(log) { nested(log, 2) }

export function callbacks(log) {
  return [1, 2].map(x => {
    enter(log, 'map ' + x)
    try { return [3, 4].filter(y => { enter(log, 'filter ' + x + y); try { for (let i = 0; i < 2; i++) log('turn'); return true } finally { log('leave ' + 'filter ' + x + y); for (let i = 0; i < 2; i++) log('after') } }).length }
    finally { log('leave ' + 'map ' + x); for (let i = 0; i < 2; i++) log('after') }
  })
}

export function iterators(log) {
  const opened = name => {
    let at = 0
    return { [Symbol.iterator]() { enter(log, name); return { next() { return at < 3 ? { value: at++, done: false } : (log('leave ' + name), { done: true }) }, return() { log('leave ' + name); return {} } } } }
  }
  for (const x of opened('outer')) for (const y of opened('inner ' + x)) for (let i = 0; i < 2; i++) log('turn', x, y, i)
}

export function resources(log) {
  const open = name => { enter(log, name); return { [Symbol.dispose]() { log('leave ' + name) } } }
  for (let i = 0; i < 2; i++) {
    using a = open('a' + i)
    using b = open('b' + i)
    for (let k = 0; k < 2; k++) { using c = open('c' + i + k); log('turn') }
  }
}

export function generators(log) {
  function* values(name) { enter(log, name); try { for (let i = 0; i < 3; i++) { log('make', i); yield i } } finally { log('leave ' + name); for (let i = 0; i < 2; i++) log('after') } }
  for (const x of values('outer')) for (const y of values('inner ' + x)) { log(x, y); if (y === 1) break }
}

export function swallows(log) {
  let caught = 0
  for (let i = 0; i < 3; i++) { try { enter(log, 'try ' + i); for (let k = 0; k < 2; k++) log('turn') } catch (error) { caught++; log('caught', error.message) } finally { log('leave try ' + i) } }
  return caught
}

export const methods = { run(log) { const object = { n: 2, go() { enter(log, 'go'); try { for (let i = 0; i < this.n; i++) log(i) } finally { log('leave ' + 'go'); for (let i = 0; i < 2; i++) log('after') } } }; object.go(); object.go() } }.run
`

const raised = Int32Array.of(1)
const lowered = Int32Array.of(0)

/** Runs a program preempted at every safepoint, and throws into it at stop number `at`. */
function cancelAt(
  name: string,
  at: number,
): { log: string[]; state: string; result: unknown; stops: number } {
  const log: string[] = []
  const record = (...values: unknown[]): unknown => {
    log.push(values.join(' '))
    return values.at(-1)
  }
  const coroutine = coroutineOf(compiled(source, 'cancel.js', { strip: 1 })[name], [record])
  setSafepointFlag(raised, 0)
  let stops = 0
  try {
    for (let finished = coroutine.start(); !finished; stops++) {
      finished = stops === at ? coroutine.raise(new Error('cancelled')) : coroutine.resume()
    }
  } finally {
    setSafepointFlag(lowered, 0)
  }
  return { log, state: coroutine.state, result: coroutine.result, stops }
}

describe('an error thrown into a task', () => {
  test.each(['calls', 'callbacks', 'iterators', 'resources', 'generators', 'methods'])(
    'at any safepoint of %s exits every entered block, once, innermost first',
    name => {
      const { stops, state } = cancelAt(name, -1)
      expect(state).toBe('returned')
      expect(stops).toBeGreaterThan(5)
      for (let at = 0; at < stops; at++) {
        const { log, state, result } = cancelAt(name, at)
        expect([state, (result as Error).message]).toEqual(['threw', 'cancelled'])
        const open: string[] = []
        for (const line of log) {
          if (line.startsWith('enter ')) open.push(line.slice('enter '.length))
          if (line.startsWith('leave ')) expect(open.pop(), `stop ${at}`).toBe(line.slice('leave '.length))
        }
        expect(open, `stop ${at} of ${log.join(', ')}`).toEqual([])
      }
    },
  )

  test('can be caught, and the task continues', () => {
    const { stops } = cancelAt('swallows', -1)
    let caught = 0
    for (let at = 0; at < stops; at++) {
      const { state, result, log } = cancelAt('swallows', at)
      if (state === 'threw') continue
      expect(result).toBe(1)
      expect(log.filter(line => line === 'caught cancelled')).toHaveLength(1)
      caught++
    }
    expect(caught).toBeGreaterThan(2)
  })
})

describe('a blocking call in a task', () => {
  const asked: unknown[] = []
  /** Blocks until the test resumes it, and returns the test's value. */
  const wait = Object.assign(
    (): unknown => {
      throw new Error('called outside a task')
    },
    {
      *[twin](question: unknown): Generator<number, unknown, unknown> {
        asked.push(question)
        return yield SUSPENDED
      },
    },
  )

  /** Answers each question with its double, until the task ends. */
  function answer(body: string): { result: unknown; state: string; questions: unknown[] } {
    asked.length = 0
    const { task } = compiled(`'use task'\nexport function task(wait) { ${body} }`, 'blocking.js')
    const coroutine = coroutineOf(task, [wait])
    for (let finished = coroutine.start(); !finished; ) {
      expect(coroutine.state).toBe('suspended')
      const question = asked.at(-1)
      finished =
        question === 'fail'
          ? coroutine.raise(new Error('woken badly'))
          : coroutine.resume((question as number) * 2)
    }
    return { result: coroutine.result, state: coroutine.state, questions: [...asked] }
  }

  test('is written as a plain call and returns the value of its wakeup', () => {
    expect(answer('return wait(1) + wait(2) * wait(3)')).toEqual({
      result: 26,
      state: 'returned',
      questions: [1, 2, 3],
    })
  })

  test('blocks inside loops, nested functions, methods and closures', () => {
    const body = `
      class Box { constructor(n) { this.n = n } ask(k) { return wait(this.n + k) } #hidden(k) { return wait(k) } both() { return this.#hidden(1) + this.ask(2) } }
      const curried = a => b => wait(a) - wait(b)
      let total = 0
      for (const x of [1, 2]) total += wait(x)
      return [total, new Box(5).ask(1), new Box(1).both(), curried(3)(4), { get: wait }.get(9)]`
    expect(answer(body).result).toEqual([6, 12, 8, -2, 18])
  })

  test('blocks inside the callbacks of array methods', () => {
    const body = `return [
      [1, 2].map(x => wait(x)), [1, 2, 3].filter(x => wait(x) > 2), [1, 2].reduce((a, x) => a + wait(x), 0),
      [1, 2].find(x => wait(x) === 4), [3, 1, 2].sort((a, b) => wait(a) - wait(b)), Array.from([1], x => wait(x)),
      [1, 2].some(x => wait(x) > 2), [1, 2].every(x => wait(x) > 2), [1].flatMap(x => [wait(x), x]),
    ]`
    expect(answer(body).result).toEqual([[2, 4], [2, 3], 6, 2, [1, 2, 3], [2], true, false, [2, 1]])
  })

  test('throws the error of its wakeup, at the call', () => {
    expect(
      answer(`try { wait('fail') } catch (error) { return error.message + wait(4) } finally { wait(5) }`),
    ).toEqual({
      result: 'woken badly8',
      state: 'returned',
      questions: ['fail', 4, 5],
    })
  })

  test('may be in every position of an expression', () => {
    const body = `
      const o = { [wait(1)]: wait(2), ...{ k: wait(3) } }
      const [a = wait(4), { b = wait(5) } = {}] = []
      o.x ??= wait(6); o.x += wait(7)
      const f = (p, ...q) => [p ?? wait(8), q]
      return [o, a, b, \`\${wait(9)}\`, f(), f(...[wait(10)], wait(11)), wait(0) || wait(12), wait(0) && wait(13), wait(1) ? wait(14) : wait(15), o?.[wait(1)], typeof wait(1), (wait(1), wait(16))]`
    expect(answer(body).result).toEqual([
      { 2: 4, k: 6, x: 26 },
      8,
      10,
      '18',
      [16, []],
      [20, [22]],
      24,
      0,
      28,
      4,
      'number',
      32,
    ])
  })
})
