/**
 * Counters for the coverage of a check: one for each statement and one for each branch direction. They are
 * elements of an array that no thread shares, so a turn of a loop that only counts still has no effect.
 */
import type { Lines } from '../../output/lines.ts'
import { type Rope, rope } from '../../output/rope.ts'
import { type Node, walk } from '../../analysis/syntax.ts'

/** The kinds of counted points, in the arrays that the output passes to its runtime. */
const STATEMENT = 'statement'

export class Coverage {
  readonly #lines: Lines
  readonly #counters: string
  readonly #statements = new Set<Node>()
  /** The branch directions, by the name that a report uses. */
  readonly #ways = new Map<Node, string>()
  readonly #ids = new Map<string, number>()
  readonly #points: string[] = []

  /** `counters`: the variable that holds the array. */
  constructor(program: Node, lines: Lines, counters: string) {
    this.#lines = lines
    this.#counters = counters
    walk(program, node => this.#mark(node))
  }

  /** The text of the points, or '' if there are none. */
  get points(): string {
    return this.#points.join(', ')
  }

  /** A node with its counters. */
  around(node: Node, written: Rope): Rope {
    let made = written
    if (node.type === 'IfStatement' && node.alternate === null)
      made = rope`${made} else { ${this.#hit(node, 'else')}; }`
    const way = this.#ways.get(node)
    const isListed = this.#statements.has(node)
    if (isListed) made = rope`${this.#hit(node, STATEMENT)};${made}`
    if (way === undefined) return made
    const hit = this.#hit(node, way)
    if (isListed) return rope`${hit};${made}`
    // In sloppy code a branch may be a function declaration.
    const isStatement = node.type.endsWith('Statement') || node.type === 'FunctionDeclaration'
    return isStatement ? rope`{ ${hit}; ${made} }` : rope`(${hit}, ${made})`
  }

  #mark(node: Node): void {
    const list: Node[] | undefined =
      node.type === 'SwitchCase'
        ? node.consequent
        : /^(?:Program|BlockStatement|StaticBlock|TSModuleBlock)$/.test(node.type)
          ? node.body
          : undefined
    for (const statement of list ?? []) if (isCounted(statement)) this.#statements.add(statement)
    switch (node.type) {
      case 'IfStatement':
        this.#ways.set(node.consequent, 'if')
        if (node.alternate !== null) this.#ways.set(node.alternate, 'else')
        break
      case 'ConditionalExpression':
        this.#ways.set(node.consequent, '?')
        this.#ways.set(node.alternate, ':')
        break
      case 'LogicalExpression':
        this.#ways.set(node.right, node.operator as string)
        break
      case 'CatchClause':
        this.#ways.set(node.body, 'catch')
        break
      case 'ArrowFunctionExpression':
        if (node.body.type !== 'BlockStatement') this.#ways.set(node.body, STATEMENT)
        break
      case 'SwitchCase':
        this.#case(node)
        break
      default:
    }
  }

  /** A case is reached if its first statement is. */
  #case({ consequent, test }: Node): void {
    const first = (consequent as Node[]).find(
      statement => this.#statements.has(statement) || statement.type === 'BlockStatement',
    )
    if (first !== undefined) this.#ways.set(first, test === null ? 'default' : 'case')
  }

  #hit(node: Node, way: string): string {
    const key = `${node.start} ${node.end} ${way}`
    let id = this.#ids.get(key)
    if (id === undefined) {
      const { line, column } = this.#lines.at(node.start)
      id = this.#points.push(JSON.stringify([line, column, way])) - 1
      this.#ids.set(key, id)
    }
    return `${this.#counters}[${id}]++`
  }
}

/** True if a statement runs code: declarations of functions and types do not. */
function isCounted(statement: Node): boolean {
  const { type } = statement
  if (type === 'ExportNamedDeclaration')
    return statement.declaration?.type === 'VariableDeclaration' && isCounted(statement.declaration)
  if (statement.declare === true) return false
  if (type === 'ExpressionStatement') return typeof statement.directive !== 'string'
  return (
    type === 'VariableDeclaration' ||
    type === 'ClassDeclaration' ||
    (type.endsWith('Statement') && type !== 'EmptyStatement' && type !== 'BlockStatement')
  )
}
