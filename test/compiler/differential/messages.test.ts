import { expect, test } from 'vitest'
import { preemptEverywhere } from './drive.ts'
import { forms } from './messages.ts'
import { compiled, plain } from './programs.ts'

/** One module with a function for each form. */
function source(directive: string): string {
  const functions = forms.map(
    (form, index) =>
      `export function form${index}() { ${directive}const none = undefined, nil = null, five = 5, list = [1, 2], bag = { inner: {}, f: () => none }; for (let i = 0; i < 2; i++) tick()\n;${form}\n}`,
  )
  return `'use task'
const tick = () => 1
const give = v => { for (let i = 0; i < 2; i++) tick(); return v }
const yieldAll = v => { const all = function* () { yield* give(v) }; for (const x of all()) give(x) }
const odd = { [Symbol.iterator]: 5 }
const bad = { [Symbol.toPrimitive]() { return {} } }
${functions.join('\n')}`
}

/** The error that the function throws. */
function told(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`
  }
  return 'nothing'
}

type Functions = Record<string, () => unknown>

function messages(functions: Functions, run: (fn: () => unknown) => unknown): Record<string, string> {
  return Object.fromEntries(forms.map((form, index) => [form, told(() => run(functions[`form${index}`]!))]))
}

const called = (fn: () => unknown): unknown => fn()

/** Loop heads that are assigned: here the value has a name, and the engine's message differs. */
const different: Record<string, readonly string[]> = {
  generator: ['let x; for ({ x } of give([nil])) tick(x)'],
  mixed: ['let x; for ({ x } of give([nil])) tick(x)'],
}

test.each([
  ['frames', '', { lowering: 'frames' }],
  ['generator', '', { lowering: 'generator' }],
  ['mixed', `'use task generator'; `, {}],
] as const)('errors of the engine have the same text as in plain code: %s', (mode, directive, options) => {
  const text = source('')
  const expected = messages(plain(text, 'forms.mjs') as Functions, called)
  expect(Object.entries(expected).filter(([, message]) => message === 'nothing')).toEqual([])
  const functions = compiled(source(directive), 'forms.mjs', options) as Functions
  expect(messages(functions, called)).toEqual(expected)
  const preempted = messages(functions, fn => preemptEverywhere(fn, []).value)
  for (const message of Object.values(preempted)) expect(message).not.toContain('$h_')
  for (const form of different[mode] ?? []) {
    expect(preempted[form]).not.toBe(expected[form])
    preempted[form] = expected[form]!
  }
  expect(preempted).toEqual(expected)
})

test.each(['frames', 'generator'] as const)('so have errors of values with types: %s', lowering => {
  const values = [
    'v as number[]',
    'v!',
    'give(v) as number[]',
    'o.v as number[]',
    '(v as any)',
    'v satisfies unknown',
  ]
  const runs = values.flatMap(value => [
    `() => { const [a] = ${value}; give(a) }`,
    `() => { const { a } = ${value}; give(a) }`,
    `() => { for (const x of ${value}) give(x) }`,
  ])
  const text = `'use task'
const give = <T>(x: T): T => { for (let i = 0; i < 2; i++); return x }
const v = undefined as any
const o = { v } as any
export const runs = [${runs.join(',\n')}]`
  const expected = (plain(text, 'types.ts')['runs'] as (() => unknown)[]).map(told)
  const functions = compiled(text, 'types.ts', { lowering })['runs'] as (() => unknown)[]
  expect(functions.map(told)).toEqual(expected)
  expect(functions.map(fn => told(() => preemptEverywhere(fn, []).value))).toEqual(expected)
})
