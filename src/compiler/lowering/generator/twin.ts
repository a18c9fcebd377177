/**
 * The text of a twin: its parameters, its first statements, its body. The lowering writes the code inside.
 */
import { isTaskDirective } from '../../analysis/directive.ts'
import type { Func } from '../../analysis/functions.ts'
import { join, type Rope, rope } from '../../output/rope.ts'
import { directives, type Node } from '../../analysis/syntax.ts'
import { type Context, Frame, noJumps } from '../writer/context.ts'
import { capturesOf } from '../writer/arrowcaptures.ts'
import type { Writer } from '../writer/writer.ts'

/** The function's resumable form, with `head` before its parameters. */
export function writeTwin(writer: Writer, func: Func, outer: Context, head: string): Rope {
  const { node } = func
  const frame = new Frame(func, writer.names.short)
  const available = func.self === null ? outer.available : outer.available.with(func)
  const cx: Context = {
    func,
    frame,
    attach: 'all',
    readsCaptures: func.isArrow,
    captureOwner: func.host,
    available,
    jumps: noJumps,
    renamed: outer.renamed,
  }
  const beside: Context = { ...cx, frame: null, captureOwner: func.isArrow ? func.host : null }
  const parameters = (node.params as Node[])
    .filter(parameter => !(parameter.type === 'Identifier' && parameter.name === 'this'))
    .map((parameter, index) => writer.parameter(parameter, index, func, beside, cx))
  const list = join(
    parameters.map(({ written }) => written),
    ', ',
  )
  const opening = join(
    parameters.map(parameter => parameter.opening),
    '',
  )
  if (node.body.type !== 'BlockStatement') {
    const value = writer.node(node.body, cx)
    return rope`${head}(${list}) {${prologue(writer, func, frame)}${opening} return ${value}; }`
  }
  const { body } = node.body
  const kept = directives(body)
  const from = kept.length > 0 ? kept[kept.length - 1]!.end : node.body.start + 1
  const { attached, statements } = writer.list(body, cx, from, node.body.end)
  const strict = kept
    .filter(({ directive }) => !isTaskDirective(directive))
    .map(({ expression }) => `${expression.raw};`)
    .join('')
  return rope`${head}(${list}) {${strict}${prologue(writer, func, frame)}${opening}${attached}${statements}`
}

/** The first statements of a twin. */
function prologue(writer: Writer, func: Func, frame: Frame): string {
  const lets = [...frame.temporaries]
  if (frame.usesFuel) lets.push(`${writer.names.prefix}fuel = 512`)
  const consts = func.isArrow
    ? []
    : capturesOf(func, 'captures', writer.names).map(({ name, value }) => `${name} = ${value}`)
  return (
    (lets.length > 0 ? `let ${lets.join(', ')};` : '') +
    (consts.length > 0 ? `const ${consts.join(', ')};` : '') +
    writer.entry(func, frame)
  )
}
