/**
 * The parameters of a function that unwinds. A parameter with a pattern or a default is set in the body,
 * because it may run other code.
 */
import type { Func } from '../../analysis/functions.ts'
import { join, type Piece, Rope, rope } from '../../output/rope.ts'
import { bare, isAnonymous, type Node } from '../../analysis/syntax.ts'
import type { Context } from '../writer/context.ts'
import type { FramesLowering } from './frames.ts'
import { patternText } from './expressions/patterns.ts'
import { isLengthSeen, permissionIndex } from './permission.ts'
import type { Statements } from './statements/statements.ts'

/** A parameter that the body sets, and the name by which the function receives it. */
export interface Parameter {
  pattern: Node
  from: string
}

/** Everything before the body, and the parameters that the body must set. */
export function writeHead(
  { names, source, analysis }: FramesLowering,
  node: Node,
  func: Func,
): { head: Rope; patterns: Parameter[] } {
  const patterns: Parameter[] = []
  const params = node.params as Node[]
  // `length` does not count a parameter with a default value.
  const value = isLengthSeen(func, analysis) ? '=void 0' : ''
  const handed = permissionIndex(func) === null ? '' : `${names.short}k${value}`
  const end =
    node.body.type === 'BlockStatement' ? node.body.start : source.lastIndexOf('=>', node.body.start) + 2
  const isName = (param: Node): boolean =>
    param.type === 'Identifier' || (param.type === 'RestElement' && param.argument.type === 'Identifier')
  if (params.every(isName) && handed === '') {
    return { head: new Rope().add({ start: node.start, end }), patterns }
  }
  if (params.length === 0) {
    const open = source.indexOf('(', node.typeParameters?.end ?? node.id?.end ?? node.start) + 1
    return { head: rope`${{ start: node.start, end: open }}${handed}${{ start: open, end }}`, patterns }
  }
  const only = params[0]!
  if (node.type === 'ArrowFunctionExpression' && source[node.start] !== '(' && only.start === node.start) {
    return { head: rope`(${only}, ${handed})${{ start: only.end, end }}`, patterns }
  }
  const made = new Rope().add({ start: node.start, end: params[0]!.start })
  const written = params.map((param, index): Piece => {
    if (isName(param)) return param
    const from = `${names.short}a${index}`
    patterns.push({ pattern: param, from })
    if (param.type === 'RestElement') return `...${from}`
    return param.type === 'AssignmentPattern' ? `${from} = void 0` : from
  })
  if (handed !== '') written.push(handed)
  made.add(join(written, ', '))
  return { head: made.add({ start: params.at(-1)!.end, end }), patterns }
}

/** The statements that set these parameters. */
export function writeParameters(
  lowering: FramesLowering,
  statements: Statements,
  patterns: readonly Parameter[],
  cx: Context,
  declare: boolean,
): Rope {
  const made = new Rope()
  const keyword = declare ? 'let ' : ''
  for (const { pattern, from } of patterns) {
    const target =
      pattern.type === 'AssignmentPattern'
        ? pattern.left
        : pattern.type === 'RestElement'
          ? pattern.argument
          : pattern
    let value: Rope = rope`${from}`
    if (pattern.type === 'AssignmentPattern') {
      const isNamed = target.type === 'Identifier' && isAnonymous(bare(pattern.right))
      const otherwise = isNamed
        ? lowering.namedAs(pattern.right, target.name, cx)
        : lowering.node(pattern.right, cx)
      value = rope`${from} === void 0 ? ${otherwise} : ${from}`
    }
    if (target.type !== 'Identifier') {
      if (pattern.type === 'AssignmentPattern') made.add(rope`${from} = ${value}; `)
      value = rope`${from}`
      if (pattern.type !== 'RestElement') made.add(refusal(target, from, lowering.source))
    }
    const text = rope`${patternText(statements, target)} = ${value}`
    made.add(declare || target.type === 'Identifier' ? rope`${keyword}${text}; ` : rope`(${text}); `)
  }
  return made
}

/** A value that cannot be destructured gets the engine's own message for a parameter. */
function refusal(pattern: Node, from: string, source: string): string {
  if (pattern.type === 'ArrayPattern') {
    return `if (${from} == null || !(Symbol.iterator in Object(${from}))) (([]) => {})(${from}); `
  }
  const first = pattern.properties[0]
  const isNamed = first !== undefined && first.type === 'Property' && !first.computed
  const inner = isNamed ? `${source.slice(first.key.start, first.key.end)}: ${from}_` : ''
  return `if (${from} == null) (({ ${inner} }) => {})(${from}); `
}
