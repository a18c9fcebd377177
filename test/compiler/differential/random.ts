/**
 * Random programs. A tape of small numbers determines a program: each choice takes the next number. An empty
 * tape always chooses the simplest production, so that every tape is a program that ends, and a shorter tape
 * a simpler program.
 *
 * Values are small on purpose (numbers have 32 bits, strings and arrays a few elements), and a budget of fuel
 * ends long runs. So the programs are about control flow and the order of effects.
 */

import { type Context, Expressions } from './random-expressions.ts'

export function programFrom(tape: readonly number[]): string {
  return new Writer(tape).program()
}

const prelude = `'use task'
'use strict'
exports.main = function main(log) {
  let fuel = 150
  const tick = () => { if (--fuel < 0) throw new Error('out of fuel') }
  const cut = text => String(text).slice(0, 12)
  const few = list => list.slice(0, 6)
  const tracked = list => ({
    [Symbol.iterator]() {
      let at = 0
      return {
        next() { log('next', at); return at < list.length ? { value: list[at++], done: false } : { value: undefined, done: true } },
        return() { log('closed', at); return {} },
      }
    },
  })
`

class Writer extends Expressions {
  program(): string {
    const lines = [
      `let n0 = ${this.choose(50)}`,
      'let a0 = [3, 1, 2]',
      "let s0 = 'ab'",
      'const o0 = { p: 1, q: 2 }',
    ]
    this.scope.numbers.push('n0')
    this.scope.arrays.push('a0')
    this.scope.strings.push('s0')
    this.scope.objects.push('o0')
    while (this.at < this.tape.length) lines.push(this.statement(4))
    return `${prelude}  ${lines.join('\n  ')}\n  return [${this.visible().join(', ')}]\n}\n`
  }

  block(depth: number, change: Partial<Context> = {}, before: string[] = []): string {
    return this.inside(change, () => {
      const lines = [...before]
      const count = 1 + this.choose(3)
      for (let i = 0; i < count; i++) lines.push(this.statement(depth))
      return `{ ${lines.join('; ')} }`
    })
  }

  loop(depth: number, label: string | null, before: string[] = []): string {
    const { loops, labels } = this.context
    const body = { loops: loops + 1, labels: label === null ? labels : [...labels, label] }
    return this.block(depth, body, ['tick()', ...before])
  }

  statement(depth: number): string {
    if (depth <= 0) return this.simple(1)
    switch (this.choose(24)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return this.simple(3)
      case 4:
        return `if (${this.condition(2)}) ${this.block(depth - 1)} else ${this.block(depth - 1)}`
      case 5:
        return this.countingLoop(depth)
      case 6:
        return this.forOf(depth)
      case 7:
        return this.inside({}, () => {
          const key = this.name('s')
          this.scope.strings.push(key)
          return `for (const ${key} in ${this.object(1)}) ${this.loop(depth - 1, null, [`log(${key})`])}`
        })
      case 8: {
        const label = this.name('l')
        return `${label}: while (${this.condition(2)}) ${this.loop(depth - 1, label)}`
      }
      case 9:
        return `do ${this.loop(depth - 1, null)} while (${this.condition(2)})`
      case 10:
        return this.switch(depth)
      case 11:
      case 12:
        return this.tryStatement(depth)
      case 13:
        return `throw new ${this.pick(['Error', 'TypeError', 'RangeError'])}(${this.string(1)})`
      case 14:
      case 15:
        return this.jump()
      case 16:
        return this.declareFunction(depth)
      case 17:
        return this.declareClosure(depth)
      case 18:
        return this.declareGenerator(depth)
      case 19:
        return this.declareClass(depth)
      case 20: {
        const label = this.name('b')
        return `${label}: ${this.block(depth - 1, { blocks: [...this.context.blocks, label] })}`
      }
      case 21:
        return this.longLoop()
      case 22:
        return this.destructure()
      default:
        return this.context.inGenerator ? `log('sent', yield ${this.number(2)})` : this.simple(3)
    }
  }

