/** Which loops can run in strips, and how. This depends on the loop alone. */
import type { Analysis } from '../../analysis/analysis.ts'
import type { Binding } from '../../analysis/scope.ts'
import { boundNames, contains, isFunction, type Node, walk } from '../../analysis/syntax.ts'
import { collectJumps } from './jumps.ts'

export interface Counted {
  counter: string
  bound: Node
  operator: string
  /** The step of the counter: a number, or the text of an unchanging value. */
  step: number | string
}

export interface Strip {
  /** The `break`s that leave this loop. */
  breaks: Node[]
  /** The `continue`s that end a turn of it. */
  continues: Node[]
  /** Set if the loop counts to a bound that does not change: then a strip needs no counter of its own. */
  counted: Counted | null
  /** Set if the first test shows the approximate number of turns; `step` is the text of the step. */
  estimate: {
    counter: string
    step: string /** Only counter, bound and step change. */
    steady: boolean
  } | null
}

/** How the loop runs in strips, or null if it cannot. The loop contains no call and no loop. */
export function stripOf(loop: Node, labels: Node[], analysis: Analysis): Strip | null {
  if (loop.type === 'ForInStatement' || loop.type === 'ForOfStatement') return null
  if (loop.type === 'ForStatement' && loop.init?.type === 'VariableDeclaration' && loop.init.kind !== 'var') {
    if (loop.init.kind.includes('using')) return null
    for (const declarator of loop.init.declarations) {
      for (const name of boundNames(declarator.id)) {
        // A closure captures a new variable each turn, which only the loop itself can make.
        if (analysis.bindingOf.get(name)?.captured !== false) return null
      }
    }
  }
  const breaks: Node[] = []
  const continues: Node[] = []
  collectJumps(loop.body, new Set(labels.map(({ name }) => name as string)), breaks, continues)
  if (loop.type !== 'ForStatement') return { breaks, continues, counted: null, estimate: null }
  return { breaks, continues, counted: countedOf(loop, analysis), estimate: estimateOf(loop, analysis) }
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
  for (const { node, write } of counter.references) if (write && contains(loop, node)) writes++
  if (writes !== 1) return null
  const { right } = test
  if (right.type === 'Literal' && typeof right.value === 'number') {
    return { counter: test.left.name, bound: right, operator: test.operator, step }
  }
  if (right.type !== 'Identifier') return null
  const bound = bindingOf.get(right)
  if (!isLocal(bound, loop)) return null
  if (bound.references.some(({ node, write }) => write && contains(loop, node))) return null
  return { counter: test.left.name, bound: right, operator: test.operator, step }
}

/**
 * A `for` whose test compares a counter with a bound, and whose body changes neither: then the distance at
 * the first test is about the number of turns.
 */
function estimateOf(loop: Node, { bindingOf }: Analysis): Strip['estimate'] {
  const { test, update } = loop
  if (test?.type !== 'BinaryExpression' || test.left.type !== 'Identifier' || update === null) return null
  const direction = operators.get(test.operator)
  if (direction === undefined) return null
  const counter = bindingOf.get(test.left)
  if (!isLocal(counter, loop)) return null
  const steps: Node[] = update.type === 'SequenceExpression' ? update.expressions : [update]
  let step: string | null = null
  for (const part of steps) {
    const own = stepText(part, test.left.name, direction)
    if (own !== null) step = own
  }
  if (step === null) return null
  if (/^[A-Za-z_$]/.test(step)) {
    const stepBinding = bindingOf.get(
      steps.map(({ right }) => right).find(right => right?.name === step) ?? test,
    )
    if (!isLocal(stepBinding, loop) || writesWithin(stepBinding, loop) > 0) return null
  }
  if (writesWithin(counter, loop) !== 1) return null
  const { right } = test
  const found = { counter: test.left.name as string, step, steady: false }
  const single = update.type !== 'SequenceExpression'
  if (right.type === 'Literal') return typeof right.value === 'number' ? { ...found, steady: single } : null
  if (right.type === 'Identifier') {
    const bound = bindingOf.get(right)
    if (!isLocal(bound, loop)) return null
    const away = steps.every(part => stepText(part, right.name, direction) === null)
    const inUpdate = bound.references.filter(({ node, write }) => write && contains(update, node)).length
    return away && writesWithin(bound, loop) === inUpdate
      ? { ...found, steady: single && inUpdate === 0 }
      : null
  }
  if (right.type !== 'MemberExpression' || right.computed || !isPath(right)) return null
  return changesMember(loop.body, right, test.left.name) ? null : found
}

function writesWithin(binding: Binding, loop: Node): number {
  return binding.references.filter(({ node, write }) => write && contains(loop, node)).length
}

/** Names joined by dots. */
function isPath(node: Node): boolean {
  if (node.type === 'Identifier' || node.type === 'ThisExpression') return true
  return (
    node.type === 'MemberExpression' &&
    !node.computed &&
    node.property.type === 'Identifier' &&
    isPath(node.object)
  )
}

/**
 * True if the body may change a bound such as `list.length`: by writing it, or an element at another index
 * than the counter.
 */
function changesMember(body: Node, bound: Node, counter: string): boolean {
  const name: string = bound.property.name
  let changes = false
  walk(body, node => {
    const target =
      node.type === 'AssignmentExpression'
        ? node.left
        : node.type === 'UpdateExpression'
          ? node.argument
          : null
    if (target !== null) {
      if (target.type === 'MemberExpression') {
        if (!target.computed) changes ||= target.property.name === name
        else if (
          name === 'length' &&
          target.object.type === 'Identifier' &&
          bound.object.type === 'Identifier'
        ) {
          const same = target.object.name === bound.object.name
          const atCounter = target.property.type === 'Identifier' && target.property.name === counter
          changes ||= same && !atCounter
        }
      } else if (target.type === 'Identifier') {
        changes ||= bound.object.type === 'Identifier' && target.name === bound.object.name
      } else changes = true
    }
    return !changes
  })
  return changes
}

/** The step of an update towards the bound, as text, or null. */
function stepText(update: Node, counter: string, direction: number): string | null {
  if (update.type === 'UpdateExpression') {
    const towards = update.operator === (direction > 0 ? '++' : '--')
    return towards && update.argument.type === 'Identifier' && update.argument.name === counter ? '1' : null
  }
  if (
    update.type !== 'AssignmentExpression' ||
    update.left.type !== 'Identifier' ||
    update.left.name !== counter
  )
    return null
  if (update.operator !== (direction > 0 ? '+=' : '-=')) return null
  const { right } = update
  if (right.type === 'Literal')
    return typeof right.value === 'number' && right.value > 0 ? String(right.value) : null
  return right.type === 'Identifier' ? right.name : null
}

/** True if only the function around the loop can write the variable. */
function isLocal(binding: Binding | null | undefined, loop: Node): binding is Binding {
  if (binding === null || binding === undefined || binding.volatile) return false
  const writers = binding.references.filter(({ write }) => write)
  if (writers.length === 0) return true
  const { func } = binding.scope
  const body = func.node
  return contains(body, loop) && writers.every(reference => reference.func === func) && directlyIn(loop, body)
}

/** True if no function is between the loop and the body. */
function directlyIn(loop: Node, body: Node): boolean {
  let found = false
  walk(body, node => {
    if (node === loop) found = true
    return !found && (node === body || !isFunction(node))
  })
  return found
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
