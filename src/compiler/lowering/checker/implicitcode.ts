/**
 * What runs code without a call: reads of properties, conversions, patterns. The runtime is told of each: it
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

/** Global objects that nobody replaces by what has getters. */
const plainGlobals: ReadonlySet<string> = new Set([
  'Math',
  'Number',
  'Atomics',
  'Object',
  'Reflect',
  'JSON',
  'Symbol',
])

/** What `object` is, told that the property of this member is read next. */
export function writePeek(lowering: CheckerLowering, object: Piece, node: Node): Rope {
  const { property } = node
  if (property.type === 'PrivateIdentifier' || node.object.type === 'Super') return rope`${object}`
  const of = bare(node.object)
  if (of.type === 'MetaProperty') return rope`${object}`
  const name = globalName(of, lowering.analysis.bindingOf)
  if (name !== null && plainGlobals.has(name)) return rope`${object}`
  // A key that has to be worked out is worked out once, where it stands.
  const again = property.type === 'Identifier' || property.type === 'Literal' || isWellKnownSymbol(property)
  if (node.computed && !again) return lowering.effect(rope`${object}`)
  const key: Piece = node.computed ? property : JSON.stringify(property.name)
  return rope`${lowering.names.runtime('peek')}(${object}, ${key})`
}

/** The operands of a node that it converts, and by which function of the runtime they go. */
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

/** False where the syntax says that the value is no object. */
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

/** What a pattern of names takes apart: the runtime looks at what it reads. */
export function writeNamed(lowering: CheckerLowering, pattern: Node, value: Rope): Rope {
  if (isDeep(pattern)) return lowering.effect(value)
  if (pattern.type !== 'ObjectPattern') return value
  const properties = pattern.properties as Node[]
  const names = properties.some(({ type }) => type === 'RestElement') ? null : properties.map(keyName)
  return rope`${lowering.names.runtime('parts')}(${value}, ${JSON.stringify(names)})`
}

/** True when the pattern takes apart what it has taken out, or what is named only as it runs. */
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

/**
 * True when a part of a function, but not of those inside, runs code in a way that is told of only by its
 * being there.
 */
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
