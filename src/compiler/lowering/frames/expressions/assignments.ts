/** Assignments and their targets. */
import { type Piece, type Rope, rope } from '../../../output/rope.ts'
import { bare, type Node } from '../../../analysis/syntax.ts'
import type { Expressions } from './expressions.ts'
import { conditionOf, operand } from './operands.ts'
import { destructuredValue, patternText } from './patterns.ts'

/** An assignment: its target is held while the value is computed. */
export function assignmentValue(at: Expressions, node: Node): Rope {
  const { operator, right } = node
  const left = bare(node.left)
  if (at.lowering.mayAccess(node)) return writtenValue(at, left, right)
  const isPattern = left.type === 'ObjectPattern' || left.type === 'ArrayPattern'
  if (isPattern) {
    const value = at.value(right)
    // For a destructured array, the engine's message names the value.
    return rope`(${patternText(at, left)} = ${left.type === 'ArrayPattern' ? value : destructuredValue(at, left, right, value)})`
  }
  if (!at.stops(right)) return rope`(${targetText(at, left, false, null)} ${operator} ${at.verbatim(right)})`
  const target = targetText(at, left, true, right)
  if (operator === '=') return rope`(${target}=${at.value(right)})`
  if (operator === '&&=' || operator === '||=' || operator === '??=') {
    const result = at.take()
    const held = at.held
    at.simple(rope`${result}=${target};`)
    at.when(conditionOf(operator.slice(0, -1), result), () => {
      at.simple(rope`${result} = ${target} = ${at.value(right)};`)
    })
    at.release(held)
    return rope`${result}`
  }
  const before = at.order.mayChange(left, [right]) ? rope`${at.hold(target)}` : target
  return rope`(${target} = ${before} ${operator.slice(0, -1)} (${at.value(right)}))`
}

/** A property that may have a getter which unwinds. */
export function readValue(at: Expressions, node: Node): Rope {
  const { property } = node
  const held = at.held
  let read: Rope
  if (property.type === 'PrivateIdentifier') {
    const object = at.hold(at.value(node.object))
    read = rope`(${ownPermit(at, object, property)}, ${object}.${property})`
  } else {
    // The key is a constant or a name, so nothing can suspend between the two.
    read = rope`${at.runtime('get')}(${at.ok}, ${at.value(node.object)}, ${keyText(at, node)})`
  }
  at.release(held)
  const result = at.take()
  at.release(held)
  at.resumePoint(node.end, result, unwind => rope`${result} = ${read};if(${at.frames}.u)${unwind}`)
  at.take()
  return rope`${result}`
}

/** An assignment to a property that may have a setter which unwinds. */
function writtenValue(at: Expressions, left: Node, right: Node): Rope {
  const { property, computed } = left
  const object = at.hold(at.value(left.object))
  const value = at.hold(at.value(right))
  const isPrivate = property.type === 'PrivateIdentifier'
  const target = computed ? rope`${object}[${at.verbatim(property)}]` : rope`${object}.${property}`
  const write = isPrivate
    ? rope`${ownPermit(at, object, property)}; ${target} = ${value};`
    : rope`if(!${at.runtime('set')}(${at.ok}, ${object}, ${keyText(at, left)}, ${value}))${target} = ${value};`
  at.resumePoint(right.end, null, unwind => rope`${write}if(${at.frames}.u)${unwind}`)
  return rope`${value}`
}

function keyText(at: Expressions, { property, computed }: Node): Piece {
  return computed ? at.verbatim(property) : JSON.stringify(property.name)
}

/**
 * Gives a private accessor the permission to unwind, if the object has it. An access of any other object
 * throws, and takes no permission.
 */
function ownPermit(at: Expressions, object: Piece, property: Node): Rope {
  return rope`${at.runtime('isObject')}(${object}) && ${property} in ${object} && (${at.permit})`
}

/**
 * The target of an assignment; with `held`, in a form that can be read first, and written after `right` is
 * evaluated.
 */
export function targetText(at: Expressions, node: Node, held: boolean, right: Node | null): Rope {
  const target = bare(node)
  if (target.type !== 'MemberExpression') return at.verbatim(target)
  const isSuper = target.object.type === 'Super'
  if (isSuper) at.needThis(target)
  const keep = (part: Node, ...others: (Node | null)[]): Rope => {
    const value = at.value(part)
    return at.order.mayChange(part, others) ? rope`${at.hold(value)}` : value
  }
  const object = isSuper
    ? rope`super`
    : held || at.stops(target.property)
      ? keep(target.object, target.computed ? target.property : null, right)
      : operand(at.value(target.object))
  if (!target.computed) return rope`${object}.${target.property}`
  return rope`${object}[${held ? keep(target.property, right) : at.value(target.property)}]`
}
