/**
 * Getters and setters that can run long. A property read must not cost as much as a call. So the compiler
 * checks only reads and assignments whose name belongs to such an accessor of this file; in all others an
 * accessor runs to its end. A private name belongs to the innermost class that declares it. A computed name
 * is known if it is a constant or a well-known symbol.
 */
import type { Analysis } from './analysis.ts'
import type { ImplicitCall } from './construct.ts'
import type { Func } from './functions.ts'
import type { Binding } from './scope.ts'
import { bare, children, isClass, isWellKnownSymbol, keyName, type Node } from './syntax.ts'

/** Names of common built-in properties. Checking every read of such a name would cost too much. */
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

type BindingOf = Analysis['bindingOf']

/** Why the accessor cannot be resumed, or null if it can. */
export function accessorRefusal(
  { holder, kind, loops }: Func,
  isMarked: boolean,
  bindingOf: BindingOf,
): string | null {
  const accesses = kind === 'getter' ? 'reads' : 'assignments'
  if (holder === null || !isFoundByKey(holder, bindingOf)) {
    return `its name does not identify the ${accesses} that call it`
  }
  const name = keyName(holder)
  if (name !== null && common.has(name)) {
    return `\`${name}\` is too common a name to check all ${accesses} of it`
  }
  if (loops.length === 0 && !isMarked) return `${accesses} are checked only for accessors that loop`
  return null
}

/** True if the name or the computed key of the accessor identifies the accesses that may call it. */
export function isFoundByKey(holder: Node, bindingOf: BindingOf): boolean {
  if (holder.key.type === 'PrivateIdentifier') return true
  return (
    (holder.type === 'MethodDefinition' || !holder.computed) &&
    keyOf(holder.key, holder.computed, bindingOf) !== null
  )
}

/** A name, a constant that holds a name, or a well-known symbol; null for any other key. */
type Key = string | Binding | null

function keyOf(key: Node, computed: boolean, bindingOf: BindingOf): Key {
  if (!computed) {
    if (key.type === 'Identifier') return key.name
    return key.type === 'Literal' ? String(key.value) : null
  }
  if (key.type === 'Literal') return typeof key.value === 'string' ? key.value : null
  if (isWellKnownSymbol(key)) return `@@${key.property.name}`
  const binding = key.type === 'Identifier' ? (bindingOf.get(key) ?? null) : null
  return binding !== null && (binding.kind === 'const' || binding.kind === 'import') ? binding : null
}

type Accessors = Map<Key, Func[]>
/** The private names of a class: all of them, and those of the selected accessors. */
interface Privates extends Record<'getters' | 'setters', Accessors> {
  readonly all: ReadonlySet<Key>
}

/** A read or an assignment that may call an accessor of this file. */
interface Access {
  readonly node: Node
  readonly func: Func
  readonly targets: readonly Func[]
}

/** The accesses that may call one of the accessors for which `isMeant` is true. */
function accessesOf(
  { funcs, funcOf, program, bindingOf, root }: Analysis,
  isMeant: (func: Func) => boolean,
): { reads: Access[]; writes: Access[] } {
  const reads: Access[] = []
  const writes: Access[] = []
  const meant = funcs.filter(func => (func.kind === 'getter' || func.kind === 'setter') && isMeant(func))
  if (meant.length === 0) return { reads, writes }
  const named = { getters: new Map() as Accessors, setters: new Map() as Accessors }
  for (const func of meant) {
    const { key, computed } = func.holder!
    add(func.kind === 'getter' ? named.getters : named.setters, keyOf(key, computed, bindingOf), func)
  }
  const targetsOf = (which: 'getters' | 'setters', node: Node, around: readonly Privates[]): Func[] => {
    if (node.type !== 'MemberExpression' || node.object.type === 'Super') return []
    const { property, computed } = node
    if (property.type !== 'PrivateIdentifier') {
      return named[which].get(keyOf(property, computed, bindingOf)) ?? []
    }
    const innermost = around.findLast(({ all }) => all.has(property.name))
    return innermost?.[which].get(property.name) ?? []
  }
  const visit = (node: Node, isRead: boolean, outer: Func, classes: readonly Privates[]): void => {
    if (node.type === 'ChainExpression') return
    const func = funcOf.get(node) ?? outer
    const around = isClass(node) ? [...classes, privatesOf(node, funcOf, isMeant)] : classes
    if (isRead) {
      const targets = targetsOf('getters', node, around)
      if (targets.length > 0) reads.push({ node, func, targets })
    }
    if (node.type === 'AssignmentExpression' && node.operator === '=') {
      const targets = targetsOf('setters', node.left, around)
      if (targets.length > 0) writes.push({ node, func, targets })
    }
    for (const child of children(node)) visit(child, !isTarget(node, child), func, around)
  }
  visit(program, false, root, [])
  return { reads, writes }
}

function add(accessors: Accessors, key: Key, func: Func): void {
  if (key === null) return
  const list = accessors.get(key)
  if (list === undefined) accessors.set(key, [func])
  else list.push(func)
}

function privatesOf({ body }: Node, funcOf: Analysis['funcOf'], isMeant: (func: Func) => boolean): Privates {
  const all = new Set<Key>()
  const found: Privates = { getters: new Map(), setters: new Map(), all }
  for (const { key, kind, value } of body.body as Node[]) {
    if (key?.type !== 'PrivateIdentifier') continue
    all.add(key.name)
    const func = kind === 'get' || kind === 'set' ? funcOf.get(value) : undefined
    if (func !== undefined && isMeant(func))
      add(found[kind === 'get' ? 'getters' : 'setters'], key.name, func)
  }
  return found
}

/** Adds the accessors that each function may run to its implicit calls, so that their cost counts. */
export function addAccessors(analysis: Analysis, made: Map<Func, ImplicitCall[]>): void {
  const { reads, writes } = accessesOf(
    analysis,
    ({ mark, refusals }) => mark !== null && refusals.length === 0,
  )
  for (const { node, func, targets } of [...reads, ...writes]) {
    const list = made.get(func) ?? []
    for (const target of targets) list.push({ node, target })
    made.set(func, list)
  }
}

/** The reads and assignments that may call an accessor of this file which unwinds. */
export class AccessorUses {
  readonly reads: ReadonlySet<Node>
  readonly writes: ReadonlySet<Node>

  constructor(analysis: Analysis) {
    const { reads, writes } = accessesOf(analysis, ({ twin }) => twin)
    this.reads = new Set(reads.map(({ node }) => node))
    this.writes = new Set(writes.map(({ node }) => node))
  }
}

/** True if the child is called, written, deleted or part of a pattern there, not only read. */
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
