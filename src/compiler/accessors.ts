/**
 * Getters and setters that can run long. A read of a property is no call, and must not cost as much as one: so only reads and
 * assignments by a name under which this file has such an accessor are looked at. The accessor runs to its end for all others.
 */
import type { Analysis } from './analysis.ts'
import type { Func } from './functions.ts'
import { bare, children, keyName, type Node } from './syntax.ts'

/** Names that lists, texts, functions and errors have: far too many reads would be looked at. */
const common: ReadonlySet<string> = new Set(
  [
    Array,
    String,
    Function,
    Map,
    Error,
    Promise,
    RegExp,
    ArrayBuffer,
    DataView,
    Object.getPrototypeOf(Int8Array),
  ]
    .flatMap((made: { prototype: object }) => Object.getOwnPropertyNames(made.prototype))
    .concat('length', 'name', 'prototype', 'value', 'done', 'type', 'stack', 'cause'),
)

/** Why an accessor cannot be resumed; null: it can be, where it is written out. */
export function accessorRefusal({ holder, kind, loops }: Func, isMarked: boolean): string | null {
  const how = kind === 'getter' ? 'a read' : 'an assignment'
  const name = holder === null ? null : keyName(holder)
  if (name === null || holder!.key.type === 'PrivateIdentifier') {
    return `${how} that calls it is not found by its name`
  }
  if (common.has(name)) return `too many things have a \`${name}\` for ${how} of each to be looked at`
  if (loops.length === 0 && !isMarked) return `${how} of a property is looked at only for accessors that loop`
  return null
}

/** The reads and the assignments that may call an accessor of this file that unwinds. */
export class AccessorUses {
  readonly reads: ReadonlySet<Node>
  readonly writes: ReadonlySet<Node>

  constructor({ funcs, program }: Analysis) {
    const getters = namesOf(funcs, 'getter')
    const setters = namesOf(funcs, 'setter')
    const reads = new Set<Node>()
    const writes = new Set<Node>()
    this.reads = reads
    this.writes = writes
    if (getters.size === 0 && setters.size === 0) return
    const isIn = (names: ReadonlySet<string>, node: Node): boolean =>
      node.type === 'MemberExpression' &&
      !node.computed &&
      node.property.type === 'Identifier' &&
      node.object.type !== 'Super' &&
      names.has(node.property.name)
    const visit = (node: Node, isRead: boolean): void => {
      if (node.type === 'ChainExpression') return
      if (isRead && isIn(getters, node)) reads.add(node)
      if (node.type === 'AssignmentExpression' && node.operator === '=' && isIn(setters, node.left)) {
        writes.add(node)
      }
      for (const child of children(node)) visit(child, !isTarget(node, child))
    }
    visit(program, false)
  }
}

function namesOf(funcs: readonly Func[], kind: Func['kind']): Set<string> {
  return new Set(funcs.filter(func => func.kind === kind && func.twin).map(({ name }) => name))
}

/** True when a member that stands there is more than read: called, written, deleted, or part of a pattern. */
function isTarget(parent: Node, child: Node): boolean {
  switch (parent.type) {
    case 'CallExpression':
      return bare(parent.callee) === bare(child)
    case 'TaggedTemplateExpression':
      return parent.tag === child
    case 'AssignmentExpression':
    case 'AssignmentPattern':
    case 'ForInStatement':
    case 'ForOfStatement':
      return parent.left === child
    case 'UnaryExpression':
      return parent.operator === 'delete'
    case 'UpdateExpression':
    case 'ArrayPattern':
    case 'ObjectPattern':
    case 'RestElement':
    case 'ParenthesizedExpression':
    case 'TSAsExpression':
    case 'TSNonNullExpression':
    case 'TSSatisfiesExpression':
    case 'TSTypeAssertion':
      return true
    case 'Property':
      return parent.value === child && child.type === 'MemberExpression'
    default:
      return false
  }
}
