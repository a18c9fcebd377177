/** Every program with a move at every safepoint: results, errors and effects are those of the plain code. */
import { describe, expect, test } from 'vitest'
import { coroutineOf, setSafepointFlag } from '../../../src/coroutine/core/coroutine.ts'
import { immovable, registerMovable } from '../../../src/coroutine/core/movable.ts'
import { changesAround, packFrames } from '../../../src/coroutine/core/packedframes.ts'
import { type Program, runPlain, runTwin } from './drive.ts'
import { driveMoved, movable, runMoved } from './move.ts'
import { plain, programFiles, readProgram } from './programs.ts'

/** Programs that see a difference, which docs/moving.md names. */
const different: Readonly<Record<string, string>> = {
  functionsInVariables: 'the engine names the box in the message of a call that is no function',
  generatorsAsObjects: 'the engine names the box in the message of a `new` that is no constructor',
  forInAsksForEachKeyWhenItGetsThere: 'a Proxy among the prototypes sees that all keys are read first',
  elementsReadByGetters: 'an array with getters becomes one with values',
  settersOfThePrototype: 'it gives Array.prototype a setter, which the codec meets too',
  stackOverflowIsCatchable: 'it saves two million frames, each of which a move would write',
}

let programs = 0
let preemptions = 0
let moves = 0
const obstacles = new Map<string, number>()

for (const file of programFiles()) {
  const source = readProgram(file)
  const original = plain(source, file)
  describe(`${file.replace(/\.\w+$/, '').replaceAll('-', ' ')}, moved at every safepoint`, () => {
    for (const name of Object.keys(original)) {
      if (typeof original[name] !== 'function' || different[name] !== undefined) continue
      programs++
      test(name, async () => {
        const expected = await runPlain(plain(source, file)[name] as Program)
        expect(await runPlain(movable(source, file)[name] as Program), 'the plain form').toEqual(expected)
        const { preemptions: _, ...preempted } = await runTwin(movable(source, file)[name] as Program, true)
        expect(preempted, 'preempted at every safepoint, and not moved').toEqual(expected)
        for (const strip of [undefined, 1]) {
          const program = movable(source, file, strip === undefined ? {} : { strip })[name] as Program
          const { preemptions: count, moves: moved, obstacles: met, ...outcome } = await runMoved(program)
          expect(outcome, `moved at every safepoint, in strips of ${strip}`).toEqual(expected)
          preemptions += count
          moves += moved
          for (const [what, times] of met) obstacles.set(`${name}: ${what}`, times)
        }
      })
    }
  })
}

test('the programs are many, and they moved', () => {
  expect(programs).toBeGreaterThanOrEqual(250)
  expect(moves).toBeGreaterThan(20_000)
  expect(preemptions).toBeGreaterThan(moves)
})

test('what does not move has a reason that names it', () => {
  for (const what of obstacles.keys())
    expect(what).toMatch(/: (?:.* is on its stack|it runs as a generator|frames\[\d+\].*: .* cannot travel)/)
})

test.each([
  ['its module is marked', `'use task movable'\nexport async function run(turns) { await turns }`],
  ['it is marked', `export async function run(turns) { 'use task movable'; await turns }`],
])('a function that cannot move names the command that says why: %s', (_, text) => {
  expect(immovable(movable(text, 'named.js').run!)).toContain('`heddle compile --stats` says why')
})

test('closures that a loop without safepoints makes move', () => {
  const turns = (): number => 3
  registerMovable('test', '', [{ key: 'three', hash: '', value: () => turns }])
  const source = `'use task movable'
    export function run(turns) {
      const made = []
      let i = 0
      while (i < 3) { const j = i++; made[j] = { add: x => j + x, self: function down(n) { return n ? down(n - 1) : j } } }
      do { const at = made.length; made[at] = { add: () => at, self: () => () => at } } while (made.length < 5)
      for (let turn = 0; turn < turns(turn); turn++);
      return made.map(({ add, self }) => [add(1), self(2), add.name])
    }`
  const counts = { preemptions: 0, moves: 0, obstacles: new Map<string, number>() }
  const { value } = driveMoved(movable(source, 'loops.js', { strip: 1 }).run!, [turns], counts)
  const called = (value as unknown[][]).map(([add, self, name]) => [
    add,
    typeof self === 'function' ? self() : self,
    name,
  ])
  expect(called).toEqual([0, 1, 2, 3, 4].map(at => [at < 3 ? at + 1 : at, at, 'add']))
  expect(counts.moves).toBeGreaterThan(2)
  expect([...counts.obstacles]).toEqual([])
})

