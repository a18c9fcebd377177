/**
 * Code that runs without a call: property reads, conversions, patterns. The runtime records each, because it
 * may have an effect.
 */
import { globalName } from '../../analysis/analysis.ts'
import { type Piece, type Rope, rope } from '../../output/rope.ts'
import {
  bare,
  isClass,
  isFunction,
  isWellKnownSymbol,
  keyName,
  type Node,
  walk,
} from '../../analysis/syntax.ts'
import type { CheckerLowering } from './checker.ts'

/** Global objects that programs do not replace by objects with getters. */
const plainGlobals: ReadonlySet<string> = new Set([
  'Math',
  'Number',
  'Atomics',
  'Object',
  'Reflect',
  'JSON',
  'Symbol',
])

/** `object`, after the runtime records which property is read next. */
export function writePeek(lowering: CheckerLowering, object: Piece, node: Node): Rope {
  const { property } = node
  if (property.type === 'PrivateIdentifier' || node.object.type === 'Super') return rope`${object}`
  const of = bare(node.object)
  if (of.type === 'MetaProperty') return rope`${object}`
  const name = globalName(of, lowering.analysis.bindingOf)
  if (name !== null && plainGlobals.has(name)) return rope`${object}`
  // A computed key is evaluated once, where it stands.
  const again = property.type === 'Identifier' || property.type === 'Literal' || isWellKnownSymbol(property)
  if (node.computed && !again) return lowering.effect(rope`${object}`)
  const key: Piece = node.computed ? property : JSON.stringify(property.name)
  return rope`${lowering.names.runtime('peek')}(${object}, ${key})`
}

/** The operands that a node converts, each with the runtime function that converts it. */
export function converted(node: Node): [operand: Node, by: string][] {
  switch (node.type) {
    case 'BinaryExpression': {
      if (node.left.type === 'PrivateIdentifier' || node.operator === '===' || node.operator === '!==')
        return []
      if (node.operator === 'in')
        return [
          [node.left, 'primitive'],
          [node.right, 'within'],
        ]
      if (node.operator === 'instanceof')
        return [
          [node.left, 'unproxied'],
          [node.right, 'kind'],
        ]
      return [node.left, node.right].filter(mayBeObject).map(operand => [operand, 'primitive'])
    }
    case 'UnaryExpression':
      return /^[-+~]$/.test(node.operator) && mayBeObject(node.argument) ? [[node.argument, 'primitive']] : []
    case 'TemplateLiteral':
      return (node.expressions as Node[]).filter(mayBeObject).map(operand => [operand, 'primitive'])
    case 'AssignmentExpression':
      return /^(?:=|&&=|\|\|=|\?\?=)$/.test(node.operator) || !mayBeObject(node.right)
        ? []
        : [[node.right, 'primitive']]
    case 'ObjectExpression':
      return (node.properties as Node[])
        .filter(({ computed, key }) => computed === true && mayBeObject(key))
        .map(({ key }) => [key as Node, 'primitive'])
    default:
      return []
  }
}

/** False if the syntax shows that the value is no object. */
export function mayBeObject(node: Node): boolean {
  const value = bare(node)
  switch (value.type) {
    case 'Literal':
      return value.regex !== undefined
    case 'TemplateLiteral':
    case 'BinaryExpression':
    case 'UpdateExpression':
      return false
    case 'UnaryExpression':
      return false
    default:
      return true
  }
}

/** A value that a pattern of names destructures: the runtime checks the properties that it reads. */
export function writeNamed(lowering: CheckerLowering, pattern: Node, value: Rope): Rope {
  if (isDeep(pattern)) return lowering.effect(value)
  if (pattern.type !== 'ObjectPattern') return value
  const properties = pattern.properties as Node[]
  const names = properties.some(({ type }) => type === 'RestElement') ? null : properties.map(keyName)
  return rope`${lowering.names.runtime('parts')}(${value}, ${JSON.stringify(names)})`
}

/** True if the pattern has nested patterns or computed keys. */
function isDeep(pattern: Node): boolean {
  let found = false
  walk(pattern, node => {
    if (isFunction(node)) return false
    if (node !== pattern && (node.type === 'ArrayPattern' || node.type === 'ObjectPattern')) found = true
    if (node.type === 'Property' && node.computed) found = true
    return !found
  })
  return found
}

/** True if a part of a function, functions inside excluded, runs code that the compiler cannot rewrite. */
export function isOpaque(part: Node): boolean {
  let found = false
  walk(part, node => {
    if (node !== part && isFunction(node)) return false
    if (isClass(node) || (node.type === 'CatchClause' && (node.param?.type ?? '').endsWith('Pattern')))
      found = true
    if (node.type === 'MemberExpression' && node.object.type === 'Super') found = true
    return !found
  })
  return found
}

/** The calls that a node awaits or returns. */
export function awaitedIn(node: Node): Node[] {
  if (node.type === 'AwaitExpression' || (node.type === 'ReturnStatement' && node.argument !== null))
    return resultsOf(node.argument)
  if (node.type === 'ArrowFunctionExpression' && node.body.type !== 'BlockStatement')
    return resultsOf(node.body)
  return []
}

/** The calls whose value an expression may have. */
function resultsOf(expression: Node): Node[] {
  const value = bare(expression)
  switch (value.type) {
    case 'CallExpression':
      return [value]
    case 'ChainExpression':
      return resultsOf(value.expression)
    case 'ConditionalExpression':
      return [...resultsOf(value.consequent), ...resultsOf(value.alternate)]
    case 'LogicalExpression':
      return [...resultsOf(value.left), ...resultsOf(value.right)]
    case 'SequenceExpression':
      return resultsOf(value.expressions.at(-1))
    default:
      return []
  }
}
