/**
 * `try`. A handler or `finally` that can suspend is moved after the `try`, so that it can be entered without
 * an error.
 */
import { Rope, rope } from '../../../output/rope.ts'
import type { Node } from '../../../analysis/syntax.ts'
import { jumpsOutOf } from '../../loops/jumps.ts'
import { assign, open, within } from './declarations.ts'
import { returning } from './return.ts'
import type { Statements } from './statements.ts'

export function writeTry(at: Statements, node: Node): void {
  const { block, handler, finalizer } = node
  if (at.stops(finalizer)) {
    writeEnding(at, node)
    return
  }
  const { frames, guards, p } = at
  const ending =
    finalizer === null
      ? rope``
      : rope` finally { ${frames}.ok = 0; if (${frames}.u === 0) ${at.verbatim(finalizer)} }`
  const name = `${at.prefix}e`
  if (handler === null) {
    const { text, last } = at.nested(() => at.inner(block))
    at.compound(rope`try { ${text} }${ending}`, last)
    return
  }
  if (!at.stops(handler.body)) {
    const { text, last } = at.nested(() => at.inner(block))
    const param = handler.param === null ? rope`` : rope` (${at.verbatim(handler.param)})`
    const caught = rope` catch${param} { ${frames}.ok = 0; ${at.verbatim(handler.body)} }`
    at.compound(rope`try { ${text} }${caught}${ending}`, last)
    return
  }
  // The handler is moved after its `try`.
  const thrown = at.take()
  const error = at.take()
  const { text, last } = at.nested(() => {
    at.simple(rope`${thrown} = false;`)
    const { text: tried, last: triedLast } = at.nested(() => at.inner(block))
    at.compound(
      rope`try { ${tried} } catch (${name}) { ${frames}.ok = 0; ${thrown} = true; ${error} = ${name}; }`,
      triedLast,
    )
    let opened = new Rope()
    const handled = at.nested(() =>
      within(at, handler, () => {
        opened = open(at, handler, [])
        if (handler.param !== null) assign(at, handler.param, rope`${error}`)
        at.inner(handler.body)
      }),
    )
    const test = guards ? `${p} || ${thrown}` : thrown
    at.compound(rope`if (${test}) { ${opened}${handled.text} }`, handled.last)
  })
  if (finalizer === null) at.compound(rope`{ ${text} }`, last)
  else at.compound(rope`try { ${text} }${ending}`, last)
}

/**
 * A `finally` that can suspend is moved after its `try`. A variable holds how the `try` ended: 0, normally;
 * 1, by an error; 2, by a `return`; 3 or more, by a jump.
 */
function writeEnding(at: Statements, node: Node): void {
  const { block, handler, finalizer } = node
  const { frames } = at
  const outer = at.cx
  const how = at.take()
  const value = at.take()
  const label = at.label()
  const targets = new Map<string, { jump: Node; code: number }>()
  const jumps = new Map(outer.jumps)
  for (const jump of [...jumpsOutOf(block), ...(handler === null ? [] : jumpsOutOf(handler.body))]) {
    const key = `${jump.type} ${jump.label?.name ?? ''}`
    const target = targets.get(key) ?? { jump, code: 3 + targets.size }
    targets.set(key, target)
    jumps.set(jump, rope`{ ${how} = ${String(target.code)}; break ${label}; }`)
  }
  at.simple(rope`${how} = 0;`)
  at.cx = { ...outer, jumps, closing: undefined, ending: { label, how, value } }
  const { text, last } = at.nested(() => {
    if (handler === null) at.inner(block)
    else writeTry(at, { ...node, finalizer: null })
  })
  at.cx = outer
  const name = `${at.prefix}e`
  const caught = `catch (${name}) { ${frames}.ok = 0; ${how} = 1; ${value} = ${name}; }`
  at.compound(rope`${label}: { try { ${text} } ${caught} }`, last)
  const held = at.held
  at.statement(finalizer, [])
  at.release(held)
  at.simple(rope`if (${how} === 1) throw ${value};`)
  at.simple(rope`if (${how} === 2) ${returning(outer, rope`${value}`, at.prefix, 'return')}`)
  for (const { jump, code } of targets.values()) {
    at.simple(rope`if (${how} === ${String(code)}) { ${outer.jumps.get(jump) ?? at.verbatim(jump)}; }`)
  }
}
