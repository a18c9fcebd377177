/** The operations on shared memory, and the number by which the checker knows each kind. */
import { isWellKnownSymbol, bare, type Node } from '../../analysis/syntax.ts'

export const plainRead = 0
export const plainWrite = 1
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

/** Methods that read or write the memory of a view or a buffer: each element is a step. */
const memoryMethods: ReadonlySet<string> = new Set([
  'at',
  'copyWithin',
  'entries',
  'every',
  'fill',
  'filter',
  'find',
  'findIndex',
  'findLast',
  'findLastIndex',
  'forEach',
  'grow',
  'includes',
  'indexOf',
  'join',
  'keys',
  'lastIndexOf',
  'map',
  'reduce',
  'reduceRight',
  'reverse',
  'set',
  'slice',
  'some',
  'sort',
  'subarray',
  'toLocaleString',
  'toReversed',
  'toSorted',
  'toString',
  'values',
  'with',
])

const dataViewMethod: RegExp = /^[gs]et(?:Big)?(?:Int|Uint|Float)(?:8|16|32|64)$/

/** The name of a method that takes several steps on shared memory; undefined for any other. */
export function memoryMethod(callee: Node): string | undefined {
  if (callee.type !== 'MemberExpression') return undefined
  if (callee.computed) {
    const isIterator = isWellKnownSymbol(callee.property) && callee.property.property.name === 'iterator'
    return isIterator ? '[Symbol.iterator]' : undefined
  }
  if (callee.property.type !== 'Identifier') return undefined
  const name = callee.property.name as string
  return memoryMethods.has(name) || dataViewMethod.test(name) ? name : undefined
}

/** `x[i]` with a key that may be an index. */
export function isIndexed(node: Node): boolean {
  if (!node.computed) return false
  const key = bare(node.property)
  if (key.type === 'Literal') return typeof key.value !== 'string' || String(Number(key.value)) === key.value
  return !isWellKnownSymbol(key)
}

/** `x.length` and `x.byteLength`, which change if `x` can grow. */
export function isLength(node: Node): boolean {
  if (node.computed || node.property.type !== 'Identifier') return false
  return node.property.name === 'length' || node.property.name === 'byteLength'
}

/** The same, except for members of `super`. */
export function isIndexedMember(node: Node): boolean {
  return node.type === 'MemberExpression' && node.object.type !== 'Super' && isIndexed(node)
}
