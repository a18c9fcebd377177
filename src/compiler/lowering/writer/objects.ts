/**
 * Object literals. A method with `super` has its twin beside it, under a symbol, and the two are linked when
 * the object is made. Any other function gets its twin attached in place.
 */
import type { Func } from '../../analysis/functions.ts'
import { type Piece, Rope, rope } from '../../output/rope.ts'
import { bare, isFunction, keyName, type Node } from '../../analysis/syntax.ts'
import { namedProperty, propertyText, writeAttachment } from './attach.ts'
import { linked } from './classes.ts'
import type { Context } from './context.ts'
import { canCapture, capturesOf } from './arrowcaptures.ts'
import type { Writer } from './writer.ts'

export function writeObject(writer: Writer, node: Node, cx: Context): Rope {
  const made = new Rope()
  let reached = node.start
  const links: string[] = []
  for (const property of node.properties as Node[]) {
    made.add({ start: reached, end: property.start })
    made.add(writeProperty(writer, property, cx, links))
    reached = property.end
  }
  made.add({ start: reached, end: node.end })
  return links.length === 0 ? made : rope`${writer.names.runtime('linkObject')}(${made}, ${links.join(', ')})`
}

function writeProperty(writer: Writer, property: Node, cx: Context, links: string[]): Rope {
  if (property.type === 'SpreadElement') return writer.spreadProperty(property, cx)
  if (property.type !== 'Property' || !isFunction(bare(property.value))) return writer.node(property, cx)
  const value = bare(property.value)
  const func = writer.analysis.funcOf.get(value)!
  const isMethod = func.kind === 'method' || func.kind === 'getter' || func.kind === 'setter'
  if (isMethod) {
    return writer.liftedMethod(property, func, cx) ?? writeMethod(writer, property, func, cx, links)
  }
  const key = keyName(property)
  if (!writer.attachesTwin(func, cx)) {
    if (key !== null || value.id !== null) return writer.node(property, cx)
    // Only a function that stands in its place takes its name from a computed key.
    return withValue(keyText(writer, property, cx), property, writer.plain(value, func, cx))
  }
  if (value.id === null) {
    if (key === null) return writeUnnamed(writer, property, func, cx)
    writer.hint(value, key)
  }
  return withValue(keyText(writer, property, cx), property, writer.node(property.value, cx))
}

function writeMethod(writer: Writer, property: Node, func: Func, cx: Context, links: string[]): Rope {
  const { names } = writer
  const text = (): Rope =>
    withValue(keyText(writer, property, cx), property, writer.plain(property.value, func, cx))
  if (!writer.attachesTwin(func, cx)) return text()
  const key = keyName(property)
  const isMethod = func.kind === 'method'
  if (writer.isItself(func) && isMethod) {
    const method = text()
    if (key === null) return rope`...${names.runtime('attachEntry')}(${writer.attacher(func)}, { ${method} })`
    links.push(
      JSON.stringify(key),
      '0',
      func.parent?.kind === 'module' ? `'frames${writer.takenAt(func) ?? ''}'` : `'inner'`,
    )
    return method
  }
  if (writer.isItself(func)) {
    if (key !== null) links.push(JSON.stringify(key), '0', `'${linked[func.kind]}'`)
    return text()
  }
  if (func.usesSuper || !isMethod) {
    if (key === null) return text()
    const number = names.number()
    links.push(JSON.stringify(key), String(number), `'${writer.flavor(func)}'`)
    const symbol = `[${names.runtime('key')}(${number})]`
    return rope`${text()}, ${writer.twin(func, cx, `*${symbol}`)}`
  }
  const method = text()
  if (key === null)
    return rope`...${names.runtime('attachEntry')}(${writer.attacher(func)}, { ${method} }, ${writer.twin(func, cx, 'function* ')})`
  return rope`${propertyText(key)}: ${writeAttachment(writer, func, namedProperty(key, method), cx)}`
}

/** A function that takes its name from a computed key: made as the only property of a separate object. */
function writeUnnamed(writer: Writer, property: Node, func: Func, cx: Context): Rope {
  const { names } = writer
  const entry = withValue(keyText(writer, property, cx), property, writer.plain(func.node, func, cx))
  if (writer.isItself(func)) {
    return rope`...${names.runtime('attachEntry')}(${writer.attacher(func)}, { ${entry} })`
  }
  const captures = func.isArrow && cx.captureOwner !== func.host && canCapture(func, writer.analysis)
  if (captures && capturesOf(func, 'uses', names).length > 0) return entry
  return rope`...${names.runtime('attachEntry')}(${writer.attacher(func)}, { ${entry} }, ${writer.twin(func, cx, 'function* ')})`
}

/** The text of a property up to the end of its key. */
export function keyText(writer: Writer, property: Node, cx: Context): Rope {
  if (!property.computed) return new Rope().add({ start: property.start, end: property.key.end })
  return rope`${{ start: property.start, end: property.key.start }}${writer.node(property.key, cx)}`
}

export function withValue(key: Rope, { key: { end }, value }: Node, text: Piece): Rope {
  return rope`${key}${{ start: end, end: value.start }}${text}`
}
