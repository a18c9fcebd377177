/**
 * The frames lowering: a function unwinds. After each call that may suspend, it checks whether the task is
 * being suspended. If so, it saves its variables and its resume point, and returns. Its second form can start
 * at such a point. See docs/compiler.md.
 *
 * Generator functions, async functions and some other functions use the generator lowering; functions of both
 * kinds call each other.
 */
import { AccessorUses } from '../../analysis/accessors.ts'
import type { Analysis } from '../../analysis/analysis.ts'
import { constructStops, superStops } from '../../analysis/construct.ts'
import type { Func } from '../../analysis/functions.ts'
import { join, type Piece, type Rope, rope } from '../../output/rope.ts'
import { bare, isAnonymous, isFunction, keyName, type Node, walk, wordOf } from '../../analysis/syntax.ts'
import type { Context } from '../writer/context.ts'
import { Slots } from './emitter.ts'
import { capturedTag } from '../writer/arrowcaptures.ts'
import { checkedValue, isNamedIterable } from '../writer/destructuring.ts'
import { destructuredName } from '../writer/enginemessages.ts'
import { writeUnwinding } from './forms.ts'
import { keyText, withValue } from '../writer/objects.ts'
import { namedProperty } from '../writer/attach.ts'
import { earlySuperText, endingText, guardText, privateFieldsText } from './privatefields.ts'
import { Closures } from './closures.ts'
import { type MadeIterator, madeIterator } from './iterators.ts'
import { returning } from './statements/return.ts'
import { Loops } from './statements/loops.ts'
import { patternText } from './expressions/patterns.ts'
import { passesPermission } from './permission.ts'
import { type Plan, planOf } from './plan.ts'
import { Templates } from './templates.ts'
import type { Statements } from './statements/statements.ts'
import { type CalledParameter, calledParameterOf } from './unmarkedarguments.ts'
import { StripFrame, StripLowering } from './statements/strips.ts'
import type { LoweringOptions } from '../generator/generator.ts'
import { recursiveOf } from './recursion.ts'

interface FramesOptions extends LoweringOptions {
  /** The lowering of a function. */
  choose(func: Func): 'frames' | 'generator'
  movable: MovableOptions
}

interface MovableOptions {
  /** The key of the module, by which the code of a task that moved is found. */
  readonly key: string
}

export class FramesLowering extends StripLowering {
  readonly #plans = new Map<Func, Plan | string>()
  readonly #choose: FramesOptions['choose']
  readonly #heads = new Set<Node>()
  /** Functions that become methods of a prototype, and so are made once. */
  readonly #shared = new Set<Node>()
  readonly #calledParameters = new Map<Func, CalledParameter | null>()
  #recursive: ReadonlySet<Func> | null = null
  readonly #movable: MovableOptions
  /** The functions that can move, and the closures that they make. */
  readonly closures: Closures = new Closures(this)
  readonly templates: Templates

  constructor(source: string, analysis: Analysis, options: FramesOptions) {
    super(source, analysis, options)
    this.#choose = options.choose
    this.#movable = options.movable
    this.templates = new Templates(analysis.program, this.names)
    walk(analysis.program, node => {
      if (node.type === 'ForStatement' && node.init !== null) this.#heads.add(node.init)
      else if (node.type === 'ForInStatement' || node.type === 'ForOfStatement') this.#heads.add(node.left)
      else if (node.type === 'AssignmentExpression' && isOnPrototype(node.left))
        this.#shared.add(bare(node.right))
    })
  }

  protected override get namesShortly(): boolean {
    return true
  }

  /** Why the function becomes a generator, or null if it unwinds. */
  whyGenerator(func: Func): string | null {
    const plan = this.#planOf(func)
    return typeof plan === 'string' ? plan : null
  }

