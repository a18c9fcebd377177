/**
 * Random programs over the whole grammar: every form of statement and expression, effects in every position,
 * strict and sloppy. A tape of numbers determines a program. An empty tape chooses the simplest production,
 * so that every tape is a program that ends, and a shorter tape a simpler program. Each program reports the
 * productions that it used.
 *
 * Fuel ends long runs, strings and lists are truncated, and only the class of an error is compared: the
 * engine's message for a value depends on how the code computed it.
 */
import { Expressions } from './grammar-expressions.ts'
import type { Place, Production } from './grammar-tape.ts'

export interface GrammarProgram {
  source: string
  used: ReadonlySet<string>
}

export function grammarProgram(tape: readonly number[]): GrammarProgram {
  const writer = new Statements(tape)
  return { source: writer.program(), used: writer.used }
}

/** The productions of the grammar. */
export function productions(): string[] {
  const writer = new Statements([])
  return [...writer.expressionNames(), ...writer.statementNames()]
}

const prelude = `
exports.main = function main(log) {
  let fuel = 400
  const tick = () => { if (--fuel < 0) throw new Error('out of fuel') }
  const brief = (v, depth = 2) => {
    if (typeof v === 'function') return 'fn ' + v.name + ' ' + v.length
    if (typeof v === 'bigint') return v + 'n'
    if (typeof v === 'symbol') return 'symbol'
    if (typeof v === 'string') return JSON.stringify(v)
    if (typeof v !== 'object' || v === null) return Object.is(v, -0) ? '-0' : String(v)
    if (v instanceof Error) return v.name
    if (depth === 0) return '...'
    if (Array.isArray(v)) { const all = []; for (let i = 0; i < v.length && i < 6; i++) all[i] = i in v ? brief(v[i], depth - 1) : 'hole'; return '[' + all + ']' }
    const all = []
    for (const k of Reflect.ownKeys(v)) { const d = Reflect.getOwnPropertyDescriptor(v, k); if (typeof k === 'string' && d) all[all.length] = k + ':' + ('value' in d ? brief(d.value, depth - 1) : 'accessor') }
    return '{' + all + '}'
  }
  const say = (...all) => { tick(); log(all.map(v => brief(v)).join(' ')); return all.at(-1) }
  const cut = v => typeof v === 'string' ? v.slice(0, 12) : v
  const few = v => Array.isArray(v) ? v.slice(0, 6) : v
  const stop = v => { for (let i = 0; i < 2; i++) tick(); return v }
  const give = v => { tick(); return v }
  const key = (v, k) => { tick(); return k ?? (typeof v === 'symbol' ? 'symbol' : typeof v === 'object' || typeof v === 'function' ? 'object' : 'k' + v) }
  const attempt = fn => { try { return fn() } catch (error) { if (fuel < 0) throw error; say('failed', error); return 'failed' } }
  const call = (fn, ...all) => { tick(); return typeof fn === 'function' ? attempt(() => fn(...all)) : all.length }
  const f = (...all) => { tick(); for (const one of all) say('f', one); return all[0] }
  function known(a, b) { tick(); return say('known', a, b) }
  const tag = (strings, ...all) => { for (const one of all) say('tag', one); return strings.length }
  const drain = it => { const all = []; for (let i = 0; i < 5; i++) { tick(); const step = it.next(i); all[i] = step.value; if (step.done) break } it.return?.('left'); return all }
  const pending = []
  const later = promise => { pending[pending.length] = promise.then(v => log('resolved ' + brief(v)), e => log('rejected ' + brief(e))); return pending.length }
  const tracked = items => ({ [Symbol.iterator]() { let at = 0; say('iterator'); return { next() { tick(); say('next', at); return { value: items[at++], done: at > items.length } }, return(v) { say('closed'); return {} } } } })
  const watched = new Proxy({ a: 1, b: 2 }, { ownKeys(t) { say('keys'); return Reflect.ownKeys(t) }, getOwnPropertyDescriptor(t, k) { say('describe', k); return Reflect.getOwnPropertyDescriptor(t, k) } })
  const nothing = null
  let list = [4, 5, 6]
  const symbol = Symbol('symbol')
  let o = { p: 1, q: 2, count: 0, k1: 3, rest: 0, tag, m(...all) { tick(); return say('o.m', this === o, ...all) }, get getter() { say('getter'); return 5 }, set setter(v) { say('setter', v) } }
  class C { field = say('field'); constructor(...all) { tick(); say('new', ...all) } m(...all) { tick(); return say('C.m', ...all) } static s(v) { return say('C.s', v) } }
  let n = 1, t = 'text'
`

