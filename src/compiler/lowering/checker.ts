/**
 * The lowering for the model checker: every function is a generator, and every access that may touch shared memory is
 * a `yield` that names the operation, so that whoever drives the thread performs it, when it chooses.
 */
import { type Analysis, globalName } from '../analysis.ts'
import { shortGlobals } from '../builtins.ts'
import type { Call, Func } from '../functions.ts'
import { Lines } from '../lines.ts'
import { join, type Piece, type Rope, rope } from '../rope.ts'
import type { Binding } from '../scope.ts'
import { bare, boundNames, isFunction, type Node, walk } from '../syntax.ts'
import { Accessors, writeGet, writeSet } from './checker/accessors.ts'
import { writeAssignment, writeAtomic, writeRead, writeUpdate, writeViewMethod } from './checker/accesses.ts'
import { awaiting, isIndexed, iteration, mayTouchView } from './checker/operations.ts'
import {
  isPattern,
  readsElements,
  writeDestructuring,
  writePattern,
  writeSource,
} from './checker/patterns.ts'
import { writeTurns } from './checker/turns.ts'
import type { Context, Frame } from './context.ts'
import { GeneratorLowering } from './generator.ts'
import { labelsText, writeForAwait, writeForOf, writeLoop } from './loops.ts'
import type { Flavor } from './writer.ts'

/** Global objects whose functions change nothing. */
const quietObjects: ReadonlySet<string> = new Set([
  'Math',
  'Atomics',
  'Number',
  'String',
  'BigInt',
  'Symbol',
  'JSON',
])

export class CheckerLowering extends GeneratorLowering {
  readonly #lines: Lines
  readonly #file: string
  readonly #sites: string[] = []
  readonly #accessors: Accessors
  #bindings: ReadonlySet<Binding> | null = null
  /** Inside a destructuring that assigns: the place that stands for a member of what may be shared. */
  standIn: ((member: Node) => Rope) | null = null

  constructor(source: string, analysis: Analysis, file: string) {
    super(source, analysis, { strip: 1 })
    this.#lines = new Lines(source)
    this.#file = file
    this.#accessors = new Accessors(analysis)
  }

  /** The bindings that something in the file refers to. */
  get bindings(): ReadonlySet<Binding> {
    this.#bindings ??= new Set([...this.analysis.bindingOf.values()].filter(binding => binding !== null))
    return this.#bindings
  }

