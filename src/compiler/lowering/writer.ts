/**
 * Writes the output: the source as it stands, with each function's resumable form beside it. This half knows where
 * twins go: next to declarations, around expressions, into class bodies. What is inside them is the lowering's.
 *
 * Two copies of a function's text stand in the output, the plain form and the twin. Functions made inside are then
 * made by either: those in the twin are attached their own twins; those in the plain form only where they are marked
 * themselves, and not inside a twin. So the size grows with depth, not with a power of it.
 */
import type { Analysis } from '../analysis.ts'
import { isTaskDirective } from '../directive.ts'
import type { Func } from '../functions.ts'
import { join, type Piece, Rope, rope } from '../rope.ts'
import { bare, children, directives, isFunction, keyName, type Node } from '../syntax.ts'
import { type Context, Frame } from './context.ts'
import { Names } from './names.ts'

const nothing: ReadonlySet<Func> = new Set()
const noJumps: ReadonlyMap<object, Rope> = new Map()

/** What a resumable form stands in for. */
export type Flavor = 'plain' | 'generator' | 'async' | 'getter' | 'setter'

export abstract class Writer {
  readonly source: string
  readonly analysis: Analysis
  readonly names: Names
  /** The name that an anonymous function takes from where it stands. */
  readonly #hints = new Map<Node, string>()
  readonly #twinNames = new Map<Func, string>()

  constructor(source: string, analysis: Analysis) {
    this.source = source
    this.analysis = analysis
    this.names = new Names(source)
  }

  /** Writes a node of code that may stop, or returns null to have it copied with its children written. */
  protected abstract resumable(node: Node, cx: Context): Rope | null

  /** The statements that a resumable function begins with. */
  protected abstract entry(func: Func, frame: Frame): string

  /** What kind of thing the function's resumable form is. */
  protected flavor(func: Func): Flavor {
    if (func.kind === 'getter' || func.kind === 'setter') return func.kind
    if (func.isGenerator) return 'generator'
    return func.isAsync ? 'async' : 'plain'
  }

  /** How the function's resumable form is attached: the runtime's name for it. */
  protected attacher(func: Func): string {
    const flavor = this.flavor(func)
    if (flavor === 'generator') return this.names.runtime('attachGenerator')
    return this.names.runtime(flavor === 'async' ? 'attachAsync' : 'attach')
  }

  /** True when calls can go to the twin's own name, and need no look at the function. */
  protected isDirect(func: Func): boolean {
    return func.kind === 'declaration' && !func.isGenerator && !func.isAsync
  }

  program(runtime: string, preamble: () => string = () => ''): Rope {
    const { program, root } = this.analysis
    const cx: Context = {
      func: root,
      frame: null,
      attach: 'explicit',
      alias: false,
      lent: null,
      available: nothing,
      jumps: noJumps,
      renamed: null,
    }
    const head = directives(program.body)
    const first = head.length > 0 ? head[head.length - 1]!.end : this.#afterComments(program)
    const { attached, statements } = this.list(program.body, cx, first, this.source.length)
    const extra = preamble()
    const imports = this.names.imports()
    let prelude = ''
    if (imports.length > 0) {
      const fixed = this.analysis.isModule && this.fixesImports
      const list = imports
        .map(
          ([name, local]) => `${name} ${this.analysis.isModule ? 'as' : ':'} ${fixed ? `${local}_` : local}`,
        )
        .join(', ')
      const from = JSON.stringify(runtime)
      prelude = this.analysis.isModule
        ? `import { ${list} } from ${from};`
        : `const { ${list} } = require(${from});`
      if (fixed) prelude += `const ${imports.map(([, local]) => `${local} = ${local}_`).join(', ')};`
    }
    const break_ = head.length > 0 ? ';' : first === program.hashbang?.end ? '\n' : ''
    return rope`${{ start: 0, end: first }}${break_}${prelude}${extra}${attached}${statements}`
  }

