/**
 * Ways in which a thread runs code that is not instrumented. The code has private shared memory, `own`, whose
 * accesses are not steps.
 */
import assert from 'node:assert'
import { inspect } from 'node:util'
import { History } from '../../../src/checker/check.ts'
import { compile } from '../../../src/compiler/compile.ts'

/** Stands for a package that is not instrumented. */
const library: any = new Function(`
  const own = new Int32Array(new SharedArrayBuffer(4))
  let held
  const attempt = f => { try { f(); return 'read' } catch { return 'caught' } }
  return {
    add: () => own[0]++,
    box: { get value() { return own[0] }, set value(x) { own[0] = x } },
    Box: class { constructor() { this.value = own[0]++ } static [Symbol.hasInstance]() { return own[0]++ > 0 } },
    list: { *[Symbol.iterator]() { yield own[0]++ } },
    number: { valueOf: () => own[0]++, toString: () => String(own[0]++) },
    trap: new Proxy({}, { get: () => own[0]++, has: () => own[0]++ > 0 }),
    hold: memory => { held = memory },
    clone: () => attempt(() => structuredClone(held)),
    decode: () => attempt(() => new TextDecoder().decode(held)),
    write: () => attempt(() => process.getBuiltinModule('node:fs').writeSync(-1, held)),
  }
`)()

const count: () => unknown = library.add

export interface Way {
  readonly way: string
  readonly run: (memory: Int32Array<SharedArrayBuffer>) => any
}
const way = (name: string, run: Way['run']): Way => ({ way: name, run })
const attempt = (run: () => unknown): string => {
  try {
    run()
    return 'read'
  } catch {
    return 'caught'
  }
}

/** The same library, compiled by heddle for tasks: its functions have twins, which take no steps. */
const compiled: any = await compiledForTasks()

async function compiledForTasks(): Promise<any> {
  const runtime = new URL('../../../src/compiler/runtime.ts', import.meta.url).href.replace(/\?.*$/, '')
  const { code } = compile(
    `const own = new Int32Array(new SharedArrayBuffer(4))
    export function add() { 'use task'; for (let i = 0; i < 2; i++) own[0]++; return own[0] }
    export const arrow = () => { 'use task'; return own[0]++ }
    export class Box { get value() { 'use task'; return own[0]++ } count() { 'use task'; return own[0]++ } }
    export function* list() { 'use task'; yield own[0]++ }`,
    'compiled.js',
    { runtime, sourcemap: false },
  )
  return await import(`data:text/javascript,${encodeURIComponent(code)}`)
}

export const hidden: readonly Way[] = [
  way('a call of compiled code', () => compiled.add()),
  way('a call of a compiled arrow', () => compiled.arrow()),
  way('a bound function of compiled code', () => compiled.add.bind(null)()),
  way('call of compiled code', () => compiled.add.call(null)),
  way('a compiled class', () => new compiled.Box()),
  way('a compiled method', () => Reflect.apply(compiled.Box.prototype.count, {}, [])),
  way('a compiled getter', () => Object.create(compiled.Box.prototype).value),
  way('a compiled generator', () => [...compiled.list()]),
  way('a compiled callback', () => [1].map(compiled.add)),
  way('a compiled comparator', () => [2, 1].sort(compiled.arrow)),
  way('a call', () => library.add()),
  way('a bound function', () => library.add.bind(null)()),
  way('a method whose calls a history records', () => new History().of(library).add()),
  way('a compiled method whose calls a history records', () => new History().of(compiled).add()),
  way('call', () => library.add.call(null)),
  way('Reflect.apply', () => Reflect.apply(library.add, null, [])),
  way('Reflect.construct', () => Reflect.construct(library.Box, [])),
  way('a tag', () => library.add`once`),
  way('a constructor', () => new library.Box().value),
  way('a base class', () => new (class extends library.Box {})()),
  way('a getter', () => library.box.value),
  way('a getter, by a pattern', () => {
    const { value } = library.box
    return value
  }),
  way('a getter, by a spread', () => ({ ...library.box })),
  way('a getter, by Object.entries', () => Object.entries(library.box).length),
  way('a getter, by JSON', () => JSON.stringify({ inside: library.box })),
  way('a setter', () => void (library.box.value = 1)),
  way('a setter, by Object.assign', () => Object.assign(library.box, { value: 1 })),
  way('instanceof', () => Object(1) instanceof library.Box),
  way('an iterator', () => {
    let sum = 0
    for (const x of library.list) sum += x
    return sum
  }),
  way('an iterator, by a spread', () => [...library.list]),
  way('an iterator, by a pattern', () => {
    const [first] = library.list
    return first
  }),
  way('an iterator, by Array.from', () => Array.from(library.list)),
  way('a conversion', () => +library.number),
  way('a conversion by a template', () => `${library.number}`),
  way('a conversion of a key', () => ({ 1: 1 })[library.number as 1]),
  way('a conversion, by join', () => [library.number].join()),
  way('a trap', () => library.trap.value),
  way('a trap of in', () => 'value' in library.trap),
  way('a trap, by Reflect.get', () => Reflect.get(library.trap, 'value')),
  way('a callback', () => [1].map(library.add)),
  way('a comparator', () => [2, 1].sort(library.add)),
  way('a replacer', () => 'a'.replace(/a/, library.add)),
  // Memory of the set-up that the code has kept, and passes to the host.
  way('structuredClone of memory that it holds', () => library.clone()),
  way('TextDecoder of memory that it holds', () => library.decode()),
  way('fs.writeSync of memory that it holds', () => library.write()),
  // Memory that a function of the host gets from a getter: it treats a proxy differently from a view.
  way('structuredClone of a getter', memory =>
    attempt(() =>
      structuredClone({
        get words() {
          return memory
        },
      }),
    ),
  ),
  way('inspect of a getter', memory =>
    attempt(() =>
      inspect({
        get words() {
          return memory
        },
      }),
    ),
  ),
  way('structuredClone, six levels deep', memory =>
    attempt(() => structuredClone({ a: { b: { c: { d: { e: { f: memory } } } } } })),
  ),
  way('inspect of a property of a function', memory =>
    attempt(() => inspect(Object.assign(() => 1, { memory }))),
  ),
]

