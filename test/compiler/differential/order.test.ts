/**
 * Evaluation order. Each form of expression is combined with each operand that a later one may change (a
 * local variable, one that closures assign, one of the module, a member, a parameter, `arguments`), and with
 * each way to change it.
 */
import { describe, expect, test } from 'vitest'
import { type Program, runPlain, runTwin } from './drive.ts'
import { compiled, plain } from './programs.ts'

/** `A` is an operand, `B` a later one that changes the value of `A`. */
const forms = [
  'f(A, B)',
  'f(A, B, A)',
  'f(B, A, B)',
  'f(1, A, B, A)',
  'f(A, f(B), A)',
  'f(f(A), f(B), A)',
  'known(A, B)',
  'known(A, B, A)',
  'known(A, known(B), A)',
  'short(A, B)',
  'o.m(A, B)',
  'o.m(A, o.m(B), A)',
  'o[key](A, B)',
  "o['m'](A, B)",
  'o?.m(A, B)',
  'o?.[key]?.(A, B)',
  'o.none?.(A, B)',
  'f?.(A, B)',
  'give(A)(B)',
  'give(A).m(B, A)',
  "'abcdefghij'.slice(A, B)",
  'text.slice(A, B)',
  'Math.max(A, B)',
  '[10, 20, 30].at(A, B)',
  'f.call(o, A, B)',
  'f.apply(o, [A, B])',
  'f.bind(o, A)(B)',
  'Reflect.apply(f, o, [A, B])',
  'f(...[A], B)',
  'f(...[A, 1], ...[B], A)',
  'f(A, ...[B])',
  'new C(A, B)',
  'new C(A, f(B))',
  'new (pick(A))(B)',
  '`${A}${B}`',
  '`${A}${f(B)}${A}`',
  'tag`${A}-${B}`',
  'tag`${A}-${f(B)}-${A}`',
  'o.tag`${A}-${B}`',
  'A + B',
  'A + f(B)',
  'A * B - A',
  'A < B',
  'A === B',
  '(A) ** (B)',
  '[A, B]',
  '[A, f(B), A]',
  '[A, , ...[B], A]',
  '{ const r = { a: A, b: B, c: A }; log(r) }',
  '({ a: A, b: f(B), c: A })',
  '({ [A]: B })',
  '({ [A]: f(B), [A]: A })',
  '({ ...{ a: A }, b: B, c: A })',
  '({ a: A, get g() { return 1 }, b: B, m() { return 2 }, c: A })',
  'list[A] = B',
  'list[A] = f(B)',
  'list[A] += B',
  'list[A] -= f(B)',
  'list[A] ??= f(B)',
  'list[A] &&= B',
  'list[A] = list[B] = A',
  'o.p = o.q = B',
  'give(list)[A] = f(B)',
  'x = A + B',
  'x += f(A) + B',
  'x = f(A, x = B, A)',
  '[x, list[A]] = [A, B]',
  '({ a: x, b: list[1] } = { a: A, b: f(B) })',
  'list[A]++ + B',
  '--list[A] - f(B)',
  'delete list[f(A)], B',
  'delete f(A) + B',
  'A in { [B]: 1 }',
  'A instanceof pick(B)',
  'f(typeof A, typeof B)',
  'f(-A, +B, !A, ~A, void B)',
  '(A, B)',
  'f((A, A), (B, A))',
  'A ? B : A',
  'f(A ? A : 0, f(B) ? A : B)',
  'f(A && B, A || B, A ?? B)',
  'f(A && f(B), A)',
  'f(() => A, B, () => A).length',
  'list.map(e => e + A).concat(f(B), A)',
  'list.reduce((s, e) => s + e + A, B)',
  'list.forEach(e => log(e, A), B)',
  'sub.m(A, B)',
  'sub.secret(A, B)',
  'class extends (give(A), C) { [f(B)]() { return A } static s = A }.name',
  'if (f(A) + B > 3) log(A); else log(B)',
  'switch (A) { case B: log(1); break; case A: log(2); break; default: log(3) }',
  'for (const e of [A, f(B), A]) log(e)',
  'for (let k = A, m = B; k < 3; k += 1 + f(A)) log(k, m)',
  'while (f(A) < B) { if (++turns > 3) break }',
  'throw [A, f(B), A]',
  'return [A, f(B), A]',
  '{ const [d = A, e = B] = [f(), A]; log(d, e) }',
  'drain((function* (n) { yield A; yield f(yield B, A); yield* [A, f(B), A] })(1))',
]