describe('what a module holds is the same object after a move', () => {
  const turns = (): number => 5
  registerMovable('test', '', [{ key: 'turns', hash: '', value: () => turns }])
  const counted = () => ({ preemptions: 0, moves: 0, obstacles: new Map<string, number>() })
  const body = `
    let same = 0
    const held = [first(), second()]
    for (let i = 0; i < turns(i); i++) if (held[0] === first() && held[1] === second()) same++
    return same`

  test.each([
    ['constants', 'a.js', `const a = { x: [{}] }; const first = () => a.x[0]; const second = () => a.x;`],
    [
      'the default export',
      'b.js',
      `export default { deep: { x: 1 } }; const kinds = new Map([['k', {}]])
       const first = () => kinds.get('k'); const second = () => kinds;`,
    ],
    [
      'symbols and closures of the module',
      'c.js',
      `const made = (x => { const f = () => x; return f })(1); const name = Symbol('name')
       const first = () => made; const second = () => name;`,
    ],
  ])('%s', (_what, file, source) => {
    const text = `'use task movable'\n${source}\nexport function run(turns) {${body}} // the end`
    const counts = counted()
    const { value } = driveMoved(movable(text, file, { strip: 1 }).run!, [turns], counts)
    expect(value).toBe(5)
    expect(counts.moves).toBeGreaterThan(4)
  })

  test('the exports of a CommonJS module, and one that returns early', () => {
    for (const early of ['', 'if (typeof module === "number") return;']) {
      const text = `'use task movable'\n${early}module.exports = { a: { b: {} }, run(turns) {
        const first = () => module.exports.a, second = () => module.exports.a.b; ${body} } } // the end`
      const counts = counted()
      const { value } = driveMoved(movable(text, 'd.cjs', { strip: 1 }).run!, [turns], counts)
      expect(value).toBe(5)
      expect(counts.moves).toBeGreaterThan(4)
    }
  })
})

describe('instances with private members move', () => {
  const source = `'use task movable'
    let made = 0
    export class Base {
      #x = ++made; y = ++made; #list = []; #self;
      static #count = 0
      #add(n) { return this.#x + n }
      get #last() { return this.#list.at(-1) }
      constructor({ a }) { this.a = a; this.#self = this; Base.#count++ }
      run(turns) {
        for (let i = 0; i < turns(i); i++) { this.#x = this.#add(1); this.#list.push(this) }
        return [this.#x, this.y, this.a, this.#list.length, this.#last === this, this.#self === this,
          Base.#count, made, Object.keys(this), #x in this]
      }
    }
    class Derived extends Base { z = 3; constructor(o) { super(o); delete this.y } }
    class Deep extends Base { #deep = 1; read() { return this.#deep } }
    class Brand { #brand() { return 1 } is(o) { return #brand in o } }
    const run = (object, turns) => [object.run(turns), object.constructor.name]
    export function base(turns) { return run(new Base({ a: 1 }), turns) }
    export function derived(turns) { return run(new Derived({ a: 2 }), turns) }
    export function brand(turns) { const b = new Brand(); let is = 0
      for (let i = 0; i < turns(i); i++) if (b.is(b) && !b.is({})) is++
      return is }
    export function deep(turns) { const d = new Deep({ a: 1 }); for (let i = 0; i < turns(i); i++); return d.read() }
    class Deepest extends Deep { static made = 0; #list = [this]; z = Deepest.made++; #self() { return this.#list[0] }
      constructor(first, ...rest) { const all = [first, ...rest]; super(all[0]); this.#list.push(...all) }
      walk(turns) { for (let i = 0; i < turns(i); i++) this.#list.push(i)
        return [this.#self() === this, this.#list.length, this.z, Deepest.made, #list in this, this.read()] } }
    class Plain { '#x' = 1; text = '#y' }
    class Dated extends Date { #zone = 'x'; zone() { return this.#zone } }
    class Picky extends Base { #p = 1; constructor({ a }) { super({ a }) } p() { return this.#p } }
    export function deepest(turns) { const d = new Deepest({ a: 1 }, { a: 2 }), e = new Deepest({ a: 3 })
      const found = [d.run(turns), d.walk(turns), e.walk(turns), new Deepest({ a: 4 }).walk(turns), Object.keys(d)]
      return [found, d instanceof Deep, Object.getPrototypeOf(Deepest) === Deep] }
    export function hash(turns) { const p = new Plain(); for (let i = 0; i < turns(i); i++); return Object.values(p) }
    export function dated(turns) { const d = new Dated(5); for (let i = 0; i < turns(i); i++); return d.zone() }
    export function picky(turns) { const d = new Picky({ a: 5 }); for (let i = 0; i < turns(i); i++); return d.p() }
    export function captured(turns) { const b = new Base({ a: 1 }); const f = () => b.run(turns)
      for (let i = 0; i < turns(i); i++); return f() }`
  const turns = (): number => 5
  registerMovable('test', '', [{ key: 'five', hash: '', value: () => turns }])

  test.each(['base', 'derived', 'brand', 'captured', 'deep', 'deepest', 'hash'])('%s', name => {
    const expected = (plain(source, 'p.js')[name] as (...args: any[]) => unknown)(turns)
    expect((movable(source, 'p.js')[name] as any)(turns), 'called plainly').toEqual(expected)
    const counts = { preemptions: 0, moves: 0, obstacles: new Map<string, number>() }
    const { value, threw } = driveMoved(movable(source, 'p.js', { strip: 1 })[name]!, [turns], counts)
    expect({ value, threw, obstacles: [...counts.obstacles] }).toEqual({
      value: expected,
      threw: false,
      obstacles: [],
    })
    expect(counts.moves).toBeGreaterThan(4)
  })

  test.each([
    [
      'dated',
      'x',
      'frames[0].values.d: a Dated extends a class of the platform and has #private members (Dated)',
    ],
    ['picky', 1, 'frames[0].values.d: a Picky has #private members of a derived class (Picky)'],
  ])('what cannot be installed is refused, with the path and the class: %s', (name, result, refusal) => {
    const counts = { preemptions: 0, moves: 0, obstacles: new Map<string, number>() }
    const { value } = driveMoved(movable(source, 'p.js', { strip: 1 })[name]!, [turns], counts)
    expect(value).toBe(result)
    expect([...counts.obstacles.keys()].join()).toContain(`${refusal}, and cannot travel`)
  })
})

