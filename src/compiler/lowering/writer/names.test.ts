import { describe, expect, test } from 'vitest'
import { compile } from '../../compile.ts'
import { preemptEverywhere } from '../../../../test/compiler/differential/drive.ts'
import { evaluateScript } from '../../../../test/compiler/differential/evaluate.ts'
import * as runtime from '../../runtime.ts'
import { Names } from './names.ts'

describe('names of the output have a short prefix', () => {
  test.each([
    ['no dollar sign', 'const a = 1', '$'],
    ['a dollar sign alone, or before what ends a name', '$(a); `${a}`; a$ = $', '$'],
    ['a name that begins with one', 'const $p = 1', '_$'],
    ['a name with one inside', 'const a$0 = 1', '_$'],
    ['both', 'const $p = 1, _$p = 2', '$_'],
    ['all of them', 'const $p = 1, _$p = 2, $_p = 3', '$h_'],
    ['a dollar sign as an escape', String.raw`const \u0024p = 1`, '$h_'],
    ['a dollar sign as a long escape', String.raw`const \u{00024}p = 1`, '$h_'],
    ['an escape behind a dollar sign', String.raw`const $\u0070 = 1`, '$h_'],
    ['an escape before a dollar sign', String.raw`const \u005f$p = 1`, '$h_'],
    ['a name with the long one', 'const $h_p = 1, _$p = 2, $_p = 3', '$$h_'],
  ])('%s', (_, source, short) => {
    expect(new Names(source, true).short).toBe(short)
  })

  test('except those that stacks and tools show', () => {
    expect(new Names('const a = 1').short).toBe('$h_')
    expect(new Names('const a = 1', true).prefix).toBe('$h_')
  })
})

const taken = ['p', 'v', 'o', 'k', 'm', 'n', 's', 't', '0', '1', 'A', 'B', 'e', 'l0', 'x', 'args']

test.each(['$', '_$', '$_', '$h_', String.raw`\u0024`])(
  'a program with variables such as %sp behaves the same',
  prefix => {
    const declared = taken.map((name, at) => `var ${prefix}${name} = ${at};`).join(' ')
    const all = taken.map(name => prefix + name).join(' + ')
    const source = `'use task'
      ${declared}
      exports.sum = function sum(list) {
        let total = 0
        for (const ${prefix}q of list) each([${prefix}q], y => { total += y + ${all} })
        return total
      }
      function each(list, fn) { for (let i = 0; i < list.length; i++) fn(list[i]) }`
    const { code, diagnostics } = compile(source, '/a.cjs', { sourcemap: false })
    expect(diagnostics).toEqual([])
    const sum = evaluateScript(code, 'a.cjs', { 'heddle/runtime': runtime })['sum'] as (
      list: number[],
    ) => number
    const { value, preemptions } = preemptEverywhere(sum, [[1, 2, 3]])
    expect(value).toBe(6 + (3 * (taken.length * (taken.length - 1))) / 2)
    expect(preemptions).toBeGreaterThan(2)
  },
)
