/**
 * Built-ins under other names: `const floor = Math.floor`, `var hasOwn = Object.prototype.hasOwnProperty`,
 * `Math = context.Math`.
 */
import type { Analysis } from './analysis.ts'
import { lightMethods, shortGlobals, shortNamespaces } from './builtins.ts'
import { bare, type Node } from './syntax.ts'

/** True if the callee is a brief built-in, by its own name or by a name that the file gave it. */
export function isBriefBuiltIn(callee: Node, analysis: Analysis): boolean {
  const node = bare(callee)
  if (node.type === 'Identifier') {
    const value = valueOf(node, analysis)
    if (value !== null && isBriefMember(value, analysis)) return true
    return shortGlobals.has(builtInName(node, analysis) ?? '')
  }
  return isMember(node) && builtInName(node.object, analysis) !== null && isBriefMember(node, analysis)
}

function isMember({ type, computed, object }: Node): boolean {
  return type === 'MemberExpression' && !computed && object.type !== 'Super'
}

function isBriefMember(node: Node, analysis: Analysis): boolean {
  if (!isMember(node)) return false
  const { name } = node.property
  const except = shortNamespaces.get(builtInName(bare(node.object), analysis) ?? '')
  return except === undefined ? lightMethods.has(name) : !except.has(name)
}

/** The name of a global, or of a variable that holds the global of the same name. */
function builtInName(node: Node, analysis: Analysis): string | null {
  if (node.type !== 'Identifier') return null
  const binding = analysis.bindingOf.get(node) ?? null
  if (binding === null) return node.name
  const value = valueOf(node, analysis)
  return value !== null && isMember(value) && value.property.name === node.name ? node.name : null
}

/** The value of a variable that is set once. */
function valueOf(node: Node, { bindingOf }: Analysis): Node | null {
  const binding = bindingOf.get(node)
  return binding == null || binding.written || binding.init === null ? null : bare(binding.init)
}
