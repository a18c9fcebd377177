/**
 * The order of operands. A call that may suspend is a separate statement, and so is an argument that is held.
 * An operand before it in the source is then read after it, unless it is held too. An operand may be read
 * later if nothing in between can change its value, and if the read itself can neither throw nor run code.
 *
 *   the operand                                   | may be read later
 *   ----------------------------------------------+------------------------------------------------------------
 *   a literal, `this`, `undefined`                | always, except `this` before `super()`
 *   a variable of this function that no closure   | unless an operand in between assigns it: `f(i, i += 2)`
 *   assigns                                       |
 *   any other variable that is assigned           | only if all operands in between are in this table, too
 *   a variable that may not be declared yet,      | never: the read may throw
 *   a global, an import                           |
 *   anything else                                 | never
 */
import type { Analysis } from '../../../analysis/analysis.ts'
import type { Func } from '../../../analysis/functions.ts'
import type { Binding } from '../../../analysis/scope.ts'
import { bare, contains, type Node } from '../../../analysis/syntax.ts'

export class Order {
  readonly #bindingOf: Analysis['bindingOf']
  readonly #func: Func
  /** The offset from which `this` is certainly set. */
  readonly #from: number

  constructor(bindingOf: Analysis['bindingOf'], func: Func) {
    this.#bindingOf = bindingOf
    this.#func = func
    this.#from = thisFrom(func)
  }

  /** True for an operand whose read runs no code and cannot throw. */
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

  /** True if a variable always has the value of its first read. */
  isFixed(node: Node): boolean {
    const inner = bare(node)
    if (inner.type !== 'Identifier') return this.isRead(inner)
    const binding = this.#bindingOf.get(inner) ?? null
    return binding === null ? isStandard(inner.name) : isConstant(binding)
  }

  /** True if the operand may have another value after these others. */
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

  /** True if this function never reads the variable before its declaration. */
  #isDeclared(binding: Binding): boolean {
    return binding.kind === 'var' || this.#isBehind(binding)
  }

  /** True if the variable's declaration has run whenever this function reads it. */
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
    // A function that unwinds reads none of its own variables before their declaration. See refusals.ts.
    if (scope.func === this.#func) return true
    let outermost = this.#func
    while (outermost.parent !== null && outermost.parent !== scope.func) outermost = outermost.parent
    // A function that is made after a declaration runs after it, except a declared function, which is made
    // first.
    return outermost.kind !== 'declaration' && outermost.node.start >= declarations[0]!.end
  }
}

/**
 * The offset from which `this` is certainly set: in a derived constructor, after the statement that calls
 * `super`.
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

/** True if only the declaration assigns the variable. */
function isConstant(binding: Binding): boolean {
  return binding.kind !== 'import' && !binding.written
}

/** Global names that programs do not reassign. */
const standard: ReadonlySet<string> = new Set(
  `undefined NaN Infinity arguments globalThis Math JSON Reflect Atomics Object Function Array String Number Boolean
  Symbol BigInt RegExp Date Promise Proxy Map Set WeakMap WeakSet Error TypeError RangeError ArrayBuffer
  SharedArrayBuffer DataView Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array
  Float32Array Float64Array BigInt64Array BigUint64Array parseInt parseFloat isNaN isFinite`.split(/\s+/),
)

function isStandard(name: string): boolean {
  return standard.has(name)
}
