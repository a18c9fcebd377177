import { describe, expect, test } from 'vitest'
import { compile } from '../compile.ts'
import { Lines } from './lines.ts'

function told(source: string, file = 'a.js'): string[] {
  return compile(source, file).diagnostics.map(
    ({ severity, code, line, column }) => `${severity} ${code} ${line}:${column}`,
  )
}

describe('a code frame', () => {
  test('shows the lines around with a caret under the range', () => {
    const source = 'one\ntwo\n\tthree four\nfive\nsix'
    const start = source.indexOf('four')
    expect(new Lines(source).frame(start, start + 4)).toBe(
      ['  1 | one', '  2 | two', '> 3 | \tthree four', '    | \t      ^^^^', '  4 | five'].join('\n'),
    )
  })

  test('is right at the edges: an empty file, the last character, a range over lines, CRLF', () => {
    expect(new Lines('').frame(0, 0)).toBe('> 1 | \n    | ^')
    expect(new Lines('a\r\nb').frame(3, 4)).toBe('  1 | a\n> 2 | b\n    | ^')
    expect(new Lines('ab\ncd').frame(1, 5)).toBe('> 1 | ab\n    |  ^\n  2 | cd')
    expect(new Lines('ab\ncd').at(5)).toEqual({ line: 2, column: 3 })
  })
})

describe('text that does not parse', () => {
  test.each([
    ['a.js', "function f() { 'use task'; let = }"],
    ['a.ts', "function f(: number) { 'use task' }"],
    ['a.tsx', "const f = () => { 'use task'; return <a></b> }"],
    ['a.mjs', "'use task'\nlet x = 1\nlet y = ]"],
    ['a.cjs', "'use task'; return return"],
  ])('%s is an error with a frame, and the text is returned unchanged', (file, source) => {
    const result = compile(source, file)
    expect(result).toMatchObject({ code: source, changed: false, map: null })
    expect(result.diagnostics[0]).toMatchObject({ severity: 'error', code: 'syntax', file })
    expect(result.diagnostics[0]!.frame).toMatch(/^> *\d+ \| /m)
    expect(result.diagnostics[0]!.frame).toContain('^')
  })

  test('never makes the compiler throw', () => {
    for (const source of [
      "'use task",
      '\u0000use task',
      '/* use task',
      '`${use task',
      "'use task'#!",
      "class { 'use task' }",
    ]) {
      for (const file of ['a.js', 'a.ts', 'a.tsx', 'a.cjs', '', 'a', 'a.ts?query=1#hash']) {
        expect(compile(source, file).code).toBe(source)
        expect(compile(source, file, { mode: 'checker' }).code).toBe(source)
      }
    }
  })
})

describe('deeply nested code', () => {
  const nested = (depth: number): string =>
    `function fine() { 'use task'; for (;;) return 1 }\nfunction deep(f) { 'use task'; return ${'f('.repeat(depth)}${')'.repeat(depth)} }`

  test('is compiled up to a limit', () => {
    expect(compile(nested(100), 'a.js')).toMatchObject({ changed: true, diagnostics: [] })
  })

  test('only leaves its own function plain', () => {
    const { stats, diagnostics } = compile(nested(1100), 'a.js')
    expect(stats.map(({ name, form }) => `${name} ${form}`)).toEqual(['fine twin', 'deep plain'])
    expect(diagnostics.map(({ code, line }) => `${code} ${line}`)).toEqual(['internal 2'])
    expect(diagnostics[0]!.message).toMatch(/^`deep` stays plain: the compiler failed on it: /)
  })

  test('never crashes the parser', () => {
    for (const open of ['(', '[', '{', '({a:', '`${', 'f(']) {
      const source = `'use task';${open.repeat(100_000)}`
      expect(compile(source, 'a.js')).toMatchObject({ code: source, changed: false })
      expect(compile(source, 'a.js').diagnostics.map(({ code }) => code)).toEqual(['depth'])
    }
  })
})

describe('code that a program makes from text at run time', () => {
  const made = (source: string, whole: boolean): string[] =>
    compile(source, 'a.js', { whole })
      .diagnostics.filter(({ code }) => code === 'made-code')
      .map(({ message, line }) => `${line}: ${message.slice(0, message.indexOf(':'))}`)

  test.each([
    ['new Function', 'const text = () => 1; export const add = new Function("a", text())'],
    ['Function', 'export function make(text) { return Function(text) }'],
    ['vm.runInThisContext', 'export function make(text) { return vm.runInThisContext(text) }'],
    ['vm.Script', 'const made = [1].map(text => new vm.Script(text))'],
  ])('%s in a file that is compiled whole is a warning', (name, source) => {
    expect(made(source, true)).toEqual([`1: the code that \`${name}\` makes here stays plain`])
    expect(made(`export function other() { 'use task'; for (;;); }\n${source}`, false)).toEqual([])
  })

  test('in a marked function as well', () => {
    expect(made("function f(text) { 'use task'; return new Function(text) }", false)).toHaveLength(1)
  })

  test('constant texts and other functions of that name cause no warning', () => {
    expect(made("export const self = Function('return this')()", true)).toEqual([])
    expect(made('export function f(Function, text) { return new Function(text) }', true)).toEqual([])
  })
})

