/** Assignments, and what they assign to. */
import { type Rope, rope } from '../../rope.ts'
import { bare, type Node } from '../../syntax.ts'
import type { Expressions } from './expressions.ts'
import { conditionOf, operand } from './operands.ts'
import { apartValue, patternText } from './patterns.ts'

/** An assignment: what it writes to is held while its value is found. */
export function assignmentValue(at: Expressions, node: Node): Rope {
  const { operator, right } = node
  const left = bare(node.left)
  if (at.host.mayAccess(node)) return writtenValue(at, left, right)
  const isPattern = left.type === 'ObjectPattern' || left.type === 'ArrayPattern'
  if (isPattern) return rope`(${patternText(at, left)} = ${apartValue(at, left, right, at.value(right))})`
  if (!at.stops(right)) return rope`(${targetText(at, left, false, null)} ${operator} ${at.verbatim(right)})`
  const target = targetText(at, left, true, right)
  if (operator === '=') return rope`(${target} = ${at.value(right)})`
  if (operator === '&&=' || operator === '||=' || operator === '??=') {
    const result = at.take()
    const held = at.held
    at.simple(rope`${result} = ${target};`)
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
  const held = at.held
  const object = at.value(node.object)
  at.release(held)
  const result = at.take()
  at.release(held)
  const name = JSON.stringify(node.property.name)
  const read = rope`${result} = ${at.host.runtime('get')}(${at.ok}, ${object}, ${name});`
  at.place(node.end, result, unwind => rope`${read}if(${at.frames}.u)${unwind}`)
  at.take()
  return rope`${result}`
}

/** An assignment to a property that may have a setter which unwinds. */
function writtenValue(at: Expressions, left: Node, right: Node): Rope {
  const object = at.hold(at.value(left.object))
  const value = at.hold(at.value(right))
  const name = JSON.stringify(left.property.name)
  const write = rope`if(!${at.host.runtime('set')}(${at.ok}, ${object}, ${name}, ${value}))${object}.${left.property} = ${value};`
  at.place(right.end, null, unwind => rope`${write}if(${at.frames}.u)${unwind}`)
  return rope`${value}`
}

/** What is assigned to; with `held`, in a form that can be read, and written after `right` has been evaluated. */
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
