/**
 * Unmarked functions as arguments. A function is made in the argument list of a call, and the callee only
 * calls it. A mark would cost more than the function itself. So the caller puts the function into
 * `frames.made`, just before the call. The callee first compares that with its parameter: if they are the
 * same, the parameter unwinds, and needs no mark.
 *
 * A caller knows from the text that a function of the same file does that. Methods, and functions that other
 * files can call, have a hidden property for it, which the caller checks (`lend` in runtime/attach.ts). If
 * the callee lacks it, the argument is marked.
 *
 * Only functions that unwind are put there, so the entry is always valid. If other code calls the callee, it
 * checks the mark as usual.
 */
import type { Analysis } from '../../analysis/analysis.ts'
import type { Func } from '../../analysis/functions.ts'
import type { Binding } from '../../analysis/scope.ts'
import { bare, type Node } from '../../analysis/syntax.ts'

/** A parameter that the function only calls. */
export interface CalledParameter {
  readonly index: number
  readonly name: string
  readonly binding: Binding
}

/** The first parameter that the function only calls, or null. */
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

/** True if only the callee can see the function: its own code does not expose it either. */
export function isSeenByCalleeOnly({ self, usesArguments, isArrow }: Func): boolean {
  if (usesArguments && !isArrow) return false
  return self === null || self.references.every(({ callee }) => callee)
}
