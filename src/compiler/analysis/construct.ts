/** `new`: which constructor it runs, as far as the text tells. */
import type { Analysis } from './analysis.ts'
import type { Call, Func } from './functions.ts'
import { bare, isClass, isFunction, type Node } from './syntax.ts'

/**
 * What `new` runs: a constructor of this file; `'short'`, nothing that can be resumed; or null, which is
 * anything. Names that no scope declares are the language's own.
 */
export function constructedBy(node: Node, { bindingOf }: Analysis): Func | Node | 'short' | null {
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

/** The function that `new` runs, where it is one of this file; the rest as above. */
export function constructorOf(node: Node, analysis: Analysis): Func | 'short' | null {
  const made = constructedBy(node, analysis)
  if (made === null || made === 'short' || !('type' in made)) return made as Func | 'short' | null
  const own = constructorIn(made)
  // A class without a constructor of its own has nothing that could be entered again.
  return own === null ? 'short' : (analysis.funcOf.get(own) ?? 'short')
}

/** The function of a class that is its constructor. */
export function constructorIn(node: Node): Node | null {
  for (const element of node.body.body as Node[]) {
    if (element.type === 'MethodDefinition' && element.kind === 'constructor' && isFunction(element.value)) {
      return element.value
    }
  }
  return null
}

/** True for `new` of something that may unwind. */
export function constructStops(node: Node, analysis: Analysis): boolean {
  const target = constructorOf(node, analysis)
  if (target === 'short') return false
  return target === null || (target.twin && target.long)
}

/**
 * The constructor that `super(…)` runs in this one: of this file, nothing that can be resumed, or anything.
 */
export function superConstructorOf({ owner }: Func, analysis: Analysis): Func | 'short' | null {
  const parent = owner?.superClass ?? null
  return parent === null ? 'short' : constructorOf({ ...parent, callee: parent }, analysis)
}

/**
 * True for `super(…)` of something that may unwind, in the constructor of a class that has a name to be known
 * by.
 */
export function superStops({ node, func }: Call, analysis: Analysis): boolean {
  if (node.callee?.type !== 'Super' || func.kind !== 'constructor') return false
  const name: string | undefined = func.owner?.id?.name
  if (name === undefined) return false
  for (const [, { bindings }] of analysis.scopesIn.get(func) ?? []) if (bindings.has(name)) return false
  const target = superConstructorOf(func, analysis)
  return target === null || (target !== 'short' && target.twin && target.long)
}

/** A constructor, or an accessor, of this file that a function runs, and where. */
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
