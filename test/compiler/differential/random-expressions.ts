/** The expressions of a random program, over the names in scope, determined by a tape. */

export interface Scope {
  numbers: string[]
  constants: string[]
  arrays: string[]
  strings: string[]
  objects: string[]
  functions: string[]
  generators: string[]
  classes: string[]
}

export interface Context {
  loops: number
  labels: string[]
  /** A label that only `break` may name. */
  blocks: string[]
  inFunction: boolean
  inMethod: boolean
  inGenerator: boolean
  hasArguments: boolean
}

export class Expressions {
  readonly tape: readonly number[]
  at = 0
  names = 0
  scope: Scope = none()
  context: Context = {
    loops: 0,
    labels: [],
    blocks: [],
    inFunction: false,
    inMethod: false,
    inGenerator: false,
    hasArguments: true,
  }

  constructor(tape: readonly number[]) {
    this.tape = tape
  }

  visible(): string[] {
    const { numbers, arrays, strings, objects } = this.scope
    return [...numbers, ...arrays, ...strings, ...objects]
  }

  /** A number below `count`: the next of the tape, or 0. */
  choose(count: number): number {
    const next = this.tape[this.at]
    if (next === undefined) return 0
    this.at++
    return next % count
  }

  pick<T>(list: readonly T[]): T {
    return list[this.choose(list.length)]!
  }

  name(prefix: string): string {
    return `${prefix}${++this.names}`
  }

  /** Writes inside a new scope. Its declarations are gone afterwards. */
  inside<T>(change: Partial<Context>, write: () => T): T {
    const scope = this.scope
    const context = this.context
    this.scope = Object.fromEntries(Object.entries(scope).map(([kind, names]) => [kind, [...names]])) as never
    this.context = { ...context, ...change }
    try {
      return write()
    } finally {
      this.scope = scope
      this.context = context
    }
  }

  objectTarget(): string {
    return `${this.pick(this.scope.objects)}${this.pick(['.p', '.q', "['r']", `[cut(${this.string(1)})]`])}`
  }

  any(depth: number): string {
    return this.pick([
      () => this.number(depth),
      () => this.string(depth),
      () => this.array(depth),
      () => this.condition(depth),
      () => this.object(depth),
    ])()
  }

  condition(depth: number): string {
    if (depth <= 0) return this.pick(['true', 'false'])
    switch (this.choose(4)) {
      case 0:
        return `${this.number(depth - 1)} ${this.pick(['<', '>', '===', '!==', '<='])} ${this.number(depth - 1)}`
      case 1:
        return `(${this.condition(depth - 1)} ${this.pick(['&&', '||'])} ${this.condition(depth - 1)})`
      case 2:
        return `!${this.array(depth - 1)}.some(${this.callback(depth - 1, 'x')} > 2)`
      default:
        return `log(${this.number(depth - 1)}) % 2 === 0`
    }
  }

  number(depth: number): string {
    const { numbers, constants } = this.scope
    if (depth <= 0) return this.pick([String(this.choose(10)), ...numbers, ...constants])
    switch (this.choose(14)) {
      case 0:
      case 1:
        return this.pick([...numbers, ...constants])
      case 2:
        return `((${this.number(depth - 1)} ${this.pick(['+', '-', '*', '^', '%'])} ${this.number(depth - 1)}) | 0)`
      case 3:
        return `(${this.condition(depth - 1)} ? ${this.number(depth - 1)} : ${this.number(depth - 1)})`
      case 4:
        return `(${this.pick(numbers)} ${this.pick(['=', '+=', '^='])} ${this.number(depth - 1)})`
      case 5:
        return `${this.pick(['++', '--'])}${this.pick(numbers)}`
      case 6:
        return `(${this.objectTarget()} ??= ${this.number(depth - 1)})`
      case 7:
        return `log(${this.number(depth - 1)})`
      case 8:
        return `${this.array(depth - 1)}.reduce((x, y) => (log(x), (x + y) | 0), ${this.number(depth - 1)})`
      case 9:
        return `(${this.array(depth - 1)}.find(${this.callback(depth - 1, 'x')} > 1) ?? ${this.number(depth - 1)})`
      case 10:
        return `(${this.pick(this.scope.objects)}?.${this.pick(['p', 'q', 'missing?.deep'])} ?? ${this.number(depth - 1)})`
      case 11:
        return this.context.inMethod ? '(this?.q ?? 0)' : this.context.hasArguments ? 'arguments.length' : '1'
      default:
        return `(${this.call(depth - 1)} | 0)`
    }
  }

