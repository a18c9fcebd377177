/** `new`: the constructor that it runs, if the source shows it. */
import type { Analysis } from './analysis.ts'
import type { Call, Func } from './functions.ts'
import { bare, isClass, isFunction, type Node } from './syntax.ts'

/**
 * The constructor or class of this file that `new` runs; `'short'` if it cannot be resumed, null if unknown.
 * Names that no scope declares are built-ins.
 */
function constructedBy(node: Node, { bindingOf }: Analysis): Func | Node | 'short' | null {
  const callee = bare(node.callee)
  if (callee.type !== 'Identifier') return null
  const binding = bindingOf.get(callee) ?? null
  if (binding === null) return 'short'
  if (binding.target !== null) return binding.target
  if (binding.written) return null
  if (binding.kind === 'class') return binding.declarations[0]!
  const init = binding.init === null ? null : bare(binding.init)
  return init !== null && isClass(init) && (binding.kind === 'const' || binding.kind === 'let') ? init : null
}

/** The function that `new` runs; `'short'` and null as above. */
export function constructorOf(node: Node, analysis: Analysis): Func | 'short' | null {
  const made = constructedBy(node, analysis)
  if (made === null || made === 'short' || !('type' in made)) return made as Func | 'short' | null
  const own = constructorIn(made)
  // A class without its own constructor has no code to enter again.
  return own === null ? 'short' : (analysis.funcOf.get(own) ?? 'short')
}

/** The constructor function of a class. */
export function constructorIn(node: Node): Node | null {
  for (const element of node.body.body as Node[]) {
    if (element.type === 'MethodDefinition' && element.kind === 'constructor' && isFunction(element.value)) {
      return element.value
    }
  }
  return null
}

/** True if `new` may run a constructor that unwinds. */
export function constructStops(node: Node, analysis: Analysis): boolean {
  const target = constructorOf(node, analysis)
  if (target === 'short') return false
  return target === null || (target.twin && target.long)
}

/** The constructor that `super(…)` runs in this one; `'short'` and null as above. */
function superConstructorOf({ owner }: Func, analysis: Analysis): Func | 'short' | null {
  const parent = owner?.superClass ?? null
  return parent === null ? 'short' : constructorOf({ ...parent, callee: parent }, analysis)
}

/** True if `super(…)` may unwind. The class needs a name, by which the constructor finds it. */
export function superStops({ node, func }: Call, analysis: Analysis): boolean {
  if (node.callee?.type !== 'Super' || func.kind !== 'constructor') return false
  const name: string | undefined = func.owner?.id?.name
  if (name === undefined) return false
  for (const [, { bindings }] of analysis.scopesIn.get(func) ?? []) if (bindings.has(name)) return false
  const target = superConstructorOf(func, analysis)
  return target === null || (target !== 'short' && target.twin && target.long)
}

/** A constructor or an accessor of this file that a function runs without a call expression. */
export interface ImplicitCall {
  readonly node: Node
  readonly target: Func
}

/** The constructors of this file that each function runs by `new` or `super`. */
export function constructorsIn(analysis: Analysis): Map<Func, ImplicitCall[]> {
  const all = new Map<Func, ImplicitCall[]>()
  for (const func of analysis.funcs) {
    const found: ImplicitCall[] = []
    for (const node of func.constructs) {
      const target = constructorOf(node, analysis)
      if (target !== null && target !== 'short') found.push({ node, target })
    }
    const parent = func.kind === 'constructor' ? superConstructorOf(func, analysis) : null
    if (parent !== null && parent !== 'short') found.push({ node: func.node.body, target: parent })
    if (found.length > 0) all.set(func, found)
  }
  return all
}
