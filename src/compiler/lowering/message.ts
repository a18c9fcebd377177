/** How the engine names a callee in "… is not a function": the calls that we make for it must say the same. */
import type { Node } from '../syntax.ts'

const unnamed = '(intermediate value)'

export function calleeText(node: Node): string {
  switch (node.type) {
    case 'Identifier':
      return node.name
    case 'ThisExpression':
      return 'this'
    case 'Literal':
      return typeof node.value === 'string' ? JSON.stringify(node.value) : String(node.raw)
    case 'ParenthesizedExpression':
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
    case 'TSNonNullExpression':
    case 'TSTypeAssertion':
    case 'ChainExpression':
    case 'TSInstantiationExpression':
      return calleeText(node.expression)
    case 'CallExpression':
      return `${calleeText(node.callee)}${node.optional ? '?.' : ''}(...)`
    case 'MemberExpression': {
      const object = calleeText(node.object)
      if (!node.computed) {
        const name =
          node.property.type === 'PrivateIdentifier' ? `#${node.property.name}` : node.property.name
        return `${object}${node.optional ? '?.' : '.'}${name}`
      }
      const { property } = node
      if (property.type === 'Literal' && typeof property.value === 'string')
        return `${object}.${property.value}`
      return `${object}${node.optional ? '?.' : ''}[${calleeText(property)}]`
    }
    default:
      return unnamed
  }
}
