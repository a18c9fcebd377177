/**
 * Classes. The twin of a method is a method beside it, under a symbol or a private name. A static block links
 * the two.
 */
import { constructorIn } from '../../analysis/construct.ts'
import { endsWithArrow } from './semicolons.ts'
import type { Func } from '../../analysis/functions.ts'
import { type Piece, Rope, rope } from '../../output/rope.ts'
import { bare, isFunction, keyName, type Node } from '../../analysis/syntax.ts'
import { Available, type Context, noJumps } from './context.ts'
import type { Writer } from './writer.ts'

export function writeClass(writer: Writer, node: Node, cx: Context): Rope {
  const made = new Rope()
  let reached = node.start
  const through = (child: Node, written: Piece): void => {
    made.add({ start: reached, end: child.start }).add(written)
    reached = child.end
  }
  for (const decorator of node.decorators ?? [])
    if (decorator.start >= reached) through(decorator, writer.node(decorator, cx))
  if (node.superClass !== null) through(node.superClass, writer.node(node.superClass, cx))
  const { body } = node
  const links: string[] = []
  const elements = new Rope()
  const outerReached = reached
  const inner: Context = { ...cx, available: privateTwins(writer, body.body, cx) }
  const own = node.superClass === null ? constructorIn(node) : null
  const builder = own === null ? undefined : writer.analysis.funcOf.get(own)
  const isShielded = builder !== undefined && writer.isItself(builder) && writer.attachesTwin(builder, cx)
  let open = body.start + 1
  for (const element of body.body as Node[]) {
    elements.add({ start: open, end: element.start })
    elements.add(writeElement(writer, element, inner, links, isShielded))
    open = element.end
  }
  const ending = writer.classEnding(node)
  if (ending === '') elements.add({ start: open, end: node.end })
  else
    elements
      .add({ start: open, end: body.end - 1 })
      .add(ending)
      .add({ start: body.end - 1, end: node.end })
  const link =
    links.length === 0 && !writer.marksClasses
      ? ''
      : ` static{${writer.classMark}${writer.names.runtime('linkClass')}(${['this', ...links].join(',')});}`
  return made
    .add({ start: outerReached, end: body.start + 1 })
    .add(link)
    .add(writer.classExtra(node))
    .add(elements)
}

/** The functions available inside a class. Its private names hide those of the classes around it. */
function privateTwins(writer: Writer, elements: Node[], cx: Context): Available {
  const own = new Set<Func>()
  const hidden = new Set<string>()
  for (const { type, key, value } of elements) {
    if (key?.type !== 'PrivateIdentifier') continue
    hidden.add(key.name)
    if (type !== 'MethodDefinition') continue
    const func = writer.analysis.funcOf.get(value)
    if (func !== undefined && writer.flavor(func) === 'plain' && writer.attachesTwin(func, cx)) own.add(func)
  }
  return hidden.size === 0 ? cx.available : new Available(cx.available, own, hidden)
}

function writeElement(
  writer: Writer,
  element: Node,
  cx: Context,
  links: string[],
  isShielded: boolean,
): Rope {
  const func = writer.analysis.funcOf.get(element.type === 'MethodDefinition' ? element.value : element)
  if (func === undefined) return new Rope().add(element)
  // Code inside a class is not part of the frame around the class, and has its own `this`.
  const own: Context = { ...cx, frame: null, readsCaptures: false, captureOwner: null }
  if (element.type === 'StaticBlock') return writer.block(element, { ...own, func, jumps: noJumps })
  const made = new Rope()
  let reached = element.start
  for (const decorator of element.decorators ?? []) {
    if (decorator.start < reached) continue
    made.add({ start: reached, end: decorator.start }).add(writer.node(decorator, cx))
    reached = decorator.end
  }
  if (element.computed) {
    made.add({ start: reached, end: element.key.start }).add(writer.node(element.key, cx))
    reached = element.key.end
  }
  const { value, end } = element
  if (element.type === 'MethodDefinition') {
    const text = writer.plain(value, func, { ...cx, readsCaptures: false, captureOwner: null })
    made.add({ start: reached, end: value.start }).add(text).add({ start: value.end, end })
    if (!writer.attachesTwin(func, cx)) return made
    const twin = writeMethodTwin(writer, element, func, own, links)
    return twin === null ? made : rope`${made} ${twin}`
  }
  if (value === null || value === undefined) return made.add({ start: reached, end })
  const { place, text } = writeField(writer, element, { ...own, func, jumps: noJumps })
  const shields = isShielded && !element.static && !isInert(value)
  const guard = element.static || isInert(value) ? null : writer.fieldGuard(element)
  const shielded = shields ? rope`${writer.names.runtime('shielded')}(() => (${text}))` : text
  const written = guard === null ? shielded : rope`${guard} ? void 0 : (${shielded})`
  made.add({ start: reached, end: place.start }).add(written).add({ start: place.end, end })
  return !written.isRange(place) && endsWithArrow(element, writer.source) ? made.add(';') : made
}

/**
 * True for a field value that runs no code. Any other value runs between `new` and the constructor of a base
 * class, and must not take the permission to unwind that is for that constructor.
 */
function isInert(value: Node): boolean {
  const node = bare(value)
  if (isFunction(node)) return true
  switch (node.type) {
    case 'Literal':
    case 'ThisExpression':
      return true
    case 'UnaryExpression':
      return node.argument.type === 'Literal'
    case 'ArrayExpression':
      return node.elements.every(
        (element: Node | null) => element === null || (element.type !== 'SpreadElement' && isInert(element)),
      )
    case 'ObjectExpression':
      return node.properties.every(
        (property: Node) => property.type === 'Property' && !property.computed && isInert(property.value),
      )
    default:
      return false
  }
}

/** The value of a field. A function that takes its name from a computed key stays plain. */
function writeField(writer: Writer, element: Node, cx: Context): { place: Node; text: Rope } {
  const { value } = element
  const key = keyName(element)
  if (key !== null) writer.hint(value, key)
  const inner = bare(value)
  if (key === null && isFunction(inner) && inner.id === null) {
    return { place: inner, text: writer.plain(inner, writer.analysis.funcOf.get(inner)!, cx) }
  }
  return { place: value, text: writer.node(value, cx) }
}

/** The link flavor of functions that unwind and are no methods. */
export const linked: Partial<Record<Func['kind'], string>> = {
  constructor: 'class',
  getter: 'get',
  setter: 'set',
}

/** The twin beside a method, or null if it needs none. Adds the link between the two to `links`. */
function writeMethodTwin(
  writer: Writer,
  element: Node,
  func: Func,
  cx: Context,
  links: string[],
): Rope | null {
  const { names, source } = writer
  const { key, static: isStatic } = element
  const isPrivate = key.type === 'PrivateIdentifier'
  const name = keyName(element)
  const link = (number: number, how: string): void => {
    const text = name === null ? source.slice(key.start, key.end) : JSON.stringify(name)
    links.push(text, String(number), isStatic ? 'true' : 'false', `'${how}'`)
  }
  if (writer.isItself(func)) {
    // Only `new` calls a class, and it reads nothing else.
    if (!isPrivate) link(0, linked[func.kind] ?? `frames${writer.takenAt(func) ?? ''}`)
    return null
  }
  const word = isStatic ? 'static ' : ''
  if (isPrivate) {
    if (writer.flavor(func) !== 'plain') return null
    return writer.twin(func, cx, `${word}*${writer.privateName(key.name)}`)
  }
  const number = names.number()
  link(number, writer.flavor(func))
  return writer.twin(func, cx, `${word}*[${names.runtime('key')}(${number})]`)
}
