/**
 * Which functions can come around to themselves, and so need a safepoint of their own even without a loop. A
 * method that is called by a name to which this file gives nothing but functions of its own leads to those;
 * any other call may lead anywhere, and then the caller looks. So every way around has a safepoint on it.
 */
import type { Analysis } from '../../analysis/analysis.ts'
import { constructorOf } from '../../analysis/construct.ts'
import type { Call, Func } from '../../analysis/functions.ts'
import { type Methods, methodsOf } from '../../analysis/methods.ts'
import { bare } from '../../analysis/syntax.ts'

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
    for (const node of func.constructs) {
      const target = constructorOf(node, analysis)
      if (target === null) found.add(func)
      else if (target !== 'short') reached.push(target)
    }
    next.set(func, reached)
  }
  breakCycles(next, found)
  return found
}

/** Where a call leads inside of this file; null: perhaps anywhere. */
function reachedBy({ reach, plain, target, node }: Call, methods: Methods): readonly Func[] | null {
  if (target !== null) return [target]
  if (reach !== 'unknown' || plain) return []
  const callee = node.callee === undefined ? null : bare(node.callee)
  if (callee?.type !== 'MemberExpression' || callee.computed) return null
  return methods.get(callee.property.name) ?? null
}

/**
 * Has one function of each cycle of functions that do not look do so: one that a walk along the calls meets
 * again while it is still inside of it.
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
