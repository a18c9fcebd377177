/** Loops that report each turn to the checker, which need not repeat a turn without an effect. */
import type { Func } from '../../analysis/functions.ts'
import { type Rope, rope } from '../../output/rope.ts'
import { contains, type Node } from '../../analysis/syntax.ts'
import type { CheckerLowering } from './checker.ts'
import type { Context } from '../writer/context.ts'
import { isOpaque } from './implicitcode.ts'

/** A loop over an iterable: each turn has an effect, and is reported too. */
export function writeReportedLoop(
  lowering: CheckerLowering,
  node: Node,
  cx: Context,
  write: (check: string) => Rope,
): Rope {
  const entered = cx.frame!.take()
  const enter = `${lowering.names.runtime('effect')}(); ${entered} = ${lowering.names.runtime('loop')}(${lowering.site(node)});`
  const check = `${lowering.names.runtime('effect')}(); ${lowering.names.runtime('turn')}(${entered});`
  const written = write(check)
  cx.frame!.give(entered)
  return rope`{ ${enter} ${written} }`
}

/** A `for`, `while` or `do` loop, with its labels. */
export function writeTurns(lowering: CheckerLowering, node: Node, cx: Context, labels: Rope): Rope {
  const entered = cx.frame!.take()
  const enter = `${entered} = ${lowering.names.runtime('loop')}(${lowering.site(node)});`
  const plain = `${lowering.names.runtime('turn')}(${[entered, ...changing(lowering, node, cx.func)].join(', ')})`
  const turn = isOpaque(node) ? `(${lowering.names.runtime('effect')}(), ${plain})` : plain
  const written = writeTurning(lowering, node, cx, turn)
  cx.frame!.give(entered)
  return rope`{ ${enter} ${labels}${written} }`
}

function writeTurning(lowering: CheckerLowering, node: Node, cx: Context, turn: string): Rope {
  const body = rope`{ ${lowering.node(node.body, cx)} }`
  const test =
    node.test === null || node.test === undefined ? rope`` : rope` && (${lowering.node(node.test, cx)})`
  if (node.type === 'WhileStatement') return rope`while (${turn}${test}) ${body}`
  if (node.type === 'DoWhileStatement') {
    return rope`do { ${turn}; ${lowering.node(node.body, cx)} } while (${lowering.node(node.test, cx)});`
  }
  const init = node.init === null ? rope`` : lowering.node(node.init, cx)
  const update = node.update === null ? rope`` : lowering.node(node.update, cx)
  return rope`for (${init}; ${turn}${test}; ${update}) ${body}`
}

/** The variables that one turn of the loop may change and the next one reads. */
function changing({ bindings }: CheckerLowering, loop: Node, func: Func): string[] {
  const names: string[] = []
  for (const binding of bindings) {
    if (binding.scope.func !== func) continue
    // A `var` outlives the turn that declares it.
    if (binding.kind !== 'var' && binding.declarations.some(place => contains(loop.body, place))) continue
    const changes =
      binding.references.some(
        ({ node, write, func: writer }) => write && writer === func && contains(loop, node),
      ) || binding.declarations.some(place => binding.kind === 'var' && contains(loop, place))
    if (changes) names.push(binding.name)
  }
  return names
}

/** A `yield` of a generator: after it, variables may have changed since the turn before. */
export function writeYield(lowering: CheckerLowering, node: Node, cx: Context): Rope {
  const { names } = lowering
  if (node.delegate)
    return lowering.effect(
      rope`(yield* ${names.runtime('delegate')}(${lowering.iterated(node.argument, cx)}))`,
    )
  const value = node.argument === null ? '' : lowering.node(node.argument, cx)
  return lowering.effect(rope`(yield new ${names.runtime('Out')}(${value}))`)
}
