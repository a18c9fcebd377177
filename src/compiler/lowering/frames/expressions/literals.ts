/** Arrays, objects, templates and spreads in which a part can suspend. */
import { join, type Piece, Rope, rope } from '../../../output/rope.ts'
import { bare, isAnonymous, isFunction, type Node, wordOf } from '../../../analysis/syntax.ts'
import { writeNamedBy } from '../../writer/attach.ts'
import type { Expressions } from './expressions.ts'

/**
 * Values in a list of which later ones may suspend. Earlier ones are held if the code in between may change
 * them.
 */
export function listValues(at: Expressions, nodes: readonly (Node | null)[]): Rope[] {
  const last = at.lastStop(nodes)
  return nodes.map((node, index) => {
    if (node === null) return rope``
    const value = at.value(node)
    if (index >= last || !at.order.mayChange(node, nodes.slice(index + 1))) return value
    if (node.type !== 'SpreadElement') return rope`${at.hold(value)}`
    return rope`...${at.hold(rope`[${value}]`)}`
  })
}

export function arrayValue(at: Expressions, { elements }: Node): Rope {
  const hole = elements.at(-1) === null ? ',' : ''
  return rope`[${join(listValues(at, elements), ', ')}${hole}]`
}

/** A spread. A generator that can suspend inside runs to its end first. */
export function spreadValue(at: Expressions, node: Node): Rope {
  if (!at.lowering.spreads.has(node)) return rope`...${at.value(node.argument)}`
  const text = JSON.stringify(at.lowering.spreads.get(node))
  const held = at.held
  const value = at.value(node.argument)
  at.release(held)
  const result = at.take()
  at.release(held)
  at.resumePoint(node.end, result, unwind => {
    const { frames, ok } = at
    return rope`${result} = ${at.runtime('spreads')}(${ok}, ${value}, ${text}); if (${frames}.u) ${unwind}`
  })
  return rope`...${at.take()}`
}

export function objectValue(at: Expressions, node: Node): Rope {
  const properties = node.properties as Node[]
  const last = at.lastStop(properties)
  // A method with `super` must be made in its object, and a getter has no value: so only the values before
  // are held.
  const parts = properties.map((property, index): Rope => {
    const before = index < last
    if (property.type === 'SpreadElement') {
      const value = at.value(property.argument)
      return rope`...${before ? at.hold(rope`{ ...${value} }`) : value}`
    }
    const isPlain = property.kind === 'init' && !property.method
    if (!isPlain) {
      if (property.computed && (before || at.stops(property.key))) {
        throw new Error('a method under a computed name that can suspend')
      }
      return at.verbatim(property)
    }
    if (!property.computed && isFunction(bare(property.value)) && !before) return at.verbatim(property)
    let key: Piece = { start: property.key.start, end: property.key.end }
    let text: Rope
    if (property.computed) {
      const isNamed = isAnonymous(bare(property.value))
      let name: Piece = at.value(property.key)
      if (before || isNamed || at.stops(property.value)) {
        name = at.hold(rope`${at.runtime('keyOf')}(${name})`)
      }
      key = rope`[${name}]`
      text = isNamed
        ? writeNamedBy(at.lowering, bare(property.value), name as string, at.cx)
        : at.value(property.value)
    } else text = propertyValue(at, property)
    const changes = before && at.order.mayChange(property.value, properties.slice(index + 1))
    const value = changes ? rope`${at.hold(text)}` : text
    return rope`${key}: ${value}`
  })
  return rope`({ ${join(parts, ', ')} })`
}

function propertyValue(at: Expressions, property: Node): Rope {
  const name = wordOf(property.key)
  // `__proto__: …` is no property, and gives no name.
  if (name === '__proto__' || !isAnonymous(bare(property.value))) return at.value(property.value)
  return at.lowering.namedAs(property.value, name, at.cx)
}

export function templateValue(at: Expressions, node: Node): Rope {
  const expressions = node.expressions as Node[]
  const last = at.lastStop(expressions)
  const made = new Rope()
  let reached = node.start
  for (const [index, expression] of expressions.entries()) {
    let value = at.value(expression)
    if (index < last) value = rope`${at.hold(rope`\`\${${value}}\``)}`
    made.add({ start: reached, end: expression.start }).add(value)
    reached = expression.end
  }
  return made.add({ start: reached, end: node.end })
}
