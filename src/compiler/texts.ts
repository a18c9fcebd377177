/**
 * Functions whose text is used: a worker is given it, or another function is made of it, out of reach of what compiled code
 * imports. So the text must be the one that was written. Only a use in the same file is found.
 */
import type { Analysis } from './analysis.ts'
import type { Func } from './functions.ts'
import { bare, isFunction, type Node } from './syntax.ts'

/** Refuses each function of this file that is made into text, and what is inside of it. One that is marked itself stays a task. */
export function refuseTexts({ texts, bindingOf, funcOf }: Analysis, isMarked: (func: Func) => boolean): void {
  for (const node of texts) {
    const func = functionOf(node, bindingOf, funcOf)
    if (func === undefined || isMarked(func)) continue
    func.isText = func.parent?.kind === 'module'
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

function refuse(func: Func): void {
  func.refuse('text', 'its text is used, and would be another if it were compiled', func.node)
  for (const inner of func.inner) refuse(inner)
}
