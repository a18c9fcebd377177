/** The result of one walk over a file: scopes, references, functions, loops and calls. */
import type { Func } from './functions.ts'
import type { Binding, Scope } from './scope.ts'
import type { Node } from './syntax.ts'

export interface Analysis {
  program: Node
  isModule: boolean
  /** Its functions can move, so what its variables hold has names. */
  isMovable: boolean
  root: Func
  funcs: Func[]
  funcOf: Map<Node, Func>
  /** The binding of every identifier that refers to one; null for a global. */
  bindingOf: Map<Node, Binding | null>
  scopeOf: Map<Node, Scope>
  /** The scopes of each function with their nodes, in source order. */
  scopesIn: Map<Func, [owner: Node, scope: Scope][]>
  /** Property names under which this file stores its own functions. */
  ownMethods: Set<string>
  /** Identifiers that `+=` writes. */
  appends: Set<Node>
  /** `'use task'` strings that are not directives. */
  misplaced: Node[]
  /** Names and functions that are converted to text. */
  texts: Node[]
}

/** The name of a global, or null if a scope of the file declares the name. */
export function globalName(node: Node, bindingOf: Analysis['bindingOf']): string | null {
  return node.type === 'Identifier' && (bindingOf.get(node) ?? null) === null ? node.name : null
}