  #planOf(func: Func): Plan | string {
    let plan = this.#plans.get(func)
    if (plan === undefined) {
      plan =
        this.#choose(func) === 'generator'
          ? 'the directive or the option asks for it, it only blocks, or it is a loop nest that its file does not call'
          : planOf(func, {
              analysis: this.analysis,
              prefix: this.names.short,
              movable: func.movable && this.closures.whyFixed(func) === null,
              canStop: node => this.#canStop(node),
            })
      this.#plans.set(func, plan)
    }
    return plan
  }

  /** Why a task cannot move while this function is on its stack, or null if it can. */
  whyFixed(func: Func): string | null {
    const plan = this.#planOf(func)
    if (typeof plan === 'string') return `it is a generator: ${plan}`
    return this.closures.whyFixed(func)
  }

  isMovable(func: Func): boolean {
    if (!func.movable || !func.twin) return false
    const plan = this.#planOf(func)
    return typeof plan !== 'string' && plan.movable
  }

  override program(runtime: string): Rope {
    const { key } = this.#movable
    const program = super.program(
      runtime,
      () => this.closures.registration(key),
      () => this.closures.ending(key),
    )
    return rope`${program}${this.closures.outside}${this.templates.code}`
  }

  override liftedMethod(property: Node, func: Func, cx: Context): Rope | null {
    const key = keyName(property)
    if (func.kind !== 'method' || property.computed || key === null || key === '__proto__') return null
    const lifted = this.closures.lift(func, cx, 'made', inside => {
      const method = withValue(keyText(this, property, inside), property, this.plain(func.node, func, inside))
      const text = namedProperty(key, method)
      return this.attachesTwin(func, inside) ? this.marked(func, rope`(${text})`) : text
    })
    return lifted === null ? null : rope`${{ start: property.key.start, end: property.key.end }}: ${lifted}`
  }

  override classExtra(node: Node): Rope {
    const fields = privateFieldsText(node, this)
    return rope`${fields}${this.closures.insideOf(node, this.#movable.key)}`
  }

  override classEnding(node: Node): string {
    return endingText(node, this)
  }

  override fieldGuard(element: Node): string | null {
    return guardText(element, this)
  }

  #canStop(node: Node): boolean {
    switch (node.type) {
      case 'CallExpression': {
        const call = this.callOf(node)
        if (call?.func.movable && madeIterator(node, this.analysis) !== null) return false
        return call !== undefined && (!this.staysPlain(call) || superStops(call, this.analysis))
      }
      case 'TaggedTemplateExpression': {
        const call = this.callOf(node)
        return call !== undefined && !this.staysPlain(call) && bare(node.tag).type !== 'MemberExpression'
      }
      case 'NewExpression':
        return constructStops(node, this.analysis)
      case 'MemberExpression':
        return this.accessors.reads.has(node)
      case 'AssignmentExpression':
        return this.accessors.writes.has(node)
      default:
        return this.spreads.has(node)
    }
  }

  /** Reads and assignments that may call an accessor which unwinds. */
  get accessors(): AccessorUses {
    this.#accessorUses ??= new AccessorUses(this.analysis)
    return this.#accessorUses
  }

  #accessorUses: AccessorUses | null = null

  /** True for a read or an assignment that may call an accessor which unwinds. */
  mayAccess(node: Node): boolean {
    return this.accessors.reads.has(node) || this.accessors.writes.has(node)
  }

  override isItself(func: Func): boolean {
    return func.twin && typeof this.#planOf(func) !== 'string'
  }

  override attacher(func: Func): string {
    if (!this.isItself(func)) return super.attacher(func)
    return this.names.runtime(func.parent?.kind === 'module' ? 'attachUnwinding' : 'unwinding')
  }

  override marked(func: Func, value: Piece, name?: string): Rope {
    const unwinding = this.attacher(func)
    const marked = name === undefined ? rope`${unwinding}(${value})` : rope`${unwinding}(${value}, '${name}')`
    const at = func.parent?.kind === 'module' || this.#shared.has(func.node) ? this.takenAt(func) : null
    return at === null ? marked : rope`${this.names.runtime('taking')}(${marked},${String(at)})`
  }

  /** The position of a parameter that callers may fill with an unmarked function; null if there is none. */
  override takenAt(func: Func): number | null {
    return this.calledParameter(func)?.index ?? null
  }

  /**
   * If a module imports its neighbours, they may call it before it has run: then its constants are not set.
   */
  override get fixesImports(): boolean {
    return this.analysis.program.body.every(
      ({ source }: Node) => source == null || /^(?:node:|[\w@])/.test(source.value),
    )
  }

  override plain(node: Node, func: Func, outer: Context): Rope {
    const cx = func.movable ? withOwnArguments(func, outer) : outer
    return this.separately(() =>
      this.isItself(func) && this.attachesTwin(func, cx)
        ? writeUnwinding(this, this.#planOf(func) as Plan, cx)
        : this.#plainly(node, func, { ...cx, closing: undefined, ending: undefined, building: undefined }),
    )
  }

  #plainly(node: Node, func: Func, cx: Context): Rope {
    const early = earlySuperText(func, this)
    if (early === '') return super.plain(node, func, cx)
    const [first] = node.body.body as Node[]
    if (first === undefined) return super.plain(node, func, cx)
    this.#early.set(first, early)
    const text = super.plain(node, func, cx)
    this.#early.delete(first)
    return text
  }

  /** What stands before a statement: the first one of a constructor that stays plain. */
  readonly #early = new Map<Node, string>()

  override twin(func: Func, outer: Context, head: string): Rope {
    const cx = func.movable ? withOwnArguments(func, outer) : outer
    return this.separately(() => super.twin(func, cx, head))
  }

  override node(node: Node, cx: Context): Rope {
    const early = this.#early.get(node)
    if (early === undefined) return this.#node(node, cx)
    this.#early.delete(node)
    return rope`${early}${this.#node(node, cx)}`
  }

  #node(node: Node, cx: Context): Rope {
    if (cx.func.movable && isFunction(node)) {
      const func = this.analysis.funcOf.get(node)!
      const lifted = this.closures.lift(func, cx, 'made', inside => super.node(node, inside))
      return lifted ?? super.node(node, cx)
    }
    // In a strip nothing suspends either.
    const isPlain = cx.frame === null || cx.frame instanceof StripFrame
    if (cx.func.movable && isPlain && cx.func.kind !== 'module') {
      const made = madeIterator(node, this.analysis)
      if (made !== null) return this.iteratorText(made, this.node(made.object, cx), cx)
    }
    if (cx.func.movable && node.type === 'Property' && !node.computed) {
      const name = wordOf(node.key)
      if (name !== '__proto__') this.hint(node.value, name)
    }
    if (node.type === 'TaggedTemplateExpression' && cx.frame === null && cx.func.kind !== 'module') {
      const strings = this.stringsOf(node)
      if (strings !== null) return this.#tagged(node, cx)
    }
    if (node.type === 'ExportDefaultDeclaration' && this.closures.holdsDefault(node)) {
      const name = this.closures.defaultName
      return rope`const ${name} = ${this.node(node.declaration, cx)}; export { ${name} as default };`
    }
    if (cx.frame === null) {
      const jump = cx.jumps.get(node)
      if (jump !== undefined) return jump
    }
    const isSpecial = cx.closing !== undefined || cx.ending !== undefined || cx.building !== undefined
    if (node.type === 'ReturnStatement' && isSpecial) {
      const value = node.argument === null ? null : this.node(node.argument, cx)
      return returning(cx, value, this.names.short, { start: node.start, end: node.start + 'return'.length })
    }
    if (node.type === 'VariableDeclaration' && node.kind === 'var' && this.#movesVariables(cx)) {
      return this.#variables(node, cx)
    }
    return super.node(node, cx)
  }

  override stringsOf(node: Node): string | null {
    return this.templates.arrayOf(node)
  }

  override tagged(node: Node, cx: Context): Rope | null {
    const strings = this.stringsOf(node)
    return super.tagged(node, cx) ?? (strings === null ? null : this.#tagged(node, cx))
  }

  #tagged(node: Node, cx: Context): Rope {
    const captured = capturedTag(this, node, cx)
    if (captured !== null) return this.taggedBy(captured, node, cx)
    const text = this.node(node.tag, cx)
    const isBoxed = bare(node.tag).type === 'Identifier' && text.text(this.source).includes('.')
    return this.taggedBy(isBoxed ? rope`(0, ${text})` : text, node, cx)
  }

  /** The iterator that a call makes, whose position can be written. */
  iteratorText(made: MadeIterator, object: Rope, cx: Context, runtime = 'iteratorOf', first = ''): Rope {
    const key: Piece = made.name === null ? this.node(made.key, cx) : JSON.stringify(made.name)
    return rope`${this.names.runtime(runtime)}(${first}${object}, ${key}, ${JSON.stringify(made.text)})`
  }

  /** True in a function that unwinds: its `var`s are declared at its beginning. */
  #movesVariables({ func, attach }: Context): boolean {
    return attach === 'all' && this.isItself(func)
  }

  #variables(node: Node, cx: Context): Rope {
    const isHead = this.#heads.has(node)
    const parts: Rope[] = []
    for (const { id, init } of node.declarations as Node[]) {
      const target = this.#assigned(id, cx)
      if (init === null) {
        if (isHead && node.declarations.length === 1) parts.push(target)
        continue
      }
      const isNamed = id.type === 'Identifier' && isAnonymous(bare(init))
      const value = isNamed ? this.named(init, id, cx) : this.node(init, cx)
      const checked =
        id.type === 'ArrayPattern' && isNamedIterable(init)
          ? checkedValue(this.names, id, destructuredName(id, init), value)
          : value
      parts.push(rope`${target} = ${checked}`)
    }
    const text = join(parts, ', ')
    if (isHead) return text
    return parts.length === 0 ? rope`;` : rope`;(${text});`
  }

  /** A pattern as an assignment target. */
  #assigned(id: Node, cx: Context): Rope {
    if (id.type === 'Identifier') return rope`${this.renamed(id, cx) ?? id.name}`
    return patternText(this.statements(cx.func, cx, false, new Slots()), id)
  }

  /**
   * The writer for the statements of a function that unwinds; with `guards`, it can start at any resume
   * point.
   */
  statements(func: Func, cx: Context, guards: boolean, slots: Slots): Statements {
    const plan = this.#planOf(func) as Plan
    this.#recursive ??= recursiveOf(this.analysis)
    return new Loops(plan, this.names.short, guards, slots, this, cx, this.#recursive.has(func))
  }

  /** The parameter that callers of the function may fill with an unmarked function. */
  calledParameter(func: Func): CalledParameter | null {
    let found = this.#calledParameters.get(func)
    if (found === undefined) {
      const plan = func.twin ? this.#planOf(func) : 'it has no other form'
      found = typeof plan === 'string' || plan.shared ? null : calledParameterOf(func, this.analysis)
      this.#calledParameters.set(func, found)
    }
    return found
  }

  /** True if the function takes its permission to unwind as an argument, or calls a function that does. */
  passesPermission(func: Func): boolean {
    return passesPermission(func, target => this.isItself(target))
  }
}

/** A function that is no arrow has its own `arguments` and `new.target`. */
function withOwnArguments({ isArrow }: Func, cx: Context): Context {
  if (isArrow || cx.renamed === null) return cx
  if (!cx.renamed.has('arguments') && !cx.renamed.has('target')) return cx
  const renamed = new Map(cx.renamed)
  renamed.delete('arguments')
  renamed.delete('target')
  return { ...cx, renamed }
}

/** True for `List.prototype.map`. */
function isOnPrototype({ type, object }: Node): boolean {
  return (
    type === 'MemberExpression' && object.type === 'MemberExpression' && object.property.name === 'prototype'
  )
}
