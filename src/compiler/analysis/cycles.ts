/**
 * Groups of functions that call each other (strongly connected components, by Tarjan). Each group follows the
 * groups that it calls.
 */
import type { Func } from './functions.ts'

export function connectedGroups(funcs: readonly Func[], next: (func: Func) => readonly Func[]): Func[][] {
  const groups: Func[][] = []
  const order = new Map<Func, number>()
  const low = new Map<Func, number>()
  const stack: Func[] = []
  const onStack = new Set<Func>()
  const path: { func: Func; targets: readonly Func[]; at: number }[] = []
  const enter = (func: Func): void => {
    low.set(func, order.size)
    order.set(func, order.size)
    stack.push(func)
    onStack.add(func)
    path.push({ func, targets: next(func), at: 0 })
  }
  for (const start of funcs) {
    if (!order.has(start)) enter(start)
    while (path.length > 0) {
      const top = path[path.length - 1]!
      const { func, targets } = top
      if (top.at < targets.length) {
        const target = targets[top.at++]!
        if (!order.has(target)) enter(target)
        else if (onStack.has(target)) low.set(func, Math.min(low.get(func)!, order.get(target)!))
        continue
      }
      path.pop()
      const above = path[path.length - 1]?.func
      if (above !== undefined) low.set(above, Math.min(low.get(above)!, low.get(func)!))
      if (low.get(func) === order.get(func)) groups.push(popTo(func, stack, onStack))
    }
  }
  return groups
}

function popTo(func: Func, stack: Func[], onStack: Set<Func>): Func[] {
  const group: Func[] = []
  for (;;) {
    const member = stack.pop()!
    onStack.delete(member)
    group.push(member)
    if (member === func) return group
  }
}