describe("'use task' in a place where it has no effect", () => {
  test.each([
    ['after another statement', "function f() { let x; 'use task' }"],
    ['in a block', "function f() { { 'use task' } }"],
    ['in parentheses', "function f() { ('use task') }"],
    ['in a static block', "class A { static { 'use task' } }"],
    ['late in a module', "let x = 1\n'use task'"],
    ['in a class body', "class A { 'use task'; m() {} }"],
    ['in back-quotes', 'function f() { `use task`; for (;;); }'],
  ])('%s is a warning', (_, source) => {
    const { diagnostics, changed } = compile(source, 'a.js')
    expect(diagnostics.map(({ code }) => code)).toEqual(['misplaced-directive'])
    expect(changed).toBe(false)
  })

  test('as an ordinary string causes no warning', () => {
    expect(told("f('use task'); const x = 'use task'; // use task")).toEqual([])
  })

  test('beside other directives is a directive', () => {
    expect(told("function f() { 'use strict'; 'use task'; for (;;); }")).toEqual([])
  })
})

describe('code that stays plain', () => {
  test.each([
    ['getter', "class A { get x() { 'use task generator'; return 1 } }"],
    ['getter', "class A { get length() { 'use task'; return 1 } }"],
    ['setter', "const o = { set x(v) { 'use task generator' } }"],
    ['setter', "class A { set #x(v) { 'use task generator' } }"],
    ['computed-key', "const o = { get [f()]() { 'use task'; for (;;); } }"],
    ['setter', "class A { set [f()](v) { 'use task'; for (;;); } }"],
    ['constructor', "class A { constructor() { 'use task generator' } }"],
    ['async-generator', "async function* f() { 'use task' }"],
    ['eval', "function f(x) { 'use task'; return eval(x) }"],
    ['callee', "exports.f = function () { 'use task'; return arguments.callee }"],
    ['with', "exports.f = function (o) { 'use task'; with (o) return x }"],
    ['decorator', "class A { @dec m() { 'use task' } }"],
    ['computed-key', "class A { [name]() { 'use task' } }"],
    [
      'derived-this',
      "class A extends B { constructor() { const f = () => { 'use task'; return this }; super(f) } }",
    ],
    ['yield-name', "exports.f = function (yield) { 'use task'; return yield }"],
    ['await-using', "async function f() { 'use task'; await using x = y }"],
  ])('%s is a warning when it was marked', (code, source) => {
    const file = source.includes('exports') ? 'a.cjs' : 'a.js'
    const { diagnostics, stats } = compile(source, file)
    expect(diagnostics.map(({ severity, code }) => `${severity} ${code}`)).toEqual([`warning ${code}`])
    expect(diagnostics[0]!.message).toMatch(/ stays plain: /)
    expect(stats.some(({ form }) => form === 'twin')).toBe(false)
  })

  test('a method with a decorated parameter is a warning too', () => {
    expect(told("class A { m(@inject a) { 'use task' } }", 'a.ts')).toEqual(['warning decorator 1:11'])
  })

  test.each([
    'made(f.toString())',
    'made(String(f))',
    "made('return ' + f)",
    'made(`return ${f}`)',
    'text += f',
  ])('a function whose text is used, by %s, is a warning when it loops', use => {
    const f = 'function f() { for (;;); }'
    expect(told(`'use task'\n${f}\nlet text = ''\n${use}`)).toEqual(['warning text 2:1'])
    expect(told(`'use task'\nfunction f() {}\nlet text = ''\n${use}`)).toEqual([])
    // A function with its own directive is a task.
    expect(told(`function f() { 'use task'; for (;;); }\nlet text = ''\n${use}`)).toEqual([])
  })

  test('a getter or an initializer inside a task is a warning when it loops, and silent when not', () => {
    const source = (body: string): string =>
      `function f() {\n 'use task'\n return class {\n get length() { ${body} }\n constructor() { ${body} }\n y = (() => { ${body} })()\n static { ${body} }\n }\n}`
    expect(told(source('for (;;) break'))).toEqual([
      'warning getter 4:2',
      'warning initializer 6:2',
      'warning initializer 7:2',
    ])
    expect(told(source(''))).toEqual([])
  })

  test('a default that can run long, new of a function that loops: each is a warning', () => {
    expect(
      told(`'use task'
function Old() { 'use task generator'; for (;;) break }
const make = (a = loop()) => new Old()
function loop() { for (;;) return 1 }`),
    ).toEqual(['warning parameter-default 3:19', 'warning constructor 3:30'])
  })

  test('the rest of the file is compiled', () => {
    const { stats, changed } = compile(
      "function f() { 'use task'; for (;;); }\nclass A { get length() { 'use task'; return 1 } }",
      'a.js',
    )
    expect(changed).toBe(true)
    expect(stats.map(({ name, form }) => `${name} ${form}`)).toEqual(['f twin', 'length plain'])
  })

  test('names the file, the line and the reason', () => {
    const [diagnostic] = compile(
      "class A {\n  get size() {\n    'use task'\n    return 1\n  }\n}",
      'src/a.ts',
    ).diagnostics
    expect(diagnostic).toMatchObject({ file: 'src/a.ts', line: 2, column: 3, code: 'getter' })
    expect(diagnostic!.message).toBe(
      '`size` stays plain: `size` is too common a name to check all reads of it',
    )
    expect(diagnostic!.frame).toContain('> 2 |   get size() {')
  })
})

describe('an unmarked function of the file that a task calls', () => {
  const loop = 'function count(n) { let t = 0; while (n-- > 0) t++; return t }\n'

  test('causes one warning, at its first call, if it can run long', () => {
    const source = `${loop}function f() { 'use task'; count(1); return count(2) }`
    expect(told(source)).toEqual(['warning unmarked 2:28'])
  })

  test('causes none if it is brief or marked, or if no task calls it', () => {
    expect(told("function g() { return 1 }\nfunction f() { 'use task'; return g() }")).toEqual([])
    expect(told(`'use task'\n${loop}function f() { return count(2) }`)).toEqual([])
    expect(told(`${loop}function f() { 'use task'; return 1 }\ncount(3)`)).toEqual([])
  })
})
