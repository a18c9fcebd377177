/**
 * The order of operands. A call that may suspend is a statement of its own, and so is an argument that is
 * held: what stands before it in the source is then read after it, unless it is held too. An operand may be
 * read later where it stands when nothing in between can change its value, and when the read itself can
 * neither throw nor run code.
 *
 *   the operand                                   | read later where it stands
 *   ----------------------------------------------+------------------------------------------------------------
 *   a literal, `this`, `undefined`                | always, but for `this` before `super()`
 *   a variable of this function that no closure   | unless an operand in between assigns it: `f(i, i += 2)`
 *   assigns                                       |
 *   any other variable that is assigned           | only if what stands in between is such an operand, too
 *   a variable that may not have been declared    | never: the read may throw
 *   yet, a global, an import                      |
 *   anything else                                 | never
 */
import type { Analysis } from '../../../analysis/analysis.ts'
import type { Func } from '../../../analysis/functions.ts'
import type { Binding } from '../../../analysis/scope.ts'
import { bare, contains, type Node } from '../../../analysis/syntax.ts'

export class Order {
  readonly #bindingOf: Analysis['bindingOf']
  readonly #func: Func
  /** From where on `this` can be read and never fails. */
  readonly #from: number

  constructor(bindingOf: Analysis['bindingOf'], func: Func) {
    this.#bindingOf = bindingOf
    this.#func = func
    this.#from = thisFrom(func)
  }

  /** True for an operand of which nothing runs, and nothing fails, when it is read. */
  isRead(node: Node): boolean {
    const inner = bare(node)
    switch (inner.type) {
      case 'ThisExpression':
        return inner.start >= this.#from
      case 'Literal':
        return typeof inner.value !== 'object' || inner.value === null
      case 'Identifier': {
        const binding = this.#bindingOf.get(inner) ?? null
        return binding === null ? isStandard(inner.name) : this.#isDeclared(binding)
      }
      default:
        return false
    }
  }

  /** True when a variable that has been read once gives the same whenever it is read again. */
  isFixed(node: Node): boolean {
    const inner = bare(node)
    if (inner.type !== 'Identifier') return this.isRead(inner)
    const binding = this.#bindingOf.get(inner) ?? null
    return binding === null ? isStandard(inner.name) : isConstant(binding)
  }

  /** True when the operand, read after these others, may not give what it gives before them. */
  mayChange(node: Node, others: readonly (Node | null)[]): boolean {
    const inner = bare(node)
    if (!this.isRead(inner)) return true
    if (inner.type !== 'Identifier') return false
    const binding = this.#bindingOf.get(inner) ?? null
    if (binding === null) return false
    const isSet = this.#isBehind(binding)
    if (isSet && isConstant(binding)) return false
    if (binding.volatile) return true
    const isOwn = binding.scope.func === this.#func
    const isShared =
      !isSet || binding.references.some(({ write, func }) => write && !(isOwn && func === this.#func))
    return others.some(other => {
      if (other === null || this.isRead(other)) return false
      return isShared || binding.references.some(({ write, node: at }) => write && contains(other, at))
    })
  }

  /** True when this function never reads the variable too early. */
  #isDeclared(binding: Binding): boolean {
    return binding.kind === 'var' || this.#isBehind(binding)
  }

  /** True when the variable's declaration has run whenever this function reads it. */
  #isBehind({ kind, scope, declarations }: Binding): boolean {
    switch (kind) {
      case 'parameter':
      case 'function':
      case 'self':
      case 'catch':
        return true
      case 'import':
      case 'other':
        return false
      default:
    }
    // Of its own variables a function that unwinds reads none before its declaration. See refusals.ts.
    if (scope.func === this.#func) return true
    let outermost = this.#func
    while (outermost.parent !== null && outermost.parent !== scope.func) outermost = outermost.parent
    // What is made behind a declaration runs behind it, but for functions that are declared: they are made
    // first.
    return outermost.kind !== 'declaration' && outermost.node.start >= declarations[0]!.end
  }
}

/**
 * Where `this` has been set for certain: in a derived constructor behind the statement that calls `super`.
 */
function thisFrom({ kind, owner, node }: Func): number {
  if (kind !== 'constructor' || owner!.superClass === null) return 0
  for (const { type, expression, end } of node.body.body as Node[]) {
    if (type !== 'ExpressionStatement') continue
    const call = bare(expression)
    if (call.type === 'CallExpression' && call.callee.type === 'Super') return end
  }
  return Number.POSITIVE_INFINITY
}

/** True when nothing assigns the variable but its declaration. */
function isConstant(binding: Binding): boolean {
  return binding.kind !== 'import' && !binding.written
}

/** The global names whose value a program has no business to change. */
const standard: ReadonlySet<string> = new Set(
  `undefined NaN Infinity arguments globalThis Math JSON Reflect Atomics Object Function Array String Number Boolean
  Symbol BigInt RegExp Date Promise Proxy Map Set WeakMap WeakSet Error TypeError RangeError ArrayBuffer
  SharedArrayBuffer DataView Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array
  Float32Array Float64Array BigInt64Array BigUint64Array parseInt parseFloat isNaN isFinite`.split(/\s+/),
)

function isStandard(name: string): boolean {
  return standard.has(name)
}
