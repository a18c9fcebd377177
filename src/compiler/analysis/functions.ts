/** A function of the source, and the facts that the analysis finds about it. */
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
 *   inherited  it is made inside a function with its own directive
 */
type Mark = 'function' | 'module' | 'inherited'

export interface Call {
  node: Node
  func: Func
  /** The only function that this call can reach, if it is known. */
  target: Func | null
  /**
   * known    `target` is set
   * short    a built-in that runs none of the program's code
   * light    a method that has the name of a brief built-in; the call still checks the callee at run time
   * unknown  any other
   */
  reach: 'known' | 'short' | 'light' | 'unknown'
  /**
   * True if the call stays plain although its target is not certain: all methods of that name are brief. See
   * cost.ts.
   */
  plain: boolean
  /** The estimated number of calls that this call leads to. See cost.ts. */
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
  /** The property, method definition or class element whose value is this function. */
  holder: Node | null = null
  /** The class that contains this element. */
  owner: Node | null = null
  name = ''
  binding: Binding | null = null
  /** The binding of a named function expression inside itself. */
  self: Binding | null = null
  mark: Mark | null = null
  /** The lowering that its directive, or that of the code around it, names. */
  asked: LoweringName | null = null
  /** Whether its directive, or that of the code around it, asks for a function that can move. */
  movable = false
  strict = false
  /** In the constructor of a derived class, or in an arrow inside it, `this` may not exist yet. */
  derived = false

  readonly loops: Node[] = []
  readonly calls: Call[] = []
  readonly inner: Func[] = []
  readonly refusals: Refusal[] = []
  /** Its `new` expressions. */
  readonly constructs: Node[] = []
  /** Set if the function, or an arrow inside it, uses these. */
  usesThis = false
  usesArguments = false
  usesTarget = false
  usesSuper = false
  /**
   * Set if an arrow inside uses these. The twin of an arrow is no arrow, so the function around it passes
   * them by name.
   */
  capturesThis = false
  capturesArguments = false
  capturesTarget = false
  capturesSuper = false

  /** It uses a variable named `arguments`. */
  declaresArguments = false

  /** Node recognizes the function by its text: it returns or copies the exports of a CommonJS module. */
  exporting = false

  /** Other code uses the text of the function, so it stays as written. */
  isText = false

  recursive = false
  long = false
  /** True if it gets a resumable form. */
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

  /** The function whose `this` an arrow uses; of any other function, itself. */
  get host(): Func {
    return this.isArrow && this.parent !== null ? this.parent.host : this
  }

  refuse(code: string, why: string, place: { start: number; end: number }): void {
    if (!this.refusals.some(other => other.code === code)) this.refusals.push({ code, why, place })
  }
}

/** The kind of function that is the value of a property or a class element. */
export function kindOf({ type, kind, method, value }: Node): FuncKind {
  if (kind === 'constructor') return 'constructor'
  if (kind === 'get') return 'getter'
  if (kind === 'set') return 'setter'
  if (method === true || type === 'MethodDefinition') return 'method'
  return value.type === 'ArrowFunctionExpression' ? 'arrow' : 'expression'
}