describe('debug mode sees that a module has changed', () => {
  const cases: readonly [what: string, text: string, path: string][] = [
    ['a variable', 'let n = 0; const change = () => n++', 'n'],
    ['a typed array', 'const t = new Uint32Array(512); const change = () => { t[511] = 9 }', 't.buffer'],
    [
      'a view',
      'const v = new DataView(new ArrayBuffer(5)); const change = () => v.setInt8(4, 9)',
      'v.buffer',
    ],
    ['a buffer that is given away', 'const b = new ArrayBuffer(8); const change = () => b.transfer()', 'b'],
    ['a Date', 'const d = new Date(0); const change = () => d.setTime(5)', 'd'],
    ['an array in arrays', 'const a = [[1, [2]]]; const change = () => { a[0][1][0] = 7 }', 'a[0][1]'],
    [
      'a Map in a Map',
      'const m = new Map([["a", new Map()]]); const change = () => m.get("a").set(1, 2)',
      'm.get("a")',
    ],
    [
      'which of its objects another one holds',
      'const a = {}, b = {}, o = { at: a }; const change = () => { o.at = b }',
      'o',
    ],
    [
      'a static private field',
      'class C { static #n = 0; static up() { C.#n++ } } const change = () => C.up()',
      'C',
    ],
    [
      'a private field',
      'class C { #n = 0; up() { this.#n++ } } const c = new C(), change = () => c.up()',
      'c',
    ],
    [
      'what a closure captures',
      'const up = (() => { let n = 0; return () => ++n })(), change = () => up()',
      'up.captured[0]',
    ],
    ['a prototype', 'const p = { n: 0 }, o = Object.create(p), change = () => { p.n++ }', 'p'],
    [
      'an object in a frozen one',
      'const o = Object.freeze({ i: { n: 0 } }), change = () => { o.i.n++ }',
      'o.i',
    ],
  ]
  const quiet =
    'const gone = new ArrayBuffer(8); gone.transfer(); const all = { gone, t: new Int8Array(5), d: new Date(1), m: new Map([[{}, {}]]) }, change = () => all'

  test.each([...cases, ['nothing that did not change', quiet, '']])('%s', (_what, text, path) => {
    const source = `'use task movable'\n${text}\nfunction tick(i) { return i & 1 }
      export function run() { change(); let sum = 0; for (let i = 0; i < 9; i++) sum += tick(i); return sum }`
    const coroutine = coroutineOf(movable(source, 'held.js', { strip: 1 }).run!, [])
    setSafepointFlag(Int32Array.of(1), 0)
    try {
      // The last of its stops is behind the change.
      coroutine.start()
      for (let stop = 0; stop < 4; stop++) coroutine.resume()
    } finally {
      setSafepointFlag(Int32Array.of(0), 0)
    }
    expect(changesAround(packFrames(coroutine))).toEqual(path === '' ? [] : [`${path} of held.js`])
  })
})
