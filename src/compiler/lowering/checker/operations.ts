/** What in a program may be an operation on shared memory, and the number that the checker knows each kind by. */
import { bare, isWellKnownSymbol, type Node } from '../../syntax.ts'

/** The kinds of operations, as the checker numbers them. */
export const plainRead = 0
export const plainWrite = 1
export const awaiting = 14
export const dataViewRead = 15
export const dataViewWrite = 16
export const bulk = 17
export const iteration = 18
export const pause = 19

export const atomics: ReadonlyMap<string, number> = new Map([
  ['load', 2],
  ['store', 3],
  ['add', 4],
  ['sub', 5],
  ['and', 6],
  ['or', 7],
  ['xor', 8],
  ['exchange', 9],
  ['compareExchange', 10],
  ['wait', 11],
  ['notify', 12],
  ['waitAsync', 13],
])

/** Methods of typed arrays that touch many elements at once. */
export const bulkMethods: ReadonlySet<string> = new Set([
  'set',
  'fill',
  'slice',
  'copyWithin',
  'at',
  'indexOf',
  'lastIndexOf',
  'includes',
  'join',
  'reverse',
  'sort',
  'toSorted',
  'toReversed',
  'with',
  'map',
  'filter',
  'forEach',
  'every',
  'some',
  'find',
  'findIndex',
  'findLast',
  'findLastIndex',
  'reduce',
  'reduceRight',
  'values',
  'entries',
  'toString',
  'toLocaleString',
])

export const dataViewMethod: RegExp = /^([gs]et)(?:Big)?(?:Int|Uint|Float)(?:8|16|32|64)$/

/** A method that, on a view of shared memory, is an operation. */
export function mayTouchView(node: Node): boolean {
  const callee = bare(node.callee ?? node.tag)
  if (callee.type !== 'MemberExpression' || callee.computed || callee.property.type !== 'Identifier')
    return false
  return bulkMethods.has(callee.property.name) || dataViewMethod.test(callee.property.name)
}

/** `x[i]`, with a key that could be an index. */
export function isIndexed(node: Node): boolean {
  if (!node.computed) return false
  const key = bare(node.property)
  if (key.type === 'Literal') return typeof key.value !== 'string'
  return key.type !== 'TemplateLiteral' && !isWellKnownSymbol(key)
}
