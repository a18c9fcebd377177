/** Chooses the lowering of a function if neither its directive nor the option does. */
import type { Analysis } from '../analysis/analysis.ts'
import { constructStops } from '../analysis/construct.ts'
import type { LoweringName } from '../analysis/directive.ts'
import type { Func } from '../analysis/functions.ts'
import { bare, contains, type Node } from '../analysis/syntax.ts'

/**
 * Measured (`npm run bench -- coroutine`, the rows `block`): a call through a generator costs ten times a
 * plain call, and a blocking call in a generator costs half as much as in a function that unwinds. So a
 * generator is better for a function that only blocks: every call in it that may suspend is imported from
 * heddle, and every loop makes such a call.
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

/** Kinds of functions that must unwind: a generator cannot replace them. */
const isImplicit: ReadonlySet<Func['kind']> = new Set(['constructor', 'getter', 'setter'])

const called = new WeakMap<readonly Func[], ReadonlySet<Func>>()

/** The functions that the file calls by name. */
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
 * A loop nest without a call that may suspend. A generator omits most safepoints of a nest
 * (`nestedloops.ts`), which saves more than a cheaper call if its file does not call it.
 */
function isNest({ loops }: Func): boolean {
  return loops.some(outer => loops.some(inner => inner !== outer && contains(outer, inner)))
}

/** True for a call of a function that is imported from this package: `sleep(10)`, `wait(promise)`. */
function blocks(node: Node, bindingOf: Analysis['bindingOf']): boolean {
  if (node.type !== 'CallExpression') return false
  const callee = bare(node.callee)
  if (callee.type !== 'Identifier') return false
  const binding = bindingOf.get(callee)
  return binding?.kind === 'import' && isOurs.test(binding.from ?? '')
}

const isOurs = /^heddle(?:\/|$)/
