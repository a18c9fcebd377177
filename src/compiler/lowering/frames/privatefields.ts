/**
 * What a base class with private members gets, so that its instances can move
 * (src/coroutine/core/privatefields.ts).
 */
import type { Func } from '../../analysis/functions.ts'
import { bare, isClass, type Node } from '../../analysis/syntax.ts'
import type { FramesLowering } from './frames.ts'

/** The static block with functions that test, read and write the fields. */
export function privateFieldsText(node: Node, lowering: FramesLowering): string {
  const names = privateNames(node, lowering)
  if (names === null) return ''
  const { fields, brand } = names
  const read = fields.map(name => `o.${name}`).join(', ')
  const write = fields.map((name, index) => `o.${name} = v[${index}];`).join(' ')
  const call = lowering.names.runtime('privateFields')
  return ` static { ${call}(this, '${fields.join(',')}', o => ${brand} in o, o => [${read}], (o, v) => { ${write} }); }`
}

/** The last field. */
export function endingText(node: Node, lowering: FramesLowering): string {
  if (privateNames(node, lowering) === null) return ''
  return `; ${lowering.privateName('born')} = ${lowering.names.runtime('born')}(this); `
}

/** The condition under which the value of a field is not computed, or null. */
export function guardText(element: Node, lowering: FramesLowering): string | null {
  const owner = lowering.analysis.funcOf.get(element)?.owner
  if (owner == null || privateNames(owner, lowering) === null) return null
  // It takes its name from the field.
  const value = bare(element.value)
  if (isClass(value) && value.id === null) return null
  return `${lowering.names.runtime('installing')}.on`
}

/** The private fields of instances, and a name that each instance has. Null: the class gets nothing. */
function privateNames(node: Node, { analysis }: FramesLowering): { fields: string[]; brand: string } | null {
  if (!analysis.isMovable || node.superClass !== null) return null
  const elements: Node[] = node.body.body
  if (elements.some(({ type }) => type === 'AccessorProperty' || type === 'TSAbstractAccessorProperty'))
    return null
  const own = elements.filter(({ key, static: isStatic }) => key?.type === 'PrivateIdentifier' && !isStatic)
  if (own.length === 0 || !isOfModule(elements, analysis.funcOf)) return null
  const fields = own.filter(({ type }) => type === 'PropertyDefinition').map(({ key }) => `#${key.name}`)
  return { fields, brand: `#${own[0]!.key.name}` }
}

/** Whether the class stands in no function: only then it has a name. */
function isOfModule(elements: readonly Node[], funcOf: ReadonlyMap<Node, Func>): boolean {
  for (const element of elements) {
    const func = funcOf.get(element.type === 'MethodDefinition' ? element.value : element)
    if (func !== undefined) return func.parent?.kind === 'module'
  }
  return false
}
