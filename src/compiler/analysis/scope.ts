/** Names: which scope declares them, who reads and who writes them. */
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

export interface Reference {
  node: Node
  func: Func
  /** The function position of a call: the value goes nowhere else. */
  callee: boolean
  write: boolean
}

export class Binding {
  readonly name: string
  kind: BindingKind
  readonly scope: Scope
  readonly declarations: Node[] = []
  readonly references: Reference[] = []
  /** The function that this name stands for, where it can stand for no other. */
  target: Func | null = null
  /** Where the initializer of a `let`, `const` or `var` is. */
  init: Node | null = null
  /** The module that an import comes from. */
  from: string | null = null
  /** What a `for (const … of …)` that declares it runs over. */
  iterates: Node | null = null
  /** Gets properties under computed names: what it is called through is only known at run time. */
  decorated = false
  /** May be written by something that this analysis cannot see: eval, or a sloppy block function. */
  volatile = false

  constructor(name: string, kind: BindingKind, scope: Scope) {
    this.name = name
    this.kind = kind
    this.scope = scope
  }

  /** True when something assigns to it. */
  assigned = false
  /** True when a function other than the declaring one sees it. */
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
   * True when a reference starts in this range of the source. Costs a search, not a walk: it is asked at
   * every place.
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
  /** `var` lands here: the body of a function, a module, a static block. */
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
