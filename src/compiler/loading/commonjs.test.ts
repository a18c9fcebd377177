/** Node finds the exports of a CommonJS module in its text. It must find the same in the compiled text. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { init, parse } from 'cjs-module-lexer'
import { beforeAll, describe, expect, test } from 'vitest'
import { compile } from '../compile.ts'
import { programFiles, readProgram } from '../../../test/compiler/differential/programs.ts'
import { fileOf } from '../../../test/compiler/realcode/packages.ts'

beforeAll(async () => {
  await init()
})

const lowerings = ['frames', 'generator'] as const

interface Found {
  names: string[]
  modules: string[]
}

function foundIn(source: string): Found {
  const { exports, reexports } = parse(source)
  return { names: [...new Set(exports)].sort(), modules: [...new Set(reexports)].sort() }
}

/** The exports that Node finds in a module, before and after compilation. */
function both(source: string, lowering: 'frames' | 'generator'): { written: Found; compiled: Found } {
  const { code, changed, diagnostics } = compile(`'use task';${source}`, 'module.cjs', {
    lowering,
    sourcemap: false,
  })
  expect(diagnostics.filter(({ severity, code }) => severity === 'error' || code === 'internal')).toEqual([])
  return { written: foundIn(source), compiled: changed ? foundIn(code) : foundIn(source) }
}

/** No export is lost. Node may find more: names after a value at which it stops reading. */
function expectAll(compiled: Found, written: Found, file = ''): void {
  expect(compiled.modules, file).toEqual(written.modules)
  expect(compiled.names, file).toEqual(expect.arrayContaining(written.names))
}

const run = 'function run(n) { for (let i = 0; i < n; i++) other(i); return n }'

/** Each contains code that is compiled. */
const forms = [
  `exports.a = ${run}; exports.b = function () { return other() }; module.exports.c = () => other()`,
  `exports['a-b'] = ${run}; exports.default = other; exports.__esModule = true`,
  `exports.a = exports.b = void 0; exports.a = ${run}`,
  `Object.defineProperty(exports, 'a', { enumerable: true, get: function () { return m.a } }); ${run}`,
  `Object.defineProperty(exports, "a", { enumerable: true, get() { return m.a; } }); ${run}`,
  `Object.defineProperty(exports, 'a', { get: function get() { return m['a'] } }); ${run}`,
  `Object.defineProperty(module.exports, 'a', { value: ${run} }); ${run}`,
  `Object.defineProperty(exports, 'unsafe', { enumerable: true, get: function () { return other() } }); ${run}`,
  `Object.defineProperty(exports, '__esModule', { value: true }); exports.a = ${run}`,
  `module.exports = { a: function () { return other() }, b: 1 }`,
  `module.exports = { a, b: c, 'd': e, f: function () { return other() }, g: h }; ${run}`,
  `module.exports = { a, b, run, c }; ${run}`,
  `module.exports = { a, b() { return other() }, c }`,
  `module.exports = { a, async b() { return other() }, c }`,
  `module.exports = { a, get b() { return other() }, c }`,
  `module.exports = { a, ...b, ...require('./c'), d: other(() => other()), e }`,
  `module.exports = { a, [b]: function () { return other() }, c }`,
  `exports = module.exports = { a: other, b: () => other(), c: other }`,
  `module.exports = require('./other'); ${run}`,
  `module.exports = { ...require('./one'), ...require('./two'), run }; ${run}`,
  `__exportStar(require('./one'), exports); tslib.__exportStar(require("./two"), exports); exports.run = ${run}`,
  `var _x = require('./x'); Object.keys(_x).forEach(function (key) { if (key === "default" || key === "__esModule") return; exports[key] = _x[key]; }); ${run}`,
  `var _x = require('./x'); Object.keys(_x).forEach(function (key) { if (key === "default" || key === "__esModule") return; if (key in exports && exports[key] === _x[key]) return; Object.defineProperty(exports, key, { enumerable: true, get: function () { return _x[key]; } }); }); ${run}`,
  `(function (factory) { factory(exports) })(function (exports) { exports.inner = ${run}; exports.other = other() })`,
  `function init(x) { exports.late = other(x); for (const y of x) { module.exports.later = other(y) } } init([])`,
  `class A { m() { return other() } } exports.A = A; exports.B = class { m() { return other() } }`,
  `// exports.no = 1\nconst text = 'exports.never = 1'; exports.yes = ${run}`,
  `${run}\n//# sourceMappingURL=x.map`,
  `if (other()) return; exports.a = ${run}`,
]

describe.each(lowerings)('compiled by %s,', lowering => {
  test.each(forms)('a module has the same exports: %s', source => {
    const { written, compiled } = both(source, lowering)
    expectAll(compiled, written)
  })

  test.each(programFiles().filter(file => file.endsWith('.cjs')))('%s has the same exports', file => {
    const { written, compiled } = both(readProgram(file), lowering)
    expect(written.names.length).toBeGreaterThan(0)
    expect(compiled).toEqual(written)
  })

  test.each(['async-mutex', 'decimal.js', 'fflate', 'js-yaml', 'piscina', 'protobufjs', 'workerpool'])(
    'the files of %s have the same exports',
    name => {
      let modules = 0
      for (const file of commonFiles(fileOf(name, ''))) {
        const { written, compiled } = both(readFileSync(file, 'utf8'), lowering)
        expect(compiled, file).toEqual(written)
        modules++
      }
      expect(modules).toBeGreaterThan(0)
    },
  )
})

test('Node finds the exports that the module has after it ran', () => {
  const source = `'use task'; const m = { a: 1 }; module.exports = { run, b: 2 }; function run(n) { for (;;) return n }
    Object.defineProperty(module.exports, 'c', { enumerable: true, get: function () { return m.a } })`
  const { code } = compile(source, 'module.cjs', { sourcemap: false })
  expect(foundIn(code).names).toEqual(foundIn(source).names)
  expect(code).toContain('get: function () { return m.a }')
})

/** The CommonJS files of a package that are small enough to compile here. */
function commonFiles(folder: string): string[] {
  if (!existsSync(folder)) throw new Error(`${folder} is not installed`)
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => /\.c?js$/.test(name) && !/(?:^|\/)(?:node_modules|test|bin|cli|umd)\/|\.min\./.test(name))
    .map(name => join(folder, name))
    .filter(path => {
      const text = readFileSync(path, 'utf8')
      return text.length < 200_000 && /\bexports\b/.test(text) && !/^(?:import|export)\b/m.test(text)
    })
    .slice(0, 40)
}
