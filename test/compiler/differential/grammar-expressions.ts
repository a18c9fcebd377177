/** The expressions of the grammar. Any of them may have an effect, and may be inside any other. */
import { type Place, type Production, Tape } from './grammar-tape.ts'

const operators = {
  arithmetic: ['-', '*', '/', '%'],
  bitwise: ['&', '|', '^', '<<', '>>', '>>>'],
  comparison: ['<', '>', '<=', '>='],
  equality: ['==', '!=', '===', '!=='],
  unary: ['!', '-', '+', '~', 'typeof ', 'void '],
  compound: ['-=', '*=', '|=', '&=', '^=', '>>=', '<<='],
  logical: ['&&=', '||=', '??='],
}

export abstract class Expressions extends Tape {
  /** The body of a function, with its braces. */
  abstract body(depth: number, change: Partial<Place>): string
  abstract classBody(depth: number): string

  expression(depth: number): string {
    if (depth <= 0 || this.isEmpty) return this.produce(this.#leaves, 'expression', 0)
    // Productions that are rarely allowed are chosen more often where they are.
    const { inGenerator, inAsync, hasSuper, hasPrivate } = this.place
    if ((inGenerator || inAsync || hasSuper || hasPrivate) && this.choose(3) === 0) {
      return this.produce(this.#bound, 'expression', depth - 1)
    }
    return this.produce(this.#all, 'expression', depth - 1)
  }

  #operator(kind: keyof typeof operators): string {
    const operator = this.pick(operators[kind])
    this.used.add(`operator: ${kind} ${operator}`)
    return operator
  }

  /** Mostly a number or a string. */
  list(depth: number): string {
    return this.any(
      () => `[${this.expression(depth)}, ${this.expression(depth)}]`,
      () => 'few(list)',
      () => '[3, 1, 2]',
    )
  }

  args(depth: number): string {
    return this.any(
      () => '',
      () => this.expression(depth),
      () => `${this.expression(depth)}, ${this.expression(depth)}`,
    )
  }

  /** An assignment target. */
  left(depth: number): string {
    return this.any(
      () => this.target(),
      () => `o.p`,
      () => `list[${this.choose(3)}]`,
      () => `o[key(${this.expression(depth - 1)})]`,
    )
  }

  pattern(depth: number): string {
    const one = (): string => this.left(depth)
    return this.any(
      () => `[${one()}, ${one()} = ${this.expression(depth)}]`,
      () => `[, ...[${one()}]]`,
      () => `{ p: ${one()}, q: ${one()} = ${this.expression(depth)} }`,
      () => `{ [key(${this.expression(depth)})]: ${one()}, ...o.rest }`,
    )
  }

  parameters(depth: number): { text: string; names: string[] } {
    const a = this.fresh('a')
    const b = this.fresh('b')
    const ways: [write: () => string, names: string[]][] = [
      [() => '', []],
      [() => a, [a]],
      [() => `${a}, ${b}`, [a, b]],
      [() => `${a}, ${b} = ${this.expression(depth - 1)}`, [a, b]],
      [() => `${a} = 1, ...${b}`, [a, b]],
      [() => `{ p: ${a} = ${this.expression(depth - 1)}, ...${b} } = o`, [a, b]],
      [() => `[${a}, ${b} = ${a}] = list`, [a, b]],
    ]
    const at = this.choose(ways.length)
    this.used.add(`parameters: ${at}`)
    const [write, names] = ways[at]!
    const outside = {
      hasSuper: false,
      hasPrivate: false,
      inGenerator: false,
      inAsync: false,
      hasArguments: false,
    }
    const text = this.inside(outside, write)
    return { text, names }
  }

  fn(depth: number, change: Partial<Place> = {}): { head: string; body: string } {
    const { text, names } = this.parameters(depth)
    const { place } = this
    const body = this.inside(
      {
        names: [...place.names, ...names],
        writable: [...place.writable, ...names],
        labels: [],
        loops: 0,
        inSwitch: false,
        inFunction: true,
        inGenerator: false,
        inAsync: false,
        hasSuper: false,
        hasArguments: true,
        ...change,
      },
      () => this.body(depth, {}),
    )
    return { head: text, body }
  }

  #arrow(depth: number, prefix = ''): string {
    const { hasSuper, hasArguments } = this.place
    const change = { hasSuper, hasArguments, inAsync: prefix !== '' }
    const { head, body } = this.fn(depth, change)
    if (this.choose(2) === 0) return `(${prefix}(${head}) => ${body})`
    const parameter = this.fresh('c')
    return this.inside(
      { ...change, inGenerator: false, names: [...this.place.names, parameter] },
      () => `(${prefix}${parameter} => ${this.expression(depth)})`,
    )
  }

  /** A callback of a built-in. */
  #callback(depth: number): string {
    const x = this.fresh('x')
    const { hasSuper, hasArguments } = this.place
    const place = {
      names: [...this.place.names, x],
      hasSuper,
      hasArguments,
      inGenerator: false,
      inAsync: false,
    }
    return this.any(
      () => this.inside(place, () => `${x} => (tick(), ${this.expression(depth)})`),
      () => this.inside(place, () => `${x} => { tick(); say('cb', ${x}); return ${this.expression(depth)} }`),
      () => 'known',
      () => this.#arrow(depth),
    )
  }

