import * as fc from 'fast-check'
import { parseSync } from 'oxc-parser'
import { expect, test } from 'vitest'
import { compile } from '../../../src/compiler/compile.ts'
import { programFiles, readProgram } from './programs.ts'

const runs = Number(process.env['HEDDLE_BAD_INPUTS'] ?? 3000)

const files = programFiles().map(file => ({ file, source: readProgram(file) }))
const scraps = [
  "'use task'",
  "'use task';",
  'yield',
  'await ',
  'async ',
  'function*',
  '=>',
  '{',
  '}',
  '(',
  ')',
  '[',
  ']',
  '...',
  '?.',
  '`',
  '${',
  '#x',
  'super',
  'new.target',
  'arguments',
  'for (;;)',
  'while (x)',
  'break',
  'continue',
  'return',
  'throw',
  'class A {',
  'static {',
  'get ',
  '@x ',
  'using a = b',
  'eval(x)',
  'with (x)',
  'label:',
  '<T>',
  '$h_0',
  '\u2028',
  '\0',
  '\u{1F600}',
  '//',
  '/*',
  '*/',
  '#!x\n',
  'import x from "y"',
  'export ',
  'default ',
  'enum E { A }',
  'switch (x) { case',
  'try {',
  'finally {',
  'x = ',
  '++',
  '/x/u',
  '1n',
  'import.meta',
  'let ',
  'var ',
  'debugger',
]

/** Top-level statements of the program files, one or two, with a few fragments inserted or removed. */
const pieces = files.flatMap(({ file, source }) =>
  source.split(/^(?=export |exports\.|function |class |const )/m).map(text => ({ file, text })),
)

const edit = fc.record({
  place: fc.nat(),
  kind: fc.constantFrom('cut', 'insert', 'insert', 'replace', 'repeat'),
  size: fc.nat(40),
  scrap: fc.constantFrom(...scraps),
})

const broken = fc
  .tuple(
    fc.constantFrom(...pieces),
    fc.constantFrom(...pieces),
    fc.boolean(),
    fc.array(edit, { maxLength: 3 }),
  )
  .map(([one, other, both, edits]) => {
    let text = `'use task'\n${one.text}${both ? other.text : ''}`
    for (const { place, kind, size, scrap } of edits) {
      // More often at the start of a word than inside one.
      const at =
        place % 4 === 0 ? place % text.length : text.slice(0, place % text.length).search(/\w+\W*$/) + 1
      if (kind === 'insert') text = text.slice(0, at) + scrap + text.slice(at)
      else if (kind === 'repeat') text = text.slice(0, at + size) + text.slice(at)
      else text = text.slice(0, at) + (kind === 'cut' ? '' : scrap) + text.slice(at + size)
    }
    return { file: one.file, text }
  })

test('for any input the compiler returns code that parses, or an error with its position', {
  timeout: 600_000,
}, () => {
  let compiled = 0
  let refused = 0
  fc.assert(
    fc.property(broken, fc.constantFrom('task' as const, 'checker' as const), ({ file, text }, mode) => {
      const { code, changed, diagnostics } = compile(text, file, { mode })
      for (const { code, message, line, column, frame, severity } of diagnostics) {
        expect(code, message).not.toBe('internal')
        expect(line).toBeGreaterThanOrEqual(1)
        expect(column).toBeGreaterThanOrEqual(1)
        expect(frame).not.toBe('')
        if (severity === 'error') refused++
      }
      if (!changed) {
        expect(code).toBe(text)
        return
      }
      compiled++
      expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([])
      const sourceType =
        file.endsWith('.cjs') || !/^(?:import|export)\b/m.test(code) ? 'unambiguous' : 'module'
      const { errors } = parseSync(file, code, { sourceType })
      const before = parseSync(file, text, { sourceType }).errors
      if (before.length === 0)
        expect(
          errors.map(({ message }) => message),
          code,
        ).toEqual([])
    }),
    { numRuns: runs },
  )
  expect(compiled).toBeGreaterThan(runs / 20)
  expect(refused).toBeGreaterThan(runs / 20)
})
