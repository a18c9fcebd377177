/**
 * Counters for V8's coverage, inserted into a source. V8 counts the blocks of the text that runs. In compiled
 * text a block appears more than once, between blocks that are not in the source. So each block of the source
 * calls a function of its own, which the compiler copies into each form. V8 counts the calls of these
 * functions; their sum is the count of the block. The blocks are V8's: functions, branches, loop bodies,
 * clauses, and the code after a statement that may jump.
 */
import { MagicString } from 'magic-string'
import { Reporter } from '../output/diagnostics.ts'
import { Lines } from '../output/lines.ts'
import { parse } from '../analysis/parse.ts'
import type { SourceMap } from '../output/sourcemap.ts'
import { bare, children, directives, isFunction, isLoop, type Node } from '../analysis/syntax.ts'

/** A range of the source that runs as often as its counter is called; without a counter, never. */
export interface Block {
  start: number
  end: number
  counter: number | null
}

export interface Counted {
  code: string
  map: SourceMap
  /** The prefix of the counters' names; a number follows. */
  prefix: string
  /** Blocks that contain others come first. */
  blocks: readonly Block[]
}

/** The source with its counters, or null if it does not parse. */
export function countBlocks(source: string, file: string): Counted | null {
  const parsed = parse(source, file, new Reporter(file, new Lines(source)))
  if (parsed === null) return null
  let prefix = '$counted'
  while (source.includes(prefix)) prefix += '_'
  const counters = new Counters(source, prefix)
  counters.program(parsed.program)
  const { text, blocks, count } = counters
  for (let counter = 0, line = '\n'; counter < count; counter++, line = '') {
    text.append(`${line}function ${prefix}${counter}(){}`)
  }
  return {
    code: text.toString(),
    map: text.generateMap({ source: file, includeContent: true, hires: 'boundary' }) as SourceMap,
    prefix,
    blocks,
  }
}

/**
 * Inserts text from the outermost node inwards: at the same offset, the text of an inner node is further
 * inside.
 */
class Counters {
  readonly text: MagicString
  readonly blocks: Block[] = []
  count = 0
  readonly #source: string
  readonly #prefix: string

  constructor(source: string, prefix: string) {
    this.text = new MagicString(source)
    this.#source = source
    this.#prefix = prefix
  }

  program({ body, hashbang }: Node): void {
    const end = this.#source.length
    const call = this.#block(0, end)
    const first = directives(body).at(-1)?.end ?? hashbang?.end ?? 0
    this.text.prependLeft(first, first === 0 ? `${call};` : `\n;${call};`)
    this.#list(body, end)
  }

