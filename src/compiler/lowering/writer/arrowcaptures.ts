/**
 * The values that an arrow captures from the function around it: `this`, `arguments`, `new.target` and
 * `super`. An arrow's twin is no arrow, so the function passes them by name.
 */
import type { Analysis } from '../../analysis/analysis.ts'
import type { Func } from '../../analysis/functions.ts'
import { type Piece, type Rope, rope } from '../../output/rope.ts'
import { bare, type Node } from '../../analysis/syntax.ts'
import type { Context } from './context.ts'
import type { Names } from './names.ts'
import type { Writer } from './writer.ts'

const capturable = [
  { use: 'This', name: 'this', value: 'this' },
  { use: 'Arguments', name: 'arguments', value: 'arguments' },
  { use: 'Target', name: 'target', value: 'new.target' },
  { use: 'Super', name: 'super', value: 'key => super[key]' },
] as const

/**
 * The names and values of the captures that arrows inside the function use (`captures`), or that it uses
 * itself (`uses`).
 */
export function capturesOf(
  func: Func,
  how: 'captures' | 'uses',
  names: Names,
): { name: string; value: string }[] {
  return capturable
    .filter(({ use }) => func[`${how}${use}`] && !(use === 'Arguments' && func.declaresArguments))
    .map(({ name, value }) => ({ name: names.capture(name), value }))
}

/** False for an arrow outside any function of an ES module. A CommonJS module is a function. */
export function canCapture({ host }: Func, { isModule }: Analysis): boolean {
  return host.kind !== 'module' || !isModule
}

/** A captured value by its name, or null for any other node. */
export function writeCapture(writer: Writer, node: Node, cx: Context): Rope | null {
  const { analysis, names } = writer
  if (!canCapture(cx.func, analysis)) return node.type === 'ThisExpression' ? rope`(void 0)` : null
  switch (node.type) {
    case 'UnaryExpression': {
      if (node.operator !== 'delete') return null
      const target = bare(node.argument)
      return target.type === 'ThisExpression' || target.type === 'MetaProperty' ? rope`true` : null
    }
    case 'ThisExpression':
      return rope`${names.capture('this')}`
    case 'Identifier':
      // The binding of a name that declares nothing is null. A key or a property has none: undefined.
      return node.name === 'arguments' && analysis.bindingOf.get(node) === null
        ? rope`${names.capture('arguments')}`
        : null
    case 'MetaProperty':
      return node.meta.name === 'new' ? rope`${names.capture('target')}` : null
    case 'Property':
      if (!node.shorthand || node.value.type !== 'Identifier' || node.value.name !== 'arguments') return null
      return rope`arguments: ${names.capture('arguments')}`
    case 'MemberExpression': {
      if (node.object.type !== 'Super') return null
      const key: Piece = node.computed ? writer.node(node.property, cx) : JSON.stringify(node.property.name)
      return rope`${names.capture('super')}(${key})`
    }
    default:
      return null
  }
}