class Statements extends Expressions {
  program(): string {
    const strict = this.choose(2) === 0
    const names = ['n', 't', 'o', 'list', 'f', 'known', 'C']
    this.place = { ...this.place, names, writable: ['n', 't'] }
    const lines: string[] = []
    this.inside({ inFunction: true }, () => {
      while (!this.isEmpty) lines.push(this.statement(3))
    })
    const body = `(function (p1, p2) {\n    ${lines.join('\n    ')}\n  }).call(o, 7, 8)`
    const end = "say('end', n, t, list, o)\n  return Promise.all(pending).then(() => 'done')"
    const ran = `try { say('result', ${body}) } catch (error) { log('threw ' + brief(error)) }\n  fuel = 50\n  ${end}`
    return `'use task'\n${strict ? "'use strict'" : ''}${prelude}  ${ran}\n}\n`
  }

  statement(depth: number): string {
    if (depth <= 0) return this.produce(this.#simple, 'statement', 1)
    return this.produce(this.#all, 'statement', depth)
  }

  #statements(depth: number, most = 3): string {
    const lines: string[] = []
    const count = 1 + this.choose(most)
    for (let i = 0; i < count; i++) lines.push(this.statement(depth))
    return lines.join('; ')
  }

  block(depth: number, change: Partial<Place> = {}, before = ''): string {
    return this.inside(change, () => `{ ${before}${this.#statements(depth)} }`)
  }

  body(depth: number, change: Partial<Place>): string {
    return this.inside(change, () => {
      const end = this.choose(2) === 0 ? `; return ${this.expression(depth)}` : ''
      return `{ tick(); ${this.#statements(Math.min(depth, 2), 2)}${end} }`
    })
  }

  #loop(depth: number, change: Partial<Place> = {}): string {
    const { loops } = this.place
    return this.block(depth - 1, { loops: loops + 1, inSwitch: false, ...change }, 'tick(); ')
  }