  override program(runtime: string): Rope {
    const base = `${this.names.prefix}base`
    return super.program(runtime, () => {
      if (this.#sites.length === 0) return ''
      return `const ${base} = ${this.names.runtime('module')}(${JSON.stringify(this.#file)}, [${this.#sites.join(', ')}]);`
    })
  }

  /** The text that names this place at run time. */
  site(node: Node): string {
    const { line, column } = this.#lines.at(node.start)
    const text = this.source.slice(node.start, node.end).replace(/\s+/g, ' ')
    this.#sites.push(JSON.stringify([line, column, text.length > 60 ? `${text.slice(0, 59)}…` : text]))
    return `${this.names.prefix}base + ${this.#sites.length - 1}`
  }

  /** An operation, performed by whoever drives the thread. */
  op(kind: number, node: Node, ...args: Piece[]): Rope {
    return rope`(yield ${this.names.runtime('op')}(${join([String(kind), this.site(node), ...args], ', ')}))`
  }

  /** The test that a value is a view of shared memory. */
  isShared(value: Piece): Rope {
    return rope`${this.names.runtime('isShared')}(${value})`
  }

  override flavor(func: Func): Flavor {
    const flavor = super.flavor(func)
    return flavor === 'async' ? 'plain' : flavor
  }

  override isDirect(func: Func): boolean {
    return func.kind === 'declaration' && !func.isGenerator
  }

  override entry(_func: Func, _frame: Frame): string {
    return ''
  }

  override safepoint(): string {
    return ''
  }

  override staysPlain(call: Call): boolean {
    if (call.reach === 'short') return !mayTouchView(call.node)
    return call.target !== null && !call.target.twin
  }

  override awaited(value: Rope, node: Node): Rope {
    return this.op(awaiting, node, value)
  }

  override loop(node: Node, cx: Context, labels: Node[]): Rope {
    const prefix = labelsText(labels)
    const effect = `${this.names.runtime('effect')}();`
    if (node.type === 'ForOfStatement') {
      return node.await
        ? writeForAwait(this, node, cx, effect, prefix)
        : rope`${prefix}${writeForOf(this, node, cx, effect)}`
    }
    if (node.type === 'ForInStatement') return rope`${prefix}${writeLoop(this, node, cx, effect)}`
    return writeTurns(this, node, cx, prefix)
  }

  /** What changes something besides shared memory and the function's own variables. */
  effect(written: Rope): Rope {
    return rope`${this.names.runtime('effect')}(${written})`
  }

  override plainly(written: Rope, node: Node): Rope {
    const callee = bare(node.callee ?? node.tag)
    if (callee.type === 'Super' || callee.type === 'Import') return written
    const global = callee.type === 'MemberExpression' ? callee.object : callee
    const name = globalName(global, this.analysis.bindingOf)
    if (name === null) return this.effect(written)
    const isQuiet =
      callee === global ? node.type === 'CallExpression' && shortGlobals.has(name) : quietObjects.has(name)
    return isQuiet ? written : this.effect(written)
  }

  /** True when a name in the target is of another function. */
  #isOuter(target: Node, cx: Context): boolean {
    return boundNames(target).some(name => this.analysis.bindingOf.get(name)?.scope.func !== cx.func)
  }

  override resumable(node: Node, cx: Context): Rope | null {
    switch (node.type) {
      case 'MemberExpression':
        if (node.object.type === 'Super' || !(isIndexed(node) || this.#accessors.has(node, 'getter')))
          return null
        return this.accessed(this.node(node.object, cx), node, cx)
      case 'AssignmentExpression': {
        const left = bare(node.left)
        if (left.type !== 'MemberExpression' || !isIndexed(left) || left.object.type === 'Super') {
          return this.#assignment(node, cx)
        }
        return writeAssignment(this, node, left, cx)
      }
      case 'UpdateExpression': {
        const argument = bare(node.argument)
        if (argument.type === 'Identifier')
          return this.#isOuter(argument, cx) ? this.effect(this.copy(node, cx)) : null
        if (argument.type !== 'MemberExpression') return null
        if (!isIndexed(argument) || argument.object.type === 'Super') return this.#target(node, argument, cx)
        return writeUpdate(this, node, argument, cx)
      }
      case 'UnaryExpression':
        return node.operator === 'delete' && bare(node.argument).type === 'MemberExpression'
          ? this.#target(node, bare(node.argument), cx)
          : super.resumable(node, cx)
      case 'ArrayPattern':
      case 'ObjectPattern':
        return writePattern(this, node, cx)
      case 'VariableDeclarator':
        if (node.init === null || !isPattern(node.id)) return null
        return rope`${this.node(node.id, cx)}${{ start: node.id.end, end: node.init.start }}${writeSource(this, node.id, node.init, cx)}`
      case 'SpreadElement': {
        const value = cx.frame!.take()
        const written = this.iterated(node.argument, cx)
        cx.frame!.give(value)
        const stops = rope`${this.names.runtime('stops')}(${value} = ${written})`
        return rope`...(${stops} ? yield* ${this.names.runtime('collect')}(${value}) : ${value})`
      }
      case 'CallExpression':
        return writeAtomic(this, node, cx) ?? super.resumable(node, cx)
      default:
        return super.resumable(node, cx)
    }
  }

  /** An assignment to something else: the left side is a place, not a value. */
  #assignment(node: Node, cx: Context): Rope {
    const left = bare(node.left)
    if (isPattern(left)) return writeDestructuring(this, node, left, cx)
    const isMember = left.type === 'MemberExpression'
    if (
      isMember &&
      node.operator === '=' &&
      left.object.type !== 'Super' &&
      this.#accessors.has(left, 'setter')
    ) {
      return writeSet(this, node, left, cx)
    }
    const place = isMember ? this.place(left, cx) : this.node(node.left, cx)
    const before = isMember
      ? { start: node.left.start, end: node.left.start }
      : { start: node.start, end: node.left.start }
    const written = rope`${before}${place}${{ start: node.left.end, end: node.right.start }}${this.node(node.right, cx)}`
    return left.type === 'Identifier' && !this.#isOuter(left, cx) ? written : this.effect(written)
  }

  /** An update or a deletion of a member that is no element. */
  #target(node: Node, argument: Node, cx: Context): Rope {
    return this.effect(
      rope`${{ start: node.start, end: argument.start }}${this.place(argument, cx)}${{ start: argument.end, end: node.end }}`,
    )
  }

