/**
 * Writes the output: the source text, with each function's resumable form beside it. This half knows where
 * twins go: next to declarations, around expressions, into class bodies. The lowering writes the code inside
 * them.
 *
 * The output contains two copies of a function's text, the plain form and the twin. Either of them may make
 * the functions inside. In the twin these get their own twins attached. In the plain form they get twins only
 * if they are marked themselves, and not inside a twin. So the size grows with the depth, not exponentially.
 */
import type { Analysis } from '../../analysis/analysis.ts'
import type { Func } from '../../analysis/functions.ts'
import { join, type Piece, Rope, rope } from '../../output/rope.ts'
import { bare, children, directives, givesName, isFunction, type Node } from '../../analysis/syntax.ts'
import { endsWithArrow } from './semicolons.ts'
import { namedProperty, propertyText, writeDeclaration, writeFunction } from './attach.ts'
import { isBind, writeBind } from './bind.ts'
import { writeClass } from './classes.ts'
import { Available, type Context, type Frame, noJumps } from './context.ts'
import { writeCapture } from './arrowcaptures.ts'
import { writeRenamed } from './renamedvariables.ts'
import { Names } from './names.ts'
import { writeObject } from './objects.ts'
import { writeProgram } from './program.ts'
import { writeTwin } from '../generator/twin.ts'

/** The kind of function that a resumable form replaces. */
export type Flavor = 'plain' | 'generator' | 'async' | 'getter' | 'setter'

export abstract class Writer {
  readonly source: string
  readonly analysis: Analysis
  readonly names: Names
  /** The names that anonymous functions take from their context. */
  readonly #hints = new Map<Node, string>()
  readonly #twinNames = new Map<Func, string>()

  constructor(source: string, analysis: Analysis) {
    this.source = source
    this.analysis = analysis
    this.names = new Names(source, this.namesShortly)
  }

  /** True if the output uses short names. */
  protected get namesShortly(): boolean {
    return false
  }

  /** Writes a node of code that may suspend; null if the node is copied, with its children written. */
  abstract resumable(node: Node, cx: Context): Rope | null

  /** The first statements of a resumable function. */
  abstract entry(func: Func, frame: Frame): string

  flavor(func: Func): Flavor {
    if (func.kind === 'getter' || func.kind === 'setter') return func.kind
    if (func.isGenerator) return 'generator'
    return func.isAsync ? 'async' : 'plain'
  }

  /** The runtime function that attaches the resumable form. */
  attacher(func: Func): string {
    const flavor = this.flavor(func)
    if (flavor === 'generator') return this.names.runtime('attachGenerator')
    return this.names.runtime(flavor === 'async' ? 'attachAsync' : 'attach')
  }

  /** True if calls can use the twin's own name, without a check of the function. */
  isDirect(func: Func): boolean {
    return func.kind === 'declaration' && !func.isGenerator && !func.isAsync
  }

  program(runtime: string, preamble: () => string = () => '', ending: () => string = () => ''): Rope {
    return writeProgram(this, runtime, preamble, ending)
  }

  /**
   * A statement list from `from` to `to`. The twins of its declarations are attached before its first
   * statement.
   */
  list(body: Node[], outer: Context, from: number, to: number): { attached: Rope; statements: Rope } {
    const cx = { ...outer, available: this.availableIn(body, outer) }
    const attached = new Rope()
    const statements = new Rope()
    let reached = from
    for (const statement of body) {
      if (statement.start < reached) continue
      statements.add({ start: reached, end: statement.start })
      const declaration = declarationIn(statement)
      const func = declaration === null ? undefined : this.analysis.funcOf.get(declaration)
      if (func !== undefined && this.attachesTwin(func, cx)) {
        const { plain, beside, attach } = writeDeclaration(this, statement, declaration!, func, cx)
        statements.add(plain).add(' ').add(beside)
        attached.add(attach)
      } else {
        // The written statement may begin with a parenthesis; after a line without a semicolon that would be
        // a call.
        if ((cx.frame !== null || cx.renamed !== null) && statement.type === 'ExpressionStatement')
          statements.add(';')
        statements.add(this.node(statement, cx))
      }
      reached = statement.end
    }
    statements.add({ start: reached, end: to })
    return { attached, statements }
  }

  /** The functions of these statements that can be called by their twin's name. */
  availableIn(statements: readonly Node[], cx: Context): Available {
    let own: Set<Func> | null = null
    for (const statement of statements) {
      for (const func of this.declaredIn(statement)) {
        if (!this.attachesTwin(func, cx)) continue
        own ??= new Set()
        own.add(func)
      }
    }
    return own === null ? cx.available : new Available(cx.available, own)
  }

