/**
 * Element reads and writes, `Atomics` and methods of views. Each is an operation if the memory is shared at
 * run time.
 */
import { globalName } from '../../analysis/analysis.ts'
import { join, type Piece, type Rope, rope } from '../../output/rope.ts'
import { bare, type Node } from '../../analysis/syntax.ts'
import type { CheckerLowering } from './checker.ts'
import type { Context } from '../writer/context.ts'
import { atomics, memoryMethod, pause, plainRead, plainWrite } from './operations.ts'

/** The value of an element of `object`. */
export function writeRead(lowering: CheckerLowering, object: Rope, node: Node, cx: Context): Rope {
  const frame = cx.frame!
  const view = frame.take()
  const index = frame.take()
  const key = lowering.node(node.property, cx)
  frame.give(view, index)
  const read = lowering.op(plainRead, node, view, index)
  return rope`(${view} = ${object}, ${index} = ${key}, ${lowering.isShared(view)} ? ${read} : ${lowering.names.runtime('peek')}(${view}, ${index})[${index}])`
}
/** An assignment to an element, plain or compound. */
export function writeAssignment(lowering: CheckerLowering, node: Node, left: Node, cx: Context): Rope {
  const frame = cx.frame!
  const view = frame.take()
  const index = frame.take()
  const setup = rope`${view} = ${lowering.node(left.object, cx)}, ${index} = ${lowering.node(left.property, cx)}`
  const shared = lowering.isShared(view)
  const value = frame.take()
  const right = lowering.node(node.right, cx)
  const write = (): Rope =>
    rope`(${shared} ? ${lowering.op(plainWrite, node, view, index, value)} : ${lowering.effect(rope`${view}[${index}] = ${value}`)})`
  let made: Rope
  if (node.operator === '=') {
    made = rope`(${setup}, ${value} = ${right}, ${write()}, ${value})`
  } else {
    const read = rope`${shared} ? ${lowering.op(plainRead, left, view, index)} : ${view}[${index}]`
    const operator = node.operator.slice(0, -1) as string
    if (operator === '&&' || operator === '||' || operator === '??') {
      made = rope`(${setup}, ${value} = ${read}, ${value} ${operator} (${value} = ${right}, ${write()}, ${value}))`
    } else {
      const old = frame.take()
      made = rope`(${setup}, ${old} = ${read}, ${value} = ${old} ${operator} (${right}), ${write()}, ${value})`
      frame.give(old)
    }
  }
  frame.give(view, index, value)
  return made
}

/** `++` or `--` of an element. */
export function writeUpdate(lowering: CheckerLowering, node: Node, argument: Node, cx: Context): Rope {
  const frame = cx.frame!
  const view = frame.take()
  const index = frame.take()
  const old = frame.take()
  const setup = rope`${view} = ${lowering.node(argument.object, cx)}, ${index} = ${lowering.node(argument.property, cx)}`
  const sign = node.operator === '++' ? '+' : '-'
  const next = `typeof ${old} === 'bigint' ? ${old} ${sign} 1n : ${old} ${sign} 1`
  const read = lowering.op(plainRead, argument, view, index)
  const write = lowering.op(plainWrite, node, view, index, next)
  const plain = node.prefix ? `${node.operator}${view}[${index}]` : `${view}[${index}]${node.operator}`
  const result = node.prefix ? `(${next})` : old
  frame.give(view, index, old)
  return rope`(${setup}, ${lowering.isShared(view)} ? (${old} = ${read}, ${write}, ${result}) : ${lowering.effect(rope`${plain}`)})`
}

/** A call of `Atomics`, or null for any other. */
export function writeAtomic(lowering: CheckerLowering, node: Node, cx: Context): Rope | null {
  const callee = bare(node.callee)
  if (callee.type !== 'MemberExpression' || callee.computed) return null
  if (globalName(callee.object, lowering.analysis.bindingOf) !== 'Atomics') return null
  const args: Node[] = node.arguments
  if (args.some(({ type }) => type === 'SpreadElement')) return null
  const name = callee.property.name as string
  if (name === 'pause') {
    const hint = args[0] === undefined ? 'void 0' : lowering.node(args[0], cx)
    return lowering.op(pause, node, 'null', '0', hint)
  }
  const kind = atomics.get(name)
  if (kind === undefined || args.length < 2) return null
  const frame = cx.frame!
  const taken = args.map(() => frame.take())
  args.forEach((argument, index) => index > 0 && lowering.convert(argument))
  const setup = join(
    args.map((argument, index) => rope`${taken[index]!} = ${lowering.node(argument, cx)}`),
    ', ',
  )
  frame.give(...taken)
  const plain = rope`Atomics.${name}(${taken.join(', ')})`
  const otherwise = name === 'load' ? plain : lowering.effect(plain)
  return rope`(${setup}, ${lowering.isShared(taken[0]!)} ? ${lowering.op(kind, node, ...taken)} : ${otherwise})`
}

/** A method of a view or a buffer: the test that it uses shared memory, and the steps that it then takes. */
export function writeViewMethod(
  lowering: CheckerLowering,
  node: Node,
  callee: Node,
  receiver: Rope,
  args: Piece[],
): { test: Rope; value: Rope } | null {
  const method = memoryMethod(callee)
  if (method === undefined) return null
  const name = JSON.stringify(method)
  const test = rope`${lowering.names.runtime('modelled')}(${receiver}, ${name})`
  const steps = rope`${lowering.names.runtime('places')}(${lowering.site(node)}, ${receiver}, ${name}, [${join(args, ', ')}])`
  return { test, value: rope`(yield* ${steps})` }
}

/** `x[i]` outside the threads, on the object behind `x`. */
export function writeDirect(lowering: CheckerLowering, node: Node, cx: Context): Rope {
  const object = rope`${lowering.names.runtime('direct')}(${lowering.node(node.object, cx)})`
  return rope`${object}${{ start: node.object.end, end: node.property.start }}${lowering.node(node.property, cx)}${{ start: node.property.end, end: node.end }}`
}

/** A template whose tag is a method. It is called as it is; the runtime records which function it is. */
export function writeTagged(lowering: CheckerLowering, node: Node, cx: Context): Rope | null {
  const tag = bare(node.tag)
  if (tag.computed || tag.object.type === 'Super' || tag.property.type === 'PrivateIdentifier') return null
  const name = JSON.stringify(tag.property.name)
  const holder = rope`${lowering.names.runtime('tagged')}(${lowering.node(tag.object, cx)}, ${name})`
  return rope`${holder}.${tag.property}${lowering.node(node.quasi, cx)}`
}

/** A member as the target of a write or a deletion. */
export function writePlace(lowering: CheckerLowering, member: Node, cx: Context): Rope {
  const object = lowering.node(member.object, cx)
  if (member.object.type === 'Super' || member.property.type === 'PrivateIdentifier')
    return member.computed
      ? rope`${object}[${lowering.node(member.property, cx)}]`
      : rope`${object}.${member.property}`
  const poke = lowering.names.runtime('poke')
  return member.computed
    ? rope`${poke}(${object})[${lowering.node(member.property, cx)}]`
    : rope`${poke}(${object}, ${JSON.stringify(member.property.name)}).${member.property}`
}
