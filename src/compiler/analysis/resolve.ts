/**
 * After the walk, when all declarations are known: resolves each name, and the function that it always means.
 */
import type { Analysis } from './analysis.ts'
import type { Func } from './functions.ts'
import type { Binding, Scope } from './scope.ts'
import type { Node } from './syntax.ts'

export interface Use {
  node: Node
  scope: Scope
  func: Func
  /** True for the callee of a call. */
  callee: boolean
  write: boolean
}

interface Walked extends Pick<Analysis, 'bindingOf' | 'funcs' | 'scopeOf'> {
  uses: readonly Use[]
  /** Objects that get properties under computed names. */
  decorated: ReadonlySet<Node>
  /** Scopes with `eval` or `with`, which may write every variable in scope. */
  evals: readonly Scope[]
}

export function resolve({ uses, decorated, evals, funcs, bindingOf, scopeOf }: Walked): void {
  for (const { node, scope, func, callee, write } of uses) {
    let binding = scope.find(node.name)
    // Every function except an arrow has its own `arguments`, which hides outer variables of that name.
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

/** Finds the names that always mean this function. */
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
    func.refuse('self-assigned', 'the function assigns to its own name, which has no effect', node)
  } else self.target = func
}

/** A variable that its declaration sets. A `var` may be called earlier; then it is undefined. */
function isVariable({ kind, decorated }: Binding): boolean {
  return kind === 'const' || kind === 'let' || (kind === 'var' && !decorated)
}
