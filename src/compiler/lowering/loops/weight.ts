/**
 * How long a turn of a loop may take, as its text shows. It decides how often the loop checks its safepoint.
 */
import type { Call } from '../../analysis/functions.ts'
import { children, isClass, isFunction, isLoop, type Node, walk } from '../../analysis/syntax.ts'

/** How many turns without calls a turn counts as; `each` is a safepoint in every turn. */
export type Weight = 'each' | number

/** The weight of a turn with loops inside. */
export const nestWeight = 16

/** The weight of a turn with loop nests inside. */
export const deepWeight = 64

/** The weight of a turn of this loop, by its calls and the loops in it. */
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

/** A call that leads to at most this many others costs little more than a turn without calls. */
const fewCalls = 16

/**
 * The weight of a turn whose calls lead to few others, and of one whose calls lead to more or make objects.
 */
const fewWeight = 8
const lightWeight = 64

/**
 * How many turns a loop of a function that unwinds runs between two safepoints, if nothing in it can suspend.
 * Null if it has loops inside, whose turns it does not count.
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

/** The depth of a nest of loops without calls. */
export function loopDepth(loop: Node): number {
  let deepest = 0
  for (const child of children(loop)) {
    if (!isFunction(child)) deepest = Math.max(deepest, loopDepth(child))
  }
  return isLoop(loop) ? deepest + 1 : deepest
}

/** True if the text is small enough to be repeated twice. */
export function isSmall(body: Node): boolean {
  if (body.end - body.start > 800) return false
  let makes = false
  walk(body, node => {
    if (isFunction(node) || isClass(node)) makes = true
    return !makes
  })
  return !makes
}