  simple(depth: number): string {
    switch (this.choose(9)) {
      case 0:
        return `log(${this.any(depth)})`
      case 1: {
        const name = this.name('n')
        const text = `let ${name} = ${this.number(depth)}`
        this.scope.numbers.push(name)
        return text
      }
      case 2:
        return `${this.pick(this.scope.numbers)} ${this.pick(['=', '+=', '-=', '^=', '||=', '&&=', '??='])} ${this.number(depth)}`
      case 3:
        return `${this.objectTarget()} ${this.pick(['=', '+=', '|=', '??='])} ${this.number(depth)}`
      case 4: {
        const name = this.name('a')
        const text = `const ${name} = ${this.array(depth)}`
        this.scope.arrays.push(name)
        return text
      }
      case 5:
        return `${this.pick(this.scope.strings.filter(name => name === 's0'))} = ${this.string(depth)}`
      case 6:
        return `${this.pick(this.scope.arrays)}[${this.number(1)} & 3] = ${this.number(depth)}`
      case 7: {
        const name = this.name('o')
        const text = `const ${name} = ${this.object(depth)}`
        this.scope.objects.push(name)
        return text
      }
      default:
        return `log(${this.call(depth)})`
    }
  }

  countingLoop(depth: number): string {
    const label = this.choose(2) === 0 ? null : this.name('l')
    return this.inside({}, () => {
      const name = this.name('n')
      const start = this.number(1)
      this.scope.constants.push(name)
      const captured = this.choose(2) === 0 ? '' : `, f${name} = () => ${name}`
      if (captured !== '') this.scope.functions.push(`f${name}`)
      const head = `let ${name} = ${start} & 1${captured}; ${name} < ${1 + this.choose(4)}; ${name}++`
      return `${label === null ? '' : `${label}: `}for (${head}) ${this.loop(depth - 1, label)}`
    })
  }

  forOf(depth: number): string {
    const label = this.choose(2) === 0 ? null : this.name('l')
    const source = this.pick([
      () => this.array(2),
      () => `tracked(${this.array(1)})`,
      () =>
        this.scope.generators.length > 0
          ? `${this.pick(this.scope.generators)}(${this.number(1)})`
          : this.array(1),
      () => `new Set(${this.array(1)})`,
      () => `few([...${this.array(1)}.entries()]).map(([i, v]) => v ?? i)`,
    ])()
    return this.inside({}, () => {
      const name = this.name('n')
      this.scope.constants.push(name)
      return `${label === null ? '' : `${label}: `}for (const ${name} of ${source}) ${this.loop(depth - 1, label)}`
    })
  }

  /** A loop without a call inside, which runs in strips. Long enough to reach a safepoint. */
  longLoop(): string {
    const target = this.pick(this.scope.numbers)
    const bound = 300 + this.choose(3000)
    const exit = this.choose(3) === 0 ? `if (${target} % 97 === ${this.choose(97)}) break; ` : ''
    const skip = this.choose(3) === 0 ? `if (i % ${2 + this.choose(5)} === 0) continue; ` : ''
    return `for (let i = 0; i < ${bound}; i++) { ${skip}${target} = (Math.imul(${target}, 31) + i) | 0; ${exit}}`
  }

  switch(depth: number): string {
    const cases: string[] = []
    const count = 1 + this.choose(3)
    for (let i = 0; i < count; i++) {
      const head =
        this.choose(4) === 0 && !cases.some(text => text.startsWith('default'))
          ? 'default'
          : `case ${this.number(1)}`
      cases.push(`${head}: ${this.block(depth - 1)}${this.choose(2) === 0 ? '; break' : ''}`)
    }
    return `switch (${this.number(2)} & 3) { ${cases.join('; ')} }`
  }

  tryStatement(depth: number): string {
    const body = `try ${this.block(depth - 1)}`
    const kind = this.choose(3)
    const handler =
      kind === 2 ? '' : ` catch (e) ${this.block(depth - 1, {}, ['log(e instanceof Error ? e.message : e)'])}`
    const last = kind === 0 ? '' : ` finally ${this.block(depth - 1, {}, [`log('finally ${++this.names}')`])}`
    return `${body}${handler}${last}`
  }

