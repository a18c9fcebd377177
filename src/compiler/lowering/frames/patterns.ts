/** Destructuring, and the names that values take from what they are given to. */
import { join, type Piece, type Rope, rope } from '../../rope.ts'
import { bare, givesName, isAnonymous, type Node, wordOf } from '../../syntax.ts'
import { calleeText, notIterableText } from '../message.ts'
import type { Expressions } from './expressions.ts'

/** A value that is to be taken apart. What cannot be is refused by the name that it has in the source. */
export function apartValue(at: Expressions, pattern: Node, source: Node, value: Rope): Rope {
  if (!at.stops(source)) return value
  const held = at.hold(value)
  if (pattern.type === 'ArrayPattern') {
    const text = JSON.stringify(notIterableText(source))
    at.simple(rope`if (${held} == null) ${at.host.runtime('refuseList')}(${text});`)
  } else {
    const first = pattern.properties[0]
    const isNamed = first !== undefined && first.type === 'Property' && !first.computed
    const property = isNamed ? `property '${wordOf(first.key)}' of ` : ''
    const text = JSON.stringify(`Cannot destructure ${property}'${calleeText(bare(source))}' as it is `)
    at.simple(rope`if (${held} == null) ${at.host.runtime('refuseObject')}(${text}, ${held});`)
  }
  return rope`${held}`
}

/** A pattern as it is assigned to: without types, each name as it goes here. */
export function patternText(at: Expressions, node: Node): Rope {
  switch (node.type) {
    case 'Identifier':
      return rope`${at.host.renamed(node, at.cx) ?? node.name}`
    case 'ObjectPattern': {
      const properties = node.properties.map((property: Node) => {
        if (property.type === 'RestElement') return rope`...${patternText(at, property.argument)}`
        const key: Piece = property.computed
          ? rope`[${at.verbatim(property.key)}]`
          : { start: property.key.start, end: property.key.end }
        return rope`${key}: ${patternText(at, property.value)}`
      })
      return rope`{ ${join(properties, ', ')} }`
    }
    case 'ArrayPattern': {
      const elements = node.elements.map((element: Node | null) =>
        element === null ? rope`` : patternText(at, element),
      )
      const last = node.elements.at(-1)
      return rope`[${join(elements, ', ')}${last === null ? ',' : ''}]`
    }
    case 'AssignmentPattern': {
      return rope`${patternText(at, node.left)} = ${givesName(node) ? namedValue(at, node.left, node.right) : at.value(node.right)}`
    }
    case 'RestElement':
      return rope`...${patternText(at, node.argument)}`
    case 'ParenthesizedExpression':
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
    case 'TSNonNullExpression':
    case 'TSTypeAssertion':
      return patternText(at, node.expression)
    default:
      return at.verbatim(node)
  }
}

/** A value that takes its name from the variable it is given to, also where that goes by another. */
export function namedValue(at: Expressions, id: Node, value: Node): Rope {
  if (id.type !== 'Identifier' || !isAnonymous(bare(value))) return at.value(value)
  return at.host.named(value, id, at.cx)
}