class Made {
  result: unknown
  constructor(use: () => unknown) {
    this.result = use()
  }
}

/** Ways in which a function of the check runs as plain code inside a thread: nothing drives it. */
export const undriven: readonly { readonly way: string; readonly run: (use: () => unknown) => unknown }[] = [
  { way: 'a constructor', run: use => new Made(use).result },
  { way: 'a trap', run: use => (new Proxy({}, { get: () => use() }) as { x?: unknown }).x },
  { way: 'a conversion', run: use => `${{ toString: () => String(use()) }}` },
  { way: 'an iterator that a built-in drives', run: use => new Set([1].values().map(() => use())) },
  { way: 'a replacer', run: use => JSON.stringify([1], () => String(use())) },
  { way: 'an executor', run: use => new Promise(() => void use()) },
  {
    way: 'a getter with a computed name',
    run: use =>
      (
        ({
          get [`${'x'}`]() {
            return use()
          },
        }) as { x?: unknown }
      ).x,
  },
]

/** What such a function does with code that is not instrumented. */
export const uses: readonly { readonly use: string; readonly run: () => unknown }[] = [
  { use: 'a call', run: () => library.add() },
  { use: 'a call of a name', run: () => count() },
  { use: 'a call of a result', run: () => (() => count)()() },
  { use: 'an optional call', run: () => library?.add?.() },
  { use: 'a tag', run: () => library.add`once` },
  { use: 'new', run: () => new library.Box().value },
  { use: 'a getter', run: () => library.box.value },
  { use: 'a setter', run: () => (library.box.value = 1) },
]

/** Uses only the language and the check. */
export function computes(): unknown {
  const box = {
    list: [3, 1, 2],
    get first() {
      return this.list[0]
    },
  }
  return [
    Math.max(1, 2),
    new Map([[1, 2]]).get(1),
    'a'.at(0),
    new Made(() => box.first).result,
    box?.list.at(0),
  ]
}

/** The threads of a check in which a function that nothing drives uses such code. */
export function undrivenThreads(run: (use: () => unknown) => unknown, use: () => unknown): (() => unknown)[] {
  const memory = new Int32Array(new SharedArrayBuffer(4))
  const body = (): unknown => {
    Atomics.add(memory, 0, 1)
    return run(use)
  }
  return [body, body]
}

/** Two threads that count, and one that reads a hidden getter only when it finds these counts. */
export function rarely(m: Int32Array<SharedArrayBuffer>, first: number, second: number): (() => unknown)[] {
  const counter = (word: number) => (): void => {
    for (let i = 0; i < 4; i++) Atomics.add(m, word, 1)
  }
  const reader = (): unknown => {
    const counts = [Atomics.load(m, 0), Atomics.load(m, 1)]
    return counts[0] === first && counts[1] === second ? library.box.value : 0
  }
  return [counter(0), counter(1), reader]
}

class Plain extends Array {}
class Fields {
  one = 1
}

/** Code that the checker knows: its effects are seen, or it keeps no state. */
export const known: readonly Way[] = [
  way('assert', () => assert.equal(1, 1)),
  way(
    'the language',
    () => [3, 1, 2].sort((a, b) => a - b).join() + JSON.stringify({ a: [1] }) + Math.max(1, 2),
  ),
  way('classes of the check', () => [new Plain(), new Fields().one, new (class extends Array {})()].length),
  way(
    'a getter of the check',
    () =>
      ({
        get one() {
          return 1
        },
      }).one,
  ),
  way('a proxy of the check', () => new Proxy({}, { get: () => 1 } as ProxyHandler<any>).one),
  way('a bound function of the check', () => ((a: number) => a).bind(null, 1)()),
]

export function threads({ run }: Way, memory: Int32Array<SharedArrayBuffer>): (() => unknown)[] {
  library.hold(memory)
  const body = (): unknown => {
    Atomics.add(memory, 0, 1)
    return run(memory)
  }
  return [body, body]
}
