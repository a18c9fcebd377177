/** The names that the engine uses in its error messages. The runtime's calls must throw the same text. */
import { bare, type Node, walk } from '../../analysis/syntax.ts'

const unnamed = '(intermediate value)'

export function calleeText(node: Node): string {
  return print(node, '(...)')
}

/** The engine's message for a loop over a value that is not iterable. */
export function notIterableText(node: Node): string {
  const inner = bare(node)
  if (inner.type === 'CallExpression') {
    return `${print(inner.callee, '')} is not a function or its return value is not iterable`
  }
  return `${print(node, '')} is not iterable`
}

/** The engine's name for a value that a pattern destructures; for an array pattern, the whole message. */
export function destructuredName(pattern: Node, source: Node): string {
  return pattern.type === 'ArrayPattern' ? notIterableText(source) : calleeText(bare(source))
}

/** The same for the variables of a loop, for which the engine has its own name. */
export function loopElementName(pattern: Node): string {
  return pattern.type === 'ArrayPattern' ? '.for is not iterable' : '.for'
}

/** The same for the operand of `yield*`. */
export function delegateText(node: Node): string {
  return bare(node).type === 'Identifier' ? notIterableText(node) : `yield* ${unnamed} is not iterable`
}

/**
 * The spreads in calls and arrays that `isWanted` selects, each with the engine's message if the value is not
 * iterable: see runtime/notiterable.ts.
 */
export function spreadsIn(program: Node, isWanted: (node: Node) => boolean): Map<Node, string> {
  const found = new Map<Node, string>()
  walk(program, node => {
    const isList = node.type === 'ArrayExpression'
    const isCall = node.type === 'CallExpression' || node.type === 'NewExpression'
    const parts: readonly (Node | null)[] = isList ? node.elements : isCall ? node.arguments : []
    for (const [index, part] of parts.entries()) {
      if (part?.type !== 'SpreadElement' || !isWanted(part)) continue
      const isEnd = isCall && index === parts.length - 1
      found.set(part, isEnd ? `...${print(part.argument, '')}` : notIterableText(part.argument))
    }
  })
  return found
}

function print(node: Node, called: string): string {
  const inside = (child: Node): string => print(child, called)
  switch (node.type) {
    case 'Identifier':
      return node.name
    case 'ThisExpression':
      return 'this'
    case 'Literal':
      return typeof node.value === 'string' ? `"${node.value}"` : String(node.raw)
    case 'TemplateLiteral':
      return node.expressions.length === 0 ? `"${node.quasis[0].value.cooked}"` : unnamed
    case 'ParenthesizedExpression':
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
    case 'TSNonNullExpression':
    case 'TSTypeAssertion':
    case 'ChainExpression':
    case 'TSInstantiationExpression':
      return inside(node.expression)
    case 'CallExpression':
      return `${inside(node.callee)}${called}`
    case 'UnaryExpression': {
      const { operator, argument } = node
      if ((operator === '-' || operator === '+') && argument.type === 'Literal')
        return `${operator}${argument.raw}`
      return `(${operator}${operator.length > 1 ? ' ' : ''}${inside(argument)})`
    }
    case 'BinaryExpression':
    case 'LogicalExpression':
      return `(${inside(node.left)} ${node.operator} ${inside(node.right)})`
    case 'UpdateExpression':
      return node.prefix
        ? `(${node.operator}${inside(node.argument)})`
        : `(${inside(node.argument)}${node.operator})`
    case 'SequenceExpression':
      return `(${node.expressions.map(inside).join(' , ')})`
    case 'AssignmentExpression':
      return inside(node.left)
    case 'ConditionalExpression':
      return unnamed.repeat(3)
    case 'ArrayExpression':
      return `[${node.elements.map((element: Node | null) => (element === null ? '' : inside(element))).join(',')}]`
    case 'ObjectExpression':
      return node.properties.length === 0 ? '{}' : unnamed
    case 'MemberExpression': {
      const object = inside(node.object)
      const { property } = node
      if (property.type === 'PrivateIdentifier')
        return `${object}${node.optional ? '?.' : ''}[#${property.name}]`
      if (!node.computed) return `${object}${node.optional ? '?.' : '.'}${property.name}`
      const isText = property.type === 'Literal' && typeof property.value === 'string'
      if (isText) return `${object}${node.optional ? '?.' : '.'}${property.value}`
      if (property.type === 'TemplateLiteral' && property.expressions.length === 0) {
        return `${object}${node.optional ? '?.' : '.'}${property.quasis[0].value.cooked}`
      }
      return `${object}${node.optional ? '?.' : ''}[${inside(property)}]`
    }
    default:
      return unnamed
  }
}
