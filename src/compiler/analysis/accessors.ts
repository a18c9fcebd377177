/**
 * Getters and setters that can run long. A read of a property is no call, and must not cost as much as one:
 * so only reads and assignments by a name under which this file has such an accessor are looked at. The
 * accessor runs to its end for all others. A private name belongs to the innermost class around it that
 * declares it. A computed one is known where it is a constant or a well-known symbol: then a read by the same
 * constant is looked at.
 */
import type { Analysis } from './analysis.ts'
import type { ImplicitCall } from './construct.ts'
import type { Func } from './functions.ts'
import type { Binding } from './scope.ts'
import { bare, children, isClass, isWellKnownSymbol, keyName, type Node } from './syntax.ts'

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

type BindingOf = Analysis['bindingOf']

/** Why an accessor cannot be resumed; null: it can be, where it is written out. */
export function accessorRefusal(
  { holder, kind, loops }: Func,
  isMarked: boolean,
  bindingOf: BindingOf,
): string | null {
  const how = kind === 'getter' ? 'a read' : 'an assignment'
  if (holder === null || !isFoundByKey(holder, bindingOf)) {
    return `${how} that calls it is not found by its name`
  }
  const name = keyName(holder)
  if (name !== null && common.has(name)) {
    return `too many things have a \`${name}\` for ${how} of each to be looked at`
  }
  if (loops.length === 0 && !isMarked) return `${how} of a property is looked at only for accessors that loop`
  return null
}

/**
 * Whether accesses that may call the accessor can be told from others: by what its name is, or is computed
 * from.
 */
export function isFoundByKey(holder: Node, bindingOf: BindingOf): boolean {
  if (holder.key.type === 'PrivateIdentifier') return true
  return (
    (holder.type === 'MethodDefinition' || !holder.computed) &&
    keyOf(holder.key, holder.computed, bindingOf) !== null
  )
}

/** A name, a constant that holds one, or a well-known symbol; null for any other. */
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
/** The private names of a class: all, and those that are such accessors. */
interface Privates extends Record<'getters' | 'setters', Accessors> {
  readonly all: ReadonlySet<Key>
}

/** A read or an assignment that may call an accessor of this file. */
interface Access {
  readonly node: Node
  readonly func: Func
  readonly targets: readonly Func[]
}

/** The accesses that may call one of the accessors that are meant. */
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

/** Enters the accessors that each function may run among what it makes: what they cost, it costs. */
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

/** The reads and the assignments that may call an accessor of this file that unwinds. */
export class AccessorUses {
  readonly reads: ReadonlySet<Node>
  readonly writes: ReadonlySet<Node>

  constructor(analysis: Analysis) {
    const { reads, writes } = accessesOf(analysis, ({ twin }) => twin)
    this.reads = new Set(reads.map(({ node }) => node))
    this.writes = new Set(writes.map(({ node }) => node))
  }
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
