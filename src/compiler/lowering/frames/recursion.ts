/**
 * Functions that can lead back to themselves, and so need a safepoint even without a loop. If the file stores
 * only its own functions under a method name, a call of that name leads to those. Any other call may lead
 * anywhere, and then the caller has the safepoint. So every cycle of calls has a safepoint.
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

/** The functions of this file that a call reaches; null if it may reach any. */
function reachedBy({ reach, plain, target, node }: Call, methods: Methods): readonly Func[] | null {
  if (target !== null) return [target]
  if (reach !== 'unknown' || plain) return []
  const callee = node.callee === undefined ? null : bare(node.callee)
  if (callee?.type !== 'MemberExpression' || callee.computed) return null
  return methods.get(callee.property.name) ?? null
}

/**
 * Selects one function of each cycle that has no safepoint yet: one that a walk along the calls meets again
 * on its own path.
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
