/**
 * Destructured values. A value that cannot be destructured throws the engine's message, with the name that
 * the value has in the source.
 */
import { type Rope, rope } from '../../output/rope.ts'
import { bare, type Node, wordOf } from '../../analysis/syntax.ts'

/**
 * True if the pattern destructures a value of this source that the engine's message would not name, because
 * it is in a temporary.
 */
export function isDestructured(pattern: Node, source: Node): boolean {
  if (pattern.type === 'ArrayPattern') return isNamedIterable(source) && bare(source).type !== 'Identifier'
  if (pattern.type !== 'ObjectPattern') return false
  const { type, object } = bare(source)
  return type === 'CallExpression' || (type === 'MemberExpression' && object.type === 'Super')
}

/** True if the engine's message names the value that the array pattern of a declaration destructures. */
export function isNamedIterable(written: Node): boolean {
  let source = written
  while (isAnnotated(source)) source = source.expression
  if (source.type === 'CallExpression') return source.callee.type === 'Identifier'
  return (
    source.type === 'Identifier' || source.type === 'AwaitExpression' || source.type === 'YieldExpression'
  )
}

/** True for a value with a type behind it, which moves nothing in the text. */
function isAnnotated({ type }: Node): boolean {
  return type === 'TSAsExpression' || type === 'TSSatisfiesExpression' || type === 'TSNonNullExpression'
}

/** The value, after a check that the pattern can destructure it. `name`: see `calledName`. */
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
