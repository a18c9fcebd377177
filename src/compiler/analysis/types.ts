/**
 * The type of an expression, if the source shows it. A wrong annotation only costs a chance to preempt; the
 * result of a program never depends on it.
 */
import { type Analysis, globalName } from './analysis.ts'
import { shortNamespaces } from './builtins.ts'
import type { Binding } from './scope.ts'
import { bare, type Node } from './syntax.ts'

type ValueType = 'string' | 'number' | 'array' | 'strings' | 'typed' | 'map' | 'set' | 'view'

const constructed: ReadonlyMap<string, ValueType> = new Map([
  ['Array', 'array'],
  ['Map', 'map'],
  ['WeakMap', 'map'],
  ['Set', 'set'],
  ['WeakSet', 'set'],
  ['DataView', 'view'],
  ['Int8Array', 'typed'],
  ['Uint8Array', 'typed'],
  ['Uint8ClampedArray', 'typed'],
  ['Int16Array', 'typed'],
  ['Uint16Array', 'typed'],
  ['Int32Array', 'typed'],
  ['Uint32Array', 'typed'],
  ['Float32Array', 'typed'],
  ['Float64Array', 'typed'],
  ['BigInt64Array', 'typed'],
  ['BigUint64Array', 'typed'],
])

const listMethods: ReadonlySet<string> = new Set(
  (
    'push pop shift unshift slice splice concat indexOf lastIndexOf includes at join reverse toReversed fill ' +
    'copyWithin set subarray with keys'
  ).split(' '),
)

/** Methods of these types that run none of the program's code. */
const methods: Record<ValueType, ReadonlySet<string>> = {
  string: new Set(Object.getOwnPropertyNames(String.prototype).filter(name => !name.startsWith('replace'))),
  number: new Set(Object.getOwnPropertyNames(Number.prototype)),
  array: listMethods,
  strings: listMethods,
  typed: listMethods,
  map: new Set(['get', 'set', 'has', 'delete', 'clear']),
  set: new Set(['add', 'has', 'delete', 'clear']),
  view: new Set(Object.getOwnPropertyNames(DataView.prototype).filter(name => /^[gs]et/.test(name))),
}

/** True if the method of this type is a built-in that runs none of the program's code. */
export function isBuiltIn(type: ValueType, method: string): boolean {
  return methods[type].has(method)
}

export function typeOf(expression: Node, analysis: Analysis): ValueType | null {
  const node = bare(expression)
  switch (node.type) {
    case 'Literal':
      return typeof node.value === 'string' ? 'string' : typeof node.value === 'number' ? 'number' : null
    case 'TemplateLiteral':
      return 'string'
    case 'ArrayExpression':
      return 'array'
    case 'BinaryExpression': {
      // Also for bigints: their methods run none of the program's code either.
      if (/^(?:[-*/%&|^]|\*\*|<<|>>>?)$/.test(node.operator)) return 'number'
      if (node.operator !== '+') return null
      return typeOf(node.left, analysis) === 'string' || typeOf(node.right, analysis) === 'string'
        ? 'string'
        : null
    }
    case 'NewExpression': {
      return constructed.get(globalName(node.callee, analysis.bindingOf) ?? '') ?? null
    }
    case 'CallExpression': {
      const callee = bare(node.callee)
      if (callee.type !== 'MemberExpression' || callee.computed) return null
      return resultOf(callee, analysis)
    }
    case 'Identifier': {
      const binding = analysis.bindingOf.get(node) ?? null
      return binding === null ? null : typeOfBinding(binding, analysis)
    }
    default:
      return null
  }
}

const textFromText: ReadonlySet<string> = new Set(
  'slice substring substr trim trimStart trimEnd toUpperCase toLowerCase charAt padStart padEnd repeat concat'.split(
    ' ',
  ),
)