  /** Where the first statement starts: comments above it speak to other tools (`@jsx`, a licence) and stay first. */
  #afterComments(program: Node): number {
    const from = program.hashbang?.end ?? 0
    const first = program.body[0]?.start ?? from
    return /^(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*$/.test(this.source.slice(from, first)) ? first : from
  }

  /** A statement list from `from` to `to`: its declarations' twins are attached before its first statement. */
  protected list(
    body: Node[],
    outer: Context,
    from: number,
    to: number,
  ): { attached: Rope; statements: Rope } {
    const attached = new Rope()
    let available: Set<Func> | null = null
    for (const statement of body) {
      for (const func of this.declaredIn(statement)) {
        if (!this.wants(func, outer)) continue
        available ??= new Set(outer.available)
        available.add(func)
      }
    }
    const cx = available === null ? outer : { ...outer, available }
    const statements = new Rope()
    let reached = from
    for (const statement of body) {
      if (statement.start < reached) continue
      statements.add({ start: reached, end: statement.start })
      const declaration = declarationIn(statement)
      const func = declaration === null ? undefined : this.analysis.funcOf.get(declaration)
      if (func !== undefined && this.wants(func, cx)) {
        const { plain, beside, attach } = this.declaration(statement, declaration!, func, cx)
        statements.add(plain).add(' ').add(beside)
        attached.add(attach)
      } else {
        if (cx.frame !== null && statement.type === 'ExpressionStatement') statements.add(';')
        statements.add(this.node(statement, cx))
      }
      reached = statement.end
    }
    statements.add({ start: reached, end: to })
    return { attached, statements }
  }

  protected declaredIn(statement: Node): Func[] {
    const declaration = declarationIn(statement)
    if (declaration !== null) {
      const func = this.analysis.funcOf.get(declaration)
      return func === undefined ? [] : [func]
    }
    const variables = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
    if (variables?.type !== 'VariableDeclaration') return []
    const found: Func[] = []
    for (const { id, init } of variables.declarations) {
      if (id.type !== 'Identifier' || init === null) continue
      const func = this.analysis.funcOf.get(bare(init))
      if (func !== undefined) found.push(func)
    }
    return found
  }

  /** True when the function's resumable form is to be attached here. */
  protected wants(func: Func, cx: Context): boolean {
    if (!func.twin || cx.attach === 'none') return false
    if (cx.attach === 'explicit' && func.mark === 'inherited') return false
    if (func.kind === 'declaration' && func.binding !== null) {
      const { declarations } = func.binding
      if (declarations[declarations.length - 1] !== func.node) return false
    }
    return true
  }

  /** The name that the twin of a function declaration has. */
  protected twinName(func: Func): string {
    let name = this.#twinNames.get(func)
    if (name === undefined) {
      name = this.names.fresh(func.node.id?.name ?? 'default')
      this.#twinNames.set(func, name)
    }
    return name
  }

  /** True for a function that needs no form beside it, because it is resumable itself. */
  protected isItself(_func: Func): boolean {
    return false
  }

  /** Such a function, marked as one. */
  protected marked(func: Func, value: Piece, _name?: string): Rope {
    return rope`${this.attacher(func)}(${value})`
  }

  /** True when what the runtime exports is put into constants of the module, which engines know best. */
  protected get fixesImports(): boolean {
    return false
  }

  protected declaration(
    statement: Node,
    node: Node,
    func: Func,
    cx: Context,
  ): { plain: Rope; beside: Rope; attach: string } {
    const plainForm = this.plain(node, func, cx)
    const name = this.twinName(func)
    const itself = this.isItself(func)
    const beside = itself ? rope`` : this.twin(func, cx, `function* ${name}`)
    const attacher = this.attacher(func)
    if (node.id === null) {
      const made = `${name}_`
      const at = this.source.indexOf('(', node.start)
      const keyword = node.typeParameters?.start ?? at
      const plain = rope`${{ start: statement.start, end: keyword }} ${made}${cut(plainForm, keyword)}`
      if (itself) return { plain, beside, attach: `${this.marked(func, made, 'default').text('')};` }
      return { plain, beside, attach: `${attacher}(${made}, ${name}, 'default');` }
    }
    const plain = rope`${{ start: statement.start, end: node.start }}${plainForm}${{ start: node.end, end: statement.end }}`
    const exported = statement !== node
    const silent = cx.frame !== null && !exported && this.isDirect(func) && !escapes(func)
    if (itself) {
      const unseen = cx.func.kind !== 'module' && !exported && this.isDirect(func) && !escapes(func)
      return { plain, beside, attach: unseen ? '' : `${this.marked(func, node.id.name).text('')};` }
    }
    if (!silent) return { plain, beside, attach: `${attacher}(${node.id.name}, ${name});` }
    // Nobody looks it up, but a deep recursion of it is to be resumed at its innermost call.
    const attach = func.recursive ? `${this.names.runtime('resumable')}(${name});` : ''
    return { plain, beside, attach }
  }