/** Readable operands, and the name by which each is assigned. */
const operands = [
  { name: 'a local variable', read: 'i', target: 'i' },
  { name: 'a variable that closures assign', read: 'shared', target: 'shared' },
  { name: 'a variable of the module', read: 'outer', target: 'outer' },
  { name: 'a parameter', read: 'given', target: 'given' },
  { name: 'a member', read: 'o.p', target: 'o.p' },
  { name: 'an element', read: 'list[0]', target: 'list[0]' },
] as const

/** Ways to change it: `T` is the target. */
const changes = [
  'T += 2',
  'T = 3',
  'T++',
  '--T',
  'T = stop(2)',
  'stop(T = 2)',
  '[T] = [3]',
  '({ x: T } = { x: 2 })',
  '[, ...[T]] = [1, 3]',
  '(() => (T = 2))()',
  'change(() => (T = 3))',
  '(T && (T = 2))',
  '(T ? (T -= 1) : 0)',
  '{ valueOf() { T = 3; return 2 } }',
  '{ get v() { T = 2; return 3 } }.v',
  '`${{ toString() { return String((T = 2)) } }}`.length',
]

const prelude = `
let outer = 1, turns = 0
exports.main = function main(log) {
  const stop = value => { for (let t = 0; t < 2; t++) log('stop'); return value }
  const change = fn => { for (let t = 0; t < 2; t++) fn(); return fn() }
  const f = (...all) => { for (const one of all) log('f', typeof one === 'object' ? 'object' : one); return all.length }
  function known(...all) { for (const one of all) log('known', one); return all.length }
  const short = (a, b) => \`\${a}:\${b}\`
  const give = value => { for (let t = 0; t < 1; t++) log('give'); return typeof value === 'object' ? value : Object.assign((...all) => f(value, ...all), { m: (...all) => f('m', ...all) }) }
  const tag = (strings, ...all) => { for (const one of all) log('tag', one); return strings.join('|') }
  class C { constructor(...all) { log('new', ...all) } m(...all) { for (const one of all) log('C.m', one); return all.length } }
  class D extends C { #secret(...all) { for (const one of all) log('secret', one); return all.length } m(...all) { return super.m(all[0], ...all) } secret(a, b) { return this.#secret(a, a = b, a) } }
  const pick = value => { for (let t = 0; t < 1; t++) log('pick'); return C }
  const drain = it => { const all = []; for (let step = it.next(); !step.done && all.length < 9; step = it.next(all.length)) all.push(step.value); return all }
  const text = 'abcdefghij', key = 'm', sub = new D()
  const results = []
`

interface Tried {
  file: string
  source: string
}

function programOf(form: string, strict: boolean): Tried {
  const blocks: string[] = []
  for (const { read, target } of operands) {
    for (const change of changes) {
      const changed = change.replaceAll('T', target)
      const text = form.replaceAll(/\bA\b/g, read).replaceAll(/\bB\b/g, `(${changed})`)
      const statement = /^(?:if|switch|for|while|throw|return|\{)\b|^\{/.test(text) ? text : `return ${text}`
      blocks.push(`results.push(attempt((given, shared, o, list, i, x, arg) => {
    const assign = () => { shared++ }
    ${statement}
  }, log))`)
    }
  }
  const attempt = `
  const attempt = (fn, log) => {
    outer = 1; turns = 0
    const o = { p: 1, q: 2, m: (...all) => f('o.m', ...all), tag }
    const list = [1, 5, 6, 7]
    log('--')
    try { return fn(1, 1, o, list, 1, 1, 1) } catch (error) { log('threw', error); return String(error) } finally { log(outer, o.p, list) }
  }
`
  return {
    file: strict ? 'order-strict.cjs' : 'order-sloppy.cjs',
    source: `'use task'\n${strict ? "'use strict'" : ''}${prelude}${attempt}  ${blocks.join('\n  ')}\n  return results\n}\n`,
  }
}

describe('operands are evaluated in the order of the source', () => {
  for (const [index, form] of forms.entries()) {
    test(form, { timeout: 60_000 }, async () => {
      const { file, source } = programOf(form, index % 2 === 0)
      const expected = await runPlain(plain(source, file)['main'] as Program)
      expect(expected.ended).toBe('returned')
      for (const lowering of ['frames', 'generator'] as const) {
        const options = { lowering, sourcemap: false }
        const run = (): Program => compiled(source, file, options)['main'] as Program
        expect(await runPlain(run()), `${lowering}, called plainly`).toEqual(expected)
        for (const every of [false, true]) {
          const { preemptions, ...outcome } = await runTwin(run(), every)
          expect(outcome, `${lowering}, ${every ? 'preempted' : 'undisturbed'}`).toEqual(expected)
          expect(preemptions > 0).toBe(every)
        }
      }
    })
  }
})
