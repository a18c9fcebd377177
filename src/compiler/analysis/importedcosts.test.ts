/** The costs of imported functions, in a package that is compiled whole. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { exportedCosts } from './exportedcosts.ts'
import { compile } from '../compile.ts'
import { importedCostsOf } from '../loading/neighbours.ts'

/** The form of `work`, beside a module `./next.js` with this text. */
function formOfWork(source: string, next: string, extension: string): string {
  const neighbour = (specifier: string) =>
    specifier === './next.js' ? exportedCosts(next, `/next${extension}`) : null
  const { stats } = compile(source, `/work${extension}`, { whole: true, neighbour })
  return stats.find(({ name }) => name === 'work')!.form
}

const scriptCalls = {
  'a member of what is required': `const next = require('./next.js'); exports.work = function work(a) { return next.one(a) }`,
  'a member without its object': `const next = require('./next.js'); exports.work = function work(a) { return (0, next.one)(a) }`,
  'a member of a namespace': `const next = wrap(require('./next.js')); exports.work = function work(a) { return next.one(a) }`,
  'a member by call': `var next = require('./next.js'); exports.work = function work(a) { return next.one.call(void 0, a) }`,
  'a name taken out of it': `const { one: first } = require('./next.js'); exports.work = function work(a) { return first(a) }`,
}

const moduleCalls = {
  'a name': `import { one } from './next.js'; export function work(a) { return one(a) }`,
  'another name for it': `import { one as first } from './next.js'; export function work(a) { return first(a) }`,
  'a member of a namespace': `import * as next from './next.js'; export function work(a) { return next.one(a) }`,
}

const scripts = {
  'exports.one =': 'exports.one = exports.two = void 0; const one = x => x + 1; exports.one = one',
  'module.exports.one =': 'module.exports.one = function (x) { return x }',
  'module.exports = {': 'function one(x) { return x }; module.exports = { one, two: 2 }',
}

const modules = {
  'export function': 'export function one(x) { return x }',
  'export const': 'export const one = x => x',
  'export {': 'const first = x => x; export { first as one }',
}

describe.each(Object.keys(scripts) as (keyof typeof scripts)[])('a brief function of %s', way => {
  test.each(Object.keys(scriptCalls) as (keyof typeof scriptCalls)[])('is called plainly as %s', call => {
    expect(formOfWork(scriptCalls[call], scripts[way], '.cjs')).toBe('plain')
    const long = `${scripts[way]}; exports.one = function (x) { while (x) x-- }`
    expect(formOfWork(scriptCalls[call], long, '.cjs')).toBe('twin')
  })
})

describe.each(Object.keys(modules) as (keyof typeof modules)[])('a brief function of %s', way => {
  test.each(Object.keys(moduleCalls) as (keyof typeof moduleCalls)[])('is called plainly as %s', call => {
    expect(formOfWork(moduleCalls[call], modules[way], '.mjs')).toBe('plain')
    const long = modules[way]
      .replace('=> x', '=> { while (x) x-- }')
      .replace('{ return x }', '{ for (;;) x() }')
    expect(formOfWork(moduleCalls[call], long, '.mjs')).toBe('twin')
  })
})

test('a default export and a whole CommonJS export are found', () => {
  expect(
    formOfWork(
      `import one from './next.js'; export function work() { return one() }`,
      'export default function () { return 1 }',
      '.mjs',
    ),
  ).toBe('plain')
  expect(
    formOfWork(
      `const one = require('./next.js'); exports.work = function work() { return one() }`,
      'module.exports = function () { return 1 }',
      '.cjs',
    ),
  ).toBe('plain')
})

test('a method is brief only if it is brief in every imported module and in the file itself', () => {
  const source = `import { Cursor } from './next.js'; export function work(cursor) { return cursor.peek() }`
  const brief = 'export class Cursor { peek() { return this.at } }'
  const long = `${brief}; export class Other { peek(f) { return f() } }`
  expect(formOfWork(source, brief, '.mjs')).toBe('plain')
  expect(formOfWork(source, long, '.mjs')).toBe('twin')
  expect(formOfWork(`${source}; class Own { peek() { for (;;) this.f() } }`, brief, '.mjs')).toBe('twin')
})

test('a call of a built-in name is checked if an imported module has a long method of that name', () => {
  const source = `import './next.js'; export function work(map) { return map.get(1) }`
  expect(formOfWork(source, '', '.mjs')).toBe('plain')
  expect(formOfWork(source, 'export class Lazy { get(k) { return this.make(k) } }', '.mjs')).toBe('twin')
})

test('an import in a variable that is reassigned is unknown', () => {
  const source = `let { one } = require('./next.js'); exports.work = function work(a) { return one(a) }`
  expect(formOfWork(source, scripts['exports.one ='], '.cjs')).toBe('plain')
  const again = `${source}; exports.set = x => { one = x }`
  expect(formOfWork(again, scripts['exports.one ='], '.cjs')).toBe('twin')
})

describe('files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-beyond-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('are found as Node finds them, and an unreadable one has no costs', () => {
    writeFileSync(join(folder, 'a.js'), 'exports.one = x => x')
    writeFileSync(join(folder, 'broken.js'), 'exports.one = x => {')
    const neighbour = importedCostsOf(join(folder, 'main.js'))
    for (const specifier of ['./a.js', './a', '../' + folder.split('/').at(-1) + '/a']) {
      expect([...neighbour(specifier)!.exports.keys()], specifier).toEqual(['one'])
    }
    for (const specifier of ['./broken', './none', '.', './folder']) expect(neighbour(specifier)).toBe(null)
  })
})