  /** The function's plain form: the text as it stands, but for functions inside that are marked themselves. */
  protected plain(node: Node, func: Func, cx: Context): Rope {
    const attach = func.twin && cx.attach === 'all' ? 'none' : cx.attach
    const alias = func.isArrow && cx.alias
    return this.copy(node, {
      ...cx,
      func,
      frame: null,
      attach,
      alias,
      lent: alias || func.isArrow ? cx.lent : null,
      jumps: noJumps,
    })
  }

  /** The function's resumable form, with `head` before its parameters. */
  protected twin(func: Func, outer: Context, head: string): Rope {
    const { node } = func
    const frame = new Frame(func, this.names.prefix)
    const available = new Set(outer.available)
    if (func.self !== null) available.add(func)
    const cx: Context = {
      func,
      frame,
      attach: 'all',
      alias: func.isArrow,
      lent: func.host,
      available,
      jumps: noJumps,
      renamed: outer.renamed,
    }
    const beside: Context = { ...cx, frame: null, lent: func.isArrow ? func.host : null }
    const parameters = (node.params as Node[])
      .filter(parameter => !(parameter.type === 'Identifier' && parameter.name === 'this'))
      .map((parameter, index) => this.parameter(parameter, index, func, beside, cx))
    const list = join(
      parameters.map(({ written }) => written),
      ', ',
    )
    const opening = join(
      parameters.map(parameter => parameter.opening),
      '',
    )
    if (node.body.type !== 'BlockStatement') {
      const value = this.node(node.body, cx)
      return rope`${head}(${list}) {${this.#prologue(func, frame)}${opening} return ${value}; }`
    }
    const { body } = node.body
    const kept = directives(body)
    const from = kept.length > 0 ? kept[kept.length - 1]!.end : node.body.start + 1
    const { attached, statements } = this.list(body, cx, from, node.body.end)
    const strict = kept
      .filter(({ directive }) => !isTaskDirective(directive))
      .map(({ expression }) => `${expression.raw};`)
      .join('')
    return rope`${head}(${list}) {${strict}${this.#prologue(func, frame)}${opening}${attached}${statements}`
  }

  /** A parameter of a twin, and what the body begins with because of it. `beside`: where nothing can stop. */
  protected parameter(
    parameter: Node,
    _index: number,
    _func: Func,
    beside: Context,
    _cx: Context,
  ): { written: Rope; opening: Rope } {
    return { written: this.node(parameter, beside), opening: rope`` }
  }