  readonly #leaves: Record<string, Production> = {
    number: { write: () => String(this.choose(5)) },
    variable: { write: () => this.read() },
    text: { write: () => this.pick(["'a'", "''", "'k1'", '`t`']) },
    'true, false': { write: () => this.pick(['true', 'false']) },
    'null, undefined': { write: () => this.pick(['null', 'undefined', 'NaN', '-0']) },
    'big integer': { write: () => '2n' },
    this: { write: () => '(this ?? 0)' },
    element: { write: () => `list[${this.choose(3)}]` },
    member: { write: () => this.pick(['o.p', 'o.q', 'o.getter', 'o.missing', 'o?.p', 'nothing?.p.q']) },
    'arguments element': { write: () => `arguments[${this.choose(2)}]`, when: place => place.hasArguments },
    'arguments length': { write: () => 'arguments.length', when: place => place.hasArguments },
    'new.target': {
      write: () => '(typeof new.target)',
      when: place => place.inFunction && place.hasArguments,
    },
    'super member': { write: () => '(typeof super.m)', when: place => place.hasSuper },
    update: {
      write: () =>
        this.any(
          () => `${this.target()}++`,
          () => `--${this.target()}`,
        ),
    },
  }

  /** Productions that are allowed only in a generator, an async function, a method, a class. */
  readonly #bound: Record<string, Production> = {
    number: { write: () => String(this.choose(5)) },
    'private in': {
      write: d => `(#secret in Object(${this.expression(d)}))`,
      when: place => place.hasPrivate,
    },
    'private call': {
      write: d => `(#secret in this ? this.#secret(${this.args(d)}) : 0)`,
      when: place => place.hasPrivate && place.hasArguments && !place.inGenerator,
    },
    'super call': { write: d => `super.m?.(${this.args(d)})`, when: place => place.hasSuper },
    yield: { write: d => `(yield ${this.expression(d)})`, when: place => place.inGenerator },
    'yield to another': {
      write: () =>
        `(yield* ${this.any(
          () => 'few(list)',
          () => "'ab'",
          () => `(function* () { yield ${this.choose(3)}; return 7 })()`,
          () => "(function* () { try { yield 1; yield 2 } finally { say(stop('left')) } })()",
          () => 'tracked([1, 2])',
        )})`,
      when: place => place.inGenerator,
    },
    await: { write: d => `(await ${this.expression(d)})`, when: place => place.inAsync },
  }

  readonly #all: Record<string, Production> = {
    ...this.#leaves,
    ...this.#bound,
    call: { write: d => `${this.pick(['known', 'f', 'say', 'stop'])}(${this.args(d)})` },
    'call of any': { write: d => `call(${this.expression(d)}, ${this.args(d)})` },
    'call of variable': { write: d => `attempt(() => ${this.read()}(${this.within(() => this.args(d))}))` },
    'call with spread': { write: d => `f(${this.expression(d)}, ...${this.list(d)}, ${this.expression(d)})` },
    'method call': { write: d => `o.m(${this.args(d)})` },
    'computed method call': { write: d => `o[key(${this.expression(d)}, 'm')](${this.args(d)})` },
    'optional call': {
      write: d =>
        this.any(
          () => `o.none?.(${this.args(d)})`,
          () => `o?.m?.(${this.args(d)})`,
          () => `f?.(${this.args(d)})`,
          () => `nothing?.[${this.expression(d)}](${this.args(d)})`,
        ),
    },
    'call of chain in parentheses': { write: d => `(o?.m)(${this.args(d)})` },
    'call, apply, bind': {
      write: d =>
        this.any(
          () => `f.call(${this.expression(d)}, ${this.expression(d)})`,
          () => `f.apply(o, ${this.list(d)})`,
          () => `f.bind(o, ${this.expression(d)})(${this.expression(d)})`,
          () => `Reflect.apply(f, o, ${this.list(d)})`,
        ),
    },
    'tagged template': {
      write: d =>
        this.any(
          () => `tag\`x\${${this.expression(d)}}y\${${this.expression(d)}}\``,
          () => `o.tag\`\${${this.expression(d)}}\``,
        ),
    },
    template: { write: d => `cut(\`\${${this.expression(d)}}-\${${this.expression(d)}}\`)` },
    new: { write: d => `new C(${this.args(d)})` },
    'new with spread': { write: d => `new C(${this.expression(d)}, ...${this.list(d)})` },
    'Reflect.construct': {
      write: d => `Reflect.construct(C, ${this.list(d)}${this.pick(['', ', Array', ', C'])})`,
    },
    'new of function': {
      write: d => {
        const { head, body } = this.fn(d)
        return `typeof new (function (${head}) ${body})(${this.args(d)})`
      },
    },
    add: { write: d => `cut(${this.expression(d)} + ${this.expression(d)})` },
    arithmetic: {
      write: d => `(${this.expression(d)} ${this.#operator('arithmetic')} ${this.expression(d)})`,
    },
    bitwise: { write: d => `(${this.expression(d)} ${this.#operator('bitwise')} ${this.expression(d)})` },
    comparison: {
      write: d => `(${this.expression(d)} ${this.#operator('comparison')} ${this.expression(d)})`,
    },
    equality: { write: d => `(${this.expression(d)} ${this.#operator('equality')} ${this.expression(d)})` },
    power: { write: d => `((${this.expression(d)}) ** 2)` },
    in: { write: d => `(key(${this.expression(d)}) in o)` },
    instanceof: { write: d => `(${this.expression(d)} instanceof C)` },
    unary: { write: d => `(${this.#operator('unary')}(${this.expression(d)}))` },
    delete: {
      write: d =>
        this.any(
          () => `delete o[key(${this.expression(d)})]`,
          () => `delete f(${this.args(d)})`,
          () => `delete give(o).none`,
        ),
    },
    and: { write: d => `(${this.expression(d)} && ${this.expression(d)})` },
    or: { write: d => `(${this.expression(d)} || ${this.expression(d)})` },
    coalesce: { write: d => `((${this.expression(d)}) ?? (${this.expression(d)}))` },
    conditional: { write: d => `(${this.expression(d)} ? ${this.expression(d)} : ${this.expression(d)})` },
    sequence: { write: d => `(${this.expression(d)}, ${this.expression(d)})` },
    assignment: { write: d => `(${this.left(d)} = ${this.expression(d)})` },
    'compound assignment': {
      write: d => `(${this.left(d)} ${this.#operator('compound')} ${this.expression(d)})`,
    },
    'adding assignment': {
      write: d => {
        const left = this.target()
        return `(${left} = cut(${left} + ${this.expression(d)}))`
      },
    },
    'appending assignment': { write: d => `(o.count += +(${this.expression(d)}))` },
    'logical assignment': {
      write: d => `(${this.left(d)} ${this.#operator('logical')} ${this.expression(d)})`,
    },
    'destructuring assignment': {
      write: d =>
        `attempt(() => (${this.within(() => this.pattern(d))} = ${this.any(
          () => 'list',
          () => 'o',
          () => this.within(() => this.list(d)),
          () => 'give(o)',
        )}))`,
    },
    'member update': {
      write: d =>
        this.any(
          () => `list[${this.expression(d)}]++`,
          () => `--o[key(${this.expression(d)})]`,
          () => 'o.p--',
        ),
    },
    'member of any': { write: d => `(${this.expression(d)})?.[key(${this.expression(d)})]` },
    array: { write: d => `[${this.expression(d)}, ${this.expression(d)}, ${this.expression(d)}]` },
    'array with holes and spread': {
      write: d => `few([${this.expression(d)}, , ...${this.list(d)}, ${this.expression(d)}])`,
    },
    object: { write: d => `({ p: ${this.expression(d)}, q: ${this.expression(d)} })` },
    'words as keys': {
      write: d =>
        this.any(
          () => `({ arguments: ${this.expression(d)}, this: 1, new: 2 }).${this.pick(['arguments', 'this'])}`,
          () => `(({ arguments: a = 1, super: b }) => say(a, b))({ arguments: ${this.expression(d)} })`,
          () => `(() => { o.arguments = ${this.within(() => this.expression(d))}; return o.arguments })()`,
        ),
    },
    'object with computed keys': {
      write: d =>
        `({ [key(${this.expression(d)})]: ${this.expression(d)}, [key(${this.expression(d)})]: ${this.expression(d)} })`,
    },
    'object with spread': {
      write: d => `({ ...o, p: ${this.expression(d)}, ...give({ z: ${this.expression(d)} }) })`,
    },
    'object with methods': {
      write: d => {
        const { head, body } = this.fn(d, { hasSuper: true })
        return `({ m(${head}) ${body}, p: ${this.expression(d)}, get g() { return say('get') }, set g(v) { say('set', v) } })`
      },
    },
    'object with a prototype': {
      write: d => {
        const { head, body } = this.fn(d, { hasSuper: true })
        return `({ __proto__: o, m(${head}) ${body} }).m(${this.args(d)})`
      },
    },
    'object with effects': {
      write: d =>
        this.any(
          () => `({ valueOf() { say('valueOf'); return ${this.#inner(d)} } })`,
          () => `({ toString() { say('toString'); return String(${this.#inner(0)}) } })`,
          () => `({ [Symbol.toPrimitive](hint) { say(hint); return ${this.#inner(0)} } })`,
        ),
    },
    proxy: {
      write: d =>
        `new Proxy(${this.pick(['list', 'o'])}, { get(t, k, r) { tick(); say('trap', k); return Reflect.get(t, k) }, has(t, k) { tick(); say('has', k); return Reflect.has(t, k) } })${this.any(
          () => '.p',
          () => '[0]',
          () => '?.q',
          () => `[${this.expression(d)}]`,
        )}`,
    },
    'map over a proxy': {
      write: d =>
        `new Proxy([1, 2], { get(t, k, r) { tick(); say('trap', k); return Reflect.get(t, k) } }).${this.pick(['map', 'filter', 'some', 'every', 'findIndex'])}(${this.#callback(d)})`,
    },
    function: {
      write: d => {
        const { head, body } = this.fn(d)
        return `(function (${head}) ${body})`
      },
    },
    'named function': {
      write: d => {
        const name = this.fresh('g')
        const { head, body } = this.fn(d, { names: [...this.place.names, name] })
        return `(function ${name}(${head}) ${body})`
      },
    },
    'function called at once': {
      write: d => {
        const { head, body } = this.fn(d)
        return `(function (${head}) ${body})(${this.args(d)})`
      },
    },
    arrow: { write: d => this.#arrow(d) },
    'arrow called at once': { write: d => `${this.#arrow(d)}(${this.args(d)})` },
    generator: {
      write: d => {
        const { head, body } = this.fn(d, { inGenerator: true })
        return `drain((function* (${head}) ${body})(${this.args(d)}))`
      },
    },
    'async function': {
      write: d => {
        const { head, body } = this.fn(d, { inAsync: true })
        return `later((async function (${head}) ${body})(${this.args(d)}))`
      },
    },
    'async arrow': { write: d => `later(${this.#arrow(d, 'async ')}(${this.args(d)}))` },
    class: {
      write: d => `(class ${this.pick(['', 'Named '])}${this.pick(['', 'extends C '])}${this.classBody(d)})`,
    },
    'call of a method of a class': {
      write: d =>
        `attempt(() => new (class extends C ${this.within(() => this.classBody(d))})(${this.within(() => this.args(d))}).m(${this.within(() => this.args(d))}))`,
    },
    ...this.#builtIns(),
  }

  /** Writes the body of an arrow: without productions that belong to the function around it. */
  within(write: () => string): string {
    return this.inside({ inGenerator: false, inAsync: false }, write)
  }

  /** An expression inside a method: without productions that belong to the function around it. */
  #inner(depth: number): string {
    return this.inside({ inGenerator: false, inAsync: false, hasSuper: false }, () => this.expression(depth))
  }

  #builtIns(): Record<string, Production> {
    const table: Record<string, Production> = {}
    const add = (name: string, write: (depth: number) => string): void => {
      table[`built-in ${name}`] = { write }
    }
    for (const name of [
      'map',
      'filter',
      'find',
      'findIndex',
      'findLast',
      'some',
      'every',
      'flatMap',
      'forEach',
    ]) {
      add(name, d => `few(${this.list(d)}.${name}(${this.#callback(d)}))`)
    }
    add('reduce', d => `${this.list(d)}.reduce((x, y) => (tick(), cut(x + y)), ${this.expression(d)})`)
    add('reduceRight', d => `${this.list(d)}.reduceRight((x, y) => (tick(), say(x), y))`)
    add('sort', d => `${this.list(d)}.sort((x, y) => { tick(); ${this.#inner(0)}; return x < y ? -1 : 1 })`)
    add(
      'Array.from',
      d =>
        `Array.from(${this.any(
          () => this.list(d),
          () => 'tracked([1, 2])',
          () => '{ length: 2 }',
        )}, ${this.#callback(d)})`,
    )
    add('typed array', d => `Array.from(new Int8Array([1, 2]).map(${this.#callback(d)}))`)
    add('Map.forEach', d => `new Map([[1, 2], [3, 4]]).forEach(${this.#callback(d)})`)
    add('replace', d => `cut('aba'.replace(/a/g, ${this.#callback(d)}))`)
    add('JSON', d => `JSON.stringify(JSON.parse('[1,{"p":2}]', ${this.#callback(d)}))`)
    add('toJSON', () => `JSON.stringify({ toJSON() { tick(); return say(${this.#inner(0)}) } })`)
    return table
  }

  /** Every production. */
  expressionNames(): string[] {
    return [
      ...Object.keys(this.#all).map(name => `expression: ${name}`),
      ...Object.entries(operators).flatMap(([kind, names]) => names.map(name => `operator: ${kind} ${name}`)),
      ...Array.from({ length: 7 }, (_, at) => `parameters: ${at}`),
    ]
  }
}
