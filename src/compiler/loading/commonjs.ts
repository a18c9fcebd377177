/**
 * The names that a CommonJS module exports. Node reads them from the text, before it runs the module, so that
 * ES modules can import them by name (`cjs-module-lexer`). It knows only a few forms, which compilation
 * changes. So the output ends with the same names in a known form that never runs.
 */
import { bare, type Node, walk } from '../analysis/syntax.ts'

interface Exported {
  names: Set<string>
  /** The specifiers of modules that are re-exported as a whole. */
  modules: Set<string>
}

/** The end of the output; empty if nothing is exported by name. */
export function exportsText(program: Node, source: string): string {
  if (!source.includes('exports')) return ''
  const { names, modules } = exportedBy(program, source)
  const parts: string[] = []
  const assigned = [...names].map(name => `exports[${JSON.stringify(name)}] = `)
  if (assigned.length > 0) parts.push(`${assigned.join('')}0`)
  for (const module of modules) parts.push(`__exportStar(require(${JSON.stringify(module)}), exports)`)
  return parts.length === 0 ? '' : `\n;0 && (${parts.join(', ')});\n`
}

function exportedBy(program: Node, source: string): Exported {
  const found: Exported = { names: new Set(), modules: new Set() }
  walk(program, node => {
    if (node.type !== 'AssignmentExpression' || node.operator !== '=') return
    const { left } = node
    if (left.type !== 'MemberExpression') return
    const name = memberName(left)
    if (name !== null && isExports(left.object)) found.names.add(name)
    if (isModuleExports(left) && node.right.type === 'ObjectExpression') {
      readLiteral(node.right, source, found)
    }
  })
  return found
}

function isModuleExports(node: Node): boolean {
  return (
    node.type === 'MemberExpression' &&
    !node.computed &&
    node.object.type === 'Identifier' &&
    node.object.name === 'module' &&
    node.property.name === 'exports'
  )
}

/** `exports` or `module.exports`. Aliases do not count: Node ignores them too. */
export function isExports(node: Node): boolean {
  return (node.type === 'Identifier' && node.name === 'exports') || isModuleExports(node)
}

function memberName({ computed, property }: Node): string | null {
  if (!computed) return property.type === 'Identifier' ? property.name : null
  return property.type === 'Literal' && typeof property.value === 'string' ? property.value : null
}

const wordThere = /[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/uy

/** The word at this offset, or null. */
function wordAt(source: string, at: number): string | null {
  wordThere.lastIndex = at
  return wordThere.exec(source)?.[0] ?? null
}

/** `module.exports = { … }`: each name up to the first value that is more than a word. */
function readLiteral({ properties }: Node, source: string, { names, modules }: Exported): void {
  for (const property of properties as Node[]) {
    if (property.type === 'SpreadElement') {
      const argument = property.argument as Node
      const module = requiredBy(argument)
      if (module !== null) modules.add(module)
      else if (argument.type !== 'Identifier') return
      continue
    }
    if (property.computed) return
    const { key, value } = property
    const isText = key.type === 'Literal' && typeof key.value === 'string'
    if (!isText && key.type !== 'Identifier') return
    if (property.shorthand) {
      names.add(key.name)
      continue
    }
    if (property.method || property.kind !== 'init') {
      // `async a() {}` and `get a() {}` begin with a word, too.
      const word = wordAt(source, property.start)
      if (word !== null) names.add(word)
      return
    }
    const word = wordAt(source, value.start)
    if (word === null) return
    names.add(isText ? key.value : key.name)
    if (!/[,}]/.test(source[value.start + word.length] ?? '')) return
  }
}

/** The specifier of `require('…')`. */
function requiredBy(node: Node): string | null {
  if (node.type !== 'CallExpression' || node.callee.type !== 'Identifier' || node.callee.name !== 'require')
    return null
  const [specifier] = node.arguments
  return specifier?.type === 'Literal' && typeof specifier.value === 'string' ? specifier.value : null
}

/**
 * The functions in a call that Node recognizes by their text, and that must stay as they are: getters of
 * exports, and functions that copy exports.
 */
export function* handsOutExports(call: Node): Generator<Node> {
  const callee = bare(call.callee)
  if (callee.type !== 'MemberExpression' || callee.computed) return
  const { object, property } = callee
  const [first, , descriptor] = call.arguments as Node[]
  const isObject = object.type === 'Identifier' && object.name === 'Object'
  if (isObject && property.name === 'defineProperty' && first !== undefined && isExports(first)) {
    for (const { key, value } of descriptor?.type === 'ObjectExpression' ? descriptor.properties : []) {
      if (key?.name === 'get') yield value
    }
  }
  const isKeys =
    object.type === 'CallExpression' &&
    object.callee.type === 'MemberExpression' &&
    object.callee.object.name === 'Object' &&
    object.callee.property.name === 'keys'
  if (isKeys && property.name === 'forEach' && first?.type === 'FunctionExpression' && copies(first))
    yield first
}

/** True if a function copies its argument to the exports. */
function copies(fn: Node): boolean {
  let found = false
  walk(fn.body, node => {
    if (node.type === 'AssignmentExpression' && node.left.type === 'MemberExpression') {
      if (isExports(node.left.object) && node.left.computed) found = true
    } else if (node.type === 'CallExpression' && node.arguments.length > 0 && isExports(node.arguments[0])) {
      found = true
    }
    return !found
  })
  return found
}