  #prologue(func: Func, frame: Frame): string {
    const lets = [...frame.temporaries]
    if (frame.usesFuel) lets.push(`${this.names.prefix}fuel = 512`)
    const consts: string[] = []
    if (!func.isArrow) {
      if (func.lendsThis) consts.push(`${this.names.lent('this')} = this`)
      if (func.lendsArguments) consts.push(`${this.names.lent('arguments')} = arguments`)
      if (func.lendsTarget) consts.push(`${this.names.lent('target')} = new.target`)
      if (func.lendsSuper) consts.push(`${this.names.lent('super')} = key => super[key]`)
    }
    return (
      (lets.length > 0 ? `let ${lets.join(', ')};` : '') +
      (consts.length > 0 ? `const ${consts.join(', ')};` : '') +
      this.entry(func, frame)
    )
  }

  /** A node in its place. */
  node(node: Node, cx: Context): Rope {
    if (isFunction(node)) return this.#expression(node, cx)
    switch (node.type) {
      case 'ClassDeclaration':
      case 'ClassExpression':
        return this.#class(node, cx)
      case 'ObjectExpression':
        return this.#object(node, cx)
      case 'VariableDeclarator':
        if (node.id.type === 'Identifier' && node.init !== null) this.hint(node.init, node.id.name)
        break
      case 'AssignmentExpression':
      case 'AssignmentPattern':
        if (node.left.type === 'Identifier') this.hint(node.right, node.left.name)
        break
      case 'ExportDefaultDeclaration':
        this.hint(node.declaration, 'default')
        break
      default:
    }
    if (cx.renamed !== null) {
      const moved = this.#moved(node, cx)
      if (moved !== null) return moved
    }
    if (cx.alias) {
      const lent = this.#lent(node, cx)
      if (lent !== null) return lent
    }
    if (cx.frame !== null) {
      const written = this.resumable(node, cx)
      if (written !== null) return written
    }
    if (node.type === 'BlockStatement' || node.type === 'StaticBlock' || node.type === 'TSModuleBlock') {
      return this.#block(node, cx)
    }
    if (node.type === 'SwitchStatement') return this.#switch(node, cx)
    return this.copy(node, cx)
  }

  /** A variable that goes by another name, or null. */
  #moved(node: Node, cx: Context): Rope | null {
    switch (node.type) {
      case 'Identifier': {
        const name = this.renamed(node, cx)
        return name === undefined ? null : rope`${name}`
      }
      case 'Property': {
        if (!node.shorthand) return null
        const target = node.value.type === 'AssignmentPattern' ? node.value.left : node.value
        if (target.type !== 'Identifier' || this.renamed(target, cx) === undefined) return null
        return rope`${target.name}: ${this.node(node.value, cx)}`
      }
      case 'MetaProperty': {
        const name = node.meta.name === 'new' ? cx.renamed!.get('target') : undefined
        return name === undefined ? null : rope`${name}`
      }
      case 'CallExpression': {
        // What was a variable and is now a member must not lend its object to the call.
        const { callee } = node
        if (callee.type !== 'Identifier' || !this.renamed(callee, cx)?.includes('.')) return null
        const list = join(
          node.arguments.map((argument: Node) => this.node(argument, cx)),
          ', ',
        )
        return rope`(0, ${this.renamed(callee, cx)!})${node.optional ? '?.' : ''}(${list})`
      }
      default:
        return null
    }
  }

  /** The other name of a variable. */
  protected renamed(node: Node, cx: Context): string | undefined {
    if (cx.renamed === null) return undefined
    const binding = this.analysis.bindingOf.get(node)
    if (binding === undefined) return undefined
    if (binding === null) return node.name === 'arguments' ? cx.renamed.get('arguments') : undefined
    return cx.renamed.get(binding)
  }

  /** The node's own text, with its children written. */
  copy(node: Node, cx: Context): Rope {
    if (isFunction(node)) return this.#functionText(node, cx)
    const made = new Rope()
    let reached = node.start
    for (const child of children(node)) {
      if (child.start < reached) continue
      made.add({ start: reached, end: child.start })
      made.add(this.node(child, cx))
      reached = child.end
    }
    return made.add({ start: reached, end: node.end })
  }

  #functionText(node: Node, cx: Context): Rope {
    const made = new Rope()
    let reached = node.start
    for (const parameter of node.params) {
      made.add({ start: reached, end: parameter.start }).add(this.node(parameter, cx))
      reached = parameter.end
    }
    made.add({ start: reached, end: node.body.start })
    if (node.body.type === 'BlockStatement') made.add(this.#block(node.body, cx))
    else made.add(this.node(node.body, cx))
    return made.add({ start: node.body.end, end: node.end })
  }

  #block(node: Node, cx: Context): Rope {
    const kept = directives(node.body)
    const from =
      kept.length > 0
        ? kept[kept.length - 1]!.end
        : node.type === 'StaticBlock'
          ? this.source.indexOf('{', node.start) + 1
          : node.start + 1
    const { attached, statements } = this.list(node.body, cx, from, node.end)
    const break_ = kept.length > 0 && !attached.isEmpty ? ';' : ''
    return rope`${{ start: node.start, end: from }}${break_}${attached}${statements}`
  }

  /** Functions declared in a case belong to the whole switch: their twins are attached before it. */
  #switch(node: Node, cx: Context): Rope {
    const all: Node[] = node.cases.flatMap(({ consequent }: Node) => consequent)
    if (
      cx.frame === null &&
      !all.some(statement => this.declaredIn(statement).some(func => this.wants(func, cx)))
    )
      return this.copy(node, cx)
    // The names are not visible outside the cases, so what they attach is attached at each function's own place.
    const made = new Rope()
      .add({ start: node.start, end: node.discriminant.start })
      .add(this.node(node.discriminant, cx))
    let reached = node.discriminant.end
    for (const branch of node.cases) {
      made.add({ start: reached, end: branch.start })
      const from = branch.test === null ? this.source.indexOf(':', branch.start) + 1 : this.#afterTest(branch)
      if (branch.test !== null) {
        made.add({ start: branch.start, end: branch.test.start }).add(this.node(branch.test, cx))
        made.add({ start: branch.test.end, end: from })
      } else made.add({ start: branch.start, end: from })
      const { attached, statements } = this.list(branch.consequent, cx, from, branch.end)
      made.add(attached).add(statements)
      reached = branch.end
    }
    return made.add({ start: reached, end: node.end })
  }

  #afterTest(branch: Node): number {
    let at = branch.test.end
    for (;;) {
      const rest = this.source.slice(at)
      const comment = /^(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/|\))*:/.exec(rest)
      if (comment !== null) return at + comment[0].length
      at++
    }
  }

  protected hint(value: Node, name: string): void {
    const node = bare(value)
    if (isFunction(node) && node.id === null) this.#hints.set(node, name)
  }

  /** A function where a value stands: wrapped, so that its twin is attached before anyone sees it. */
  #expression(node: Node, cx: Context): Rope {
    const func = this.analysis.funcOf.get(node)!
    if (!this.wants(func, cx) || (func.kind === 'declaration' && cx.func.kind !== 'module')) {
      return this.plain(node, func, cx)
    }
    if (func.kind === 'declaration') return this.plain(node, func, cx)
    const hint = this.#hints.get(node)
    const text = this.plain(node, func, cx)
    const named: Rope =
      hint === undefined || node.id !== null
        ? text
        : rope`{ ${propertyText(hint)}: ${text} }${accessText(hint)}`
    // `return()=>…` needs no space; a name in the place of the parenthesis does.
    return rope` ${this.attachment(func, named, cx)}`
  }

  /** `attach(plain, twin)`, with whatever an arrow's twin must borrow. */
  protected attachment(func: Func, plain: Rope, cx: Context): Rope {
    const attacher = this.attacher(func)
    if (this.isItself(func)) return this.marked(func, plain)
    if (func.self !== null && func.self.references.length > 0) {
      const name = func.node.id.name
      const twin = this.twin(func, cx, `function* ${this.twinName(func)}`)
      return rope`${this.names.runtime('attachSelf')}(${attacher}, ${plain}, ${name} => ${twin})`
    }
    if (!func.isArrow || cx.lent === func.host) {
      return rope`${attacher}(${plain}, ${this.twin(func, cx, 'function* ')})`
    }
    const lends: [name: string, value: string][] = []
    if (func.usesThis) lends.push([this.names.lent('this'), 'this'])
    if (func.usesArguments) lends.push([this.names.lent('arguments'), 'arguments'])
    if (func.usesTarget) lends.push([this.names.lent('target'), 'new.target'])
    if (func.usesSuper) lends.push([this.names.lent('super'), 'key => super[key]'])
    const twin = this.twin(func, cx, 'function* ')
    if (lends.length === 0 || func.host.kind === 'module') return rope`${attacher}(${plain}, ${twin})`
    const parameters = lends.map(([name]) => name).join(', ')
    const values = lends.map(([, value]) => value).join(', ')
    return rope`((${parameters}) => ${attacher}(${plain}, ${twin}))(${values})`
  }

  #lent(node: Node, cx: Context): Rope | null {
    if (cx.func.host.kind === 'module')
      return node.type === 'ThisExpression' && this.analysis.isModule ? rope`(void 0)` : null
    switch (node.type) {
      case 'ThisExpression':
        return rope`${this.names.lent('this')}`
      case 'Identifier':
        return node.name === 'arguments' ? rope`${this.names.lent('arguments')}` : null
      case 'MetaProperty':
        return node.meta.name === 'new' ? rope`${this.names.lent('target')}` : null
      case 'Property':
        if (!node.shorthand || node.value.type !== 'Identifier' || node.value.name !== 'arguments')
          return null
        return rope`arguments: ${this.names.lent('arguments')}`
      case 'MemberExpression': {
        if (node.object.type !== 'Super') return null
        const key: Piece = node.computed ? this.node(node.property, cx) : JSON.stringify(node.property.name)
        return rope`${this.names.lent('super')}(${key})`
      }
      default:
        return null
    }
  }

  #object(node: Node, cx: Context): Rope {
    const made = new Rope()
    let reached = node.start
    const links: string[] = []
    for (const property of node.properties as Node[]) {
      made.add({ start: reached, end: property.start })
      made.add(this.#property(property, cx, links))
      reached = property.end
    }
    made.add({ start: reached, end: node.end })
    return links.length === 0 ? made : rope`${this.names.runtime('linkObject')}(${made}, ${links.join(', ')})`
  }

  #property(property: Node, cx: Context, links: string[]): Rope {
    if (property.type === 'SpreadElement') return this.copy(property, cx)
    if (property.type !== 'Property' || !isFunction(bare(property.value))) return this.node(property, cx)
    const value = bare(property.value)
    const func = this.analysis.funcOf.get(value)!
    const key = keyName(property)
    const anonymous = value.id === null
    if (!this.wants(func, cx)) {
      if (func.kind !== 'method' && func.kind !== 'getter' && func.kind !== 'setter')
        return this.node(property, cx)
      return rope`${this.#keyText(property, cx)}${this.#tail(property, func, cx)}`
    }
    if (this.isItself(func) && func.kind === 'method') {
      const method = rope`${this.#keyText(property, cx)}${this.#tail(property, func, cx)}`
      if (key === null)
        return rope`...${this.names.runtime('attachEntry')}(${this.attacher(func)}, { ${method} })`
      links.push(JSON.stringify(key), '0', func.parent?.kind === 'module' ? `'frames'` : `'inner'`)
      return method
    }
    if (func.kind === 'method' || func.kind === 'getter' || func.kind === 'setter') {
      if (func.usesSuper || func.kind !== 'method') {
        if (key === null) return rope`${this.#keyText(property, cx)}${this.#tail(property, func, cx)}`
        const number = this.names.number()
        links.push(JSON.stringify(key), String(number), `'${this.flavor(func)}'`)
        const symbol = `[${this.names.runtime('key')}(${number})]`
        const method = rope`${this.#keyText(property, cx)}${this.#tail(property, func, cx)}`
        return rope`${method}, ${this.twin(func, cx, `*${symbol}`)}`
      }
      const method = rope`${this.#keyText(property, cx)}${this.#tail(property, func, cx)}`
      if (key === null)
        return rope`...${this.names.runtime('attachEntry')}(${this.attacher(func)}, { ${method} }, ${this.twin(func, cx, 'function* ')})`
      return rope`${propertyKey(key)}: ${this.attachment(func, rope`{ ${method} }${accessText(key)}`, cx)}`
    }
    if (key === null && anonymous) {
      const head = rope`{ ${{ start: property.start, end: property.key.start }}${this.node(property.key, cx)}${{ start: property.key.end, end: property.value.start }}`
      const plain = this.plain(value, func, cx)
      const entry = rope`${head}${plain} }`
      if (
        !this.isItself(func) &&
        func.isArrow &&
        cx.lent !== func.host &&
        func.host.kind !== 'module' &&
        (func.usesThis || func.usesArguments || func.usesSuper || func.usesTarget)
      ) {
        return rope`${{ start: property.start, end: property.key.start }}${this.node(property.key, cx)}${{ start: property.key.end, end: property.value.start }}${plain}`
      }
      if (this.isItself(func))
        return rope`...${this.names.runtime('attachEntry')}(${this.attacher(func)}, ${entry})`
      return rope`...${this.names.runtime('attachEntry')}(${this.attacher(func)}, ${entry}, ${this.twin(func, cx, 'function* ')})`
    }
    if (anonymous && key !== null) this.#hints.set(value, key)
    return this.copyProperty(property, cx)
  }

  protected copyProperty(property: Node, cx: Context): Rope {
    const key = this.#keyText(property, cx)
    return rope`${key}${{ start: this.#keyEnd(property), end: property.value.start }}${this.node(property.value, cx)}${{ start: property.value.end, end: property.end }}`
  }

  /** The end of a property's name, its closing bracket included. */
  #keyEnd(property: Node): number {
    return property.key.end
  }

  #keyText(property: Node, cx: Context): Rope {
    if (!property.computed) return new Rope().add({ start: property.start, end: property.key.end })
    return rope`${{ start: property.start, end: property.key.start }}${this.node(property.key, cx)}`
  }

  /** A method from the end of its name on. */
  #tail(property: Node, func: Func, cx: Context): Rope {
    const text = this.plain(property.value, func, cx)
    return rope`${{ start: property.key.end, end: property.value.start }}${text}${{ start: property.value.end, end: property.end }}`
  }

  #class(node: Node, cx: Context): Rope {
    const made = new Rope()
    let reached = node.start
    const through = (child: Node, written: Piece): void => {
      made.add({ start: reached, end: child.start }).add(written)
      reached = child.end
    }
    for (const decorator of node.decorators ?? [])
      if (decorator.start >= reached) through(decorator, this.node(decorator, cx))
    if (node.superClass !== null) through(node.superClass, this.node(node.superClass, cx))
    const { body } = node
    const links: string[] = []
    const elements = new Rope()
    const outerReached = reached
    const inner: Context = { ...cx, available: this.#privateTwins(body.body, cx) }
    let open = body.start + 1
    for (const element of body.body as Node[]) {
      elements.add({ start: open, end: element.start })
      elements.add(this.#element(element, inner, links))
      open = element.end
    }
    elements.add({ start: open, end: node.end })
    const link =
      links.length === 0 ? '' : ` static { ${this.names.runtime('linkClass')}(this, ${links.join(', ')}); }`
    return made
      .add({ start: outerReached, end: body.start + 1 })
      .add(link)
      .add(elements)
  }

  /** What is available inside a class: its private names hide those of the classes around it. */
  #privateTwins(elements: Node[], cx: Context): ReadonlySet<Func> {
    const available = new Set(cx.available)
    for (const { key } of elements) {
      if (key?.type !== 'PrivateIdentifier') continue
      for (const func of available) {
        const other = func.holder?.key
        if (other?.type === 'PrivateIdentifier' && other.name === key.name) available.delete(func)
      }
    }
    for (const { type, key, value } of elements) {
      if (type !== 'MethodDefinition' || key.type !== 'PrivateIdentifier') continue
      const func = this.analysis.funcOf.get(value)
      if (func !== undefined && this.flavor(func) === 'plain' && this.wants(func, cx)) available.add(func)
    }
    return available
  }

  #element(element: Node, cx: Context, links: string[]): Rope {
    const func = this.analysis.funcOf.get(element.type === 'MethodDefinition' ? element.value : element)
    if (func === undefined) return new Rope().add(element)
    const made = new Rope()
    let reached = element.start
    for (const decorator of element.decorators ?? []) {
      if (decorator.start < reached) continue
      made.add({ start: reached, end: decorator.start }).add(this.node(decorator, cx))
      reached = decorator.end
    }
    if (element.computed) {
      made.add({ start: reached, end: element.key.start }).add(this.node(element.key, cx))
      reached = element.key.end
    }
    // What is inside runs on its own: not in the frame around the class, and with a `this` of its own.
    const own: Context = { ...cx, func, frame: null, alias: false, lent: null, jumps: noJumps }
    if (element.type !== 'MethodDefinition') {
      if (element.type === 'StaticBlock') return this.#block(element, own)
      const { value } = element
      if (value === null || value === undefined) return made.add({ start: reached, end: element.end })
      const key = keyName(element)
      if (key !== null) this.hint(value, key)
      const inner = bare(value)
      const anonymousComputed = key === null && isFunction(inner) && inner.id === null
      const written = anonymousComputed
        ? this.plain(inner, this.analysis.funcOf.get(inner)!, own)
        : this.node(value, own)
      const place = anonymousComputed ? inner : value
      return made
        .add({ start: reached, end: place.start })
        .add(written)
        .add({ start: place.end, end: element.end })
    }
    const text = this.plain(element.value, func, { ...cx, alias: false, lent: null })
    made
      .add({ start: reached, end: element.value.start })
      .add(text)
      .add({ start: element.value.end, end: element.end })
    if (!this.wants(func, cx)) return made
    if (this.isItself(func)) {
      if (element.key.type === 'PrivateIdentifier') return made
      const name = keyName(element)
      const written =
        name === null ? this.source.slice(element.key.start, element.key.end) : JSON.stringify(name)
      links.push(written, '0', element.static ? 'true' : 'false', `'frames'`)
      return made
    }
    const fixed = element.static ? 'static ' : ''
    const head = { ...cx, frame: null, alias: false, lent: null }
    if (element.key.type === 'PrivateIdentifier') {
      if (this.flavor(func) !== 'plain') return made
      return rope`${made} ${this.twin(func, head, `${fixed}*${this.privateName(element.key.name)}`)}`
    }
    const number = this.names.number()
    const key = keyName(element)
    const keyPiece =
      key === null ? this.source.slice(element.key.start, element.key.end) : JSON.stringify(key)
    links.push(keyPiece, String(number), element.static ? 'true' : 'false', `'${this.flavor(func)}'`)
    return rope`${made} ${this.twin(func, head, `${fixed}*[${this.names.runtime('key')}(${number})]`)}`
  }

  /** The twin of a private method is a private method beside it. */
  protected privateName(name: string): string {
    return `#${this.names.prefix}${name}`
  }
}

