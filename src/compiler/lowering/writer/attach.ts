/** Attaches a twin to its function: beside a declaration, around an expression. */
import type { Func } from '../../analysis/functions.ts'
import { Rope, rope } from '../../output/rope.ts'
import type { Node } from '../../analysis/syntax.ts'
import type { Context } from './context.ts'
import { canCapture, capturesOf } from './arrowcaptures.ts'
import type { Writer } from './writer.ts'

/**
 * A declared function: its plain form, its twin, and the code that attaches the twin before the first
 * statement of the list. `statement` is the declaration, or the export that contains it.
 */
export function writeDeclaration(
  writer: Writer,
  statement: Node,
  node: Node,
  func: Func,
  cx: Context,
): { plain: Rope; beside: Rope; attach: string } {
  const plainForm = writer.plain(node, func, cx)
  const name = writer.twinName(func)
  const itself = writer.isItself(func)
  const beside = itself ? rope`` : writer.twin(func, cx, `function* ${name}`)
  const attacher = writer.attacher(func)
  if (node.id === null) {
    const made = `${name}_`
    const at = writer.source.indexOf('(', node.start)
    const keyword = node.typeParameters?.start ?? at
    const plain = rope`${{ start: statement.start, end: keyword }} ${made}${cut(plainForm, keyword)}`
    if (itself) return { plain, beside, attach: `${writer.marked(func, made, 'default').text('')};` }
    return { plain, beside, attach: `${attacher}(${made}, ${name}, 'default');` }
  }
  const plain = rope`${{ start: statement.start, end: node.start }}${plainForm}${{ start: node.end, end: statement.end }}`
  const exported = statement !== node
  const silent = cx.frame !== null && !exported && writer.isDirect(func) && !escapes(func)
  if (itself) {
    const unseen = cx.func.kind !== 'module' && !exported && writer.isDirect(func) && !escapes(func)
    return { plain, beside, attach: unseen ? '' : `${writer.marked(func, node.id.name).text('')};` }
  }
  if (!silent) return { plain, beside, attach: `${attacher}(${node.id.name}, ${name});` }
  // No caller reads the mark, but a deep recursion of the function must be resumed at its innermost call.
  const attach = func.recursive ? `${writer.names.runtime('resumable')}(${name});` : ''
  return { plain, beside, attach }
}

/** A function expression, wrapped so that its twin is attached before any code sees it. */
export function writeFunction(writer: Writer, node: Node, cx: Context): Rope {
  const func = writer.analysis.funcOf.get(node)!
  const text = writer.plain(node, func, cx)
  if (!writer.attachesTwin(func, cx) || func.kind === 'declaration') return text
  const hint = writer.hintOf(node)
  const named: Rope =
    hint === undefined || node.id !== null ? text : namedProperty(hint, rope`${propertyText(hint)}: ${text}`)
  // `return()=>…` needs no space; a name instead of the parenthesis does.
  return rope` ${writeAttachment(writer, func, named, cx)}`
}

/** A function or class whose name is known only at run time: the variable `key` holds it. */
export function writeNamedBy(writer: Writer, node: Node, key: string, cx: Context): Rope {
  const func = writer.analysis.funcOf.get(node)
  const named = (text: Rope): Rope => rope`{ [${key}]: ${text} }[${key}]`
  if (func === undefined) return named(writer.node(node, cx))
  const plain = named(writer.plain(node, func, cx))
  return writer.attachesTwin(func, cx) ? writeAttachment(writer, func, plain, cx) : plain
}

/** `attach(plain, twin)`, with the values that an arrow's twin captures. */
export function writeAttachment(writer: Writer, func: Func, plain: Rope, cx: Context): Rope {
  const attacher = writer.attacher(func)
  if (writer.isItself(func)) return writer.marked(func, plain)
  if (func.self !== null && func.self.references.length > 0) {
    const name = func.node.id.name
    const twin = writer.twin(func, cx, `function* ${writer.twinName(func)}`)
    return rope`${writer.names.runtime('attachSelf')}(${attacher}, ${plain}, ${name} => ${twin})`
  }
  if (!func.isArrow || cx.captureOwner === func.host) {
    return rope`${attacher}(${plain}, ${writer.twin(func, cx, 'function* ')})`
  }
  const captures = capturesOf(func, 'uses', writer.names)
  const twin = writer.twin(func, cx, 'function* ')
  if (captures.length === 0 || !canCapture(func, writer.analysis)) return rope`${attacher}(${plain}, ${twin})`
  const parameters = captures.map(({ name }) => name).join(', ')
  const values = captures.map(({ value }) => value).join(', ')
  return rope`((${parameters}) => ${attacher}(${plain}, ${twin}))(${values})`
}

/**
 * Wraps a property in an object literal and reads it back, so that the function or class in it takes the
 * name.
 */
export function namedProperty(name: string, property: Rope): Rope {
  return rope`{ ${property} }[${JSON.stringify(name)}]`
}

/**
 * A name as the key of an object literal. `__proto__` must be computed, because as a plain key it sets the
 * prototype.
 */
export function propertyText(name: string): string {
  return name === '__proto__' ? '["__proto__"]' : JSON.stringify(name)
}

/** True if the function is used as a value. */
function escapes({ binding }: Func): boolean {
  return (
    binding === null || binding.volatile || binding.references.some(({ callee, write }) => !callee || write)
  )
}

/** The part of a rope from an offset of the source. */
function cut(whole: Rope, from: number): Rope {
  const made = new Rope()
  let reached = false
  for (const part of whole.parts) {
    if (reached) made.add(part)
    else if (typeof part === 'object' && part.end > from) {
      made.add({ start: Math.max(from, part.start), end: part.end })
      reached = true
    }
  }
  return made
}