  /** The functions that a statement declares. */
  declaredIn(statement: Node): Func[] {
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

  /** True if the function's resumable form is attached here. */
  attachesTwin(func: Func, cx: Context): boolean {
    if (!func.twin || cx.attach === 'none') return false
    if (cx.attach === 'explicit' && func.mark === 'inherited') return false
    if (func.kind === 'declaration' && func.binding !== null) {
      const { declarations } = func.binding
      if (declarations[declarations.length - 1] !== func.node) return false
    }
    return true
  }

  /** The name of a declared function's twin. */
  twinName(func: Func): string {
    let name = this.#twinNames.get(func)
    if (name === undefined) {
      name = this.names.fresh(func.node.id?.name ?? 'default')
      this.#twinNames.set(func, name)
    }
    return name
  }

  /** True for a function that unwinds: it is its own resumable form. */
  isItself(_func: Func): boolean {
    return false
  }

  /** Such a function, with its mark. */
  marked(func: Func, value: Piece, _name?: string): Rope {
    return rope`${this.attacher(func)}(${value})`
  }

  /** The position of a parameter that may be an unmarked function; null if there is none. */
  takenAt(_func: Func): number | null {
    return null
  }

  /** True if every class, also one without methods, is reported to the runtime. */
  readonly marksClasses: boolean = false

  /** A statement for each linked class. */
  get classMark(): string {
    return ''
  }

  /** Code after the last element of a class. */
  classEnding(_node: Node): string {
    return ''
  }

  /** The condition under which the value of a field is not computed, or null. */
  fieldGuard(_owner: Node): string | null {
    return null
  }

  /** Code at the start of a class body. Called after its elements are written. */
  classExtra(_node: Node): Rope {
    return rope``
  }

  /** A method of an object literal that another function makes; null if it stays in its object. */
  liftedMethod(_property: Node, _func: Func, _cx: Context): Rope | null {
    return null
  }

  /** True if functions that plain code binds stay resumable. */
  get keepsBound(): boolean {
    return true
  }

  /** True if runtime exports are copied into constants of the module, which engines optimize best. */
  get fixesImports(): boolean {
    return false
  }

  /** The function's plain form: its text as it is, except functions inside that are marked themselves. */
  plain(node: Node, func: Func, cx: Context): Rope {
    if (func.isText) return new Rope().add(node)
    const attach = func.twin && cx.attach === 'all' ? 'none' : cx.attach
    const readsCaptures = func.isArrow && cx.readsCaptures
    return this.copy(node, {
      ...cx,
      func,
      frame: null,
      attach,
      readsCaptures,
      captureOwner: readsCaptures || func.isArrow ? cx.captureOwner : null,
      jumps: noJumps,
    })
  }

  twin(func: Func, outer: Context, head: string): Rope {
    return writeTwin(this, func, outer, head)
  }

  /**
   * A parameter of a twin, and the statement that it adds to the body. `beside`: the twin's head, where
   * nothing can suspend.
   */
  parameter(
    parameter: Node,
    _index: number,
    _func: Func,
    beside: Context,
    _cx: Context,
  ): { written: Rope; opening: Rope } {
    return { written: this.node(parameter, beside), opening: rope`` }
  }

  node(node: Node, cx: Context): Rope {
    if (isFunction(node)) return writeFunction(this, node, cx)
    switch (node.type) {
      case 'ClassDeclaration':
      case 'ClassExpression':
        return writeClass(this, node, cx)
      case 'ObjectExpression':
        return writeObject(this, node, cx)
      case 'VariableDeclarator':
        if (node.id.type === 'Identifier' && node.init !== null) this.hint(node.init, node.id.name)
        break
      case 'AssignmentExpression':
      case 'AssignmentPattern':
        if (givesName(node)) this.hint(node.right, node.left.name)
        break
      case 'ExportDefaultDeclaration':
        this.hint(node.declaration, 'default')
        break
      default:
    }
    if (cx.renamed !== null) {
      const moved = writeRenamed(this, node, cx)
      if (moved !== null) return moved
    }
    if (cx.readsCaptures) {
      const captured = writeCapture(this, node, cx)
      if (captured !== null) return captured
    }
    if (cx.frame !== null) {
      const written = this.resumable(node, cx)
      if (written !== null) return written
    }
    if (cx.frame === null && this.keepsBound && isBind(node)) return writeBind(this, node, cx)
    if (node.type === 'BlockStatement' || node.type === 'StaticBlock' || node.type === 'TSModuleBlock') {
      return this.block(node, cx)
    }
    if (node.type === 'SwitchStatement') return this.#switch(node, cx)
    return this.copy(node, cx)
  }

  /** The other name of a variable. */
  renamed(node: Node, cx: Context): string | undefined {
    if (cx.renamed === null) return undefined
    const binding = this.analysis.bindingOf.get(node)
    if (binding === undefined) return undefined
    if (binding === null) return node.name === 'arguments' ? cx.renamed.get('arguments') : undefined
    return cx.renamed.get(binding)
  }

  spreadProperty(node: Node, cx: Context): Rope {
    return this.copy(node, cx)
  }

  argumentsText(node: Node, cx: Context): Rope {
    return join(
      node.arguments.map((argument: Node) => this.node(argument, cx)),
      ', ',
    )
  }

  /** A template with another text for its tag. */
  taggedBy(tag: Rope, node: Node, cx: Context): Rope {
    return rope`${tag}${this.node(node.quasi, cx)}`
  }

  /** The node's own text, with its children written. */
  copy(node: Node, cx: Context): Rope {
    if (isFunction(node)) return this.#functionText(node, cx)
    const made = new Rope()
    // Unchanged children need no separate piece: most of a program is copied.
    let copied = node.start
    let reached = node.start
    for (const child of children(node)) {
      if (child.start < reached) continue
      reached = child.end
      const text = this.node(child, cx)
      // `new function () {…}()`: with a call around it, the function would be an argument of `new`.
      const isMade = node.type === 'NewExpression' && child === node.callee && beginsWithFunction(child)
      if (!isMade && text.isRange(child)) continue
      made.add({ start: copied, end: child.start }).add(isMade ? rope`(${text})` : text)
      copied = child.end
    }
    made.add({ start: copied, end: node.end })
    return copied > node.start && endsWithArrow(node, this.source) ? made.add(';') : made
  }

  #functionText(node: Node, cx: Context): Rope {
    const made = new Rope()
    let reached = node.start
    for (const parameter of node.params) {
      made.add({ start: reached, end: parameter.start }).add(this.node(parameter, cx))
      reached = parameter.end
    }
    made.add({ start: reached, end: node.body.start })
    if (node.body.type === 'BlockStatement') made.add(this.block(node.body, cx))
    else made.add(this.node(node.body, cx))
    return made.add({ start: node.body.end, end: node.end })
  }

