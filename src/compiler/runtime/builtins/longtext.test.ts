/** `join`, `split`, `replace` and `replaceAll` in parts, against the engine's own. */
import { describe, expect, test } from 'vitest'
import { sleep } from '../../../coroutine/core/blocking.ts'
import { coroutineOf, setSafepointFlag, twinOf } from '../../../coroutine/core/coroutine.ts'
import { Schedule } from '../../../coroutine/schedule/schedule.ts'
import { compile } from '../../compile.ts'
import { evaluateModule } from '../../../../test/compiler/differential/evaluate.ts'
import * as runtime from '../../runtime.ts'
import { LONG_SPLIT } from './longtext.ts'
import { LONG_LIST } from '../sort/defaultsort.ts'

const raised = Int32Array.of(1)
const lowered = Int32Array.of(0)

/** The call through its twin, stopped wherever possible: its result or error, and the number of stops. */
function inParts(fn: any, self: unknown, ...args: unknown[]): { value: unknown; stops: number } {
  const coroutine = coroutineOf(twinOf(fn)!, args, self)
  let stops = 0
  setSafepointFlag(raised, 0)
  try {
    let isDone = coroutine.start()
    for (; !isDone; stops++) isDone = coroutine.resume()
  } finally {
    setSafepointFlag(lowered, 0)
  }
  if (coroutine.state === 'threw') throw coroutine.result
  return { value: coroutine.result, stops }
}

function outcome(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return `${(error as Error).name}`
  }
}

const long = `${'one,two;;three and more of it '.repeat(Math.ceil(LONG_SPLIT / 30))}end`

describe('join', () => {
  const numbers = Array.from({ length: LONG_LIST * 2 }, (_, k) => (k % 7 === 0 ? null : k / 3))
  const withHoles = Object.assign([...numbers], { length: numbers.length + 5 })
  delete withHoles[10]
  const withObjects = [...numbers, { toString: () => 'text' }, [1, [2, 3]], undefined, 'last']

  test.each<[string, unknown[], unknown[]]>([
    ['numbers', numbers, []],
    ['numbers, by text', numbers, [' - ']],
    ['numbers, by nothing', numbers, ['']],
    ['holes', withHoles, [undefined]],
    ['objects', withObjects, ['|']],
    ['one symbol', [...numbers, Symbol('no')], []],
    ['a separator that is no text', numbers, [7]],
  ])('%s', (_, list, args) => {
    expect(outcome(() => inParts(list.join, list, ...args).value)).toEqual(
      outcome(() => list.join(...(args as []))),
    )
  })

  test('can stop in between; a short list cannot', () => {
    expect(inParts(numbers.join, numbers).stops).toBeGreaterThan(5)
    expect(inParts([].join, [1, 2, 3])).toEqual({ value: '1,2,3', stops: 0 })
  })

  test('reads each element once, in order, before the next toString', () => {
    const log = (join: (list: unknown[]) => unknown): unknown => {
      const read: number[] = []
      const list: unknown[] = Array.from({ length: LONG_LIST + 3 }, () => 'x')
      for (const k of [5, LONG_LIST + 1]) {
        Object.defineProperty(list, k, { get: () => (read.push(k), 'got'), enumerable: true })
      }
      list[LONG_LIST] = { toString: () => ((list[LONG_LIST + 2] = 'changed'), 'object') }
      return [join(list), read]
    }
    expect(log(list => inParts(list.join, list).value)).toEqual(log(list => list.join()))
  })
})

describe('split', () => {
  test.each([',', ';;', ' ', '', 'nowhere', 'end', 'one,two'])('by %j', separator => {
    const { value, stops } = inParts(long.split, long, separator)
    expect(value).toEqual(long.split(separator))
    if ((value as unknown[]).length > 2000) expect(stops).toBeGreaterThan(0)
  })

  test('with a limit, by an expression or by nothing is left to the engine', () => {
    expect(inParts(long.split, long, ',', 3).value).toEqual(long.split(',', 3))
    expect(inParts(long.split, long, /;+/).value).toEqual(long.split(/;+/))
    expect(inParts(long.split, long).value).toEqual([long])
  })
})

describe.each(['replace', 'replaceAll'] as const)('%s', verb => {
  const replacer = (...args: unknown[]): string =>
    `<${args
      .filter(arg => arg !== long)
      .map(String)
      .join()}>`
  const searches = [
    ',',
    'nowhere',
    '',
    /[,;]+/g,
    /(?<word>t\w+)(;)?/gu,
    /x*/g,
    /(?:)/gu,
    /one/,
    /one/y,
    /two/gy,
  ]
  const replacements = ['-', '', '$&$&', replacer, () => undefined, (): unknown => ({ toString: () => 'o' })]

  test.each(searches)('by %s', search => {
    const isDense = search === '' || ['x*', '(?:)'].includes((search as RegExp).source)
    for (const replacement of isDense ? replacements.slice(0, 1) : replacements) {
      const fresh = (): string | RegExp => (typeof search === 'string' ? search : new RegExp(search))
      const [mine, theirs] = [fresh(), fresh()]
      const ours = outcome(() => inParts(long[verb], long, mine, replacement).value)
      const expected = outcome(() => long[verb](theirs as never, replacement as never))
      // Not by toEqual, which would print both.
      expect(ours === expected, `${search} by ${replacement}`).toBe(true)
      if (typeof mine !== 'string') expect(mine.lastIndex).toBe((theirs as RegExp).lastIndex)
    }
  })

  test('stops between matches', () => {
    expect(inParts(long[verb], long, /,/g, '-').stops).toBeGreaterThan(3)
  })

  test('an expression with its own exec is left to the engine', () => {
    const odd = (): RegExp => Object.assign(/,/g, { exec: () => null })
    expect(inParts(long[verb], long, odd(), '-').value).toBe(long[verb](odd(), '-'))
  })
})

test('a replacer blocks', async () => {
  const { polite } = evaluateModule(
    compile(
      `import { sleep } from 'heddle'
      export function polite(text) {
        'use task'
        return text.replace(/\\w+/g, word => {
          sleep(1)
          return word.toUpperCase()
        })
      }`,
      'work.js',
    ).code,
    'work.js',
    { 'heddle/runtime': runtime, heddle: { sleep } },
  )
  expect(await new Schedule().run(polite as never, 'a few words' as never)).toBe('A FEW WORDS')
})
