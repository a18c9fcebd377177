/**
 * Functions whose text the program uses, for example to pass it to a worker or to make another function.
 * There the imports of compiled code do not exist, so the text must stay as written. Only uses in the same
 * file are found.
 */
import type { Analysis } from './analysis.ts'
import type { Func } from './functions.ts'
import { bare, isFunction, type Node, walk } from './syntax.ts'

/**
 * Refuses each function of this file that is converted to text, and the functions inside it. A function with
 * its own directive stays a task.
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

/** True if the function uses no variable of the functions around it: compilation may rename those. */
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
  func.refuse('text', 'the program uses its text, which compilation would change', func.node)
  for (const inner of func.inner) refuse(inner)
}
