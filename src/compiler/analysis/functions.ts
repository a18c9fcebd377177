/** A function as the compiler sees it: what it is, what it does, and which forms it gets. */
import type { LoweringName } from './directive.ts'
import type { Binding } from './scope.ts'
import type { Node } from './syntax.ts'

export type FuncKind =
  | 'module'
  | 'declaration'
  | 'expression'
  | 'arrow'
  | 'method'
  | 'constructor'
  | 'getter'
  | 'setter'
  | 'initializer'

/**
 * How a function became a task.
 *   function   its own directive
 *   module     the module's directive
 *   inherited  it is made inside one that is a task by its own directive
 */
type Mark = 'function' | 'module' | 'inherited'

export interface Call {
  node: Node
  func: Func
  /** The one function that this call can reach, where that is known. */
  target: Func | null
  /**
   * known    `target` is set
   * short    a built-in that runs no code of ours
   * light    a method whose name is a built-in's that runs briefly; tested at run time all the same
   * unknown  anything
   */
  reach: 'known' | 'short' | 'light' | 'unknown'
  /** Called as it is, though it is not known for sure: all that the file calls so is brief. See cost.ts. */
  plain: boolean
  /** What such a call, or one of a function that cannot run long, leads to: so many calls. See cost.ts. */
  cost: number
}

interface Refusal {
  code: string
  why: string
  place: { start: number; end: number }
}

export class Func {
  readonly node: Node
  readonly parent: Func | null
  readonly kind: FuncKind
  /** The property or method definition, or the class element, that this function is the value of. */
  holder: Node | null = null
  /** The class whose body this is an element of. */
  owner: Node | null = null
  name = ''
  binding: Binding | null = null
  /** For a named function expression, its own name inside itself. */
  self: Binding | null = null
  mark: Mark | null = null
  /** The lowering that its directive names, or that of what it stands in. */
  asked: LoweringName | null = null
  strict = false
  /** The derived class's constructor, or an arrow in it: `this` may not exist yet. */
  derived = false

  readonly loops: Node[] = []
  readonly calls: Call[] = []
  readonly inner: Func[] = []
  readonly refusals: Refusal[] = []
  /** Its uses of `new`. */
  readonly constructs: Node[] = []
  /** What the function, or an arrow inside it, takes from its caller. */
  usesThis = false
  usesArguments = false
  usesTarget = false
  usesSuper = false
  /** The same, by an arrow inside: an arrow's twin is no arrow, so its host lends these out by name. */
  capturesThis = false
  capturesArguments = false
  capturesTarget = false
  capturesSuper = false

  /** It uses a variable that the code calls `arguments`. */
  declaresArguments = false

  /** Node knows it by its text: it hands out what a CommonJS module exports. */
  exporting = false

  /** Its text is used by other code: it is left as it was written. */
  isText = false

  recursive = false
  long = false
  /** Gets a resumable form. */
  twin = false
  why = ''

  constructor(node: Node, parent: Func | null, kind: FuncKind) {
    this.node = node
    this.parent = parent
    this.kind = kind
    parent?.inner.push(this)
  }

  get isArrow(): boolean {
    return this.kind === 'arrow'
  }

  get isAsync(): boolean {
    return this.node.async === true
  }

  get isGenerator(): boolean {
    return this.node.generator === true
  }

  /** The function that gives an arrow its `this`. */
  get host(): Func {
    return this.isArrow && this.parent !== null ? this.parent.host : this
  }

  refuse(code: string, why: string, place: { start: number; end: number }): void {
    if (!this.refusals.some(other => other.code === code)) this.refusals.push({ code, why, place })
  }
}

/** What kind of function a property, or an element of a class, has for its value. */
export function kindOf({ type, kind, method, value }: Node): FuncKind {
  if (kind === 'constructor') return 'constructor'
  if (kind === 'get') return 'getter'
  if (kind === 'set') return 'setter'
  if (method === true || type === 'MethodDefinition') return 'method'
  return value.type === 'ArrowFunctionExpression' ? 'arrow' : 'expression'
}
