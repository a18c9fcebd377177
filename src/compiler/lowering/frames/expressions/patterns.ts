/** Destructuring, and the names that functions take from their variables. */
import { join, type Piece, type Rope, rope } from '../../../output/rope.ts'
import { bare, givesName, isAnonymous, type Node } from '../../../analysis/syntax.ts'
import { checkedValue, isNamedIterable } from '../../writer/destructuring.ts'
import { destructuredName, loopElementName } from '../../writer/enginemessages.ts'
import type { Expressions } from './expressions.ts'

/** A value to destructure. If it cannot be destructured, the error shows its name in the source. */
export function destructuredValue(at: Expressions, pattern: Node, source: Node, value: Rope): Rope {
  if (!isMember(at, bare(source)) && !at.stops(source)) return value
  return checkedValue(at, pattern, destructuredName(pattern, source), value)
}

/** The same in a declaration, which is an assignment here: there, the engine does not name a variable. */
export function declaredValue(at: Expressions, pattern: Node, source: Node, value: Rope): Rope {
  if (pattern.type !== 'ArrayPattern') return destructuredValue(at, pattern, source, value)
  return isNamedIterable(source) ? checkedValue(at, pattern, destructuredName(pattern, source), value) : value
}

/** True for a variable that is now a member, which the engine's message would show. */
function isMember({ lowering, cx }: Expressions, source: Node): boolean {
  return source.type === 'Identifier' && lowering.renamed(source, cx)?.includes('.') === true
}

/** The same for the variables of a loop. */
export function loopElementValue(at: Expressions, pattern: Node, value: Rope): Rope {
  if (pattern.type !== 'ArrayPattern' && pattern.type !== 'ObjectPattern') return value
  return checkedValue(at, pattern, loopElementName(pattern), value)
}

/**
 * A pattern as an assignment target: without types, each name as it is here. `targetOf` gives a variable
 * another target.
 */
export function patternText(
  at: Expressions,
  node: Node,
  targetOf: (name: Node) => string | null = () => null,
): Rope {
  const inner = (part: Node): Rope => patternText(at, part, targetOf)
  switch (node.type) {
    case 'Identifier':
      return rope`${targetOf(node) ?? at.lowering.renamed(node, at.cx) ?? node.name}`
    case 'ObjectPattern': {
      const properties = node.properties.map((property: Node) => {
        if (property.type === 'RestElement') return rope`...${inner(property.argument)}`
        const key: Piece = property.computed
          ? rope`[${at.verbatim(property.key)}]`
          : { start: property.key.start, end: property.key.end }
        return rope`${key}: ${inner(property.value)}`
      })
      return rope`{ ${join(properties, ', ')} }`
    }
    case 'ArrayPattern': {
      const elements = node.elements.map((element: Node | null) =>
        element === null ? rope`` : inner(element),
      )
      const last = node.elements.at(-1)
      return rope`[${join(elements, ', ')}${last === null ? ',' : ''}]`
    }
    case 'AssignmentPattern': {
      return rope`${inner(node.left)} = ${givesName(node) ? namedValue(at, node.left, node.right) : at.value(node.right)}`
    }
    case 'RestElement':
      return rope`...${inner(node.argument)}`
    case 'ParenthesizedExpression':
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
    case 'TSNonNullExpression':
    case 'TSTypeAssertion':
      return inner(node.expression)
    default:
      return at.verbatim(node)
  }
}

/** An anonymous function that takes the name of its variable, even if the variable is renamed. */
export function namedValue(at: Expressions, id: Node, value: Node): Rope {
  if (id.type !== 'Identifier' || !isAnonymous(bare(value))) return at.value(value)
  return at.lowering.named(value, id, at.cx)
}
