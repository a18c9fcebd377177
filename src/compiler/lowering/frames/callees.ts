/** The functions of a file as callees and arguments of a function that unwinds. */
import { constructorOf } from '../../analysis/construct.ts'
import type { Func } from '../../analysis/functions.ts'
import type { Node } from '../../analysis/syntax.ts'
import type { Rope } from '../../output/rope.ts'
import type { Context } from '../writer/context.ts'
import type { FramesLowering } from './frames.ts'
import { isSeenByCalleeOnly } from './unmarkedarguments.ts'

/** How a call of this known function is made. */
export function callForm(
  lowering: FramesLowering,
  target: Func,
  cx: Context,
): 'frames' | 'generator' | 'unknown' {
  if (!cx.available.has(target)) return 'unknown'
  if (lowering.isItself(target)) return 'frames'
  // A function that can move stands outside of the function that declares the generator.
  if (cx.func.movable && target.parent?.kind !== 'module') return 'unknown'
  return lowering.isDirect(target) ? 'generator' : 'unknown'
}

/** The function of this file that `new` runs and that unwinds; null if it may be another. */
export function constructedFunction(lowering: FramesLowering, node: Node, cx: Context): Func | null {
  const target = constructorOf(node, lowering.analysis)
  if (target === null || target === 'short' || !cx.available.has(target)) return null
  return lowering.isItself(target) ? target : null
}

/** A function that unwinds, without its mark; null for any other. */
export function unmarked(lowering: FramesLowering, node: Node, cx: Context): Rope | null {
  const func = lowering.analysis.funcOf.get(node)!
  if (!lowering.isItself(func) || !lowering.attachesTwin(func, cx)) return null
  const write = (inside: Context): Rope => lowering.plain(node, func, inside)
  return lowering.closures.lift(func, cx, 'unmarked', write) ?? write(cx)
}

/** The same; null also if its own code exposes it. */
export function unmarkedForCallee(lowering: FramesLowering, node: Node, cx: Context): Rope | null {
  return isSeenByCalleeOnly(lowering.analysis.funcOf.get(node)!) ? unmarked(lowering, node, cx) : null
}