  jump(): string {
    const { loops, labels, blocks, inFunction } = this.context
    const jumps: string[] = []
    if (loops > 0)
      jumps.push('break', 'continue', ...labels.flatMap(label => [`break ${label}`, `continue ${label}`]))
    jumps.push(...blocks.map(label => `break ${label}`))
    if (inFunction) jumps.push(`return ${this.number(2)}`)
    if (jumps.length === 0) return this.simple(2)
    return `if (${this.condition(1)}) ${this.pick(jumps)}`
  }

  functionBody(depth: number, parameters: string[], change: Partial<Context> = {}): string {
    const context: Partial<Context> = {
      loops: 0,
      labels: [],
      blocks: [],
      inFunction: true,
      inMethod: false,
      inGenerator: false,
      hasArguments: true,
      ...change,
    }
    return this.inside(context, () => {
      this.scope.numbers.push(...parameters)
      const lines = ['tick()']
      const count = 1 + this.choose(3)
      for (let i = 0; i < count; i++) lines.push(this.statement(depth))
      return `{ ${lines.join('; ')}; return ${this.number(2)} }`
    })
  }

  declareFunction(depth: number): string {
    const name = this.name('f')
    this.scope.functions.push(name)
    const a = this.name('n')
    const b = this.name('n')
    const second = this.pick([
      b,
      `${b} = ${this.number(0)}`,
      `{ p: ${b} = ${this.number(0)} } = {}`,
      `[${b} = log(7)] = []`,
    ])
    return `function ${name}(${a} = 1, ${second}) ${this.functionBody(depth - 1, [a, b])}`
  }

  declareClosure(depth: number): string {
    const name = this.name('f')
    const a = this.name('n')
    const { inMethod, hasArguments } = this.context
    const body = this.functionBody(depth - 1, [a], { inMethod, hasArguments })
    this.scope.functions.push(name)
    return `const ${name} = (${a} = 0, ...rest) => ${body}`
  }

  declareGenerator(depth: number): string {
    const name = this.name('g')
    const a = this.name('n')
    const body = this.functionBody(depth - 1, [a], { inGenerator: true })
    this.scope.generators.push(name)
    return `function* ${name}(${a} = 2) { yield ${a}; try { ${body} } finally { log('${name} ended') } }`
  }

  declareClass(depth: number): string {
    const name = this.name('C')
    const parent =
      this.scope.classes.length > 0 && this.choose(2) === 1 ? this.pick(this.scope.classes) : null
    const a = this.name('n')
    const method = this.functionBody(depth - 1, [a], { inMethod: true })
    const up = parent === null ? '0' : `super.m(${a})`
    const privately = this.functionBody(depth - 2, ['x'], { inMethod: true })
    const members = [
      `p = ${this.inside({ hasArguments: false }, () => this.number(1))}`,
      `q = 0`,
      `m(${a} = 0) { this.q = (this.q + ${a} + this.h(${a})) | 0; log('m', this.q); ${this.choose(2) === 0 ? method : `return (${up} + this.q) | 0`} }`,
      `h(x = 1) ${privately}`,
      `static s(x = 0) ${this.functionBody(depth - 2, ['x'])}`,
    ]
    this.scope.classes.push(name)
    return `class ${name}${parent === null ? '' : ` extends ${parent}`} { ${members.join('; ')} }`
  }

  destructure(): string {
    const a = this.name('n')
    const b = this.name('n')
    const text = this.pick([
      () => `let [${a} = ${this.number(1)}, ${b} = 5] = tracked(${this.array(1)})`,
      () =>
        `let { p: ${a} = ${this.number(1)}, [cut(${this.string(1)})]: ${b} = ${this.number(1)} } = ${this.object(1)}`,
      () => `let ${a} = ${this.number(1)}, ${b} = ${a}; [${a}, ${b} = 3] = [${b}, ${this.number(1)}]`,
    ])()
    this.scope.numbers.push(a, b)
    return text
  }
}
