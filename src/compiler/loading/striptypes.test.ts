import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { stripTypes } from './striptypes.ts'

const root = join(import.meta.dirname, '../../..')

/** Erasers differ in the number of spaces, and in semicolons between statements. */
const tokens = (text: string): string => text.replaceAll(/[\s;]+/g, ' ').trim()

test.each([
  'let a = 1 as number\n;[1].map(String)',
  'let a: number\nlet b!: string',
  'const f = ({ b }: { b: 1 }, a?: number, ...c: string[]): void => {}',
  'const f = async <\n  T,\n>(a: T): Promise<T> => a',
  'const f = (\n  a: number,\n): {\n  b: 1\n} => ({ b: 1 })',
  'function f(this: Date, a: number): asserts a is 1 {}\nfunction g(this: Date) {}',
  'function f(a: string): void\nfunction f(a: number): void\nfunction f(a: any) {}',
  'abstract class A<T> extends B<T> implements C, D<T> {\n  abstract a(): void\n  private readonly b?: number\n  c!: string\n  declare d: 1;\n  [key: string]: unknown\n  static override readonly e = 1\n  protected async *f?(): any {}\n  get g(): number { return 1 }\n  set g(value: number) {}\n  m(): void\n  m(a?: 1) {}\n}',
  'class A {\n  a = 1\n  readonly ["b"] = 2\n  private *c() {}\n  public static async d() {}\n  readonly = 1\n  static override = 2\n}',
  "import type { A } from './a'\nimport { type B, C, type D } from './b'\nimport E, { type F } from './e'\nexport type { A }\nexport { type B, C }\nexport type * from './g'\nexport default interface Z {}",
  'export interface A {}\nexport type B = 1\nexport declare const c: 1\ndeclare global { interface X {} }\ndeclare module "y" {}\nnamespace T { export type U = 1 }\nexport abstract class V {}',
  'const a = b!.c![0]!\nconst d = e satisfies F as unknown as G\nconst h = new Map<string, number>()\nf<string>`x`\nconst i = j<number>',
  'try {} catch (e: unknown) {}\nfor (const x of y as Z[]) {}\nswitch (a as B) { case c as D: }',
  'const a = 1\ntype B = 2\n(1, 2)',
  'const a = b as any\n(1, 2)',
  'const o = { m<T>(this: O, a: T): T { return a }, async *g<T>(): any {}, get x(): number { return 1 } }',
  'const é = 1 as any /* ☃ */\nconst \u{20000} = (a: "😀") => a',
  'let f = (a: number) : number => a\nlet g = <T,>(a: T) => a\nlet h = function <T>(a: T): T { return a }',
  'enum A {}',
  'namespace A { export const b = 1 }',
  'class A { constructor(private a: number) {} }',
  'import a = require("b")',
  'export = 1',
  'let a = <number>1',
  'let a: = 1',
])('erases or refuses the same types as Node: %j', source => {
  let node: string | null = null
  try {
    node = stripTypeScriptTypes(source)
  } catch {}
  if (node === null) {
    expect(() => stripTypes(source, 'a.ts', true)).toThrow(/^.+\na\.ts:1:\d+\n/)
    return
  }
  const ours = stripTypes(source, 'a.ts', true)
  expect(tokens(ours)).toBe(tokens(node))
  expect(ours.length).toBe(source.length)
  expect(ours.split('\n').length).toBe(source.split('\n').length)
})

test('no line continues the one before because a type between them was erased', () => {
  const cases: [string, string][] = [
    ['let log = []\nlet a = log as any\n;[1].forEach(x => a.push(x))\n', 'log'],
    ['let log = []\nlet f = x => log.push(x)\nlet a = f as any\n(f)(1)\n', 'log'],
    ['let log = []\nlet f = x => log.push(x)\nlet a = f\ntype B = 2\n(f)(1)\n', 'log'],
    ['let log = []\nclass A { a = log\n readonly ["b"] = 1 }\nlog.push(new A().b)\n', 'log'],
  ]
  for (const [source, value] of cases) {
    const run = new Function(`${stripTypes(source, 'a.ts', false)};return ${value}`) as () => unknown
    expect(run(), source).toEqual([1])
  }
})

test('erases the types of every file here as Node does', async () => {
  let files = 0
  for await (const name of glob('src/{compiler,checker,task,sync,cli}/**/*.ts', { cwd: root })) {
    const source = readFileSync(join(root, name), 'utf8')
    let node: string | null = null
    try {
      node = stripTypeScriptTypes(source)
    } catch {}
    if (node === null) continue
    files++
    if (tokens(stripTypes(source, name, true)) !== tokens(node)) {
      expect(tokens(stripTypes(source, name, true)), name).toBe(tokens(node))
    }
  }
  expect(files).toBeGreaterThan(200)
}, 60_000)
