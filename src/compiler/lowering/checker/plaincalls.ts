/**
 * Calls and properties in the plain form of a function. Inside a thread only code that the checker does not
 * drive runs a plain form: `new`, a trap, a conversion, a callback of a built-in function. There the runtime
 * must learn what is called or read, as it does in a twin: it may be code that is not instrumented.
 */
import { type Analysis, globalName } from '../../analysis/analysis.ts'
import type { Func } from '../../analysis/functions.ts'
import { bare, isClass, isFunction, isWellKnownSymbol, type Node, walk } from '../../analysis/syntax.ts'
import { shortGlobals } from '../../analysis/builtins.ts'

/** What the runtime gets: the callee of a call, or the object of a method or property with its key. */
export interface Called {
  readonly part: Node
  readonly by: 'called' | 'calls' | 'uses'
  readonly key: string | null
}

/** The part of this node that the runtime gets; null if it calls and reads nothing unknown. */
export function calledIn(node: Node, func: Func, analysis: Analysis): Called | null {
  if (node.type === 'MemberExpression') return usedIn(node, analysis)
  const whole: Node | undefined =
    node.type === 'TaggedTemplateExpression'
      ? node.tag
      : node.type === 'CallExpression' || node.type === 'NewExpression'
        ? node.callee
        : undefined
  if (whole === undefined) return null
  const callee = bare(whole)
  if (callee.type === 'Super' || callee.type === 'ImportExpression' || isFunction(callee) || isClass(callee))
    return null
  if (callee.type === 'Identifier') {
    const isKnown = callee.name === 'eval' || (analysis.bindingOf.get(callee)?.target ?? null) !== null
    // In `with`, the name may be a method, which gets its object.
    return isKnown || isInWith(func) ? null : { part: whole, by: 'called', key: null }
  }
  if (callee.type !== 'MemberExpression' || node.type === 'NewExpression')
    return { part: whole, by: 'called', key: null }
  const { object, property, computed } = callee
  if (object.type === 'Super' || property.type === 'PrivateIdentifier') return null
  const name = globalName(bare(object), analysis.bindingOf)
  if (name !== null && shortGlobals.has(name)) return null
  const key = keyText(property, computed)
  return key === null || isInChain(object) ? null : { part: object, by: 'calls', key }
}

function isInWith(func: Func): boolean {
  for (let at: Func | null = func; at !== null; at = at.parent)
    if (at.refusals.some(({ code }) => code === 'with')) return true
  return false
}

/** The object whose property is read or written. An instance of the check is known when it is made. */
function usedIn({ object, property, computed }: Node, analysis: Analysis): Called | null {
  const of = bare(object)
  if (property.type === 'PrivateIdentifier') return null
  if (of.type === 'Super' || of.type === 'ThisExpression' || of.type === 'MetaProperty') return null
  const name = globalName(of, analysis.bindingOf)
  const key = keyText(property, computed)
  if (key === null || (name !== null && shortGlobals.has(name)) || isInChain(object)) return null
  return { part: object, by: 'uses', key }
}

/** The key of a member as an expression; null if it must not be evaluated twice. */
function keyText(property: Node, computed: boolean): string | null {
  if (!computed) return JSON.stringify(property.name)
  if (property.type === 'Literal') return property.raw
  return isWellKnownSymbol(property) ? `Symbol.${property.property.name}` : null
}

/** True for a part of a chain with `?.`: it cannot be written as an argument. */
function isInChain(object: Node): boolean {
  let at = object
  for (;;) {
    if (at.type === 'MemberExpression' || at.type === 'CallExpression') {
      if (at.optional === true) return true
      at = at.type === 'MemberExpression' ? at.object : at.callee
    } else if (at.type === 'TSNonNullExpression') at = at.expression
    else return false
  }
}

/** True for an async function that waits, or that does so when it is iterated. */
export function waits(func: Func): boolean {
  if (!func.isAsync) return false
  if (func.isGenerator) return true
  let found = false
  walk(func.node.body, node => {
    if (node !== func.node.body && isFunction(node)) return false
    found ||= node.type === 'AwaitExpression' || (node.type === 'ForOfStatement' && node.await === true)
    return !found
  })
  return found
}
