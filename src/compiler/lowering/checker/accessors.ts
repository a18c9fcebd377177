/**
 * Getters and setters. A property that has one in this file is read and written by a call, which may stop.
 */
import type { Analysis } from '../../analysis/analysis.ts'
import { type Rope, rope } from '../../output/rope.ts'
import type { Node } from '../../analysis/syntax.ts'
import type { CheckerLowering } from './checker.ts'
import type { Context } from '../writer/context.ts'

export class Accessors {
  readonly #names: ReadonlySet<string>

  constructor({ funcs }: Analysis) {
    const found = funcs.filter(({ twin, holder }) => twin && holder !== null)
    this.#names = new Set(found.map(({ kind, name }) => `${kind} ${name}`))
  }

  /** True if the node is a member whose name has such an accessor in the file. */
  has(node: Node, kind: 'getter' | 'setter'): boolean {
    if (node.type !== 'MemberExpression' || node.computed || node.property.type !== 'Identifier') return false
    return this.#names.has(`${kind} ${node.property.name}`)
  }
}

/** Reads a member of `object` that may have a getter. */
export function writeGet(lowering: CheckerLowering, object: Rope, node: Node, cx: Context): Rope {
  const { names } = lowering
  const { property } = node
  const frame = cx.frame!
  const holder = frame.take()
  const found = frame.take()
  frame.give(holder, found)
  const name = JSON.stringify(property.name)
  return rope`(${holder} = ${object}, ${found} = ${names.runtime('getter')}(${holder}, ${name}), ${found} === void 0 ? ${names.runtime('peek')}(${holder}, ${name}).${property} : ${lowering.driven(rope`yield* ${found}.call(${holder})`, node, null)})`
}

/** An assignment to a member that may have a setter. */
export function writeSet(
  lowering: CheckerLowering,
  node: Node,
  { object, property }: Node,
  cx: Context,
): Rope {
  const frame = cx.frame!
  const [holder, value, found] = [frame.take(), frame.take(), frame.take()] as const
  const setup = rope`${holder} = ${lowering.node(object, cx)}, ${value} = ${lowering.node(node.right, cx)}`
  frame.give(holder, value, found)
  const name = JSON.stringify(property.name)
  const plain = lowering.effect(rope`${holder}.${property} = ${value}`)
  return rope`(${setup}, ${found} = ${lowering.names.runtime('setter')}(${holder}, ${name}), ${found} === void 0 ? ${plain} : yield* ${found}.call(${holder}, ${value}), ${value})`
}