  callback(depth: number, parameter: string): string {
    return `${parameter} => (log('cb', ${parameter}), ${this.number(depth - 1)} + ${parameter})`
  }

  /** A call of a function of the program, or of `log`. */
  call(depth: number): string {
    const { functions, generators, classes } = this.scope
    const targets: (() => string)[] = []
    for (const name of functions) {
      targets.push(
        () => `${name}(${this.number(depth)}, ${this.pick(['undefined', '{ p: 1 }', '[2]', '...[]'])})`,
      )
      targets.push(() => `${this.array(depth - 1)}.map(x => ${name}(x)).length`)
      targets.push(() => `${name}.call(o0, ${this.number(depth)})`)
    }
    for (const name of generators) targets.push(() => `few([...${name}(${this.number(depth - 1)})]).length`)
    for (const name of classes) {
      targets.push(() => `new ${name}().m(${this.number(depth)})`)
      targets.push(() => `${name}.s(${this.number(depth)})`)
    }
    if (targets.length === 0) return `log(${this.number(depth - 1)})`
    return this.pick(targets)()
  }

  string(depth: number): string {
    if (depth <= 0) return this.pick([`'${'xyz'[this.choose(3)]}'`, ...this.scope.strings])
    switch (this.choose(4)) {
      case 0:
        return this.pick(this.scope.strings)
      case 1:
        return `cut(\`\${${this.number(depth - 1)}}-\${${this.string(depth - 1)}}\`)`
      case 2:
        return `cut(${this.string(depth - 1)} + log(${this.string(depth - 1)}))`
      default:
        return `typeof ${this.number(depth - 1)}`
    }
  }

  array(depth: number): string {
    if (depth <= 0) return this.pick(this.scope.arrays)
    switch (this.choose(7)) {
      case 0:
        return this.pick(this.scope.arrays)
      case 1:
        return `[${this.number(depth - 1)}, ${this.number(depth - 1)}]`
      case 2:
        return `few([...${this.array(depth - 1)}, ${this.number(depth - 1)}])`
      case 3:
        return `${this.array(depth - 1)}.map(${this.callback(depth - 1, 'y')})`
      case 4:
        return `${this.array(depth - 1)}.filter(${this.callback(depth - 1, 'z')} > 2)`
      case 5:
        return `few(${this.array(depth - 1)}.flatMap(w => [w, ${this.number(depth - 1)}]))`
      default:
        return `few([...${this.array(depth - 1)}]).sort((a, b) => { for (;;) return a - b })`
    }
  }

  object(depth: number): string {
    if (depth <= 0) return this.pick(this.scope.objects)
    switch (this.choose(3)) {
      case 0:
        return this.pick(this.scope.objects)
      case 1:
        return `({ p: ${this.number(depth - 1)}, [cut(${this.string(depth - 1)})]: ${this.number(depth - 1)} })`
      default:
        return `({ q: ${this.number(depth - 1)}, get r() { return log(1) }, ...${this.pick(this.scope.objects)} })`
    }
  }
}

function none(): Scope {
  return {
    numbers: [],
    constants: [],
    arrays: [],
    strings: [],
    objects: [],
    functions: [],
    generators: [],
    classes: [],
  }
}
