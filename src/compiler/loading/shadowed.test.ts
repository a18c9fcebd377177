import { afterAll, beforeAll, expect, test } from 'vitest'
import { preemptEverywhere } from '../../../test/compiler/differential/drive.ts'
import { evaluateScript } from '../../../test/compiler/differential/evaluate.ts'
import * as runtime from '../runtime.ts'
import { translate } from './translate.ts'

const key = Symbol.for('heddle.runtime')
const before = Object.getOwnPropertyDescriptor(globalThis, key)
beforeAll(() => void Object.defineProperty(globalThis, key, { value: runtime, configurable: true }))
afterAll(() => {
  if (before === undefined) Reflect.deleteProperty(globalThis, key)
  else Object.defineProperty(globalThis, key, before)
})

const names = 'Symbol globalThis global process Object Reflect Function Array Map WeakSet Error Promise Proxy'
const declarations = [
  (name: string) => `var ${name} = undefined`,
  (name: string) => `var first = 1, ${name} = first`,
  (name: string) => `function ${name}() {}`,
  (name: string) => `const ${name} = null`,
]

test.each(names.split(' '))('a CommonJS module with a variable `%s` finds the runtime', name => {
  for (const declare of declarations) {
    const source = `${declare(name)}\nexports.sum = function (n) { 'use task'; var s = 0; for (var i = 0; i < n; i++) s += i; return s }`
    const { code } = translate(source, '/a.cjs', { commonjs: true, typescript: false } as never, {} as never)
    const sum = evaluateScript(code!, 'a.cjs', {})['sum'] as (n: number) => number
    expect(sum(5), declare(name)).toBe(10)
    expect(preemptEverywhere(sum, [2000]).value, declare(name)).toBe(1_999_000)
  }
})
