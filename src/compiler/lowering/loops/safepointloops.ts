/** Loops of a generator with a safepoint, `check`, in each turn. */
import { join, Rope, rope } from '../../output/rope.ts'
import { boundNames, type Node, walk } from '../../analysis/syntax.ts'
import type { Context } from '../writer/context.ts'
import type { GeneratorLowering } from '../generator/generator.ts'
import { notIterableText } from '../writer/enginemessages.ts'

/** The loop as it is, with `check` at the start of each turn. */
export function writeLoop(lowering: GeneratorLowering, node: Node, cx: Context, check: string): Rope {
  const { body } = node
  const made = new Rope()
  let reached = node.start
  for (const child of [node.init, node.left, node.right, node.test, node.update, body]) {
    if (child === null || child === undefined || child.start < reached) continue
    made.add({ start: reached, end: child.start })
    if (child === body && check !== '') made.add(`{${check}`).add(lowering.node(child, cx)).add('}')
    else made.add(child === node.left ? lowering.head(child, cx) : lowering.node(child, cx))
    reached = child.end
  }
  if (node.type === 'DoWhileStatement') {
    const written = new Rope().add({ start: node.start, end: body.start })
    written
      .add(check === '' ? '' : `{${check}`)
      .add(lowering.node(body, cx))
      .add(check === '' ? '' : '}')
    written.add({ start: body.end, end: node.test.start }).add(lowering.node(node.test, cx))
    return written.add({ start: node.test.end, end: node.end })
  }
  return made.add({ start: reached, end: node.end })
}

/** A `for await` loop: each step is awaited, and so is the closing after an early exit. */
export function writeForAwait(
  lowering: GeneratorLowering,
  node: Node,
  cx: Context,
  check: string,
  prefix: Rope,
): Rope {
  const { left, right, body } = node
  const frame = cx.frame!
  const source = frame.take()
  const value = frame.take()
  const error = `${lowering.names.prefix}e`
  const message = JSON.stringify(notIterableText(right).replace(/iterable$/, 'async iterable'))
  const open = rope`${source} = new ${lowering.names.runtime('AsyncLoop')}(${lowering.node(right, cx)}, ${message});`
  const take = rope`${value} = ${source}.take(${lowering.awaited(rope`${source}.next()`, node)}); if (${source}.done) break;`
  const bind =
    left.type === 'VariableDeclaration'
      ? rope`${left.kind} ${lowering.node(left.declarations[0].id, cx)} = ${lowering.element(value, left)};`
      : rope`(${lowering.node(left, cx)} = ${lowering.element(value, left)});`
  const turns = rope`${prefix}for (;;) { ${take} ${check} ${bind} ${lowering.node(body, cx)} }`
  const quietly = rope`try { if (${source}.closes()) ${lowering.awaited(rope`${source}.close()`, node)}; } catch {}`
  const loudly = rope`if (${source}.closes()) ${source}.closed(${lowering.awaited(rope`${source}.close()`, node)});`
  const close = rope`if (${source}.open) { if (${source}.threw) { ${quietly} } else { ${loudly} } }`
  frame.give(source, value)
  return rope`{ ${open} try { ${turns} } catch (${error}) { ${source}.threw = true; throw ${error}; } finally { ${close} } }`
}

/** A loop over a possible generator that can suspend inside. */
export function writeForOf(lowering: GeneratorLowering, node: Node, cx: Context, check: string): Rope {
  const { left, right, body } = node
  const declares = left.type === 'VariableDeclaration'
  const bound = declares ? boundNames(left.declarations[0].id) : []
  const names = new Set(bound.map(({ name }) => name as string))
  let selfReferring = false
  walk(right, child => {
    if (child.type === 'Identifier' && names.has(child.name)) selfReferring = true
  })
  const disposes = declares && left.kind.includes('using')
  const simple = lowering.isPlainList(right) && !lowering.takesApart(left)
  if (disposes || selfReferring || simple) return writeLoop(lowering, node, cx, check)
  const frame = cx.frame!
  const source = frame.take()
  const value = `${lowering.names.prefix}v`
  const text = JSON.stringify(notIterableText(right))
  const iterate = rope`${source} = ${lowering.names.runtime('iterate')}(${lowering.iterated(right, cx)}, ${text})`
  const bind = declares
    ? rope`${left.kind} ${lowering.node(left.declarations[0].id, cx)} = ${lowering.element(value, left)};`
    : lowering.setHead(left, value, cx)
  const onPending = `if (${value} === ${lowering.names.runtime('paused')}) { yield* ${lowering.names.runtime('wait')}(${source}); continue; }`
  const written = rope`for (const ${value} of ${iterate}) { ${onPending} ${check} ${bind} ${lowering.node(body, cx)} }`
  frame.give(source)
  return written
}

/** A short array is iterated without a safepoint; any other value has one in the loop. */
export function writeShortForOf(
  lowering: GeneratorLowering,
  node: Node,
  cx: Context,
  check: string,
  prefix: Rope,
): Rope {
  const frame = cx.frame!
  const list = frame.take()
  const right = lowering.node(node.right, cx)
  const written = lowering.node(node.left, cx)
  // In parentheses, because a variable may be named `async`.
  const left =
    node.left.type === 'VariableDeclaration' || node.left.type.endsWith('Pattern')
      ? written
      : rope`(${written})`
  const isShort = `${lowering.names.runtime('isShortList')}(${list}, ${lowering.strip})`
  const plain = rope`${prefix}for (${left} of ${list}) { ${lowering.node(node.body, cx)} }`
  const long = rope`${prefix}for (${left} of ${list}) { ${check} ${lowering.node(node.body, cx)} }`
  frame.give(list)
  return rope`{ ${list} = ${right}; if (${isShort}) ${plain} else ${long} }`
}

export function labelsText(labels: readonly Node[]): Rope {
  return join(
    labels.map(label => rope`${label}: `),
    '',
  )
}
