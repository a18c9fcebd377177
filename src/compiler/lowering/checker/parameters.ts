/** Late parameters: those with a default or a pattern, which the body sets, where the thread can stop. */
import type { Func } from '../../analysis/functions.ts'
import { type Rope, rope } from '../../output/rope.ts'
import { boundNames, contains, type Node, walk } from '../../analysis/syntax.ts'
import type { Context } from '../writer/context.ts'
import type { CheckerLowering } from './checker.ts'
import { isPattern, namesLater, writeParts } from './patterns.ts'

/** The parameter as the function takes it, and the statement by which the body sets it. */
export function writeLateParameter(
  lowering: CheckerLowering,
  parameter: Node,
  index: number,
  cx: Context,
): { written: Rope; opening: Rope } {
  const given = `${lowering.names.prefix}p${index}`
  const hasDefault = parameter.type === 'AssignmentPattern'
  const target: Node = hasDefault ? parameter.left : parameter
  if (hasDefault && target.type === 'Identifier') lowering.hint(parameter.right, target.name)
  const value = hasDefault
    ? rope`(${given} === void 0 ? ${lowering.node(parameter.right, cx)} : ${given})`
    : rope`${given}`
  const parts = isPattern(target) ? writeParts(lowering, target, parameter, value) : value
  return { written: rope`${given}`, opening: rope`let ${lowering.node(target, cx)} = ${parts};` }
}

/** True unless a variable of the same name in the body would change the meaning of the parameter. */
export function isLate(lowering: CheckerLowering, parameter: Node, index: number, func: Func): boolean {
  const { bindingOf } = lowering.analysis
  const params: Node[] = func.node.params
  const steps = ({ type, right }: Node): boolean =>
    type === 'ArrayPattern' ||
    type === 'ObjectPattern' ||
    (type === 'AssignmentPattern' && right.type !== 'Literal')
  if (parameter.type === 'Identifier' || parameter.type === 'RestElement' || func.isGenerator) return false
  // A parameter after a late one may refer to it.
  if (!params.slice(0, index + 1).some(steps)) return false
  if (params.some(({ type }) => type === 'TSParameterProperty')) return false
  if (!boundNames(parameter).every(name => bindingOf.get(name)?.declarations.length === 1)) return false
  if (params.some((param, at) => namesLater(param, params.slice(at + 1)))) return false
  return !namesOfBody(lowering, func, params)
}

/**
 * True if the parameters use a name that the body declares again: in the body it would mean another variable.
 */
function namesOfBody({ bindings, analysis }: CheckerLowering, func: Func, params: Node[]): boolean {
  const declared = new Set<string>()
  for (const { scope, declarations, name } of bindings) {
    if (scope.func === func && declarations.some(place => contains(func.node.body, place))) declared.add(name)
  }
  let found = false
  for (const parameter of params) {
    walk(parameter, node => {
      const named = node.type === 'Identifier' && analysis.bindingOf.get(node) !== undefined
      if (named && declared.has(node.name)) found = true
    })
  }
  return found
}
