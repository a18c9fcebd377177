/**
 * The second lowering: a function unwinds. It is a plain function that looks, after each call that may suspend, whether
 * the task is being suspended; if so it saves its variables and its place, and returns. A second form of it can start
 * at such a place. See docs/compiler.md.
 *
 * Generator functions, async functions and what is better left to generators are made as in the first lowering; the
 * two call each other.
 */
import type { Analysis } from '../analysis.ts'
import { isTaskDirective } from '../directive.ts'
import type { Call, Func } from '../functions.ts'
import { join, type Piece, Rope, rope } from '../rope.ts'
import type { Binding } from '../scope.ts'
import { bare, directives, isFunction, type Node, walk } from '../syntax.ts'
import { writeAttachment, writeDeclaration } from './attach.ts'
import { type Context, noJumps } from './context.ts'
import { Slots } from './frames/emitter.ts'
import { Loops } from './frames/loops.ts'
import { type Plan, planOf } from './frames/plan.ts'
import { returning, type StatementHost, type Statements } from './frames/statements.ts'
import { StripLowering } from './frames/strips.ts'
import type { LoweringOptions } from './generator.ts'
import { recursiveOf } from './recursion.ts'
import { isSmall } from './weight.ts'

export interface FramesOptions extends LoweringOptions {
  /** Which of the two a function is made by. */
  choose(func: Func): 'frames' | 'generator'
}

export class FramesLowering extends StripLowering {
  readonly #plans = new Map<Func, Plan | string>()
  readonly #choose: FramesOptions['choose']
  readonly #heads = new Set<Node>()
  readonly #host: StatementHost
  #recursive: ReadonlySet<Func> | null = null

  constructor(source: string, analysis: Analysis, options: FramesOptions) {
    super(source, analysis, options)
    this.#choose = options.choose
    walk(analysis.program, node => {
      if (node.type === 'ForStatement' && node.init !== null) this.#heads.add(node.init)
      else if (node.type === 'ForInStatement' || node.type === 'ForOfStatement') this.#heads.add(node.left)
    })
    this.#host = this.#makeHost()
  }

  /** Why the function is made a generator, or null when it is not. */
  whyGenerator(func: Func): string | null {
    const plan = this.#planOf(func)
    return typeof plan === 'string' ? plan : null
  }

