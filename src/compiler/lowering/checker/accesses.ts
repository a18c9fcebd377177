/** Reads and writes of elements, `Atomics` and methods of views: each an operation where the memory turns out to be shared. */
import { globalName } from '../../analysis.ts'
import { join, type Piece, type Rope, rope } from '../../rope.ts'
import { bare, type Node } from '../../syntax.ts'
import type { CheckerLowering } from '../checker.ts'
import type { Context } from '../context.ts'
import {
  atomics,
  bulk,
  bulkMethods,
  dataViewMethod,
  dataViewRead,
  dataViewWrite,
  pause,
  plainRead,
  plainWrite,
} from './operations.ts'

/** The value of an element of what `object` is. */
export function writeRead(lowering: CheckerLowering, object: Rope, node: Node, cx: Context): Rope {
  const frame = cx.frame!
  const view = frame.take()
  const index = frame.take()
  const key = lowering.node(node.property, cx)
  frame.give(view, index)
  const read = lowering.op(plainRead, node, view, index)
  return rope`(${view} = ${object}, ${index} = ${key}, ${lowering.isShared(view)} ? ${read} : ${view}[${index}])`
}
/** An assignment to an element, compound ones too. */
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
  const setup = join(
    args.map((argument, index) => rope`${taken[index]!} = ${lowering.node(argument, cx)}`),
    ', ',
  )
  frame.give(...taken)
  return rope`(${setup}, ${lowering.isShared(taken[0]!)} ? ${lowering.op(kind, node, ...taken)} : Atomics.${name}(${taken.join(', ')}))`
}

/** A method of a view: what tells that it is one of shared memory, and the operation that it is then. */
export function writeViewMethod(
  lowering: CheckerLowering,
  node: Node,
  callee: Node,
  receiver: Rope,
  args: Piece[],
): { test: Rope; value: Rope } | null {
  if (callee.computed || callee.property.type !== 'Identifier') return null
  const name = callee.property.name as string
  const test = lowering.isShared(receiver)
  const method = JSON.stringify(name)
  const match = dataViewMethod.exec(name)
  if (match !== null) {
    if (node.arguments.some(({ type }: Node) => type === 'SpreadElement')) return null
    const [offset = 'void 0', second = 'void 0', third = 'void 0'] = args
    const value =
      match[1] === 'get'
        ? lowering.op(dataViewRead, node, receiver, offset, 'void 0', rope`[${method}, ${second}]`)
        : lowering.op(dataViewWrite, node, receiver, offset, second, rope`[${method}, ${third}]`)
    return { test, value }
  }
  if (!bulkMethods.has(name)) return null
  return { test, value: lowering.op(bulk, node, receiver, '0', method, rope`[${join(args, ', ')}]`) }
}
