/** The nodes of a syntax tree, and basic questions about them. */
import { visitorKeys } from 'oxc-parser'

/** A node of the parser's tree: ESTree, with the nodes of TypeScript and JSX. */
export interface Node {
  type: string
  start: number
  end: number
  [key: string]: any
}

/** TypeScript nodes that contain code. All others are types, and are copied unread. */
const runningTypeScript = new Set([
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSNonNullExpression',
  'TSTypeAssertion',
  'TSInstantiationExpression',
  'TSEnumDeclaration',
  'TSEnumBody',
  'TSEnumMember',
  'TSModuleDeclaration',
  'TSModuleBlock',
  'TSParameterProperty',
  'TSExportAssignment',
])

/** True for nodes that type stripping removes: annotations, interfaces, overloads, `declare`. */
export function isErased(node: Node): boolean {
  if (node.type.startsWith('TS')) return !runningTypeScript.has(node.type) || node.declare === true
  if (node.declare === true) return true
  return node.type === 'ImportDeclaration' && node.importKind === 'type'
}

/** True for a function or class that takes its name from its context. */
export function isAnonymous(node: Node): boolean {
  return (isFunction(node) || node.type === 'ClassExpression') && node.id == null
}

/** True if the assignment or default names an anonymous function. `(x) = …` does not. */
export function givesName({ start, left, operator }: Node): boolean {
  if (left.type !== 'Identifier' || left.start !== start) return false
  return operator === undefined || /^(?:=|&&=|\|\|=|\?\?=)$/.test(operator)
}

/** The children that contain code, in source order. */
export function children(node: Node): Node[] {
  const keys = visitorKeys[node.type]
  const found: Node[] = []
  if (keys === undefined) return found
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at]!
    const value = node[key]
    if (value === null || value === undefined) continue
    if (key === 'key' && node.type === 'Property' && node.shorthand === true) continue
    if (!Array.isArray(value)) addChild(found, value)
    else for (let index = 0; index < value.length; index++) addChild(found, value[index])
  }
  for (let at = 1; at < found.length; at++) {
    if (found[at]!.start < found[at - 1]!.start) return found.sort((left, right) => left.start - right.start)
  }
  return found
}

function addChild(found: Node[], child: any): void {
  if (child === null || typeof child !== 'object') return
  const { type } = child
  if (typeof type === 'string' && !(mayBeErased(type) && isErased(child))) found.push(child)
}

const erasedTypes = new Map<string, boolean>()

/** A cheap test that is false for nearly every type, before the test of the node itself. */
function mayBeErased(type: string): boolean {
  let known = erasedTypes.get(type)
  if (known === undefined) {
    known = type.startsWith('TS') || /Declaration|Definition|^Function|^Class|^Accessor/.test(type)
    erasedTypes.set(type, known)
  }
  return known
}

/** Calls `visit` on the node and its descendants. A visit that returns false skips the node's children. */
export function walk(node: Node, visit: (node: Node) => boolean | void): void {
  if (visit(node) === false) return
  for (const child of children(node)) walk(child, visit)
}

export function isFunction(node: Node): boolean {
  return (
    (node.type === 'FunctionDeclaration' ||
      node.type === 'FunctionExpression' ||
      node.type === 'ArrowFunctionExpression') &&
    node.body !== null &&
    node.declare !== true
  )
}

export function isLoop(node: Node): boolean {
  switch (node.type) {
    case 'ForStatement':
    case 'ForInStatement':
    case 'ForOfStatement':
    case 'WhileStatement':
    case 'DoWhileStatement':
      return true
    default:
      return false
  }
}

/** A statement without its labels, and the labels. */
export function unlabeled(statement: Node): { labels: Node[]; inner: Node } {
  const labels: Node[] = []
  let inner = statement
  while (inner.type === 'LabeledStatement') {
    labels.push(inner.label)
    inner = inner.body
  }
  return { labels, inner }
}

export function isClass(node: Node): boolean {
  return node.type === 'ClassDeclaration' || node.type === 'ClassExpression'
}

/** True if the range of `inner` is within the range of `outer`. */
export function contains(outer: Node, inner: Node): boolean {
  return inner.start >= outer.start && inner.end <= outer.end
}

/** The expression inside parentheses and TypeScript assertions. */
export function bare(node: Node): Node {
  let inner = node
  for (;;) {
    switch (inner.type) {
      case 'ParenthesizedExpression':
      case 'TSAsExpression':
      case 'TSSatisfiesExpression':
      case 'TSNonNullExpression':
      case 'TSTypeAssertion':
      case 'TSInstantiationExpression':
        inner = inner.expression
        break
      default:
        return inner
    }
  }
}

/** The directives at the start of a function body or module. */
export function directives(body: Node[]): Node[] {
  const found: Node[] = []
  for (const statement of body) {
    if (statement.type !== 'ExpressionStatement' || typeof statement.directive !== 'string') break
    found.push(statement)
  }
  return found
}

/** The identifiers that a pattern binds. */
export function boundNames(pattern: Node | null, found: Node[] = []): Node[] {
  if (pattern === null) return found
  switch (pattern.type) {
    case 'Identifier':
      found.push(pattern)
      break
    case 'ObjectPattern':
      for (const property of pattern.properties) {
        boundNames(property.type === 'RestElement' ? property.argument : property.value, found)
      }
      break
    case 'ArrayPattern':
      for (const element of pattern.elements) boundNames(element, found)
      break
    case 'AssignmentPattern':
      boundNames(pattern.left, found)
      break
    case 'RestElement':
      boundNames(pattern.argument, found)
      break
    case 'TSParameterProperty':
      boundNames(pattern.parameter, found)
      break
    default:
  }
  return found
}

/** The name of a property, or null if it is computed. */
export function keyName(node: Node): string | null {
  const { key } = node
  if (node.computed) {
    return key.type === 'Literal' && typeof key.value === 'string' ? key.value : null
  }
  if (key.type === 'Identifier') return key.name
  if (key.type === 'PrivateIdentifier') return `#${key.name}`
  return key.type === 'Literal' ? String(key.value) : null
}

/** `[Symbol.iterator]` and the like, which are as good as a fixed name. */
export function isWellKnownSymbol(key: Node): boolean {
  return (
    key.type === 'MemberExpression' &&
    !key.computed &&
    key.object.type === 'Identifier' &&
    key.object.name === 'Symbol'
  )
}

/** A key that is not computed, as text; a private name without its `#`. */
export function wordOf(key: Node): string {
  return key.name ?? String(key.value)
}