  /** `isDerived`: whether the class extends another; undefined: it gets no constructor. */
  classBody(depth: number, isDerived?: boolean): string {
    const elements: string[] = []
    const use = (name: string, text: string): void => {
      this.used.add(`class: ${name}`)
      elements.push(text)
    }
    const method = (): string => {
      const { head, body } = this.fn(depth, { hasSuper: true, hasPrivate: true })
      return `(${head}) ${body}`
    }
    const value = (): string =>
      this.inside(
        { hasSuper: false, hasPrivate: false, hasArguments: false, inGenerator: false, inAsync: false },
        () => this.expression(depth),
      )
    if (isDerived !== undefined && this.choose(3) > 0) {
      const first = isDerived ? `say('before', ${value()}); super(${value()}); ` : ''
      const turns = `for (let i = 0; i < 2; i++) { tick(); say('turn', i, ${value()}) }`
      const end = this.pick(['', 'return', 'return o', 'return nothing'])
      use('constructor', `constructor(a, b) { tick(); ${first}${turns} ${end} }`)
    }
    const kinds = 1 + this.choose(4)
    use('private method', `#secret${method()}`)
    for (let i = 0; i < kinds; i++) {
      switch (this.choose(13)) {
        case 0:
          use('method', `m${method()}`)
          break
        case 1:
          use('field', `${this.fresh('field')} = ${value()}`)
          break
        case 2:
          use('static field', `static ${this.fresh('field')} = ${value()}`)
          break
        case 3:
          if (this.choose(2) === 0) use('getter', `get g() { return say('get g') }`)
          else use('getter that loops', `get slow() { for (let i = 0; i < 2; i++) say('get', i); return 1 }`)
          break
        case 4:
          if (this.choose(2) === 0) use('setter', `set g(v) { say('set g', v) }`)
          else use('setter that loops', `set slow(v) { for (let i = 0; i < 2; i++) say('set', i, v) }`)
          break
        case 5:
          use('static method', `static s${method()}`)
          break
        case 6:
          use('computed method', `[key(${this.expression(0)})]${method()}`)
          break
        case 7:
          use('static block', `static { say('static', ${value()}) }`)
          break
        case 8:
          use('private field', `#${this.fresh('private')} = ${value()}`)
          break
        case 9:
          use('generator method', `*${this.fresh('gen')}() { yield 1 }`)
          break
        case 10:
          use(
            'computed accessors that loop',
            `get [symbol]() { for (let i = 0; i < 2; i++) say('get', i); return ${value()} } set [symbol](v) { for (let i = 0; i < 2; i++) say('set', i, v) }`,
          )
          break
        case 11:
          if (elements.some(text => text.includes('#hidden'))) break
          use(
            'private accessors that loop',
            `get #hidden() { for (let i = 0; i < 2; i++) say('get', i); return ${value()} } set #hidden(v) { for (let i = 0; i < 2; i++) say('set', i, v) } hide(from) { from.#hidden = ${value()}; return say(from.#hidden) }`,
          )
          break
        default:
          use('field with arrow', `${this.fresh('field')} = () => this`)
      }
    }
    return `{ ${elements.join('; ')} }`
  }

