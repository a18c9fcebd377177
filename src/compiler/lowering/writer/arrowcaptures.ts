/**
 * The values that an arrow captures from the function around it: `this`, `arguments`, `new.target` and
 * `super`. An arrow's twin is no arrow, so the function passes them by name.
 */
import type { Analysis } from '../../analysis/analysis.ts'
import type { Func } from '../../analysis/functions.ts'
import { type Piece, type Rope, rope } from '../../output/rope.ts'
import { bare, type Node } from '../../analysis/syntax.ts'
import type { Context } from './context.ts'
import { calleeText } from './enginemessages.ts'
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
      if (isSuperMember(target)) return rope`${unsupportedDelete}`
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
    case 'CallExpression': {
      // In code that can suspend, the lowering passes the receiver on.
      const callee = bare(node.callee)
      if (cx.frame !== null || !isSuperMember(callee)) return null
      const method = writer.node(callee, cx)
      const args = writer.argumentsText(node, cx)
      const self = names.capture('this')
      if (node.optional) return rope`${method}?.call(${self}${args.isEmpty ? '' : ', '}${args})`
      const text = JSON.stringify(calleeText(callee))
      return rope`${names.runtime('apply')}(${method}, ${self}, [${args}], ${text})`
    }
    case 'TaggedTemplateExpression': {
      const tag = capturedTag(writer, node, cx)
      return tag === null ? null : writer.taggedBy(tag, node, cx)
    }
    case 'NewExpression': {
      // `new` would end at the parentheses of the function that reads the member.
      const callee = bare(node.callee)
      if (!beginsWithSuper(callee)) return null
      const args = writer.argumentsText(node, cx)
      const text = JSON.stringify(calleeText(callee))
      return rope`${names.runtime('make')}(${writer.node(callee, cx)}, [${args}], ${text})`
    }
    default:
      return null
  }
}

/** What the engine throws for `delete super.x`. */
const unsupportedDelete = `(() => { throw new ReferenceError("Unsupported reference to 'super'") })()`

/** A captured method of `super` as the tag of a template, with its receiver; null for any other tag. */
export function capturedTag(writer: Writer, node: Node, cx: Context): Rope | null {
  const tag = bare(node.tag)
  if (!cx.readsCaptures || !isSuperMember(tag)) return null
  const { names } = writer
  const text = JSON.stringify(calleeText(tag))
  return rope`${names.runtime('taggingBy')}(${writer.node(tag, cx)}, ${names.capture('this')}, ${text})`
}

function isSuperMember(node: Node): boolean {
  return node.type === 'MemberExpression' && node.object.type === 'Super'
}

/** True for `super.a`, `super.a.b` and so on. */
function beginsWithSuper(callee: Node): boolean {
  let inner = callee
  while (inner.type === 'MemberExpression') inner = inner.object
  return inner.type === 'Super'
}
