/**
 * A loop around one short loop. A `yield` anywhere inside a loop costs its every turn, so such a pair is written
 * twice: once without any stop, which is left for the other when the inner loop turns out long.
 */
import type { Analysis } from '../analysis.ts'
import type { Binding } from '../scope.ts'
import { boundNames, isFunction, isLoop, type Node, walk } from '../syntax.ts'
import { type Strip, stripOf } from './strip.ts'

export interface Nest {
  /** The jumps of the outer loop. */
  outer: Strip
  inner: Node
  innerStrip: Strip
  before: Node[]
  after: Node[]
  /** Variables of a turn, which both copies see: declared around both. */
  shared: string[]
}

/** The nest that a loop is, or null. The loop has no call inside. */
export function nestOf(loop: Node, labels: Node[], analysis: Analysis): Nest | null {
  if (loop.type !== 'ForStatement' && loop.type !== 'WhileStatement') return null
  if (loop.body.type !== 'BlockStatement') return null
  const outer = stripOf(loop, labels, analysis)
  if (outer === null) return null
  const statements: Node[] = loop.body.body
  const at = statements.findIndex(statement => innermost(statement) !== null)
  if (at === -1) return null
  const { inner, labels: innerLabels } = innermost(statements[at]!)!
  const innerStrip = stripOf(inner, innerLabels, analysis)
  if (innerStrip === null || innerStrip.estimate === null) return null
  const before = statements.slice(0, at)
  const after = statements.slice(at + 1)
  if ([...before, ...after, inner.body].some(containsLoop)) return null
  const shared = sharedVariables([...before, ...after], inner, loop, analysis)
  return shared === null ? null : { outer, inner, innerStrip, before, after, shared }
}

function innermost(statement: Node): { inner: Node; labels: Node[] } | null {
  const labels: Node[] = []
  let inner = statement
  while (inner.type === 'LabeledStatement') {
    labels.push(inner.label)
    inner = inner.body
  }
  return isLoop(inner) ? { inner, labels } : null
}

function containsLoop(node: Node): boolean {
  let found = false
  walk(node, child => {
    if (isLoop(child) || isFunction(child) || child.type.startsWith('Class')) found = true
    return !found
  })
  return found
}

/** The names of a turn's own variables, or null when one of them cannot be moved out of the turn. */
function sharedVariables(statements: Node[], inner: Node, loop: Node, analysis: Analysis): string[] | null {
  const bindings: Binding[] = []
  const declarations = statements.filter(({ type }) => type === 'VariableDeclaration')
  if (inner.init?.type === 'VariableDeclaration') declarations.push(inner.init)
  for (const declaration of declarations) {
    if (declaration.kind === 'var') continue
    if (declaration.kind.includes('using')) return null
    for (const { id } of declaration.declarations) {
      if (id.type !== 'Identifier') return null
      for (const name of boundNames(id)) {
        const binding = analysis.bindingOf.get(name) ?? null
        if (binding === null || !isMovable(binding, name)) return null
        bindings.push(binding)
      }
    }
  }
  const names = new Map(bindings.map(binding => [binding.name, binding]))
  if (names.size !== bindings.length) return null
  let alone = true
  walk(loop, node => {
    if (node.type === 'Identifier' && names.has(node.name)) {
      const meant = analysis.bindingOf.get(node)
      // A property's name has no binding and is not meant here.
      if (meant !== undefined && meant !== names.get(node.name)) alone = false
    }
    return alone
  })
  return alone ? [...names.keys()] : null
}

/** True when the variable is only used after its declaration, and by no closure. */
function isMovable(binding: Binding, declared: Node): boolean {
  if (binding.volatile || binding.captured || binding.declarations.length !== 1) return false
  return binding.references.every(
    ({ node, write }) => node.start > declared.start && !(write && binding.kind === 'const'),
  )
}
