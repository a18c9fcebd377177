/** Calls that make iterators of arrays, Maps, Sets, strings and typed arrays, in functions that can move. */
import type { Analysis } from '../../analysis/analysis.ts'
import { bare, isWellKnownSymbol, type Node } from '../../analysis/syntax.ts'
import { calleeText } from '../writer/enginemessages.ts'

/** The parts of such a call. The object may be of any other class: then the call is made as it is. */
export interface MadeIterator {
  readonly object: Node
  /** The name of the method; null for `Symbol.iterator`, which `key` is. */
  readonly name: string | null
  readonly key: Node
  readonly text: string
}

const names: ReadonlySet<string> = new Set(['values', 'keys', 'entries'])

/** `list.values()`, `map.entries()`, `text[Symbol.iterator]()`; null for any other node. */
export function madeIterator(node: Node, { ownMethods, bindingOf }: Analysis): MadeIterator | null {
  if (node.type !== 'CallExpression' || node.optional || node.arguments.length > 0) return null
  const callee = bare(node.callee)
  if (callee.type !== 'MemberExpression' || callee.optional || callee.object.type === 'Super') return null
  const { object, property, computed } = callee
  // `Object.keys()` and `import * as all` are no containers.
  const root = bare(object)
  if (root.type === 'Identifier' && bindingOf.get(root) == null) return null
  if (root.type === 'ChainExpression') return null
  const text = calleeText(callee)
  if (computed) {
    return isWellKnownSymbol(property) && bare(property).property?.name === 'iterator'
      ? { object, name: null, key: property, text }
      : null
  }
  if (property.type !== 'Identifier' || !names.has(property.name) || ownMethods.has(property.name))
    return null
  return { object, name: property.name as string, key: property, text }
}
