/**
 * The permission to unwind. Only a caller that checks `frames.u` after its call may permit its callee to
 * unwind. So each function takes its permission first: from `frames.ok`, which it clears, or as an extra
 * argument.
 */
import type { Analysis } from '../../analysis/analysis.ts'
import type { Func } from '../../analysis/functions.ts'
import { bare, contains, directives, type Node, walk } from '../../analysis/syntax.ts'
import type { FramesLowering } from './frames.ts'

/**
 * The first statement of a function: it takes its permission. A `var` needs no code to initialize; a `let`
 * does.
 */
export function takePermission(lowering: FramesLowering, func: Func, variables: readonly string[]): string {
  const { short: prefix } = lowering.names
  const frames = lowering.names.runtime('frames')
  const taken = lowering.passesPermission(func) ? `${frames}.ok===0?void 0:${frames}` : `${frames}.ok`
  const handed = permissionIndex(func) !== null
  // A constructor may be called by `super`, which it exits in another way. Its own calls are as usual.
  const isBuilder = func.kind === 'constructor'
  const own = isBuilder
    ? [
        `${prefix}how=${frames}.ok`,
        `${prefix}k=${lowering.passesPermission(func) ? taken : `${prefix}how && 1`}`,
      ]
    : [`${prefix}k=${taken}`]
  const all = handed ? variables : [...variables, ...own]
  const vars = varStatement(all)
  if (!handed) return `${vars}${frames}.ok=0;`
  return `${vars}if(${prefix}k!==${frames}){${prefix}k=${taken};${frames}.ok=0;}`
}

/**
 * After how many arguments a function takes its permission as an extra one, or null. The function must be
 * called only by name, so that no code observes the argument. It must not use `arguments` or a rest
 * parameter.
 */
export function permissionIndex(func: Func): number | null {
  const { node } = func
  // If a loop takes most of the time, the cost of the call does not matter.
  if (!isCalledByName(func) || (func.loops.length > 0 && !func.recursive)) return null
  const params = (node.params as Node[]).filter(
    param => !(param.type === 'Identifier' && param.name === 'this'),
  )
  if (func.usesArguments && !func.isArrow) return null
  if (params.at(-1)?.type === 'RestElement') return null
  // The extra parameter has a default value, so that `length` does not count it.
  const statements = node.body.type === 'BlockStatement' ? (node.body.body as Node[]) : []
  if (directives(statements).some(({ directive }) => directive === 'use strict')) return null
  if (!func.strict && new Set(params.map(({ name }) => name)).size < params.length) return null
  return params.length
}

function isCalledByName(func: Func): boolean {
  const { holder } = func
  if (func.kind === 'method') return holder?.key.type === 'PrivateIdentifier' && !isUsedAsValue(func)
  const target = func.self?.target === func || func.binding?.target === func
  if (!target) return false
  const references = [...(func.binding?.references ?? []), ...(func.self?.references ?? [])]
  return references.some(({ callee }) => callee)
}

/** True if code can read the `length` of such a function: it is a value, or exported. */
export function isLengthSeen({ kind, binding, node }: Func, { program }: Analysis): boolean {
  if (kind === 'method') return false
  if (binding === null || binding.volatile) return true
  if (binding.references.some(({ callee, write }) => !callee || write)) return true
  return program.body.some(({ declaration }: Node) => declaration != null && contains(declaration, node))
}

const seen = new WeakMap<Node, Set<string>>()

/**
 * True if a private method is used as a value: then its `length`, which must not count the extra parameter,
 * can be read.
 */
function isUsedAsValue({ holder, owner }: Func): boolean {
  if (owner === null) return true
  let names = seen.get(owner)
  if (names === undefined) {
    const found = new Set<string>()
    const called = new Set<Node>()
    walk(owner, node => {
      if (node.type === 'CallExpression') called.add(bare(node.callee))
      if (
        node.type === 'MemberExpression' &&
        node.property.type === 'PrivateIdentifier' &&
        !called.has(node)
      ) {
        found.add(node.property.name)
      }
    })
    names = found
    seen.set(owner, names)
  }
  return names.has(holder!.key.name)
}

/**
 * True if the function takes its permission as an argument, or calls a function that does: then it is the
 * object `frames`.
 */
export function passesPermission(func: Func, unwinds: (target: Func) => boolean): boolean {
  if (permissionIndex(func) !== null) return true
  return func.calls.some(({ target, node }) => {
    if (target !== null) return unwinds(target) && permissionIndex(target) !== null
    return node.callee !== undefined && bare(node.callee).property?.type === 'PrivateIdentifier'
  })
}

/** The statement that declares variables, or ''. A `var` needs no code to initialize; a `let` does. */
export function varStatement(variables: readonly string[]): string {
  return variables.length > 0 ? `var${variables[0]!.startsWith('{') ? '' : ' '}${variables.join(',')};` : ''
}