  readonly #simple: Record<string, Production> = {
    expression: { write: d => `say(${this.expression(d)})` },
    effect: { write: d => `;(${this.expression(d + 1)})` },
    let: {
      write: d => {
        const value = this.expression(d + 1)
        return `let ${this.declare(this.fresh('v'))} = ${value}`
      },
    },
    const: {
      write: d => {
        const value = this.expression(d + 1)
        return `const ${this.declare(this.fresh('v'), false)} = ${value}`
      },
    },
    var: {
      write: d => {
        const value = this.expression(d + 1)
        return `var ${this.declare(this.fresh('v'))} = ${value}`
      },
    },
    'two variables': {
      write: d => {
        const one = this.fresh('v')
        const first = this.expression(d)
        this.declare(one)
        const second = this.expression(d)
        return `let ${one} = ${first}, ${this.declare(this.fresh('v'))} = ${second}`
      },
    },
    return: { write: d => `return ${this.expression(d)}`, when: place => place.inFunction },
    throw: {
      write: d =>
        `throw ${this.any(
          () => `new TypeError('thrown')`,
          () => this.expression(d),
        )}`,
    },
    break: { write: () => 'break', when: place => place.loops > 0 || place.inSwitch },
    continue: { write: () => 'continue', when: place => place.loops > 0 },
    'break with label': {
      write: () => `break ${this.pick(this.place.labels)}`,
      when: place => place.labels.length > 0,
    },
    empty: { write: () => ';' },
  }

  readonly #all: Record<string, Production> = {
    ...this.#simple,
    'destructuring of arrays': {
      write: d => {
        const value = this.any(
          () => 'list',
          () => 'tracked([1, 2])',
          () => this.list(d),
        )
        const fallback = this.expression(d)
        return `${this.pick(['let', 'var'])} [${this.declare(this.fresh('v'))} = ${fallback}, ...${this.declare(this.fresh('v'))}] = ${value}`
      },
    },
    'destructuring of objects': {
      write: d => {
        const computed = this.expression(d - 1)
        const fallback = this.expression(d)
        return `let { p: ${this.declare(this.fresh('v'))}, [key(${computed})]: ${this.declare(this.fresh('v'))} = ${fallback}, ...${this.declare(this.fresh('v'))} } = ${this.pick(['o', 'give(o)'])}`
      },
    },
    if: { write: d => `if (${this.expression(d)}) ${this.block(d - 1)}` },
    'if else': {
      write: d =>
        `if (${this.expression(d)}) ${this.block(d - 1)} else ${this.any(
          () => this.block(d - 1),
          () => `say(${this.expression(d)})`,
        )}`,
    },
    block: { write: d => this.block(d - 1) },
    for: {
      write: d => {
        const i = this.fresh('i')
        return this.inside({}, () => {
          this.declare(i, false)
          return `for (let ${i} = 0; ${i} < ${1 + this.choose(3)}; ${i}++) ${this.#loop(d)}`
        })
      },
    },
    'for with effects': {
      write: d => {
        const i = this.fresh('i')
        return this.inside({}, () => {
          this.declare(i)
          return `for (let ${i} = ${this.expression(d - 1)}, end = tick; (tick(), ${this.expression(d - 1)}) && ${i} < 3; ${this.expression(d - 1)}, ${i}++) ${this.#loop(d)}`
        })
      },
    },
    'for with closures': {
      write: d => {
        const i = this.fresh('i')
        const made = this.fresh('made')
        return `const ${made} = []; ${this.inside({}, () => {
          this.declare(i)
          return `for (let ${i} = 0; ${i} < 2; ${i}++) { tick(); ${made}[${made}.length] = () => ${i}++; ${this.statement(d - 1)} }`
        })}; for (const fn of ${made}) say(fn(), fn())`
      },
    },
    'for of': {
      write: d => {
        const x = this.fresh('x')
        const over = this.any(
          () => 'few(list)',
          () => 'tracked([1, 2, 3])',
          () => "'ab'",
          () => 'new Set([1, 2])',
          () => `(function* () { try { yield ${this.choose(3)}; yield 2 } finally { say('left') } })()`,
        )
        return `for (${this.pick(['const', 'let', 'var'])} ${x} of ${over}) ${this.inside({}, () => {
          this.declare(x, false)
          return this.#loop(d)
        })}`
      },
    },
    'for of into a pattern': {
      write: d =>
        `for (${this.any(
          () => 'o.p',
          () => `[${this.target()}]`,
          () => `{ p: ${this.target()} = ${this.expression(d - 1)} }`,
        )} of [[1], { p: 2 }, 'a']) ${this.#loop(d)}`,
    },
    'for in': {
      write: d => {
        const k = this.fresh('k')
        return `for (const ${k} in ${this.pick(['o', '{ a: 1, b: 2 }', 'list', 'null', 'watched'])}) ${this.inside(
          {},
          () => {
            this.declare(k, false)
            return this.#loop(d)
          },
        )}`
      },
    },
    while: {
      write: d => {
        const turns = this.fresh('w')
        return `let ${turns} = 0; while (${turns}++ < 3 && (tick(), ${this.expression(d)})) ${this.#loop(d)}`
      },
    },
    'do while': {
      write: d => {
        const turns = this.fresh('w')
        return `let ${turns} = 0; do ${this.#loop(d)} while (${turns}++ < 2 && ${this.expression(d)})`
      },
    },
    'loop without calls': {
      write: () => {
        const i = this.fresh('i')
        return `for (let ${i} = 0; ${i} < ${this.pick([3, 20])}; ${i}++) n = (n * 3 + ${i}) % 97`
      },
    },
    'labeled loop': {
      write: d => {
        const label = this.fresh('l')
        const { labels } = this.place
        const i = this.fresh('i')
        return `${label}: for (let ${i} = 0; ${i} < 3; ${i}++) ${this.#loop(d, { labels: [...labels, label] }).replace(/^\{/, `{ if (${this.expression(0)} === 4) continue ${label};`)}`
      },
    },
    'labeled block': {
      write: d => {
        const label = this.fresh('l')
        const { labels } = this.place
        return `${label}: ${this.block(d - 1, { labels: [...labels, label] })}`
      },
    },
    switch: {
      write: d =>
        `switch (${this.expression(d)}) { ${this.inside({ inSwitch: true }, () => `case ${this.expression(d - 1)}: ${this.#statements(d - 1, 2)}; ${this.pick(['break;', ''])} default: ${this.#statements(d - 1, 1)}; case ${this.expression(d - 1)}: { ${this.#statements(d - 1, 1)} }`)} }`,
    },
    'try catch': {
      write: d => {
        const e = this.fresh('e')
        return `try ${this.block(d - 1)} catch (${e}) { if (fuel < 0) throw ${e}; ${this.inside({}, () => {
          this.declare(e)
          return this.#statements(d - 1)
        })} }`
      },
    },
    'try catch a pattern': {
      write: d => {
        const e = this.fresh('e')
        return `try ${this.block(d - 1)} catch ({ name: ${e} = 'none' }) { if (fuel < 0) throw 0; ${this.inside(
          {},
          () => {
            this.declare(e)
            return this.#statements(d - 1)
          },
        )} }`
      },
    },
    'try finally': {
      write: d => `try ${this.block(d - 1)} finally ${this.block(d - 1, {}, "say('finally'); ")}`,
    },
    'try catch finally': {
      write: d =>
        `try ${this.block(d - 1)} catch ${this.block(d - 1, {}, 'if (fuel < 0) throw 0; ')} finally ${this.block(d - 1)}`,
    },
    using: {
      write: d => {
        const name = this.fresh('u')
        return `{ using ${name} = { [Symbol.dispose]() { say('disposed') } }; ${this.inside({}, () => this.#statements(d - 1, 1))} }`
      },
    },
    function: {
      write: d => {
        const name = this.fresh('fn')
        const { head, body } = this.fn(d)
        this.declare(name, false)
        return `function ${name}(${head}) ${body}; say(${name}(${this.args(d)}))`
      },
    },
    'function that is called before it stands': {
      write: d => {
        const name = this.fresh('fn')
        const { head, body } = this.fn(d)
        const args = this.args(d)
        return `{ say(${name}(${args})); function ${name}(${head}) ${body} }`
      },
    },
    'recursive function': {
      write: d => {
        const name = this.fresh('fn')
        const value = this.inside(
          { inGenerator: false, inAsync: false, hasSuper: false, hasArguments: false },
          () => this.expression(d - 1),
        )
        return `function ${name}(d) { tick(); return d > 0 ? ${name}(d - 1, ${value}) : arguments.length } say(${name}(3))`
      },
    },
    'generator function': {
      write: d => {
        const name = this.fresh('fn')
        const { head, body } = this.fn(d, { inGenerator: true })
        return `function* ${name}(${head}) ${body}; say(drain(${name}(${this.args(d)})))`
      },
    },
    'async function': {
      write: d => {
        const name = this.fresh('fn')
        const { head, body } = this.fn(d, { inAsync: true })
        return `async function ${name}(${head}) ${body}; later(${name}(${this.args(d)}))`
      },
    },
    class: {
      write: d => {
        const name = this.fresh('K')
        const isDerived = this.choose(2) === 0
        const text = this.classBody(d, isDerived)
        this.declare(name, false)
        const made = `new ${name}(${this.within(() => this.args(d))})`
        const used = `say(made.m?.(${this.within(() => this.args(d))}))`
        return `class ${name} ${isDerived ? 'extends C ' : ''}${text}; attempt(() => { const made = ${made}; ${used}; made.slow = 1; say(made.slow); made[symbol] = 2; say(made[symbol]); say(made.hide?.(made)); return made.hide?.(o) })`
      },
    },
  }

  statementNames(): string[] {
    const elements = `private method,method,field,static field,getter,setter,getter that loops,setter that loops,constructor,static method,computed method,static block,private field,generator method,field with arrow,computed accessors that loop,private accessors that loop`
    return [
      ...Object.keys(this.#all).map(name => `statement: ${name}`),
      ...elements.split(',').map(name => `class: ${name}`),
    ]
  }
}
