/**
 * What becomes of one function that is to unwind: where it can stop, in how many forms it is written, and
 * where its variables live. Some code is better left to generators; then the plan is the reason.
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
 *   slot   in the form that runs; saved when it unwinds, and set again in the form that goes on
 *   entry  around the form that runs, where closures share it
 *   block  in its block of the form that runs, a new one in each turn, where closures share it; saved as it is
 */
export interface Variable {
  readonly binding: Binding
  readonly storage: 'slot' | 'entry' | 'block'
  readonly name: string
  /**
   * Closures share what changes: the variable holds a box. An early one may be looked at before its
   * declaration.
   */
  readonly box: 'box' | 'early' | null
  /** The node whose scope declares it. */
  readonly owner: Node
}

export interface Plan {
  readonly func: Func
  /** Nodes that can stop, and all that contain one. */
  readonly stopping: ReadonlySet<Node>
  /** About how many places it has. */
  readonly resumePoints: number
  /** One form that can start anywhere; else two, of which the first can only start at the beginning. */
  readonly single: boolean
  readonly variables: ReadonlyMap<Binding, Variable>
  /** By the node whose scope declares them. */
  readonly declared: ReadonlyMap<Node, readonly Variable[]>
}

interface Questions {
  readonly analysis: Analysis
  readonly prefix: string
  /** True for a call, a tagged template or a spread that may suspend. */
  canStop(node: Node): boolean
}

/**
 * True when the form that goes on is an arrow inside the first one: it has `this`, `super` and the rest from
 * there. A derived constructor has no `this` yet when it begins, and nothing but an arrow can call `super`
 * for it.
 */
export function isLexical(func: Func): boolean {
  return func.isArrow || (func.kind === 'constructor' && (func.usesSuper || isDerived(func)))
}

/** True for the constructor of a class that extends another. */
export function isDerived({ kind, owner }: Func): boolean {
  return kind === 'constructor' && owner!.superClass !== null
}

/** A plan, or why the function is better made a generator. */
export function planOf(func: Func, questions: Questions): Plan | string {
  if (func.isAsync || func.isGenerator) return 'it is a generator or async itself'
  const planner = new Planner(func, questions)
  return planner.plan()
}

/** More text than this is not written twice. */
const innerSizeMost = 300

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
    const single =
      this.#makes || (func.usesSuper && !isLexical(func)) || (func.inner.length > 0 && !this.#canBeTwo())
    const declared = new Map<Node, Variable[]>()
    const variables = new Map<Binding, Variable>()
    const taken = this.#outerNames()
    const scopes = [...(this.#questions.analysis.scopesIn.get(func) ?? [])]
    // The function's own scope first: its names stay.
    scopes.sort(([left], [right]) => (left === func.node ? -1 : right === func.node ? 1 : 0))
    for (const [owner, scope] of scopes) {
      if (!this.#isWritten(owner)) continue
      for (const binding of scope.bindings.values()) {
        const variable = this.#variable(binding, owner, single, taken)
        if (variable === null) continue
        variables.set(binding, variable)
        const list = declared.get(owner)
        if (list === undefined) declared.set(owner, [variable])
        else list.push(variable)
      }
    }
    if (this.#reason !== null) return this.#reason
    return { func, stopping: this.#stopping, resumePoints: this.#places, single, variables, declared }
  }

  /**
   * True when the functions that are made inside are small, and share nothing that changes: they can be
   * written twice.
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

  /** Fills in what can stop; true when the node does. */
  #mark(node: Node): boolean {
    if (isFunction(node)) return false
    let stops = this.#questions.canStop(node)
    if (stops || isLoop(node)) this.#places++
    // A function that is made on the spot may be called in a loop that stands there.
    if (stops && node.type === 'CallExpression' && node.arguments.some(isFunction)) this.#places++
    if (isLoop(node)) {
      this.#loops.push(node)
      stops = true
    }
    if (node.type === 'TaggedTemplateExpression') this.#makes = true
    if (isClass(node)) {
      this.#makes = true
      for (const part of classCode(node)) {
        if (this.#mark(part)) this.#reason ??= 'a class is defined by calls that can stop'
      }
      return false
    }
    for (const child of children(node)) if (this.#mark(child)) stops = true
    if (stops) this.#stopping.add(node)
    return stops
  }

  /** True when what the scope of this node declares is written out, and not left as it stands. */
  #isWritten(owner: Node): boolean {
    const { node } = this.#func
    if (owner === node) return true
    if (isClass(owner) || isFunction(owner)) return false
    if (owner.type === 'CatchClause') return this.#stopping.has(owner.body)
    return this.#stopping.has(owner)
  }

  /** Names of the world outside that the function uses. */
  #outerNames(): Set<string> {
    const { bindingOf, scopesIn } = this.#questions.analysis
    const func = this.#func
    const taken = new Set<string>()
    // Only the variables of blocks are moved, and may then meet other names.
    const moves = (scopesIn.get(func) ?? []).some(
      ([owner, { bindings }]) => owner !== func.node && bindings.size > 0 && this.#isWritten(owner),
    )
    if (!moves) return taken
    walk(func.node, node => {
      if (node.type !== 'Identifier' && node.type !== 'JSXIdentifier') return
      const binding = bindingOf.get(node)
      if (binding === undefined) return
      if (binding === null || !isWithin(binding.scope.func, func)) taken.add(node.name)
    })
    return taken
  }

  #variable(binding: Binding, owner: Node, single: boolean, taken: Set<string>): Variable | null {
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
    if (single && top && (kind === 'parameter' || kind === 'function')) storage = 'entry'
    else if (captured && inLoop) storage = 'block'
    else if (captured && single) storage = 'entry'
    const changes = storage === 'block' && written
    let { name } = binding
    if (!top) {
      let count = 0
      while (taken.has(name)) name = `${binding.name}${this.#questions.prefix}${count++}`
    }
    taken.add(name)
    return { binding, storage, name, box: early ? 'early' : changes ? 'box' : null, owner }
  }

  /** True when a closure may look at the variable before its declaration has run. */
  #isEarly({ kind, references, declarations }: Binding, owner: Node, captured: boolean): boolean {
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
      if (by !== func) continue
      const before =
        node.start < from ||
        (kind !== 'class' && contains(declaration!, node) && isBeforeBinding(node, declaration!))
      if (before || (branch !== null && caseOf(owner, node) !== branch)) {
        this.#reason ??= `\`${node.name}\` may be used before its declaration`
      }
    }
    if (!captured) return false
    return references.some(({ func: by }) => {
      if (by === func) return false
      let outermost = by
      while (outermost.parent !== null && outermost.parent !== func) outermost = outermost.parent
      return outermost.kind === 'declaration' || outermost.node.start < declaration!.end
    })
  }
}

function isWithin(inner: Func, outer: Func): boolean {
  for (let at: Func | null = inner; at !== null; at = at.parent) if (at === outer) return true
  return false
}

/** What of a class runs where it is defined. */
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

/** True when a use inside a declaration comes before the name is bound. */
function isBeforeBinding(node: Node, declaration: Node): boolean {
  const declarators: Node[] = declaration.declarations ?? []
  const at = declarators.find(declarator => contains(declarator, node))
  return at !== undefined && boundNames(at.id).some(({ name }) => name === node.name)
}