/** The return type of the methods that matter. */
function resultOf({ object, property }: Node, analysis: Analysis): ValueType | null {
  const name = property.name as string
  const global = globalName(object, analysis.bindingOf)
  if (global !== null) {
    if (global === 'String' && name.startsWith('from')) return 'string'
    if (global === 'Object') {
      if (name === 'keys' || name === 'getOwnPropertyNames') return 'strings'
      return name === 'values' || name === 'entries' ? 'array' : null
    }
    return null
  }
  const type = typeOf(object, analysis)
  if (type === 'string') {
    if (name === 'split') return 'strings'
    return textFromText.has(name) ? 'string' : null
  }
  if (isList(type)) {
    if (name === 'join') return 'string'
    if (name === 'slice' || name === 'concat' || name === 'reverse' || name === 'toReversed') return type
  }
  return null
}

/**
 * True for a value whose built-in methods are there at any time: a standard object, or a constant that holds
 * a new list. No annotation counts.
 */
export function hasFixedMethods(expression: Node, analysis: Analysis): boolean {
  const node = bare(expression)
  if (node.type !== 'Identifier') return node.type === 'ArrayExpression' || node.type === 'TemplateLiteral'
  if (shortNamespaces.has(globalName(node, analysis.bindingOf) ?? '')) return true
  const binding = analysis.bindingOf.get(node) ?? null
  if (binding === null || binding.init === null || binding.kind !== 'const') return false
  const init = bare(binding.init)
  if (init.type !== 'NewExpression') return init.type === 'ArrayExpression'
  return constructed.has(globalName(init.callee, analysis.bindingOf) ?? '')
}

/** True for arrays. */
export function isArray(type: ValueType | null): boolean {
  return type === 'array' || type === 'strings'
}

/** True for arrays and typed arrays. */
export function isList(type: ValueType | null): boolean {
  return isArray(type) || type === 'typed'
}

const known = new WeakMap<Binding, ValueType | null>()

function typeOfBinding(binding: Binding, analysis: Analysis): ValueType | null {
  const found = known.get(binding)
  if (found !== undefined) return found
  known.set(binding, null)
  const element =
    binding.iterates !== null && typeOf(binding.iterates, analysis) === 'strings' ? 'string' : null
  const type = annotated(binding) ?? element ?? inferred(binding, analysis)
  known.set(binding, type)
  return type
}

function inferred(binding: Binding, analysis: Analysis): ValueType | null {
  if (binding.init === null || binding.volatile || binding.declarations.length !== 1) return null
  const type = typeOf(binding.init, analysis)
  if (type === null) return null
  for (const { node, write } of binding.references) {
    if (!write) continue
    // A string stays a string after `+=`; any other new value may have any type.
    if (type !== 'string' || !analysis.appends.has(node)) return null
  }
  return type
}

function annotated({ name, declarations }: Binding): ValueType | null {
  if (declarations.length !== 1) return null
  const [declaration] = declarations
  const places: Node[] = declaration!.declarations?.map(({ id }: Node) => id) ?? declaration!.params ?? []
  for (const place of places) {
    const target = place.type === 'AssignmentPattern' ? place.left : place
    if (target.type === 'Identifier' && target.name === name && target.typeAnnotation) {
      return typeOfAnnotation(target.typeAnnotation.typeAnnotation)
    }
  }
  return null
}

function typeOfAnnotation(annotation: Node): ValueType | null {
  switch (annotation.type) {
    case 'TSStringKeyword':
      return 'string'
    case 'TSNumberKeyword':
      return 'number'
    case 'TSArrayType':
      return annotation.elementType.type === 'TSStringKeyword' ? 'strings' : 'array'
    case 'TSTupleType':
      return 'array'
    case 'TSTypeOperator':
      return annotation.operator === 'readonly' ? typeOfAnnotation(annotation.typeAnnotation) : null
    case 'TSTypeReference': {
      const { typeName } = annotation
      if (typeName.type !== 'Identifier') return null
      if (typeName.name === 'ReadonlyArray') return 'array'
      if (typeName.name === 'ReadonlyMap') return 'map'
      if (typeName.name === 'ReadonlySet') return 'set'
      return constructed.get(typeName.name) ?? null
    }
    default:
      return null
  }
}
