/**
 * The hash of the body of a function that can move. A frame of it has a place and values, so the hash covers
 * all that gives these a meaning: the function's syntax, and its resume points with their values. It does not
 * cover text: formatting, comments and types do not change it, and neither does the machine.
 */
import { visitorKeys } from 'oxc-parser'
import { textHash } from '../../loading/texthash.ts'
import { isTaskDirective } from '../../analysis/directive.ts'
import { bare, isErased, type Node } from '../../analysis/syntax.ts'

/** Changes when the same source gets other places or values, or a place another meaning. */
const FORMAT = 'heddle movable 2'

export function bodyHash(node: Node, meaning: string): string {
  const parts: string[] = [FORMAT, meaning]
  addNode(parts, node)
  return textHash(parts.join('\u0001')).slice(0, 16)
}

/** Facts of a node that are neither children nor positions. */
const facts = [
  'name',
  'operator',
  'kind',
  'computed',
  'static',
  'async',
  'generator',
  'delegate',
  'optional',
  'prefix',
  'method',
  'await',
] as const

function addNode(parts: string[], outer: Node): void {
  const node = bare(outer)
  if (isErased(node) || node.type === 'EmptyStatement' || isTaskDirective(node.directive)) return
  parts.push(node.type)
  for (const fact of facts) {
    const value = node[fact]
    if (typeof value === 'string') parts.push(value)
    else if (value === true) parts.push(fact)
  }
  if (node.type === 'Literal') parts.push(typeof node.value, node.regex ? literal(node) : String(node.value))
  if (node.type === 'TemplateElement') parts.push(String(node.value.cooked), node.value.raw)
  if (node.type === 'JSXText') parts.push(String(node.value))
  for (const key of visitorKeys[node.type] ?? []) {
    const value = node[key]
    if (value === null || value === undefined) parts.push('-')
    else if (Array.isArray(value)) {
      parts.push('[')
      for (const child of value) {
        if (child === null) parts.push('-')
        else if (!isThisParameter(child)) addNode(parts, child as Node)
      }
      parts.push(']')
    } else if (!isType(value as Node)) addNode(parts, value as Node)
  }
}

function literal({ regex }: Node): string {
  return `/${regex.pattern}/${regex.flags}`
}

/** A parameter that only TypeScript has. */
function isThisParameter({ type, name }: Node): boolean {
  return type === 'Identifier' && name === 'this'
}

function isType({ type }: Node): boolean {
  return type.startsWith('TSType') && type !== 'TSTypeAssertion'
}
