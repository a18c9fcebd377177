/** Calls that stay plain in a package that is compiled whole, and the correctness of the result. */
import { afterEach, describe, expect, test } from 'vitest'
import { setSafepointFlag } from '../../coroutine/core/coroutine.ts'
import { compile } from '../compile.ts'
import { preemptEverywhere } from '../../../test/compiler/differential/drive.ts'
import { evaluateModule } from '../../../test/compiler/differential/evaluate.ts'
import * as runtime from '../runtime.ts'

const lowered = Int32Array.of(0)

afterEach(() => setSafepointFlag(lowered, 0))

function formOf(source: string, name: string, whole = true): string {
  const found = compile(source, 'work.js', { whole }).stats.find(stat => stat.name === name)
  return found!.form
}

function load(source: string): Record<string, any> {
  const { code } = compile(source, 'work.js', { whole: true, strip: 1 })
  return evaluateModule(code, 'work.js', { 'heddle/runtime': runtime })
}

describe('a function is brief, and stays plain,', () => {
  test.each([
    ['when its methods are those of the file, and brief', 'get size() { return 1 } pick(i) { return i }'],
    [
      'when it goes through several such methods',
      'pick(i) { return this.one(i) } one(i) { return this.two(i) } two(i) { return i }',
    ],
    [
      'when a loop counts to a few',
      'pick(i) { for (let k = 0; k < 8; k++) i += this.one(k); return i } one(k) { return k }',
    ],
    [
      'when loops that share a counter count to a few, or to a variable that is always the same',
      'pick(i) { var k, few = 8; for (k = 0; k < 8; k++) i += k; for (i = 1, k = few; k > 0; --k) i += this.one(k); return i } one(k) { return k }',
    ],
    ['when it calls methods of lists and maps', 'pick(i) { this.list.push(i); return this.map.get(i) }'],
    [
      'when something else of that name is no function',
      'pick(i) { return i } } class B { constructor() { this.pick = 0 }',
    ],
    [
      'when a method that throws is replaced in the file',
      "pick() { throw new Error('abstract') } } class B extends A { pick(i) { return i }",
    ],
    [
      'when the others of that name delegate the call',
      'pick(i) { return i } } class B { pick(i) { this.a.pick(i); return this } } class C extends B { pick(i) { return super.pick(i) }',
    ],
    [
      'when a method is called by call or apply',
      'pick(i) { return this.one.call(this, i) + this.one.apply(this, [i]) } one(i) { return i }',
    ],
    [
      'when it calls built-ins by other names',
      'pick(i) { return floor(i) + (has.call(this, i) ? 1 : 0) + max(i, 1) } } const floor = Math.floor, has = A.prototype.hasOwnProperty; const Math2 = globalThis; var Number = Math2.Number, max = Number.isInteger; {',
    ],
  ])('%s', (_, body) => {
    expect(formOf(`export class A { work(i) { return this.pick(i) } ${body} }`, 'work')).toBe('plain')
  })
})

describe('a function is long', () => {
  test.each([
    ['when a method of that name has a loop', 'pick(i) { while (i > 0) i--; return i }'],
    [
      'when one of two methods of that name has a loop',
      'pick(i) { return i } } class B { pick(list) { for (const x of list) x() }',
    ],
    ['when the methods call each other in a cycle', 'pick(i) { return i > 0 ? this.work(i - 1) : 0 }'],
    [
      'when the file stores another value under the name',
      'pick(i) { return i } } export function give(o, f) { o.pick = f; ',
    ],
    ['when the name is a getter', 'get pick() { return f => f }'],
    ['when the method does nothing and is meant to be replaced', 'pick() {}'],
    ['when the method only throws', "pick() { throw new Error('abstract') }"],
    [
      'when it is called too often',
      'pick(i) { for (let k = 0; k < 90; k++) for (let j = 0; j < 90; j++) i += k * j; return i }',
    ],
    ['when the loop changes its own counter', 'pick(i) { for (let k = 0; k < 8; k++) k -= i; return i }'],
    [
      'when a loop inside changes the counter',
      'pick(i) { var k; for (k = 0; k < 8; k++) for (k = 0; k < i; k++) i--; return i }',
    ],
    [
      'when the loop sets its counter by a var',
      'pick(i) { for (var k = 0; k < 8; k++) { var k = i } return i }',
    ],
    [
      'when a function changes the counter',
      'pick(i) { var k; const back = () => { k = 0 }; for (k = 0; k < 8; k++) back(); return i }',
    ],
    [
      'when the bound is assigned again',
      'pick(i) { var few = 8; few = i; for (var k = 0; k < few; k++) i--; return i }',
    ],
    ['when nothing in the file has that name', 'other() {}'],
    [
      'when it may lead back to itself through a list',
      'pick(i) { if (i === 0) return 0; return this.next.pick(i) }',
    ],
    ['when it adds to the result of the next one', 'pick(i) { return 1 + this.next.pick(i) }'],
    [
      'when the alias of a built-in is assigned again',
      'pick(i) { return floor(i) } } let floor = Math.floor; export const set = f => { floor = f }; {',
    ],
    [
      'when a name is a property of a parameter',
      'pick(i) { return this.a.run(i) } } export const make = o => { const run = o.run; return () => run() }; {',
    ],
  ])('%s', (_, body) => {
    expect(formOf(`export class A { work(i) { return this.pick(i) } ${body} }`, 'work')).toBe('twin')
  })

  test('when the method has the name of a blocking one', () => {
    const source = 'export class A { work(m) { return m.lock() } lock() { return this.held } }'
    expect(formOf(source, 'work')).toBe('twin')
  })

  test('in a module that is marked and not compiled whole: its methods may block', () => {
    const source = `'use task'\nexport class A { work(i) { return this.pick(i) } pick(i) { return i } }`
    expect(formOf(source, 'work', false)).toBe('twin')
  })
})

describe('a method from another package, under the name of a brief method of this one,', () => {
  const source = `
    export class Shape { area() { return 1 } }
    export function total(shapes) {
      let sum = 0
      for (const shape of shapes) sum += shape.area()
      return sum
    }`
  const other = `export class Long { area() { let n = 0; for (let i = 0; i < 1000; i++) n += step(i); return n } }
    function step(i) { let k = 0; while (k < i % 3) k++; return k }`

  test('returns the right result, and is not preempted inside', () => {
    const { Shape, total } = load(source)
    const { Long } = load(other)
    const plain = [0, 1, 2].map(k => new (k === 1 ? Long : Shape)())
    const expected = total(plain)
    const { value, preemptions } = preemptEverywhere(total, [plain])
    expect(value).toBe(expected)
    expect(value).toBe(1001)
    expect(preemptions).toBeGreaterThan(0)
    expect(preemptions).toBeLessThan(10)
  })

  test('may call back: its callee does not unwind into it', () => {
    const { Shape, total } = load(source)
    const wrapped = { area: () => total([new Shape(), new Shape()]) * 2 }
    const { value } = preemptEverywhere(total, [[wrapped, new Shape(), wrapped]])
    expect(value).toBe(9)
  })
})