  #planOf(func: Func): Plan | string {
    let plan = this.#plans.get(func)
    if (plan === undefined) {
      plan =
        this.#choose(func) === 'generator'
          ? 'it was asked for, or it does nothing but block'
          : planOf(func, {
              analysis: this.analysis,
              prefix: this.names.prefix,
              canStop: node => this.#canStop(node),
            })
      this.#plans.set(func, plan)
    }
    return plan
  }

  #canStop(node: Node): boolean {
    switch (node.type) {
      case 'CallExpression': {
        const call = this.callOf(node)
        return call !== undefined && !this.staysPlain(call)
      }
      case 'TaggedTemplateExpression': {
        const call = this.callOf(node)
        return call !== undefined && !this.staysPlain(call) && bare(node.tag).type !== 'MemberExpression'
      }
      default:
        return this.#spreads.has(node)
    }
  }

  /** Spreads into calls and lists that may run a generator. */
  get #spreads(): Set<Node> {
    if (this.#spreadNodes === null) {
      const found = new Set<Node>()
      walk(this.analysis.program, node => {
        const parts: (Node | null)[] | undefined =
          node.type === 'ArrayExpression'
            ? node.elements
            : node.type === 'CallExpression' || node.type === 'NewExpression'
              ? node.arguments
              : undefined
        for (const part of parts ?? []) {
          if (part?.type === 'SpreadElement' && this.spreadStops(part)) found.add(part)
        }
      })
      this.#spreadNodes = found
    }
    return this.#spreadNodes
  }

  #spreadNodes: Set<Node> | null = null

  override isItself(func: Func): boolean {
    return func.twin && typeof this.#planOf(func) !== 'string'
  }

  override attacher(func: Func): string {
    if (!this.isItself(func)) return super.attacher(func)
    return this.names.runtime(func.parent?.kind === 'module' ? 'attachUnwinding' : 'unwinding')
  }

  override marked(func: Func, value: Piece, name?: string): Rope {
    const unwinding = this.attacher(func)
    const hasDefault = func.node.params.some(({ type }: Node) => type === 'AssignmentPattern')
    const count = hasDefault ? null : this.#handedAfter(func)
    if (count === null && name === undefined) return rope`${unwinding}(${value})`
    const text = name === undefined ? 'void 0' : `'${name}'`
    return rope`${unwinding}(${value}, ${text}${count === null ? '' : `, ${count}`})`
  }

  /** A module that imports its neighbours may be called by them before it has run: it has no constants then. */
  override get fixesImports(): boolean {
    return this.analysis.program.body.every(
      ({ source }: Node) => source == null || /^(?:node:|[\w@])/.test(source.value),
    )
  }

  override plain(node: Node, func: Func, cx: Context): Rope {
    return this.apart(() =>
      this.isItself(func) && this.wants(func, cx)
        ? this.#function(node, func, cx)
        : super.plain(node, func, { ...cx, closing: undefined, ending: undefined }),
    )
  }

  override twin(func: Func, outer: Context, head: string): Rope {
    return this.apart(() => super.twin(func, outer, head))
  }

  override node(node: Node, cx: Context): Rope {
    if (cx.frame === null) {
      const jump = cx.jumps.get(node)
      if (jump !== undefined) return jump
    }
    if (node.type === 'ReturnStatement' && (cx.closing !== undefined || cx.ending !== undefined)) {
      const value = node.argument === null ? null : this.node(node.argument, cx)
      return returning(cx, value, this.names.prefix, { start: node.start, end: node.start + 'return'.length })
    }
    if (node.type === 'VariableDeclaration' && node.kind === 'var' && this.#movesVariables(cx)) {
      return this.#variables(node, cx)
    }
    return super.node(node, cx)
  }

  /** True in a function that unwinds: its `var`s have been declared at its beginning. */
  #movesVariables({ func, attach }: Context): boolean {
    return attach === 'all' && this.isItself(func)
  }

  #variables(node: Node, cx: Context): Rope {
    const isHead = this.#heads.has(node)
    const parts: Rope[] = []
    for (const { id, init } of node.declarations as Node[]) {
      const target = this.#assigned(id, cx)
      if (init === null) {
        if (isHead && node.declarations.length === 1) parts.push(target)
        continue
      }
      if (id.type === 'Identifier') this.hint(init, id.name)
      parts.push(rope`${target} = ${this.node(init, cx)}`)
    }
    const text = join(parts, ', ')
    if (isHead) return text
    return parts.length === 0 ? rope`;` : rope`;(${text});`
  }

  /** A pattern as it is assigned to. */
  #assigned(id: Node, cx: Context): Rope {
    if (id.type === 'Identifier') return rope`${this.renamed(id, cx) ?? id.name}`
    return this.#statements(cx.func, cx, false, new Slots()).pattern(id)
  }

  // Functions

  #statements(func: Func, cx: Context, guards: boolean, slots: Slots): Statements {
    const plan = this.#planOf(func) as Plan
    this.#recursive ??= recursiveOf(this.analysis)
    return new Loops(plan, this.names.prefix, guards, slots, this.#host, cx, this.#recursive.has(func))
  }

  #function(node: Node, func: Func, outer: Context): Rope {
    const plan = this.#planOf(func) as Plan
    const available = new Set(outer.available)
    if (func.self !== null) available.add(func)
    const alias = func.isArrow && outer.alias
    const renamed = new Map<Binding | 'arguments' | 'target', string>(outer.renamed)
    for (const { binding, name, box } of plan.variables.values()) {
      const text = box === null ? name : `${name}.v`
      if (text !== binding.name) renamed.set(binding, text)
    }
    const lends = !plan.single && !func.isArrow
    if (lends && func.usesArguments) renamed.set('arguments', `${this.names.prefix}args`)
    if (lends && func.usesTarget) renamed.set('target', `${this.names.prefix}target`)
    const cx: Context = {
      func,
      frame: null,
      attach: 'all',
      alias,
      lent: alias || func.isArrow ? outer.lent : null,
      available,
      jumps: noJumps,
      renamed: renamed.size > 0 ? renamed : null,
    }
    const { head, patterns } = this.#head(node, func)
    const body = node.body.type === 'BlockStatement' ? node.body.body : []
    const kept = directives(body)
    const strict = kept
      .filter(({ directive }: Node) => !isTaskDirective(directive))
      .map(({ expression }: Node) => `${expression.raw};`)
      .join('')
    const isDirective = (statement: Node): boolean => kept.includes(statement)
    const text = plan.single
      ? this.#single(node, func, cx, plan, patterns, isDirective)
      : this.#two(node, func, cx, plan, patterns, isDirective)
    return rope`${head}{ ${strict}${text} }${{ start: node.body.end, end: node.end }}`
  }

  /** Everything before the body. Parameters that are more than names are set in the body: code of others may run there. */
  #head(node: Node, func: Func): { head: Rope; patterns: { pattern: Node; from: string }[] } {
    const patterns: { pattern: Node; from: string }[] = []
    const params = node.params as Node[]
    const handed = this.#handedAfter(func) === null ? '' : `${this.names.prefix}ok`
    const end = node.body.type === 'BlockStatement' ? node.body.start : this.#arrowEnd(node)
    const isName = (param: Node): boolean =>
      param.type === 'Identifier' || (param.type === 'RestElement' && param.argument.type === 'Identifier')
    if (params.every(isName) && handed === '') {
      return { head: new Rope().add({ start: node.start, end }), patterns }
    }
    if (params.length === 0) {
      const open = this.source.indexOf('(', node.typeParameters?.end ?? node.id?.end ?? node.start) + 1
      return { head: rope`${{ start: node.start, end: open }}${handed}${{ start: open, end }}`, patterns }
    }
    const only = params[0]!
    if (
      node.type === 'ArrowFunctionExpression' &&
      this.source[node.start] !== '(' &&
      only.start === node.start
    ) {
      return { head: rope`(${only}, ${handed})${{ start: only.end, end }}`, patterns }
    }
    const made = new Rope().add({ start: node.start, end: params[0]!.start })
    const written = params.map((param, index): Piece => {
      if (isName(param)) return param
      const from = `${this.names.prefix}a${index}`
      patterns.push({ pattern: param, from })
      if (param.type === 'RestElement') return `...${from}`
      return param.type === 'AssignmentPattern' ? `${from} = void 0` : from
    })
    if (handed !== '') written.push(handed)
    made.add(join(written, ', '))
    return { head: made.add({ start: params.at(-1)!.end, end }), patterns }
  }

  /**
   * After how many arguments a function takes its permission as one more: where it is called by name, and nothing can
   * tell. It has no `arguments`, and nothing that gathers the rest.
   */
  #handedAfter(func: Func): number | null {
    const { node } = func
    // Where a loop is what takes the time, a call more or less costs nothing.
    if (!this.#isCalledByName(func) || (func.loops.length > 0 && !func.recursive)) return null
    const params = (node.params as Node[]).filter(
      param => !(param.type === 'Identifier' && param.name === 'this'),
    )
    if (func.usesArguments && !func.isArrow) return null
    if (params.at(-1)?.type === 'RestElement') return null
    if (!func.strict && new Set(params.map(({ name }) => name)).size < params.length) return null
    return params.length
  }

  #isCalledByName(func: Func): boolean {
    const { holder } = func
    if (func.kind === 'method') return holder?.key.type === 'PrivateIdentifier'
    const target = func.self?.target === func || func.binding?.target === func
    if (!target) return false
    const references = [...(func.binding?.references ?? []), ...(func.self?.references ?? [])]
    return references.some(({ callee }) => callee)
  }

  /** The end of `=>`, where the body is an expression. */
  #arrowEnd(node: Node): number {
    return this.source.lastIndexOf('=>', node.body.start) + 2
  }

  /** The statements that set what the parameters name. */
  #parameters(
    statements: Statements,
    patterns: { pattern: Node; from: string }[],
    cx: Context,
    declare: boolean,
  ): Rope {
    const made = new Rope()
    const keyword = declare ? 'let ' : ''
    for (const { pattern, from } of patterns) {
      const target =
        pattern.type === 'AssignmentPattern'
          ? pattern.left
          : pattern.type === 'RestElement'
            ? pattern.argument
            : pattern
      let value: Rope = rope`${from}`
      if (pattern.type === 'AssignmentPattern') {
        if (target.type === 'Identifier') this.hint(pattern.right, target.name)
        value = rope`${from} === void 0 ? ${this.node(pattern.right, cx)} : ${from}`
      }
      if (target.type !== 'Identifier') {
        if (pattern.type === 'AssignmentPattern') made.add(rope`${from} = ${value}; `)
        value = rope`${from}`
        if (pattern.type !== 'RestElement') made.add(refusal(target, from, this.source))
      }
      const text = rope`${statements.pattern(target)} = ${value}`
      made.add(declare || target.type === 'Identifier' ? rope`${keyword}${text}; ` : rope`(${text}); `)
    }
    return made
  }

  /** What a function does first: it takes its permission. A `var` costs the engine no code, where a `let` does. */
  #start(func: Func, variables: readonly string[]): string {
    const { prefix } = this.names
    const frames = this.names.runtime('frames')
    const hands = this.#hands(func)
    const taken = hands ? `${frames}.ok === 0 ? void 0 : ${frames}` : `${frames}.ok`
    const handed = this.#handedAfter(func) !== null
    const all = handed ? variables : [...variables, `${prefix}ok = ${taken}`]
    const vars = all.length > 0 ? `var ${all.join(', ')}; ` : ''
    if (!handed) return `${vars}${frames}.ok = 0; `
    return `${vars}if (${prefix}ok !== ${frames}) { ${prefix}ok = ${taken}; ${frames}.ok = 0; } `
  }

  /** True when the function takes its permission as an argument, or calls one that may. */
  #hands(func: Func): boolean {
    if (this.#handedAfter(func) !== null) return true
    return func.calls.some(({ target, node }) => {
      if (target !== null) return this.isItself(target) && this.#handedAfter(target) !== null
      return node.callee !== undefined && bare(node.callee).property?.type === 'PrivateIdentifier'
    })
  }

  /** Two forms: one that starts at the beginning, and inside of it, made when it is needed, one that starts anywhere. */
  #two(
    node: Node,
    func: Func,
    cx: Context,
    plan: Plan,
    patterns: { pattern: Node; from: string }[],
    isDirective: (statement: Node) => boolean,
  ): Rope {
    const { prefix } = this.names
    const slots = new Slots()
    const always: string[] = []
    const lent: string[] = []
    if (cx.renamed?.has('arguments')) {
      always.push(`${prefix}args`)
      lent.push(`${prefix}args = arguments`)
    }
    if (cx.renamed?.has('target')) {
      always.push(`${prefix}target`)
      lent.push(`${prefix}target = new.target`)
    }
    const plainForm = this.#statements(func, cx, false, slots)
    plainForm.always.push(...always)
    const first = plainForm.body(node.body, isDirective)
    const names = new Set(
      node.params.filter(({ type }: Node) => type === 'Identifier').map(({ name }: Node) => name),
    )
    for (const param of node.params as Node[]) {
      if (param.type === 'RestElement' && param.argument.type === 'Identifier') names.add(param.argument.name)
    }
    const variables = [...plan.variables.values()]
      .filter(({ place }) => place === 'slot')
      .map(({ name }) => name)
    const own = variables.filter(name => !names.has(name))
    const temporaries = Array.from({ length: plainForm.temporaries }, (_, index) => `${prefix}${index}`)
    const set = this.#parameters(plainForm, patterns, cx, false)
    const count = plainForm.counts ? [`${prefix}n = 0`] : []
    const start = this.#start(func, [...own, ...temporaries, ...lent, ...count])
    if (plainForm.places === 0) return rope`${start}${set}${first}`
    const save = this.names.runtime('save')
    this.names.runtime('take')
    const second = this.#statements(func, cx, true, slots)
    second.always.push(...always)
    const going = second.body(node.body, isDirective)
    const restored = [...new Set([...variables, ...temporaries, ...always])].map(name =>
      slots.has(name) ? `${name} = ${prefix}v[${slots.indexOf(name)}]` : name,
    )
    const self = func.isArrow ? 'void 0' : 'this'
    const name = JSON.stringify(func.name === '(anonymous)' || func.name === '[computed]' ? '' : func.name)
    const passed = [...second.blocks].map(name => `${prefix}b_${name}`)
    const inner = rope`var ${[...restored, ...count, ...passed, `${prefix}ok = ${this.#hands(func) ? this.names.runtime('frames') : '1'}`].join(', ')}; ${prefix}out: { ${going}return; } return ${save}(${self}, ${prefix}p, ${second.savedText}, null);`
    const again = func.isArrow
      ? rope`{ ${name}: (${prefix}p, ${prefix}v) => { ${inner} } }[${name}]`
      : rope`{ ${name}(${prefix}p, ${prefix}v) { ${inner} } }[${name}]`
    const list = plainForm.savedText
    const blocks = [...plainForm.blocks].map(name => `, ${prefix}b_${name}`).join('')
    return rope`${start}var ${prefix}p, ${prefix}v${blocks}; ${set}${prefix}out: { ${first}return; } return ${save}(${self}, ${prefix}p, ${list}, ${again});`
  }

  /** One form that starts anywhere, around which stands what closures share. */
  #single(
    node: Node,
    func: Func,
    cx: Context,
    plan: Plan,
    patterns: { pattern: Node; from: string }[],
    isDirective: (statement: Node) => boolean,
  ): Rope {
    const { prefix } = this.names
    const statements: Node[] = node.body.type === 'BlockStatement' ? node.body.body : []
    const available = this.availableIn(statements, cx)
    const inside: Context = { ...cx, available }
    const functions = new Rope()
    const marks = new Rope()
    for (const statement of statements) {
      if (!isFunction(statement)) continue
      const inner = this.analysis.funcOf.get(statement)!
      if (this.wants(inner, inside)) {
        const { plain, beside, attach } = writeDeclaration(this, statement, statement, inner, inside)
        functions.add(plain).add(' ').add(beside).add(' ')
        marks.add(attach)
      } else functions.add(this.plain(statement, inner, inside)).add(' ')
    }
    const slots = new Slots()
    const form = this.#statements(func, inside, true, slots)
    const text = form.body(node.body, statement => isDirective(statement) || isFunction(statement))
    const variables = [...plan.variables.values()]
    const native = new Set<string>()
    for (const { binding, name } of variables) {
      if (binding.kind === 'function' && binding.scope === this.analysis.scopeOf.get(func.node))
        native.add(name)
      if (binding.kind === 'parameter') native.add(name)
    }
    const around = variables
      .filter(({ place, name }) => place === 'entry' && !native.has(name))
      .map(({ name, box, binding, owner }) => {
        if (box === null || owner !== func.node) return name
        return `${name} = ${this.names.runtime('early')}(${JSON.stringify(binding.name)})`
      })
    const slotted = variables.filter(({ place }) => place === 'slot').map(({ name }) => name)
    const temporaries = Array.from({ length: form.temporaries }, (_, index) => `${prefix}${index}`)
    const restored = [...slotted, ...temporaries].map(name =>
      slots.has(name) ? `${name} = ${prefix}v[${slots.indexOf(name)}]` : name,
    )
    const shared = around.length > 0 ? `var ${around.join(', ')}; ` : ''
    const set = this.#parameters(form, patterns, inside, true)
    const start = rope`${this.#start(func, [])}${shared}${set}${marks}`
    if (form.counts) restored.push(`${prefix}n = 0`)
    const locals = restored.length > 0 ? `var ${restored.join(', ')}; ` : ''
    if (form.places === 0) {
      const plainly = [...slotted, ...temporaries]
      const vars = plainly.length > 0 ? `var ${plainly.join(', ')}; ` : ''
      return rope`${start}${vars}const ${prefix}p = 0; ${functions}${text}`
    }
    const save = this.names.runtime('save')
    this.names.runtime('take')
    const passed =
      form.blocks.size > 0 ? `var ${[...form.blocks].map(name => `${prefix}b_${name}`).join(', ')}; ` : ''
    const list = form.savedText
    const inner = rope`${locals}${passed}${prefix}out: { ${text}return; } return ${save}(void 0, ${prefix}p, ${list}, ${prefix}r);`
    return rope`${start}${functions}const ${prefix}r = (${prefix}p, ${prefix}v) => { ${inner} }; return ${prefix}r(0, ${this.names.runtime('nothing')});`
  }

  /** True when all that a turn of the loop calls is of this file, or brief. */
  #looksInside(loop: Node): boolean {
    let all = true
    walk(loop, node => {
      if (isFunction(node)) return false
      const call = this.callOf(node)
      if (call !== undefined && call.reach === 'unknown') {
        const callee = node.callee === undefined ? null : bare(node.callee)
        const name = callee?.type === 'MemberExpression' && !callee.computed ? callee.property.name : null
        if (name === null || !this.analysis.ownMethods.has(name)) all = false
      }
      return all
    })
    return all
  }

  #makeHost(): StatementHost {
    return {
      source: this.source,
      strip: this.strip,
      node: (node, cx) => this.node(node, cx),
      runtime: name => this.names.runtime(name),
      callOf: node => this.callOf(node),
      staysPlain: (call: Call) => this.staysPlain(call),
      wayTo: (target, cx) => {
        if (!cx.available.has(target)) return 'unknown'
        if (this.isItself(target)) return 'frames'
        return this.isDirect(target) ? 'generator' : 'unknown'
      },
      twinName: target => this.twinName(target),
      privateTarget: (callee, cx) => this.privateTarget(callee, cx),
      privateName: name => this.privateName(name),
      isFrames: func => this.isItself(func),
      hands: func => this.#hands(func),
      spreadStops: node => this.#spreads.has(node),
      renamed: (node, cx) => this.renamed(node, cx),
      hint: (value, name) => this.hint(value, name),
      bindingIsConstant: node => {
        const binding = this.analysis.bindingOf.get(node)
        if (binding === null || binding === undefined || binding.volatile) return false
        return binding.kind !== 'import' && !binding.written
      },
      bindingOf: id => this.analysis.bindingOf.get(id),
      // A generator made in a block has no name of its own there: it is found by what its function carries.
      availableIn: (statements, cx) =>
        this.availableIn(
          [
            ...statements.filter(({ type }) => type !== 'FunctionDeclaration'),
            ...statements.filter(node => isFunction(node) && this.isItself(this.analysis.funcOf.get(node)!)),
          ],
          cx,
        ),
      looksInside: node => this.#looksInside(node),
      isShortBody: node => isSmall(node.body) && !makesObjects(node.body),
      unmarked: (node, cx) => {
        const func = this.analysis.funcOf.get(node)!
        return this.isItself(func) && this.wants(func, cx) ? this.plain(node, func, cx) : null
      },
      handedAfter: func => this.#handedAfter(func),
      functionValue: (node, cx) => {
        const func = this.analysis.funcOf.get(node)!
        const text = this.plain(node, func, cx)
        return this.wants(func, cx) ? writeAttachment(this, func, text, cx) : text
      },
      strips: (node, labels, cx, safepoint, temporaries) =>
        this.strips(node, labels, cx, safepoint, temporaries),
    }
  }
}

/** What cannot be taken apart is refused in the engine's own words: those of a parameter. */
function refusal(pattern: Node, from: string, source: string): string {
  if (pattern.type === 'ArrayPattern') {
    return `if (${from} == null || !(Symbol.iterator in Object(${from}))) (([]) => {})(${from}); `
  }
  const first = pattern.properties[0]
  const isNamed = first !== undefined && first.type === 'Property' && !first.computed
  const inner = isNamed ? `${source.slice(first.key.start, first.key.end)}: ${from}_` : ''
  return `if (${from} == null) (({ ${inner} }) => {})(${from}); `
}

function makesObjects(body: Node): boolean {
  let found = false
  walk(body, node => {
    if (node.type === 'NewExpression') found = true
    return !found
  })
  return found
}
