/**
 * The plan for a function that unwinds: where it can suspend, in how many forms it is written, and where its
 * variables live. If the function should be a generator instead, the plan is the reason.
 */
import type { Analysis } from '../../analysis/analysis.ts'
import type { Func } from '../../analysis/functions.ts'
import type { Binding } from '../../analysis/scope.ts'
import {
  boundNames,
  children,
  contains,
  isClass,
  isFunction,
  isLoop,
  type Node,
  walk,
} from '../../analysis/syntax.ts'
import { reasonAgainst } from './refusals.ts'

/**
 * Where a variable lives.
 *   slot   in the running form; saved on unwinding, and restored in the second form
 *   entry  outside the running form, where closures share it
 *   block  in its block of the running form, new in each turn, where closures share it; saved as it is
 */
export interface Variable {
  readonly binding: Binding
  readonly storage: 'slot' | 'entry' | 'block'
  readonly name: string
  /**
   * If closures share a variable that changes, it holds a box. A closure may read an early one before its
   * declaration.
   */
  readonly box: 'box' | 'early' | null
  /** The node whose scope declares it. */
  readonly owner: Node
}

export interface Plan {
  readonly func: Func
  /** Nodes that can suspend, and all nodes that contain one. */
  readonly stopping: ReadonlySet<Node>
  /** The approximate number of resume points. */
  readonly resumePoints: number
  /**
   * True for one form that can start at any resume point; false for two, of which the first starts at the
   * beginning.
   */
  readonly single: boolean
  /** True if the form, or both, are inside the variables that closures share: the storage `entry`. */
  readonly shared: boolean
  /**
   * True if its frames can move: its second form stands outside of it, and variables that closures share are
   * boxes.
   */
  readonly movable: boolean
  readonly variables: ReadonlyMap<Binding, Variable>
  /** By the node whose scope declares them. */
  readonly declared: ReadonlyMap<Node, readonly Variable[]>
}

interface Questions {
  readonly analysis: Analysis
  readonly prefix: string
  readonly movable: boolean
  /** True for a call, a tagged template or a spread that may suspend. */
  canStop(node: Node): boolean
}

/**
 * True if the second form is an arrow inside the first, which shares `this`, `super` and the rest. A derived
 * constructor begins without `this`, and only an arrow can call `super` for it.
 */
export function isLexical(func: Func): boolean {
  return func.isArrow || (func.kind === 'constructor' && (func.usesSuper || isDerived(func)))
}

/** True for the constructor of a derived class. */
export function isDerived({ kind, owner }: Func): boolean {
  return kind === 'constructor' && owner!.superClass !== null
}

/** A plan, or the reason why the function should be a generator. */
export function planOf(func: Func, questions: Questions): Plan | string {
  if (func.isAsync || func.isGenerator) return 'it is a generator or async itself'
  const planner = new Planner(func, questions)
  return planner.plan()
}

/** Functions inside that have more text than this are not written twice. */
const innerSizeMost = 300

/** A body with more text than this, without the functions that it declares, is not written twice. */
const sharedSizeMost = 8000

class Planner {
  readonly #func: Func
  readonly #questions: Questions
  readonly #stopping = new Set<Node>()
  readonly #loops: Node[] = []
  #reason: string | null = null
  #makes = false
  #places = 0

  constructor(func: Func, questions: Questions) {
    this.#func = func
    this.#questions = questions
  }

