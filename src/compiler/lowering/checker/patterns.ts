/**
 * Destructuring. The elements that it reads are read before it; the elements that it writes are written at
 * its end.
 */
import { Rope, rope } from '../../output/rope.ts'
import { boundNames, keyName, type Node, walk } from '../../analysis/syntax.ts'
import type { CheckerLowering } from './checker.ts'
import type { Context } from '../writer/context.ts'
import { isIndexed, plainWrite } from './operations.ts'
import { writeNamed } from './implicitcode.ts'

/** The value that a pattern destructures. The elements of a view that the pattern names are read first. */
export function writeSource(lowering: CheckerLowering, pattern: Node, node: Node, cx: Context): Rope {
  return writeParts(lowering, pattern, node, lowering.node(node, cx))
}

/** `whole`, after the elements that the pattern needs are read, if it is a view. */
export function writeParts(lowering: CheckerLowering, pattern: Node, node: Node, whole: Rope): Rope {
  if (!readsElements(pattern)) return writeNamed(lowering, pattern, whole)
  const site = lowering.site(node)
  if (pattern.type === 'ArrayPattern') {
    const rest = pattern.elements.at(-1)?.type === 'RestElement'
    const most = rest ? 'Infinity' : String(pattern.elements.length)
    const taken = rope`(yield* ${lowering.names.runtime('take')}(${site}, ${whole}, ${most}))`
    return writeNamed(lowering, pattern, taken)
  }
  const properties: Node[] = pattern.properties
  const all = properties.some(({ type }) => type === 'RestElement')
  const names = properties.filter(({ type }) => type !== 'RestElement').map(keyName)
  // A computed key is known only inside the pattern, where nothing can stop.
  if (names.includes(null)) return lowering.effect(whole)
  const read = rope`(yield* ${lowering.names.runtime('fields')}(${site}, ${whole}, ${String(all)}, ${JSON.stringify(names)}))`
  return writeNamed(lowering, pattern, read)
}

/** A destructuring assignment. Writes to shared memory happen at its end, each as an operation. */
export function writeDestructuring(lowering: CheckerLowering, node: Node, pattern: Node, cx: Context): Rope {
  const frame = cx.frame!
  const whole = frame.take()
  const parts = frame.take()
  const taken = [whole, parts]
  const writes = new Rope()
  let count = 0
  const outer = lowering.replaceMember
  lowering.replaceMember = member => {
    const view = frame.take()
    const index = frame.take()
    const shared = frame.take()
    taken.push(view, index, shared)
    const number = String(count++)
    const found = rope`${shared} = ${lowering.names.runtime('isShared')}(${view} = ${lowering.node(member.object, cx)}), ${index} = ${lowering.node(member.property, cx)}`
    writes.add(rope`${shared} && ${lowering.op(plainWrite, member, view, index, `${parts}[${number}]`)}, `)
    return rope`(${found}, ${shared} ? ${parts} : ${view})[${shared} ? ${number} : ${index}]`
  }
  const left = lowering.node(pattern, cx)
  lowering.replaceMember = outer
  const source = writeParts(lowering, pattern, node.right, rope`${whole}`)
  const made = rope`(${whole} = ${lowering.node(node.right, cx)}, ${parts} = [], ${left} = ${source}, ${writes}${whole})`
  frame.give(...taken)
  return lowering.effect(made)
}

/** Writes a pattern whose targets are members. */
export function writePattern(lowering: CheckerLowering, node: Node, cx: Context): Rope {
  const made = new Rope()
  let reached = node.start
  const visit = (part: Node): void => {
    const inner =
      part.type === 'AssignmentPattern' ? part.left : part.type === 'RestElement' ? part.argument : part
    if (inner.type === 'MemberExpression') {
      const indexed = isIndexed(inner) && inner.object.type !== 'Super'
      const place =
        indexed && lowering.replaceMember !== null ? lowering.replaceMember(inner) : lowering.place(inner, cx)
      made.add({ start: reached, end: inner.start }).add(place)
      reached = inner.end
      if (part.type === 'AssignmentPattern') {
        made.add({ start: reached, end: part.right.start }).add(lowering.node(part.right, cx))
        reached = part.right.end
      }
      return
    }
    made.add({ start: reached, end: part.start }).add(lowering.node(part, cx))
    reached = part.end
  }
  if (node.type === 'ArrayPattern') for (const element of node.elements.filter(Boolean)) visit(element)
  else {
    for (const property of node.properties) {
      if (property.type === 'RestElement') visit(property)
      else {
        if (property.computed) visit(property.key)
        visit(property.value)
      }
    }
  }
  return made.add({ start: reached, end: node.end })
}

export function isPattern({ type }: Node): boolean {
  return type === 'ArrayPattern' || type === 'ObjectPattern'
}

/** True if the pattern reads elements, not only named properties. */
export function readsElements(pattern: Node): boolean {
  if (pattern.type === 'ArrayPattern') return true
  return (pattern.properties as Node[]).some(
    property =>
      property.type === 'RestElement' ||
      property.computed ||
      String(Number(keyName(property))) === keyName(property),
  )
}

/** True if the parameter uses a later parameter, which is not set yet. */
export function namesLater(param: Node, after: readonly Node[]): boolean {
  const names = new Set(after.flatMap(other => boundNames(other)).map(({ name }) => name))
  let found = false
  walk(param, node => {
    if (node.type === 'Identifier' && names.has(node.name)) found = true
    return !found
  })
  return found
}
