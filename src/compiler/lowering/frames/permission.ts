/**
 * The permission to unwind. Only a caller that looks at the flag after its call may let what it calls unwind,
 * so each function takes its permission first of all: from `frames.ok`, which it clears, or as one argument
 * more.
 */
import type { Func } from '../../analysis/functions.ts'
import { bare, type Node, walk } from '../../analysis/syntax.ts'
import type { FramesLowering } from './frames.ts'

/**
 * What a function does first: it takes its permission. A `var` costs the engine no code, where a `let` does.
 */
export function takePermission(lowering: FramesLowering, func: Func, variables: readonly string[]): string {
  const { short: prefix } = lowering.names
  const frames = lowering.names.runtime('frames')
  const taken = lowering.passesPermission(func) ? `${frames}.ok===0?void 0:${frames}` : `${frames}.ok`
  const handed = permissionIndex(func) !== null
  // A constructor may be called by `super`, which it leaves in another way. What it calls itself is called as
  // ever.
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
 * After how many arguments a function takes its permission as one more: where it is called by name, and
 * nothing can tell. It has no `arguments`, and nothing that gathers the rest.
 */
export function permissionIndex(func: Func): number | null {
  const { node } = func
  // Where a loop is what takes the time, a call more or less costs nothing.
  if (!isCalledByName(func) || (func.loops.length > 0 && !func.recursive)) return null
  const params = (node.params as Node[]).filter(
    param => !(param.type === 'Identifier' && param.name === 'this'),
  )
  if (func.usesArguments && !func.isArrow) return null
  if (params.at(-1)?.type === 'RestElement') return null
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

const seen = new WeakMap<Node, Set<string>>()

/**
 * True when a private method is used as a value: its `length` can be read, and the compiler's parameter must
 * not count.
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
 * True when the function takes its permission as an argument, or calls one that may: then it is the object
 * itself.
 */
export function passesPermission(func: Func, unwinds: (target: Func) => boolean): boolean {
  if (permissionIndex(func) !== null) return true
  return func.calls.some(({ target, node }) => {
    if (target !== null) return unwinds(target) && permissionIndex(target) !== null
    return node.callee !== undefined && bare(node.callee).property?.type === 'PrivateIdentifier'
  })
}

/**
 * The statement that declares variables, if there are any. A `var` costs the engine no code, where a `let`
 * does.
 */
export function varStatement(variables: readonly string[]): string {
  return variables.length > 0 ? `var ${variables.join(',')};` : ''
}
