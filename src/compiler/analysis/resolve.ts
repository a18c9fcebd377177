/**
 * After the walk, when all declarations are known: what each name means, and which function it stands for.
 */
import type { Analysis } from './analysis.ts'
import type { Func } from './functions.ts'
import type { Binding, Scope } from './scope.ts'
import type { Node } from './syntax.ts'

/** A name that was used, and where. */
export interface Use {
  node: Node
  scope: Scope
  func: Func
  /** The function position of a call. */
  callee: boolean
  write: boolean
}

interface Walked extends Pick<Analysis, 'bindingOf' | 'funcs' | 'scopeOf'> {
  uses: readonly Use[]
  /** Objects that get properties under names that the code computes. */
  decorated: ReadonlySet<Node>
  /** Where `eval` or `with` stands: it may write every variable that it sees. */
  evals: readonly Scope[]
}

export function resolve({ uses, decorated, evals, funcs, bindingOf, scopeOf }: Walked): void {
  for (const { node, scope, func, callee, write } of uses) {
    let binding = scope.find(node.name)
    // Every function but an arrow has `arguments` of its own, whatever is called so outside.
    if (node.name === 'arguments' && binding !== null && binding.scope.func.host !== func.host) binding = null
    bindingOf.set(node, binding)
    binding?.refer({ node, func, callee, write })
    if (binding !== null && node.name === 'arguments') {
      func.declaresArguments = true
      func.host.declaresArguments = true
    }
    if (binding !== null && decorated.has(node)) binding.decorated = true
  }
  for (const start of evals) {
    for (let scope: Scope | null = start; scope !== null; scope = scope.parent) {
      for (const binding of scope.bindings.values()) binding.volatile = true
    }
  }
  for (const func of funcs) aimNames(func, scopeOf)
}

/** Finds the names that can stand for this function and for no other. */
function aimNames(func: Func, scopeOf: Analysis['scopeOf']): void {
  const { node, binding, self } = func
  if (node.type === 'FunctionDeclaration' && node.id !== null) {
    const declared = scopeOf.get(node)!.parent!.bindings.get(node.id.name) ?? null
    func.binding = declared
    if (declared !== null && declared.kind === 'function' && !declared.written && !declared.decorated) {
      declared.target = func
    }
  } else if (binding !== null && !binding.written && isVariable(binding)) binding.target = func
  if (self === null) return
  if (self.written) {
    func.refuse('self-assigned', 'the function assigns to its own name, which means nothing', node)
  } else self.target = func
}

/**
 * A variable that is given its value where it is declared. A `var` may be called before that: then it is
 * undefined.
 */
function isVariable({ kind, decorated }: Binding): boolean {
  return kind === 'const' || kind === 'let' || (kind === 'var' && !decorated)
}
