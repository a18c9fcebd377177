/** The targets of `break`, `continue` and `return` in a statement. */
import { isLoop, type Node } from '../../analysis/syntax.ts'

/** The jumps in a loop's body that leave the loop, and those that end its turn. */
export function collectJumps(body: Node, labels: Set<string>, breaks: Node[], continues: Node[]): void {
  const visit = (node: Node, breakable: boolean, continuable: boolean): void => {
    if (node.type === 'BreakStatement') {
      if (node.label === null ? breakable : labels.has(node.label.name)) breaks.push(node)
      return
    }
    if (node.type === 'ContinueStatement') {
      if (node.label === null ? continuable : labels.has(node.label.name)) continues.push(node)
      return
    }
    const nested = isLoop(node)
    for (const child of statementsIn(node)) {
      visit(child, breakable && !nested && node.type !== 'SwitchStatement', continuable && !nested)
    }
  }
  visit(body, true, true)
}

/** The jumps in a statement that leave it. */
export function jumpsOutOf(statement: Node): Node[] {
  const jumps: Node[] = []
  const visit = (node: Node, labels: ReadonlySet<string>, breakable: boolean, continuable: boolean): void => {
    if (node.type === 'BreakStatement' || node.type === 'ContinueStatement') {
      const inside = node.type === 'BreakStatement' ? breakable : continuable
      if (node.label === null ? !inside : !labels.has(node.label.name)) jumps.push(node)
      return
    }
    const known = node.type === 'LabeledStatement' ? new Set([...labels, node.label.name as string]) : labels
    const loop = isLoop(node)
    for (const child of statementsIn(node)) {
      visit(child, known, breakable || loop || node.type === 'SwitchStatement', continuable || loop)
    }
  }
  visit(statement, new Set(), false, false)
  return jumps
}

/** The exits of a loop's body other than its own `break`; null if a `finally` prevents rewriting them. */
export function leavesOf(body: Node, labels: Set<string>): { returns: Node[]; jumps: Node[] } | null {
  const returns: Node[] = []
  const jumps: Node[] = []
  let ends = false
  const visit = (node: Node, inner: ReadonlySet<string>): void => {
    switch (node.type) {
      case 'ReturnStatement':
        returns.push(node)
        return
      case 'BreakStatement':
      case 'ContinueStatement':
        if (node.label !== null && !inner.has(node.label.name) && !labels.has(node.label.name))
          jumps.push(node)
        return
      case 'TryStatement':
        if (node.finalizer !== null) ends = true
        break
      default:
    }
    const known = node.type === 'LabeledStatement' ? new Set([...inner, node.label.name as string]) : inner
    for (const child of statementsIn(node)) visit(child, known)
  }
  visit(body, new Set())
  return ends ? null : { returns, jumps }
}

function statementsIn(node: Node): Node[] {
  switch (node.type) {
    case 'BlockStatement':
      return node.body
    case 'IfStatement':
      return node.alternate === null ? [node.consequent] : [node.consequent, node.alternate]
    case 'LabeledStatement':
    case 'WithStatement':
    case 'ForStatement':
    case 'ForInStatement':
    case 'ForOfStatement':
    case 'WhileStatement':
    case 'DoWhileStatement':
      return [node.body]
    case 'SwitchStatement':
      return node.cases.flatMap(({ consequent }: Node) => consequent)
    case 'TryStatement':
      return [node.block, node.handler?.body, node.finalizer].filter(
        part => part !== null && part !== undefined,
      )
    default:
      return []
  }
}
