import { expect, test } from 'vitest'
import { type Twin, twin } from '../../../coroutine/core/coroutine.ts'
import { compile } from '../../compile.ts'
import { type Program, runPlain } from '../../../../test/compiler/differential/drive.ts'
import { evaluateModule, evaluateScript } from '../../../../test/compiler/differential/evaluate.ts'
import { plain, programFiles, readProgram } from '../../../../test/compiler/differential/programs.ts'
import { unwatched } from '../../../../test/compiler/differential/unwatched.ts'
import * as runtime from '../../runtime.ts'
import { bodyStep } from '../../runtime/generator.ts'

/** A checker with nothing to check: no memory is shared, and awaited values are ready. */
let awaited: unknown
const checker = {
  ...runtime,
  ...unwatched,
  module: () => 0,
  cover: (_file: string, points: unknown[]) => new Uint32Array(points.length),
  isShared: () => false,
  waits: (_site: number, value: unknown) => {
    awaited = value
    return 2
  },
  awaitedAt: (fn: never) => runtime.own(fn),
  ownAt: (fn: never) => runtime.own(fn),
  direct: (value: unknown) => value,
  entered: () => undefined,
  enteredAsync: () => false,
  pending: { grows: false },
  modelled: () => false,
  *take(_site: number, from: unknown, most: number) {
    if (!runtime.stops(from)) return from
    const values: unknown[] = []
    while (values.length < most) {
      const step = yield* bodyStep(from as object)
      if (step.done) return values
      values.push(step.value)
    }
    ;(from as Generator).return(undefined)
    return values
  },
  // oxlint-disable-next-line require-yield
  *fields(_site: number, from: unknown) {
    return from
  },
  *list(_site: number, from: unknown) {
    return runtime.stops(from) ? yield* runtime.collect(from) : from
  },
  // oxlint-disable-next-line require-yield
  *construct(_site: number, maker: new (...args: unknown[]) => object, args: unknown[]) {
    return new maker(...args)
  },
  loop: () => ({}),
  turn: () => true,
  effect: (value: unknown) => value,
}

/**
 * Programs that wait for real promises need the checker itself; and the text of a function is not the
 * source's.
 */
const files = programFiles().filter(file => !file.startsWith('async') && file !== 'texts.cjs')

const forms = files.flatMap(file => [
  { file, form: 'compiled for the checker', coverage: false },
  { file, form: 'and counted', coverage: true },
])

test.each(forms)('every program of $file behaves the same when it is $form', async ({ file, coverage }) => {
  const source = readProgram(file)
  const { code, diagnostics } = compile(source, file, { mode: 'checker', coverage })
  expect(diagnostics.filter(({ code }) => code === 'internal')).toEqual([])
  const evaluate = file.endsWith('.cjs') ? evaluateScript : evaluateModule
  const original = plain(source, file)
  for (const name of Object.keys(original)) {
    if (typeof original[name] !== 'function') continue
    const expected = await runPlain(plain(source, file)[name] as Program)
    if (expected.ended === 'resolved' || expected.ended === 'rejected') continue
    const checked: Program = log => {
      const made = evaluate(code, file, { 'heddle/checker/runtime': checker })[name] as { [twin]: Twin }
      const steps = made[twin].call(undefined, log)
      let step = steps.next()
      while (!step.done) step = steps.next(awaited)
      return step.value
    }
    expect(await runPlain(checked), name).toEqual(expected)
  }
})
