/**
 * Functions that are made where they are given to a function of the same file which only calls them. To mark
 * a function costs more than to make it. So the caller puts it into `frames.made`, as the last thing before
 * the call, and the callee compares that with its parameter when it begins: where they are the same, what it
 * calls unwinds, and needs no mark.
 *
 * Only functions that unwind are ever put there. So what is found there is true at any time, and a callee
 * that is called by others looks for the mark as ever.
 */
import type { Analysis } from '../../analysis/analysis.ts'
import type { Func } from '../../analysis/functions.ts'
import type { Binding } from '../../analysis/scope.ts'
import { bare, type Node } from '../../analysis/syntax.ts'

/** A parameter that is called, and nothing else. */
export interface CalledParameter {
  readonly index: number
  readonly name: string
  readonly binding: Binding
}

/** The first parameter of a function that it does nothing with but call it; null: it has none. */
export function calledParameterOf(func: Func, { scopeOf }: Analysis): CalledParameter | null {
  if (func.usesArguments || func.node.params[0]?.name === 'this') return null
  const called = new Set<Node>()
  for (const { node } of func.calls) if (node.type === 'CallExpression') called.add(bare(node.callee))
  const names = (func.node.params as Node[]).map(({ type, name }) => (type === 'Identifier' ? name : null))
  const bindings = scopeOf.get(func.node)?.bindings
  for (const [index, name] of names.entries()) {
    const binding = name === null ? undefined : bindings?.get(name)
    if (binding === undefined || binding.kind !== 'parameter' || binding.written || binding.captured) continue
    const { references } = binding
    if (references.length === 0) continue
    if (references.every(({ node, callee }) => callee && called.has(node)))
      return { index, name: binding.name, binding }
  }
  return null
}

/**
 * True for a function that nothing can see but the one that it is given to: its own code does not show it
 * either.
 */
export function isSeenByCalleeOnly({ self, usesArguments, isArrow }: Func): boolean {
  if (usesArguments && !isArrow) return false
  return self === null || self.references.every(({ callee }) => callee)
}
