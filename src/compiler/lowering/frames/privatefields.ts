/**
 * What a class with private members gets, so that its instances can move
 * (src/coroutine/core/privatefields.ts).
 */
import type { Func } from '../../analysis/functions.ts'
import { constructorIn } from '../../analysis/construct.ts'
import { bare, isClass, type Node } from '../../analysis/syntax.ts'
import type { FramesLowering } from './frames.ts'

/**
 * The static block with functions that test, read and write the fields. Instances of a class in a function do
 * not move: theirs are only read, and so are static fields.
 */
export function privateFieldsText(node: Node, lowering: FramesLowering): string {
  if (!lowering.analysis.isMovable) return ''
  const parts: string[] = []
  const names = privatesIn(node)
  if (names !== null) {
    const { fields, brand } = names
    const read = fields.map(name => `o.${name}`).join(', ')
    const write = fields.map((name, index) => `o.${name} = v[${index}];`).join(' ')
    const derived = node.superClass === null ? '' : ', 1'
    const writer = privateNames(node, lowering) === null ? '' : `, (o, v) => { ${write} }${derived}`
    const call = lowering.names.runtime('privateFields')
    parts.push(`${call}(this, '${fields.join(',')}', o => ${brand} in o, o => [${read}]${writer});`)
  }
  if (names === null && !hasAccessors(node) && /#/.test(lowering.source.slice(node.start, node.end)))
    parts.push(`${lowering.names.runtime('withoutPrivates')}(this);`)
  const statics = privateElements(node, true).filter(({ type }) => type === 'PropertyDefinition')
  if (statics.length > 0) {
    const fields = statics.map(({ key }) => `#${key.name}`)
    const reads = fields.map(name => `() => this.${name}`).join(', ')
    parts.push(`${lowering.names.runtime('staticFields')}(this, '${fields.join(',')}', [${reads}]);`)
  }
  return parts.length === 0 ? '' : ` static { ${parts.join(' ')} }`
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

/** The first statement of a derived constructor, or ''. */
export function earlySuperText({ kind, owner }: Func, lowering: FramesLowering): string {
  if (kind !== 'constructor' || owner === null || owner.superClass === null) return ''
  if (privateNames(owner, lowering) === null) return ''
  return `if (${lowering.names.runtime('installing')}.on) super(); `
}

interface PrivateNames {
  readonly fields: readonly string[]
  /** A name that each instance has. */
  readonly brand: string
}

/** The private fields of instances that move. Null: those of the class do not, or it has none. */
function privateNames(node: Node, { analysis }: FramesLowering): PrivateNames | null {
  if (!analysis.isMovable || (node.superClass !== null && !beginsWithSuper(node))) return null
  return isOfModule(node.body.body, analysis.funcOf) ? privatesIn(node) : null
}

/** Whether the constructor of a derived class runs no code before its first statement. */
function beginsWithSuper(node: Node): boolean {
  const params: Node[] = constructorIn(node)?.params ?? []
  return params.every(
    param =>
      param.type === 'Identifier' || (param.type === 'RestElement' && param.argument.type === 'Identifier'),
  )
}

function hasAccessors(node: Node): boolean {
  const elements: Node[] = node.body.body
  return elements.some(({ type }) => type === 'AccessorProperty' || type === 'TSAbstractAccessorProperty')
}

/** The private fields of instances; null: there are none, or one is an `accessor`. */
function privatesIn(node: Node): PrivateNames | null {
  if (hasAccessors(node)) return null
  const own = privateElements(node, false)
  if (own.length === 0) return null
  const fields = own.filter(({ type }) => type === 'PropertyDefinition').map(({ key }) => `#${key.name}`)
  return { fields, brand: `#${own[0]!.key.name}` }
}

function privateElements(node: Node, isStatic: boolean): Node[] {
  return (node.body.body as Node[]).filter(
    element => element.key?.type === 'PrivateIdentifier' && (element.static === true) === isStatic,
  )
}

/** Whether the class stands in no function: only then it has a name. */
function isOfModule(elements: readonly Node[], funcOf: ReadonlyMap<Node, Func>): boolean {
  for (const element of elements) {
    const func = funcOf.get(element.type === 'MethodDefinition' ? element.value : element)
    if (func !== undefined) return func.parent?.kind === 'module'
  }
  return false
}
