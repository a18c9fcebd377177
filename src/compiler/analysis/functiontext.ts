/**
 * Functions whose text is used: a worker is given it, or another function is made of it, out of reach of what
 * compiled code imports. So the text must be the one that was written. Only a use in the same file is found.
 */
import type { Analysis } from './analysis.ts'
import type { Func } from './functions.ts'
import { bare, isFunction, type Node, walk } from './syntax.ts'

/**
 * Refuses each function of this file that is made into text, and what is inside of it. One that is marked
 * itself stays a task.
 */
export function refuseFunctionTexts(
  { texts, bindingOf, funcOf }: Analysis,
  isMarked: (func: Func) => boolean,
): void {
  for (const node of texts) {
    const func = functionOf(node, bindingOf, funcOf)
    if (func === undefined || isMarked(func)) continue
    func.isText = isSelfContained(func, bindingOf)
    refuse(func)
  }
}

function functionOf(
  node: Node,
  bindingOf: Analysis['bindingOf'],
  funcOf: Analysis['funcOf'],
): Func | undefined {
  if (isFunction(node)) return funcOf.get(node)
  const binding = bindingOf.get(node)
  if (binding == null || binding.target !== null) return binding?.target ?? undefined
  return binding.init === null ? undefined : funcOf.get(bare(binding.init))
}

/**
 * True when the function uses nothing of the functions around it, whose variables may go by other names when
 * they are compiled.
 */
function isSelfContained(func: Func, bindingOf: Analysis['bindingOf']): boolean {
  if (func.parent?.kind === 'module') return true
  if (func.isArrow && (func.usesThis || func.usesArguments || func.usesTarget || func.usesSuper)) return false
  let alone = true
  walk(func.node, node => {
    const home = bindingOf.get(node)?.scope.func
    if (home !== undefined && home.kind !== 'module' && !isInside(home, func)) alone = false
  })
  return alone
}

function isInside(func: Func, outer: Func): boolean {
  for (let at: Func | null = func; at !== null; at = at.parent) if (at === outer) return true
  return false
}

function refuse(func: Func): void {
  func.refuse('text', 'its text is used, and would be another if it were compiled', func.node)
  for (const inner of func.inner) refuse(inner)
}