  /** A member as a place to write or delete. */
  place(member: Node, cx: Context): Rope {
    const object = this.node(member.object, cx)
    return member.computed
      ? rope`${object}[${this.node(member.property, cx)}]`
      : rope`${object}.${member.property}`
  }

  /** A member that a loop sets in each turn is a place. */
  override head(left: Node, cx: Context): Rope {
    return bare(left).type === 'MemberExpression' ? this.place(bare(left), cx) : this.node(left, cx)
  }

  override takesApart(left: Node): boolean {
    const pattern = left.type === 'VariableDeclaration' ? left.declarations[0].id : bare(left)
    return isPattern(pattern) && readsElements(pattern)
  }

  override element(value: string, left: Node): Rope {
    return this.takesApart(left) ? this.#elements(value, left) : rope`${value}`
  }

  /** A list that is about to be taken apart: all that it holds is read at once. */
  #elements(value: string, node: Node): Rope {
    return rope`(${this.isShared(value)} ? ${this.op(iteration, node, value)} : ${value})`
  }

  /**
   * A parameter that is taken apart is taken apart at the start of the body, where the thread can stop; unless its order among
   * the defaults of others, or a variable of its name in the body, would make a difference.
   */
  override parameter(
    parameter: Node,
    index: number,
    func: Func,
    beside: Context,
    cx: Context,
  ): { written: Rope; opening: Rope } {
    const late =
      isPattern(parameter) &&
      readsElements(parameter) &&
      !(func.node.params as Node[]).some(({ type }) => type === 'AssignmentPattern') &&
      boundNames(parameter).every(name => this.analysis.bindingOf.get(name)?.declarations.length === 1)
    if (!late) return super.parameter(parameter, index, func, beside, cx)
    const whole = `${this.names.prefix}p${index}`
    const opening = rope`let ${this.node(parameter, cx)} = ${this.#elements(whole, parameter)};`
    return { written: rope`${whole}`, opening }
  }

  override accessed(object: Rope, node: Node, cx: Context): Rope {
    if (this.#accessors.has(node, 'getter')) return writeGet(this, object, node, cx)
    return isIndexed(node) ? writeRead(this, object, node, cx) : super.accessed(object, node, cx)
  }

  override chainStops(node: Node): boolean {
    let stops = super.chainStops(node)
    walk(node, child => {
      if (isFunction(child)) return false
      if (child.type === 'MemberExpression' && isIndexed(child)) stops = true
      if (this.#accessors.has(child, 'getter')) stops = true
      return !stops
    })
    return stops
  }

  override iterated(node: Node, cx: Context): Rope {
    const frame = cx.frame!
    const value = frame.take()
    const written = this.node(node, cx)
    frame.give(value)
    return rope`(${this.isShared(rope`${value} = ${written}`)} ? ${this.op(iteration, node, value)} : ${value})`
  }

  override sharedMethod(
    node: Node,
    callee: Node,
    receiver: Rope,
    args: Piece[],
  ): { test: Rope; value: Rope } | null {
    return writeViewMethod(this, node, callee, receiver, args)
  }
}
