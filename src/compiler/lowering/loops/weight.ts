/** How long a turn of a loop may take, as far as its text tells: so often it looks at the safepoint. */
import type { Call } from '../../analysis/functions.ts'
import { children, isClass, isFunction, isLoop, type Node, walk } from '../../analysis/syntax.ts'

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
      if (call.reach === 'light' || call.plain) light = true
      else if (call.target === null || call.target.long) heavy = true
    }
    return !heavy
  })
  if (heavy) return 'each'
  if (light) return lightWeight
  if (!nested) return 1
  return loopDepth(loop) > 2 ? deepWeight : nestWeight
}

/** A call that leads to so few others is little more than a turn without calls. */
const fewCalls = 16

/**
 * What a turn of a loop is worth whose calls lead to few others, and one whose calls lead to more or make
 * objects.
 */
const fewWeight = 8
const lightWeight = 64

/**
 * How many turns a loop runs between two looks in a function that unwinds, where nothing in the loop can
 * stop. Null: it has loops inside, whose turns it does not count.
 */
export function turnsBetween(
  loop: Node,
  callOf: (node: Node) => Call | undefined,
  strip: number,
): number | null {
  let weight = 1
  let isCounted = true
  walk(loop, node => {
    if (isFunction(node)) return false
    if (node !== loop && isLoop(node)) isCounted = false
    if (node.type === 'NewExpression') weight = lightWeight
    const call = callOf(node)
    if (call !== undefined && call.reach !== 'short') weight = Math.max(weight, weightOfCall(call))
    if (weight === Number.POSITIVE_INFINITY) isCounted = false
    return isCounted
  })
  return isCounted ? Math.max(1, Math.trunc(strip / weight)) : null
}

function weightOfCall({ plain, reach, target, cost }: Call): number {
  if (reach === 'light') return plain && cost === 0 ? fewWeight : lightWeight
  if (!plain && (target === null || target.long)) return Number.POSITIVE_INFINITY
  return cost === 0 ? 1 : cost <= fewCalls ? fewWeight : lightWeight
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