/** The function declaration that a statement is, or exports. */
function declarationIn(statement: Node): Node | null {
  if (statement.type === 'FunctionDeclaration') return isFunction(statement) ? statement : null
  if (statement.type === 'ExportNamedDeclaration' || statement.type === 'ExportDefaultDeclaration') {
    const { declaration } = statement
    if (declaration?.type === 'FunctionDeclaration' && isFunction(declaration)) return declaration
  }
  return null
}

/** True when the function is used as a value anywhere. */
function escapes({ binding }: Func): boolean {
  return (
    binding === null || binding.volatile || binding.references.some(({ callee, write }) => !callee || write)
  )
}

function propertyText(name: string): string {
  return name === '__proto__' ? '["__proto__"]' : JSON.stringify(name)
}

function propertyKey(name: string): string {
  return propertyText(name)
}

function accessText(name: string): string {
  return `[${JSON.stringify(name)}]`
}

/** The part of a rope from an offset of the source on. */
function cut(whole: Rope, from: number): Rope {
  const made = new Rope()
  let reached = false
  for (const part of whole.parts) {
    if (reached) made.add(part)
    else if (typeof part === 'object' && part.end > from) {
      made.add({ start: Math.max(from, part.start), end: part.end })
      reached = true
    }
  }
  return made
}

export { noJumps }
