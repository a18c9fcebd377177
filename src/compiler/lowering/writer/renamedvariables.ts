/** Variables that a function which unwinds keeps under another name, and what goes with them. */
import { type Rope, rope } from '../../output/rope.ts'
import { bare, givesName, isAnonymous, type Node } from '../../analysis/syntax.ts'
import type { Context } from './context.ts'
import type { Writer } from './writer.ts'

/** A variable that goes by another name, or null. */
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
      // A function that is given to a variable with another name takes the name that the source has.
      const { left, right, operator } = node
      if (!givesName(node) || !isAnonymous(bare(right))) return null
      const other = writer.renamed(left, cx)
      if (other === undefined) return null
      return rope`${other} ${operator ?? '='} ${writer.named(right, left, cx)}`
    }
    case 'UnaryExpression': {
      // A variable is not deleted, and stays one also where it is now a member; what is no variable is
      // deleted at once.
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
      // What was a variable and is now a member must not lend its object to the call.
      const { callee } = node
      if (callee.type !== 'Identifier' || !writer.renamed(callee, cx)?.includes('.')) return null
      const args = writer.argumentsText(node, cx)
      return rope`(0, ${writer.renamed(callee, cx)!})${node.optional ? '?.' : ''}(${args})`
    }
    default:
      return null
  }
}
