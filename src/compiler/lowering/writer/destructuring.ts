/**
 * Values that are taken apart: what cannot be is refused by the name that it has in the source, as the engine
 * would.
 */
import { type Rope, rope } from '../../output/rope.ts'
import { bare, type Node, wordOf } from '../../analysis/syntax.ts'

/** Whether a value of this source is a temporary by the time that the pattern takes it apart. */
export function isDestructured(pattern: Node, source: Node): boolean {
  if (pattern.type !== 'ArrayPattern' && pattern.type !== 'ObjectPattern') return false
  return bare(source).type === 'CallExpression'
}

/** The value, once it is known that the pattern can take it apart. `name`: see `calledName`. */
export function checkedValue(
  names: { runtime(name: string): string },
  pattern: Node,
  name: string,
  value: Rope,
): Rope {
  if (pattern.type === 'ArrayPattern')
    return rope`${names.runtime('listed')}(${value}, ${JSON.stringify(name)})`
  const first = pattern.properties[0]
  const isNamed = first !== undefined && first.type === 'Property' && !first.computed
  const property = isNamed ? `property '${wordOf(first.key)}' of ` : ''
  const text = JSON.stringify(`Cannot destructure ${property}'${name}' as it is `)
  return rope`${names.runtime('unpacked')}(${value}, ${text})`
}
