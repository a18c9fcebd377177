import { expect, test } from 'vitest'
import { preemptEverywhere } from '../../../../test/compiler/differential/drive.ts'
import { compiled, plain } from '../../../../test/compiler/differential/programs.ts'

/**
 * Calls of built-ins that have a resumable form, each the first of its kind in this process: values that the
 * runtime computes on first use are computed under these prototypes too.
 */
const calls = [
  '[, 3, , 1].sort(order)',
  '[4, 3, 9, 1].toSorted(order)',
  'new Int8Array([3, 1, 2]).sort(order)',
  'new Int8Array([3, 1, 2]).toSorted(order)',
  '[, 2, , 4].map(twice)',
  '[, 2, , 4].filter(odd)',
  '[, 2, , 4].forEach(twice)',
  '[, 2, , 4].reduce((a, b) => a + twice(b), 0)',
  '[, 2, , 4].reduceRight((a, b) => a + twice(b), 0)',
  '[, 2, , 4].find(odd)',
  '[, 2, , 4].findLastIndex(odd)',
  '[, 2, , 4].some(odd)',
  '[, 2, , 4].every(odd)',
  '[, 2, , 4].flatMap(x => [x, twice(x)])',
  'Array.from([, 2, , 4], twice)',
  'Array.from({ length: 3 }, twice)',
  'Int8Array.from([1, 2, 3], twice)',
  'Int8Array.from({ length: 3 }, twice)',
  'new Int8Array([1, 2, 3]).map(twice)',
  'new Int8Array([1, 2, 3]).filter(odd)',
  'new Map([[1, 2], [3, 4]]).forEach(twice)',
  'new Set([1, 2, 3]).forEach(twice)',
  'twice.call(null, 4)',
  'twice.apply(null, [4])',
  'Reflect.apply(twice, null, [4])',
  'twice.bind(null)(4)',
  '[...numbers()].length',
  'JSON.stringify([1, { a: [2, 3] }])',
  'JSON.stringify(many).length',
  'JSON.parse(text).length',
  'many.map(x => x.a).sort()[2]',
  'many.map(x => x.a).toSorted()[3]',
  'new Made(3, 4)',
  'Reflect.construct(Made, [3, 4])',
]

const source = `'use task'
const spin = n => { let sum = 0; for (let i = 0; i < n; i++) sum += i; return sum }
const order = (a, b) => { spin(2); return a - b }
const twice = x => { spin(2); return x * 2 }
const odd = x => spin(2) < 5 && x % 2 === 1
function* numbers() { for (let i = 0; i < 3; i++) yield spin(i) }
class Made { constructor(...all) { this.sum = 0; for (const one of all) this.sum += spin(one) } }
const many = Array.from({ length: 6000 }, (_, a) => ({ a: (a * 7919) % 6007, b: ['text'.repeat(10), [a]] }))
const text = JSON.stringify(many)
export const programs = [${calls.map(call => `() => ${call}`).join(', ')}]
`

type Program = () => unknown

/** The reads and writes of the prototype's indices in a run, and its result. */
function observed(run: () => unknown, holder: object): string[] {
  const lines: string[] = []
  let count = 0
  const note = (line: string): void => {
    Object.defineProperty(lines, count++, {
      value: line,
      writable: true,
      enumerable: true,
      configurable: true,
    })
  }
  for (let index = 0; index < 5; index++) {
    Object.defineProperty(holder, index, {
      get: () => (note(`read ${index}`), 7),
      set() {
        note(`written ${index}`)
      },
      configurable: true,
    })
  }
  let result: unknown
  try {
    result = run()
  } finally {
    for (let index = 0; index < 5; index++) Reflect.deleteProperty(holder, index)
  }
  lines.push(JSON.stringify(result) ?? 'undefined')
  return lines
}

for (const [name, holder] of [
  ['Object.prototype', Object.prototype],
  ['Array.prototype', Array.prototype],
] as const) {
  for (const lowering of ['frames', 'generator'] as const) {
    test(`built-ins read and write nothing more of ${name} than the engine's do, by ${lowering}`, () => {
      const written = plain(source, 'defaced.js')['programs'] as Program[]
      const made = compiled(source, 'defaced.js', { lowering })['programs'] as Program[]
      for (const [at, call] of calls.entries()) {
        const expected = observed(() => written[at]!(), holder)
        const run = (): unknown => preemptEverywhere(made[at]!, []).value
        expect(observed(run, holder), call).toEqual(expected)
      }
    })
  }
}
