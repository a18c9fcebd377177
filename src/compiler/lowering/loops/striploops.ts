/** Loops in strips: some hundreds of turns without a stop, then a safepoint, and the next strip. */
import { type Rope, rope } from '../../output/rope.ts'
import type { Node } from '../../analysis/syntax.ts'
import type { Context } from '../writer/context.ts'
import type { GeneratorLowering } from '../generator/generator.ts'
import type { Counted, Strip } from './strip.ts'
import { isSmall } from './weight.ts'

/** Two nested loops: the inner one contains no stop, and ends after some hundreds of turns. */
export function writeInStrips(lowering: GeneratorLowering, node: Node, strip: Strip, cx: Context): Rope {
  if (strip.estimate !== null && isSmall(node.body)) return writeEstimated(lowering, node, strip, cx)
  if (strip.counted !== null) return writeCounted(lowering, node, strip, cx, lowering.strip)
  const frame = cx.frame!
  const outer = frame.label()
  const turn = frame.label()
  const inner = turnJumps(strip, cx, outer, turn)
  const count = frame.take()
  const turns = `${count} = ${lowering.strip}; ${count} > 0; ${count}--`
  const body = rope`${turn}: { ${lowering.node(node.body, inner)} }`
  const test = node.test === null ? rope`` : rope`if (!(${lowering.node(node.test, inner)})) break ${outer};`
  const update =
    node.type === 'ForStatement' && node.update !== null
      ? rope`, ${lowering.node(node.update, inner)}`
      : rope``
  frame.give(count)
  const turning = node.type === 'DoWhileStatement' ? rope`${body} ${test}` : rope`${test} ${body}`
  const strips = rope`for (${turns}${update}) { ${turning} }`
  if (!isSmall(node.body)) {
    return rope`{ ${lowering.init(node, cx)} ${outer}: for (;;) { ${strips} ${lowering.safepoint()} } }`
  }
  // The first strip, mostly the only one, is outside the loop that contains the stop.
  return rope`{ ${lowering.init(node, cx)} ${outer}: { ${strips} for (;;) { ${lowering.safepoint()} ${strips} } } }`
}

/** A loop that counts to a fixed bound: each strip ends at a nearer bound. */
export function writeCounted(
  lowering: GeneratorLowering,
  node: Node,
  strip: Strip,
  cx: Context,
  turns: number,
): Rope {
  const frame = cx.frame!
  const outer = frame.label()
  const turn = frame.label()
  const inner = turnJumps(strip, cx, outer, turn)
  const end = frame.take()
  const body = rope`${strip.continues.length === 0 ? '' : `${turn}:`}{${lowering.node(node.body, inner)}}`
  const bounded = boundedStrips(lowering, node, strip.counted!, inner, end, body, turns, 'limit')
  frame.give(end)
  return rope`{${lowering.init(node, cx)}${outer}:${bounded}}`
}

/** The first test shows the number of turns: a short loop runs as it is, without a safepoint. */
function writeEstimated(lowering: GeneratorLowering, node: Node, strip: Strip, cx: Context): Rope {
  const frame = cx.frame!
  const outer = frame.label()
  const turn = frame.label()
  const inner = turnJumps(strip, cx, outer, turn)
  const bound = frame.take()
  const body = rope`${turn}: { ${lowering.node(node.body, inner)} }`
  const update = lowering.node(node.update, inner)
  const test = lowering.node(node.test, inner)
  const { first, isShort } = firstTest(lowering, node, strip, inner, bound)
  const plain = rope`do { ${body} ${update}; } while (${test});`
  const strips = writeManyTurns(lowering, node, strip, inner, bound, body, outer)
  frame.give(bound)
  return rope`{ ${lowering.init(node, cx)} ${outer}: if (${first}) { if (${isShort}) ${plain} else ${strips} } }`
}

/** The first test of such a loop, and the test that it is short. The variable `bound` keeps the bound. */
export function firstTest(
  lowering: GeneratorLowering,
  { test: { operator, right } }: Node,
  { estimate }: Strip,
  cx: Context,
  bound: string,
): { first: Rope; isShort: string } {
  const { counter, step } = estimate!
  const first = rope`${counter} ${operator} (${bound} = ${lowering.node(right, cx)})`
  const distance = operator.startsWith('<') ? `${counter}, ${bound}` : `${bound}, ${counter}`
  const isShort = `${lowering.names.runtime('isShort')}(${distance}, ${step}, ${lowering.strip})`
  return { first, isShort }
}

/** The strips of a loop that has many turns. */
export function writeManyTurns(
  lowering: GeneratorLowering,
  node: Node,
  { counted, estimate }: Strip,
  cx: Context,
  temporary: string,
  body: Rope,
  outer: string,
): Rope {
  const isTiny = node.body.end - node.body.start <= 200
  if (counted !== null && !isTiny)
    return boundedStrips(lowering, node, counted, cx, temporary, body, lowering.strip, 'limit')
  const update = lowering.node(node.update, cx)
  const test = lowering.node(node.test, cx)
  const turns = `for (${temporary} = ${lowering.strip}; ${temporary} > 0; ${temporary}--)`
  const byCount = rope`for (;;) { ${turns} { ${body} ${update}; if (!(${test})) break ${outer}; } ${lowering.safepoint()} }`
  const { steady, step, counter } = estimate!
  if (!isTiny || (counted === null && !steady)) return byCount
  // If only a number changes, each strip ends at a nearer bound, and the loop needs no other count.
  const { operator, right } = node.test
  const sign = operator.startsWith('<') ? '' : '-'
  const bounded = boundedStrips(
    lowering,
    node,
    counted ?? { counter, bound: right, operator, step: `${sign}${step}` },
    cx,
    temporary,
    body,
    lowering.strip,
    'near',
  )
  const conditions = [`typeof ${counter} === 'number'`]
  if (right.type === 'Identifier') conditions.push(`typeof ${right.name} === 'number'`)
  if (counted === null) conditions.push(`typeof ${step} === 'number'`, `${step} > 0`)
  return rope`if (${conditions.join(' && ')}) ${bounded} else ${byCount}`
}

/** Strips that end at nearer bounds: the counter itself shows the end. */
function boundedStrips(
  lowering: GeneratorLowering,
  node: Node,
  counted: Counted,
  cx: Context,
  end: string,
  body: Rope,
  turns: number,
  next: 'limit' | 'near',
): Rope {
  const { counter, bound, operator, step } = counted
  const many = Math.max(1, Math.trunc(turns))
  const reach = typeof step === 'number' ? String(step * many) : `${step} * ${many}`
  const far = lowering.node(bound, cx)
  const limit = rope`${end}=${lowering.names.runtime(next)}(${counter},${far},${reach})`
  const strip = rope`for(;${counter}${operator}${end};${lowering.node(node.update, cx)}){${body}}`
  return rope`for(;;){${limit};${strip}if(!(${counter}${operator}${far}))break;${lowering.safepoint()}}`
}

/** The jumps of a loop that is written as a block of turns. */
export function turnJumps(strip: Strip, cx: Context, outer: string, turn: string): Context {
  const jumps = new Map(cx.jumps)
  for (const jump of strip.breaks) jumps.set(jump, rope`break ${outer};`)
  for (const jump of strip.continues) jumps.set(jump, rope`break ${turn};`)
  return { ...cx, jumps }
}