  /** A block, with the twins of its declarations. */
  block(node: Node, cx: Context): Rope {
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

  /**
   * A function declared in a case is not visible outside the switch: its twin is attached at the start of the
   * case.
   */
  #switch(node: Node, cx: Context): Rope {
    const all: Node[] = node.cases.flatMap(({ consequent }: Node) => consequent)
    if (
      cx.frame === null &&
      cx.renamed === null &&
      !all.some(statement => this.declaredIn(statement).some(func => this.attachesTwin(func, cx)))
    )
      return this.copy(node, cx)
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

  /** The name that the function takes from its context. */
  hintOf(func: Node): string | undefined {
    return this.#hints.get(func)
  }

  /** Records the name that an anonymous function takes from its context. */
  hint(value: Node, name: string): void {
    const node = bare(value)
    if (isFunction(node) && node.id === null) this.#hints.set(node, name)
  }

  /** An anonymous function or class that is assigned to the variable `id`, from which it takes its name. */
  named(value: Node, id: Node, cx: Context): Rope {
    const other = this.renamed(id, cx)
    if (other !== undefined && other !== id.name) return this.namedAs(value, id.name, cx)
    this.hint(value, id.name)
    return this.node(value, cx)
  }

  /** The same with another name. */
  namedAs(value: Node, name: string, cx: Context): Rope {
    this.hint(value, name)
    const text = this.node(value, cx)
    const func = this.analysis.funcOf.get(bare(value))
    // A function with an attached twin has its name already.
    if (func !== undefined && this.attachesTwin(func, cx)) return text
    return namedProperty(name, rope`${propertyText(name)}: ${text}`)
  }

  /** The name of a private method's twin, a private method beside it. */
  privateName(name: string): string {
    return `#${this.names.prefix}${name}`
  }
}

/** True if the text of an expression begins with a function or an object, which may get a call around it. */
function beginsWithFunction(node: Node): boolean {
  let inner = node
  while (inner.type === 'MemberExpression' || inner.type === 'TaggedTemplateExpression') {
    inner = inner.object ?? inner.tag
  }
  return isFunction(inner) || inner.type === 'ObjectExpression'
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
