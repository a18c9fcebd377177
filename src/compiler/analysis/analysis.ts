/** What one walk over a file finds: scopes, references, functions, loops and calls. */
import type { Func } from './functions.ts'
import type { Binding, Scope } from './scope.ts'
import type { Node } from './syntax.ts'

export interface Analysis {
  program: Node
  isModule: boolean
  root: Func
  funcs: Func[]
  funcOf: Map<Node, Func>
  /** The binding of every identifier that refers to one; null for a global. */
  bindingOf: Map<Node, Binding | null>
  scopeOf: Map<Node, Scope>
  /** The scopes of each function, with the nodes that they belong to, in the order of the text. */
  scopesIn: Map<Func, [owner: Node, scope: Scope][]>
  /** Property names that this file gives functions of its own. */
  ownMethods: Set<string>
  /** Identifiers that `+=` writes. */
  appends: Set<Node>
  /** `'use task'` where it is no directive. */
  misplaced: Node[]
  /** Names and functions that are made into text, where they stand. */
  texts: Node[]
}

/** The name, where the node is one that no scope of the file declares. */
export function globalName(node: Node, bindingOf: Analysis['bindingOf']): string | null {
  return node.type === 'Identifier' && (bindingOf.get(node) ?? null) === null ? node.name : null
}
