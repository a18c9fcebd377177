/**
 * Which functions can come around to themselves, and so need a safepoint of their own even without a loop. A method that is
 * called by a name to which this file gives nothing but functions of its own leads to those; any other call may lead
 * anywhere, and then the caller looks. So every way around has a safepoint on it.
 */
import type { Analysis } from '../analysis.ts'
import type { Call, Func } from '../functions.ts'
import { bare, type Node, walk } from '../syntax.ts'

export function recursiveOf(analysis: Analysis): ReadonlySet<Func> {
  const methods = methodsOf(analysis)
  const found = new Set<Func>()
  const next = new Map<Func, readonly Func[]>()
  for (const func of analysis.funcs) {
    const reached: Func[] = []
    for (const call of func.calls) {
      const targets = reachedBy(call, methods)
      if (targets === null) found.add(func)
      else reached.push(...targets)
    }
    next.set(func, reached)
  }
  breakCycles(next, found)
  return found
}

/** Where a call leads inside of this file; null: perhaps anywhere. */
function reachedBy(
  { reach, target, node }: Call,
  methods: ReadonlyMap<string, readonly Func[]>,
): readonly Func[] | null {
  if (target !== null) return [target]
  if (reach !== 'unknown') return []
  const callee = node.callee === undefined ? null : bare(node.callee)
  if (callee?.type !== 'MemberExpression' || callee.computed) return null
  return methods.get(callee.property.name) ?? null
}

/**
 * Has one function of each cycle of functions that do not look do so: one that a walk along the calls meets again while
 * it is still inside of it.
 */
function breakCycles(next: ReadonlyMap<Func, readonly Func[]>, looking: Set<Func>): void {
  const inside = new Set<Func>()
  const done = new Set<Func>()
  for (const start of next.keys()) {
    const path: { func: Func; at: number }[] = []
    const enter = (func: Func): void => {
      inside.add(func)
      path.push({ func, at: 0 })
    }
    if (!done.has(start) && !looking.has(start)) enter(start)
    while (path.length > 0) {
      const top = path[path.length - 1]!
      const reached = next.get(top.func)?.[top.at++]
      if (reached === undefined) {
        path.pop()
        inside.delete(top.func)
        done.add(top.func)
      } else if (inside.has(reached)) looking.add(reached)
      else if (!done.has(reached) && !looking.has(reached)) enter(reached)
    }
  }
}

/** By name: the functions that this file gives to properties, where it gives the name to nothing else. */
function methodsOf({ program, funcOf }: Analysis): ReadonlyMap<string, readonly Func[]> {
  const methods = new Map<string, Func[]>()
  const others = new Set<string>()
  const give = (key: Node, value: Node | null): void => {
    const name = String(key.name ?? key.value)
    let given = value === null ? null : bare(value)
    while (given?.type === 'AssignmentExpression') given = bare(given.right)
    const func = given === null ? undefined : funcOf.get(given)
    if (func === undefined) others.add(name)
    else {
      const list = methods.get(name)
      if (list === undefined) methods.set(name, [func])
      else list.push(func)
    }
  }
  walk(program, node => {
    switch (node.type) {
      case 'Property':
      case 'MethodDefinition':
      case 'PropertyDefinition':
        if (!node.computed) give(node.key, node.value)
        break
      case 'AssignmentExpression': {
        const left = bare(node.left)
        if (left.type === 'MemberExpression' && !left.computed) give(left.property, node.right)
        break
      }
      default:
    }
  })
  for (const name of others) methods.delete(name)
  return methods
}
