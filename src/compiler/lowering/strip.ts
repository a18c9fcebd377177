/** Which loops can be run in strips, and how: a question about the loop alone. */
import type { Analysis } from '../analyze.ts'
import type { Binding } from '../scope.ts'
import { boundNames, isFunction, isLoop, type Node, walk } from '../syntax.ts'

export interface Strip {
  /** The `break`s that leave this loop. */
  breaks: Node[]
  /** The `continue`s that end a turn of it. */
  continues: Node[]
  /** Set where the loop counts a number to a bound that stays: then a strip needs no counter of its own. */
  counted: { counter: string; bound: Node; operator: string; step: number } | null
}

/** How the loop is stripped, or null where it must stay in one piece. The loop has no call and no loop inside. */
export function stripOf(loop: Node, labels: Node[], analysis: Analysis): Strip | null {
  if (loop.type === 'ForInStatement' || loop.type === 'ForOfStatement') return null
  if (loop.type === 'ForStatement' && loop.init?.type === 'VariableDeclaration' && loop.init.kind !== 'var') {
    if (loop.init.kind.includes('using')) return null
    for (const declarator of loop.init.declarations) {
      for (const name of boundNames(declarator.id)) {
        // A closure sees a new variable each turn: only the loop itself can make those.
        if (analysis.bindingOf.get(name)?.captured !== false) return null
      }
    }
  }
  const breaks: Node[] = []
  const continues: Node[] = []
  collectJumps(loop.body, new Set(labels.map(({ name }) => name as string)), breaks, continues)
  return { breaks, continues, counted: loop.type === 'ForStatement' ? countedOf(loop, analysis) : null }
}

function collectJumps(body: Node, labels: Set<string>, breaks: Node[], continues: Node[]): void {
  const visit = (node: Node, breakable: boolean): void => {
    if (isFunction(node) || isLoop(node)) return
    if (node.type === 'BreakStatement') {
      if (node.label === null ? breakable : labels.has(node.label.name)) breaks.push(node)
      return
    }
    if (node.type === 'ContinueStatement') {
      if (node.label === null || labels.has(node.label.name)) continues.push(node)
      return
    }
    const inner = breakable && node.type !== 'SwitchStatement'
    for (const child of statementsIn(node)) visit(child, inner)
  }
  visit(body, true)
}

function statementsIn(node: Node): Node[] {
  switch (node.type) {
    case 'BlockStatement':
      return node.body
    case 'IfStatement':
      return node.alternate === null ? [node.consequent] : [node.consequent, node.alternate]
    case 'LabeledStatement':
    case 'WithStatement':
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

const operators: ReadonlyMap<string, number> = new Map([
  ['<', 1],
  ['<=', 1],
  ['>', -1],
  ['>=', -1],
])

function countedOf(loop: Node, { bindingOf }: Analysis): Strip['counted'] {
  const { test, update } = loop
  if (test?.type !== 'BinaryExpression' || test.left.type !== 'Identifier' || update === null) return null
  const direction = operators.get(test.operator)
  const step = stepOf(update, test.left.name)
  if (direction === undefined || step === null || Math.sign(step) !== direction) return null
  const counter = bindingOf.get(test.left)
  if (!isLocal(counter, loop)) return null
  let writes = 0
  for (const { node, write } of counter.references) if (write && isWithin(node, loop)) writes++
  if (writes !== 1) return null
  const { right } = test
  if (right.type === 'Literal' && typeof right.value === 'number') {
    return { counter: test.left.name, bound: right, operator: test.operator, step }
  }
  if (right.type !== 'Identifier') return null
  const bound = bindingOf.get(right)
  if (!isLocal(bound, loop)) return null
  if (bound.references.some(({ node, write }) => write && isWithin(node, loop))) return null
  return { counter: test.left.name, bound: right, operator: test.operator, step }
}

/** True when only the function around the loop can write the variable. */
function isLocal(binding: Binding | null | undefined, loop: Node): binding is Binding {
  if (binding === null || binding === undefined || binding.volatile) return false
  const writers = binding.references.filter(({ write }) => write)
  if (writers.length === 0) return true
  const { func } = binding.scope
  const body = func.node
  return isWithin(loop, body) && writers.every(reference => reference.func === func) && directlyIn(loop, body)
}

/** True when no function stands between the loop and the body. */
function directlyIn(loop: Node, body: Node): boolean {
  let found = false
  walk(body, node => {
    if (node === loop) found = true
    return !found && (node === body || !isFunction(node))
  })
  return found
}

function isWithin(inner: Node, outer: Node): boolean {
  return inner.start >= outer.start && inner.end <= outer.end
}

function stepOf(update: Node, counter: string): number | null {
  if (update.type === 'UpdateExpression') {
    if (update.argument.type !== 'Identifier' || update.argument.name !== counter) return null
    return update.operator === '++' ? 1 : -1
  }
  if (
    update.type !== 'AssignmentExpression' ||
    update.left.type !== 'Identifier' ||
    update.left.name !== counter
  )
    return null
  const { right } = update
  if (right.type !== 'Literal' || typeof right.value !== 'number' || !(right.value > 0)) return null
  if (update.operator === '+=') return right.value
  return update.operator === '-=' ? -right.value : null
}
