/** How long a turn of a loop may take, as far as its text tells: so often it looks at the safepoint. */
import type { Call } from '../functions.ts'
import { children, isClass, isFunction, isLoop, type Node, walk } from '../syntax.ts'

/** How many turns without calls a turn is worth; or it looks each time. */
export type Weight = 'each' | number

/** What a turn of a loop with loops inside is worth. */
export const nestWeight = 16

/** What a turn of a loop is worth that has loops with loops inside. */
export const deepWeight = 64

/** How much of a strip one turn of this loop is worth, by what it calls and by the loops in it. */
export function weightOf(loop: Node, callOf: (node: Node) => Call | undefined): Weight {
  let heavy = false
  let light = false
  let nested = false
  walk(loop, node => {
    if (isFunction(node)) return false
    if (node !== loop && isLoop(node)) nested = true
    if (node.type === 'YieldExpression' || node.type === 'AwaitExpression' || node.await === true)
      heavy = true
    if (node.type === 'NewExpression') light = true
    const call = callOf(node)
    if (call !== undefined && call.reach !== 'short') {
      if (call.reach === 'light') light = true
      else if (call.target === null || call.target.long) heavy = true
    }
    return !heavy
  })
  if (heavy) return 'each'
  if (light) return 64
  if (!nested) return 1
  return loopDepth(loop) > 2 ? deepWeight : nestWeight
}

/** How many loops deep a loop without calls is. */
export function loopDepth(loop: Node): number {
  let deepest = 0
  for (const child of children(loop)) {
    if (!isFunction(child)) deepest = Math.max(deepest, loopDepth(child))
  }
  return isLoop(loop) ? deepest + 1 : deepest
}

/** Small enough to stand in the output twice more. */
export function isSmall(body: Node): boolean {
  if (body.end - body.start > 800) return false
  let makes = false
  walk(body, node => {
    if (isFunction(node) || isClass(node)) makes = true
    return !makes
  })
  return !makes
}
