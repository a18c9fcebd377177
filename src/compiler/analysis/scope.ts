/** Scopes, the names that they declare, and the references to each name. */
import type { Func } from './functions.ts'
import type { Node } from './syntax.ts'

export type BindingKind =
  | 'var'
  | 'let'
  | 'const'
  | 'function'
  | 'class'
  | 'parameter'
  | 'import'
  | 'catch'
  | 'self'
  | 'other'

interface Reference {
  node: Node
  func: Func
  /** True for the callee of a call: the value is used for nothing else. */
  callee: boolean
  write: boolean
}

export class Binding {
  readonly name: string
  kind: BindingKind
  readonly scope: Scope
  readonly declarations: Node[] = []
  readonly references: Reference[] = []
  /** The function that this name always means, if there is one. */
  target: Func | null = null
  /** The initializer of a `let`, `const` or `var`. */
  init: Node | null = null
  /** The specifier of the module that an import names. */
  from: string | null = null
  /** The iterable of the `for…of` that declares it. */
  iterates: Node | null = null
  /** It gets properties under computed names, so its twin is known only at run time. */
  decorated = false
  /** Code that the analysis cannot see may write it: `eval`, or a function in a sloppy block. */
  volatile = false

  constructor(name: string, kind: BindingKind, scope: Scope) {
    this.name = name
    this.kind = kind
    this.scope = scope
  }

  assigned = false
  /** True if another function than the declaring one uses it. */
  captured = false
  #starts: readonly number[] | null = null

  get written(): boolean {
    return this.volatile || this.declarations.length > 1 || this.assigned
  }

  refer(reference: Reference): void {
    this.references.push(reference)
    if (reference.write) this.assigned = true
    if (reference.func !== this.scope.func) this.captured = true
    this.#starts = null
  }

  /**
   * True if a reference starts in this range of the source. A binary search: it is called at every resume
   * point.
   */
  isUsedIn(from: number, to: number): boolean {
    this.#starts ??= this.references.map(({ node }) => node.start).sort((left, right) => left - right)
    const starts = this.#starts
    let low = 0
    let high = starts.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (starts[middle]! < from) low = middle + 1
      else high = middle
    }
    return low < starts.length && starts[low]! < to
  }
}

export class Scope {
  readonly parent: Scope | null
  readonly func: Func
  /** True if `var` declarations belong to this scope: a function body, a module, a static block. */
  readonly holdsVar: boolean
  readonly bindings: Map<string, Binding> = new Map()

  constructor(parent: Scope | null, func: Func, holdsVar: boolean) {
    this.parent = parent
    this.func = func
    this.holdsVar = holdsVar
  }

  declare(name: string, kind: BindingKind, declaration: Node): Binding {
    let binding = this.bindings.get(name)
    if (binding === undefined) {
      binding = new Binding(name, kind, this)
      this.bindings.set(name, binding)
    } else if (kind === 'function') binding.kind = 'function'
    binding.declarations.push(declaration)
    return binding
  }

  varScope(): Scope {
    return this.holdsVar ? this : this.parent!.varScope()
  }

  find(name: string): Binding | null {
    return this.bindings.get(name) ?? this.parent?.find(name) ?? null
  }
}
