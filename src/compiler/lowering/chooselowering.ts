/** Which lowering a function is made by, where neither its directive nor the caller of the compiler says. */
import type { Analysis } from '../analysis/analysis.ts'
import { constructStops } from '../analysis/construct.ts'
import type { LoweringName } from '../analysis/directive.ts'
import type { Func } from '../analysis/functions.ts'
import { bare, contains, type Node } from '../analysis/syntax.ts'

/**
 * Measured (`npm run bench -- coroutine`, the rows `block`): a call through a generator costs ten times a
 * plain one, a call that blocks costs a generator half of what it costs a function that unwinds. So a
 * generator is the better form for a function that does nothing but block: every call in it that may suspend
 * is one of ours that blocks, and every loop in it makes such a call.
 */
export function chooseLowering(func: Func, analysis: Analysis): LoweringName {
  const { bindingOf, funcs } = analysis
  if (isImplicit.has(func.kind) || func.constructs.some(node => constructStops(node, analysis)))
    return 'frames'
  const blocking: Node[] = []
  for (const { node, target, reach } of func.calls) {
    if (reach === 'short' || (target !== null && !target.long)) continue
    if (!blocks(node, bindingOf)) return 'frames'
    blocking.push(node)
  }
  if (blocking.length === 0) {
    return isNest(func) && !calledIn(funcs).has(func) ? 'generator' : 'frames'
  }
  const waits = (loop: Node): boolean => blocking.some(call => contains(loop, call))
  return func.loops.every(waits) ? 'generator' : 'frames'
}

/** What nothing but a function that unwinds can stand for. */
const isImplicit: ReadonlySet<Func['kind']> = new Set(['constructor', 'getter', 'setter'])

const called = new WeakMap<readonly Func[], ReadonlySet<Func>>()

/** The functions that are called by name. */
function calledIn(funcs: readonly Func[]): ReadonlySet<Func> {
  let found = called.get(funcs)
  if (found === undefined) {
    const targets = funcs.flatMap(({ calls }) => calls.map(({ target }) => target))
    found = new Set(targets.filter(target => target !== null))
    called.set(funcs, found)
  }
  return found
}

/**
 * Loops in loops and no call that may suspend: what a generator leaves out of a nest (`nestedloops.ts`) is
 * worth more than a cheaper call of it, where nobody in its file calls it.
 */
function isNest({ loops }: Func): boolean {
  return loops.some(outer => loops.some(inner => inner !== outer && contains(outer, inner)))
}

/** True for a call of something that is imported from this package: `sleep(10)`, `wait(promise)`. */
function blocks(node: Node, bindingOf: Analysis['bindingOf']): boolean {
  if (node.type !== 'CallExpression') return false
  const callee = bare(node.callee)
  if (callee.type !== 'Identifier') return false
  const binding = bindingOf.get(callee)
  return binding?.kind === 'import' && isOurs.test(binding.from ?? '')
}

const isOurs = /^heddle(?:\/|$)/
