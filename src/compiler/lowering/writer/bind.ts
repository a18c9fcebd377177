/**
 * `fn.bind(…)` in code that is not resumable itself: at the top of a module, in a field. The function that it
 * makes would carry no resumable form, and a task that calls it could not be preempted in it.
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

/** The method is read before the arguments are evaluated, and called after, as the language does. */
export function writeBind(writer: Writer, node: Node, cx: Context): Rope {
  const object = writer.node(node.callee.object, cx)
  const text = JSON.stringify(calleeText(node.callee))
  return rope`${writer.names.runtime('binder')}(${object}, ${text})(${writer.argumentsText(node, cx)})`
}
