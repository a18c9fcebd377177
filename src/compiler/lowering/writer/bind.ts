/**
 * `fn.bind(…)` in code that is not resumable: at the top of a module, in a field. Without this, the bound
 * function would have no resumable form, and a task could not be preempted in it.
 */
import { type Rope, rope } from '../../output/rope.ts'
import type { Node } from '../../analysis/syntax.ts'
import type { Context } from './context.ts'
import { calleeText } from './enginemessages.ts'
import type { Writer } from './writer.ts'

export function isBind({ type, callee, optional }: Node): boolean {
  return (
    type === 'CallExpression' &&
    !optional &&
    callee.type === 'MemberExpression' &&
    !callee.computed &&
    !callee.optional &&
    callee.property.name === 'bind' &&
    callee.object.type !== 'Super'
  )
}

/** Reads the method before it evaluates the arguments, and calls it afterwards, as the language does. */
export function writeBind(writer: Writer, node: Node, cx: Context): Rope {
  const object = writer.node(node.callee.object, cx)
  const text = JSON.stringify(calleeText(node.callee))
  return rope`${writer.names.runtime('binder')}(${object}, ${text})(${writer.argumentsText(node, cx)})`
}
