/** Variables that a function which unwinds keeps under another name. */
import { type Rope, rope } from '../../output/rope.ts'
import { bare, givesName, isAnonymous, type Node } from '../../analysis/syntax.ts'
import type { Context } from './context.ts'
import type { Writer } from './writer.ts'

/** A renamed variable, or null. */
export function writeRenamed(writer: Writer, node: Node, cx: Context): Rope | null {
  switch (node.type) {
    case 'Identifier': {
      const name = writer.renamed(node, cx)
      return name === undefined ? null : rope`${name}`
    }
    case 'Property': {
      if (!node.shorthand) return null
      const target = node.value.type === 'AssignmentPattern' ? node.value.left : node.value
      if (target.type !== 'Identifier' || writer.renamed(target, cx) === undefined) return null
      return rope`${target.name}: ${writer.node(node.value, cx)}`
    }
    case 'AssignmentExpression':
    case 'AssignmentPattern': {
      // A function that is assigned to a renamed variable takes the variable's name in the source.
      const { left, right, operator } = node
      if (!givesName(node) || !isAnonymous(bare(right))) return null
      const other = writer.renamed(left, cx)
      if (other === undefined) return null
      return rope`${other} ${operator ?? '='} ${writer.named(right, left, cx)}`
    }
    case 'UnaryExpression': {
      // `delete` of a variable fails, also if the variable is now a member. `delete` of any other value runs
      // as it is.
      if (node.operator !== 'delete') return null
      const target = bare(node.argument)
      if (target.type === 'MetaProperty' && cx.renamed!.has('target')) return rope`true`
      if (target.type !== 'Identifier' || writer.renamed(target, cx) === undefined) return null
      return rope`false`
    }
    case 'MetaProperty': {
      const name = node.meta.name === 'new' ? cx.renamed!.get('target') : undefined
      return name === undefined ? null : rope`${name}`
    }
    case 'CallExpression': {
      // A variable that is now a member must not pass its object to the call as a receiver.
      const { callee } = node
      if (callee.type !== 'Identifier' || !writer.renamed(callee, cx)?.includes('.')) return null
      const args = writer.argumentsText(node, cx)
      return rope`(0, ${writer.renamed(callee, cx)!})${node.optional ? '?.' : ''}(${args})`
    }
    default:
      return null
  }
}