  /** Adds a block, and returns the call of its counter. */
  #block(start: number, end: number): string {
    const counter = this.count++
    this.blocks.push({ start, end, counter })
    return `${this.#prefix}${counter}()`
  }

  /** Consecutive statements, up to the end of the code that contains them. */
  #list(statements: readonly Node[], end: number): void {
    for (const statement of statements) {
      if (isJump(statement)) this.blocks.push({ start: statement.end, end, counter: null })
      else if (mayLeave(statement)) {
        this.text.prependLeft(statement.end, `;${this.#block(statement.end, end)};`)
      }
      this.#visit(statement)
    }
  }

  #visit(node: Node): void {
    if (isFunction(node)) return this.#function(node, node.start)
    if (isLoop(node)) this.#body(node.body)
    switch (node.type) {
      case 'Property':
      case 'MethodDefinition':
        if (node.value === null || !isFunction(node.value)) break
        if (node.type === 'Property' && !node.method && node.kind === 'init') break
        if (node.computed) this.#visit(node.key)
        return this.#function(node.value, node.start)
      case 'ClassBody':
        this.#fields(node.body)
        break
      case 'BlockStatement':
      case 'StaticBlock':
        return this.#list(node.body, node.end)
      case 'IfStatement':
        this.#body(node.consequent)
        if (node.alternate !== null) this.#body(node.alternate, node.consequent.end)
        break
      case 'SwitchStatement':
        this.#visit(node.discriminant)
        for (const clause of node.cases) this.#clause(clause)
        return
      case 'TryStatement':
        if (node.handler !== null) this.#body(node.handler.body, node.handler.start)
        if (node.finalizer !== null) this.#body(node.finalizer)
        break
      case 'ConditionalExpression':
        this.#operand(node.consequent, node.test.end)
        this.#operand(node.alternate, node.consequent.end)
        break
      case 'LogicalExpression':
        this.#operand(node.right, node.right.start)
        break
    }
    for (const child of children(node)) this.#visit(child)
  }

  #function(node: Node, start: number): void {
    const call = this.#block(start, node.end)
    const { body } = node
    if (body.type === 'BlockStatement' || body.type === 'FunctionBody') {
      this.text.prependLeft(directives(body.body).at(-1)?.end ?? body.start + 1, `;${call};`)
      for (const parameter of node.params) this.#visit(parameter)
      this.#list(body.body, body.end)
    } else {
      this.#before(body, call)
      for (const parameter of node.params) this.#visit(parameter)
      this.#visit(body)
    }
  }

  /** Counts the runs of a statement inside another. */
  #body(node: Node, start: number = node.start): void {
    // Only sloppy code has a declaration here, and a block around it would change its scope.
    if (node.type === 'FunctionDeclaration') return
    const call = this.#block(start, node.end)
    if (node.type === 'BlockStatement') this.text.appendRight(node.start + 1, `${call};`)
    else {
      this.text.appendRight(node.start, `{${call};`)
      this.text.prependLeft(node.end, '}')
    }
  }

  #clause(clause: Node): void {
    const { test, consequent, start, end } = clause
    const call = this.#block(start, end)
    if (consequent.length > 0) this.text.appendRight(consequent[0].start, `${call};`)
    else this.text.prependLeft(end, `${call};`)
    if (test !== null) this.#visit(test)
    this.#list(consequent, end)
  }

  #operand(node: Node, start: number): void {
    this.#before(node, this.#block(start, node.end))
  }

  #before(expression: Node, call: string): void {
    this.text.appendRight(expression.start, `(${call},`)
    this.text.prependLeft(expression.end, ')')
  }

  /**
   * V8 counts the instance fields as one function, and the static fields with the static blocks as another.
   */
  #fields(members: readonly Node[]): void {
    const fields = members.filter(({ type }) => type === 'PropertyDefinition' || type === 'StaticBlock')
    for (const isStatic of [false, true]) {
      const some = fields.filter(field => (field.type === 'StaticBlock' || field.static) === isStatic)
      const first = some[0]
      if (first === undefined) continue
      const call = this.#block(first.start, some.at(-1)!.end)
      const name = call.slice(0, -2)
      this.text.appendRight(first.start, isStatic ? `static{${call}}` : `#${name}=${call};`)
    }
  }
}

function isJump({ type }: Node): boolean {
  return (
    type === 'ReturnStatement' ||
    type === 'ThrowStatement' ||
    type === 'BreakStatement' ||
    type === 'ContinueStatement'
  )
}

/**
 * True if the code after the statement may run less often than the statement. V8 ignores exceptions of calls.
 */
function mayLeave(node: Node): boolean {
  switch (node.type) {
    case 'IfStatement':
    case 'SwitchStatement':
    case 'TryStatement':
    case 'LabeledStatement':
    case 'BlockStatement':
    case 'WithStatement':
      return true
    case 'FunctionDeclaration':
      return false
    default:
      return isLoop(node) || waits(node)
  }
}

/** True if the node has an `await` or a `yield` of its own function. */
function waits(node: Node): boolean {
  const inner = bare(node)
  if (inner.type === 'AwaitExpression' || inner.type === 'YieldExpression') return true
  return !isFunction(inner) && children(inner).some(waits)
}