  plan(): Plan | string {
    const func = this.#func
    this.#mark(func.node.body)
    this.#reason ??= reasonAgainst(func, this.#stopping, this.#questions.analysis)
    if (this.#reason !== null) return this.#reason
    const { movable } = this.#questions
    const shared =
      !movable &&
      (this.#makes || (func.usesSuper && !isLexical(func)) || (func.inner.length > 0 && !this.#canBeTwo()))
    const single = shared && !this.#onlyDeclares()
    const declared = new Map<Node, Variable[]>()
    const variables = new Map<Binding, Variable>()
    const taken = this.#outerNames()
    const scopes = [...(this.#questions.analysis.scopesIn.get(func) ?? [])]
    // The function's own scope comes first, so that its names stay.
    scopes.sort(([left], [right]) => (left === func.node ? -1 : right === func.node ? 1 : 0))
    for (const [owner, scope] of scopes) {
      if (!this.#isWritten(owner)) continue
      for (const binding of scope.bindings.values()) {
        const variable = this.#variable(binding, owner, shared, taken)
        if (variable === null) continue
        variables.set(binding, variable)
        const list = declared.get(owner)
        if (list === undefined) declared.set(owner, [variable])
        else list.push(variable)
      }
    }
    if (this.#reason !== null) return this.#reason
    return {
      func,
      stopping: this.#stopping,
      resumePoints: this.#places,
      single,
      shared,
      movable,
      variables,
      declared,
    }
  }

  /**
   * True if the functions inside are small and share no variable that changes: then they can be written
   * twice.
   */
  #canBeTwo(): boolean {
    const func = this.#func
    if (func.usesArguments || func.usesTarget) return false
    let size = 0
    for (const { kind, node } of func.inner) {
      if (kind !== 'arrow' && kind !== 'expression') return false
      size += node.end - node.start
    }
    if (size > innerSizeMost) return false
    for (const [owner, scope] of this.#questions.analysis.scopesIn.get(func) ?? []) {
      if (!this.#isWritten(owner)) continue
      for (const { kind, references, declarations } of scope.bindings.values()) {
        const inside = references.filter(reference => reference.func !== func)
        if (inside.length === 0 || kind === 'self') continue
        const changes = references.some(({ write }) => write) || declarations.length > 1
        const early = inside.some(({ node }) => kind !== 'parameter' && node.start < declarations[0]!.end)
        if (changes || early || isLoop(owner)) return false
      }
    }
    return true
  }

  /**
   * True if a function with loops makes no closures but the functions that its body declares, which are
   * written once for both forms. Then its first form is no closure: an engine may drop the machine code of
   * closures when none of them is left.
   */
  #onlyDeclares(): boolean {
    const func = this.#func
    const { body } = func.node
    if (this.#makes || func.usesSuper || func.usesArguments || func.usesTarget) return false
    if (func.kind === 'constructor') return false
    if (this.#loops.length === 0 || body.type !== 'BlockStatement') return false
    let size = body.end - body.start
    for (const { node } of func.inner) {
      if (node.type !== 'FunctionDeclaration' || !body.body.includes(node)) return false
      size -= node.end - node.start
    }
    return size <= sharedSizeMost
  }

  /** Records the nodes that can suspend; true if this node can. */
  #mark(node: Node): boolean {
    if (isFunction(node)) return false
    let stops = this.#questions.canStop(node)
    if (stops || isLoop(node)) this.#places++
    // A function in the argument list may be called in a loop that replaces the call.
    if (stops && node.type === 'CallExpression' && node.arguments.some(isFunction)) this.#places++
    if (isLoop(node)) {
      this.#loops.push(node)
      stops = true
    }
    if (node.type === 'TaggedTemplateExpression') this.#makes = true
    if (isClass(node)) {
      this.#makes = true
      for (const part of classCode(node)) {
        if (this.#mark(part)) this.#reason ??= 'a class is defined by calls that can suspend'
      }
      return false
    }
    for (const child of children(node)) if (this.#mark(child)) stops = true
    if (this.#questions.movable && this.#sharesVariables(node)) stops = true
    if (stops) this.#stopping.add(node)
    return stops
  }

  /** True if closures share variables of this block that change, or read them early: they must be boxes. */
  #sharesVariables(node: Node): boolean {
    const scope = this.#questions.analysis.scopeOf.get(node)
    if (scope === undefined || scope.func !== this.#func) return false
    for (const binding of scope.bindings.values()) {
      if (binding.captured && (needsBox(binding) || isReadEarly(binding))) return true
    }
    return false
  }

  /** True if the declarations of this node's scope are rewritten, not copied. */
  #isWritten(owner: Node): boolean {
    const { node } = this.#func
    if (owner === node) return true
    if (isClass(owner) || isFunction(owner)) return false
    if (owner.type === 'CatchClause') return this.#stopping.has(owner.body)
    return this.#stopping.has(owner)
  }

  /** The outer names that the function uses. */
  #outerNames(): Set<string> {
    const { bindingOf, scopesIn } = this.#questions.analysis
    const func = this.#func
    const taken = new Set<string>()
    // Only the variables of blocks move, and may then conflict with other names.
    const moves = (scopesIn.get(func) ?? []).some(
      ([owner, { bindings }]) => owner !== func.node && bindings.size > 0 && this.#isWritten(owner),
    )
    if (!moves) return taken
    walk(func.node, node => {
      if (node.type !== 'Identifier' && node.type !== 'JSXIdentifier') return
      const binding = bindingOf.get(node)
      if (binding === undefined) return
      // The name of a function expression is declared in the function, and is still no variable of it.
      if (binding === null || binding.kind === 'self' || !isWithin(binding.scope.func, func))
        taken.add(node.name)
    })
    return taken
  }

  #variable(binding: Binding, owner: Node, shared: boolean, taken: Set<string>): Variable | null {
    const func = this.#func
    const { kind } = binding
    if (kind === 'self' || kind === 'import' || binding.name === 'this') return null
    const top = owner === func.node
    const { captured } = binding
    const written = binding.assigned || binding.declarations.length > 1
    const inLoop = !top && this.#loops.some(loop => contains(loop, owner))
    if (kind === 'const' && binding.assigned) this.#reason ??= 'a constant is assigned'
    if (kind === 'function' && !top && written) this.#reason ??= 'a function in a block is assigned'
    const early = this.#isEarly(binding, owner, captured)
    let storage: Variable['storage'] = 'slot'
    if (shared && top && (kind === 'parameter' || kind === 'function')) storage = 'entry'
    else if (captured && inLoop) storage = 'block'
    else if (captured && shared) storage = 'entry'
    const { movable } = this.#questions
    const changes = movable ? captured && needsBox(binding) : storage === 'block' && written
    let { name } = binding
    // The parameter, or the function itself, keeps the name.
    if (movable && changes && (kind === 'parameter' || kind === 'function')) {
      name = `${name}${this.#questions.prefix}b`
    }
    if (!top) {
      let count = 0
      while (taken.has(name)) name = `${binding.name}${this.#questions.prefix}${count++}`
    }
    taken.add(name)
    return { binding, storage, name, box: early ? 'early' : changes ? 'box' : null, owner }
  }

  /** True if a closure may read the variable before its declaration has run. */
  #isEarly(binding: Binding, owner: Node, captured: boolean): boolean {
    const { kind, references, declarations } = binding
    if (kind !== 'let' && kind !== 'const' && kind !== 'class') return false
    const func = this.#func
    const [declaration] = declarations
    if (isLoop(owner)) {
      const head = owner.type === 'ForStatement' ? declaration! : owner.right
      const before = references.some(
        ({ node }) => contains(head, node) && (head === owner.right || isBeforeBinding(node, head)),
      )
      if (before) this.#reason ??= `\`${references[0]!.node.name}\` may be used before its declaration`
      return false
    }
    const from = declaration!.start
    const branch = owner.type === 'SwitchStatement' ? caseOf(owner, declaration!) : null
    for (const { node, func: by } of references) {
      // A jump to another case passes over the declaration.
      const isElsewhere = branch !== null && caseOf(owner, node) !== branch
      const before =
        node.start < from ||
        (kind !== 'class' && contains(declaration!, node) && isBeforeBinding(node, declaration!))
      if (isElsewhere || (by === func && before)) {
        this.#reason ??= `\`${node.name}\` may be used before its declaration`
      }
    }
    return captured && isReadEarly(binding)
  }
}

/**
 * In a movable function: true if a captured variable must be a box. Others are copied into the closure when
 * it is made.
 */
export function needsBox(binding: Binding): boolean {
  const { kind } = binding
  if (kind === 'self' || kind === 'import') return false
  if (binding.written || kind === 'var') return true
  return kind === 'function' && !isOnlySelfCaptured(binding)
}

/** True for a declared function that no function but itself uses: it knows itself by its own name. */
export function isOnlySelfCaptured(binding: Binding): boolean {
  const { kind, target, references, scope, written } = binding
  if (kind !== 'function' || target === null || written) return false
  return references.every(({ func }) => func === scope.func || isWithin(func, target))
}

/** True if a closure that uses the variable, by default any, may be made before its declaration has run. */
export function isReadEarly(binding: Binding, closure: Func | null = null): boolean {
  const { name, kind, references, declarations, scope } = binding
  const isParameter = kind === 'parameter'
  if (!isParameter && kind !== 'let' && kind !== 'const' && kind !== 'class') return false
  // A default of a parameter may use the parameter itself, and those that follow.
  const declaration: Node | undefined = isParameter
    ? scope.func.node.params.findLast((at: Node) => boundNames(at).some(bound => bound.name === name))
    : declarations[0]
  if (declaration === undefined) return false
  return references.some(({ func: by }) => {
    if (by === scope.func || (closure !== null && !isWithin(by, closure))) return false
    let outermost = by
    while (outermost.parent !== null && outermost.parent !== scope.func) outermost = outermost.parent
    if (outermost.kind === 'declaration') return !isParameter
    return outermost.node.start < declaration.end
  })
}

export function isWithin(inner: Func, outer: Func): boolean {
  for (let at: Func | null = inner; at !== null; at = at.parent) if (at === outer) return true
  return false
}

/** The parts of a class that run when it is defined. */
function classCode(node: Node): Node[] {
  const parts: Node[] = [...(node.decorators ?? [])]
  if (node.superClass !== null) parts.push(node.superClass)
  for (const element of node.body.body) {
    parts.push(...(element.decorators ?? []))
    if (element.computed) parts.push(element.key)
  }
  return parts
}

function caseOf(owner: Node, node: Node): Node | undefined {
  return owner.cases.find((branch: Node) => contains(branch, node))
}

/** True if a use inside a declaration comes before the name is bound. */
function isBeforeBinding(node: Node, declaration: Node): boolean {
  const declarators: Node[] = declaration.declarations ?? []
  const at = declarators.find(declarator => contains(declarator, node))
  return at !== undefined && boundNames(at.id).some(({ name }) => name === node.name)
}
