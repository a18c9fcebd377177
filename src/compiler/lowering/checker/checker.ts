/**
 * The lowering for the model checker. Every function is a generator, and every access that may touch shared
 * memory is a `yield` that names the operation. The code that drives the thread performs the operation when
 * it chooses.
 */
import { type Analysis, globalName } from '../../analysis/analysis.ts'
import { shortGlobals } from '../../analysis/builtins.ts'
import type { Call, Func } from '../../analysis/functions.ts'
import { Lines } from '../../output/lines.ts'
import { join, type Piece, type Rope, rope } from '../../output/rope.ts'
import type { Binding } from '../../analysis/scope.ts'
import { bare, boundNames, directives, type Node } from '../../analysis/syntax.ts'
import { isArray, typeOf } from '../../analysis/types.ts'
import { Accessors, writeGet, writeSet } from './accessors.ts'
import { Coverage } from './coverage.ts'
import { awaitedIn, converted, isOpaque, mayBeObject, writePeek } from './implicitcode.ts'
import {
  writeAssignment,
  writeAtomic,
  writeDirect,
  writePlace,
  writeRead,
  writeTagged,
  writeUpdate,
  writeViewMethod,
} from './accesses.ts'
import { isIndexed, isIndexedMember, isLength, memoryMethod, plainWrite } from './operations.ts'
import {
  isPattern,
  readsElements,
  writeDestructuring,
  writeParts,
  writePattern,
  writeSource,
} from './patterns.ts'
import { isLate, writeLateParameter } from './parameters.ts'
import { type Called, calledIn, waits } from './plaincalls.ts'
import { writeReportedLoop, writeTurns, writeYield } from './turns.ts'
import { Waits } from './waits.ts'
import type { Context, Frame } from '../writer/context.ts'
import { GeneratorLowering } from '../generator/generator.ts'
import { calleeText } from '../writer/enginemessages.ts'
import { labelsText, writeForAwait, writeForOf, writeLoop } from '../loops/safepointloops.ts'
import type { Flavor } from '../writer/writer.ts'

/** Global objects whose functions have no effects. */
const effectFreeObjects: ReadonlySet<string> = new Set(['Math', 'Number', 'String', 'BigInt', 'Symbol'])

/** Global constructors that read their arguments. */
const copyingConstructors: RegExp =
  /^(?:(?:Big)?(?:Int|Uint|Float)\d+(?:Clamped)?Array|Map|Set|WeakMap|WeakSet)$/

export class CheckerLowering extends GeneratorLowering {
  override readonly marksClasses = true
  readonly #lines: Lines
  readonly #file: string
  /** Stands in the text of each function and class that is written. */
  readonly #mark: string
  readonly #sites: string[] = []
  readonly #accessors: Accessors
  readonly #waits: Waits
  /** The counters, if coverage is on. */
  readonly #coverage: Coverage | null
  #bindings: ReadonlySet<Binding> | null = null
  /** Bodies of arrows that are being written. */
  readonly #entering = new Set<Node>()
  /** Operands that are converted, and the runtime function that converts each. */
  readonly #converted = new Map<Node, string>()
  /** The parts of calls in plain forms that the runtime gets. */
  readonly #called = new Map<Node, Called & { isNew: boolean }>()
  /** Calls whose promise is awaited or returned where they are. */
  readonly #awaited = new Set<Node>()
  /** The callees of `new`. */
  readonly #named = new Set<Node>()
  /** In a destructuring assignment: the replacement for a member of a possibly shared object. */
  replaceMember: ((member: Node) => Rope) | null = null

  constructor(source: string, analysis: Analysis, file: string, covers: boolean, mark: string | undefined) {
    super(source, analysis, { strip: 1 })
    this.#lines = new Lines(source)
    this.#file = file
    this.#mark = mark === undefined ? '' : JSON.stringify(mark)
    this.#coverage = covers ? new Coverage(analysis.program, this.#lines, `${this.names.prefix}hits`) : null
    this.#accessors = new Accessors(analysis)
    this.#waits = new Waits(analysis, this.names)
  }

  /** The bindings to which the file refers. */
  get bindings(): ReadonlySet<Binding> {
    this.#bindings ??= new Set([...this.analysis.bindingOf.values()].filter(binding => binding !== null))
    return this.#bindings
  }

  override get classMark(): string {
    return this.#mark === '' ? '' : `${this.names.runtime('marked')}(${this.#mark}); `
  }

  override get keepsBound(): boolean {
    return false
  }

  override program(runtime: string): Rope {
    const base = `${this.names.prefix}base`
    const file = JSON.stringify(this.#file)
    return super.program(runtime, () => {
      const points = this.#coverage?.points ?? ''
      const hits =
        points === ''
          ? ''
          : `const ${this.names.prefix}hits = ${this.names.runtime('cover')}(${file}, [${points}]);`
      if (this.#sites.length === 0 && this.#mark === '') return hits
      const mark = this.#mark === '' ? '' : `, ${this.#mark}`
      return `${hits}const ${base} = ${this.names.runtime('module')}(${file}, [${this.#sites.join(', ')}]${mark});`
    })
  }

  /** The text that identifies this node at run time. */
  site(node: Node): string {
    const { line, column } = this.#lines.at(node.start)
    const text = this.source.slice(node.start, node.end).replace(/\s+/g, ' ')
    this.#sites.push(JSON.stringify([line, column, text.length > 60 ? `${text.slice(0, 59)}…` : text]))
    return `${this.names.prefix}base + ${this.#sites.length - 1}`
  }

  /** An operation, which the code that drives the thread performs. */
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

  /** The variables of a generator outlive a turn of the loop that drives it. */
  override entry(func: Func, _frame: Frame): string {
    const params: Node[] = func.node.params
    const opaque = params.some((one, index) => isPattern(one) && !isLate(this, one, index, func))
    return opaque || func.isGenerator || isOpaque(func.node) ? `${this.names.runtime('effect')}();` : ''
  }

  /**
   * The plain form of a function reports that it runs: code that the compiler does not see may call it inside
   * a thread.
   */
  override block(node: Node, cx: Context): Rope {
    if (cx.frame !== null || cx.func.node.body !== node || cx.func.kind === 'module')
      return super.block(node, cx)
    const kept = directives(node.body)
    const from = kept.length > 0 ? kept[kept.length - 1]!.end : node.start + 1
    const { attached, statements } = this.list(node.body, cx, from, node.end)
    return rope`${{ start: node.start, end: from }};${this.#entry(cx.func)}${attached}${statements}`
  }

  #enter(func: Func): string {
    return `${this.names.runtime(waits(func) ? 'enteredAsync' : 'entered')}(${this.#mark})`
  }

  /** Inside a thread, an async function that waits ends where it begins. */
  #entry(func: Func): string {
    const enter = this.#enter(func)
    return waits(func) ? `if (${enter}) return;` : `${enter};`
  }

  override node(node: Node, cx: Context): Rope {
    if (cx.frame !== null) for (const [operand, by] of converted(node)) this.#converted.set(operand, by)
    else if (cx.func.kind !== 'module') {
      const called = calledIn(node, cx.func, this.analysis)
      // The call of a method comes first, and includes that its property is read.
      if (called !== null && !this.#called.has(called.part))
        this.#called.set(called.part, { ...called, isNew: node.type === 'NewExpression' })
    }
    for (const call of awaitedIn(node)) this.#awaited.add(call)
    const uncounted = this.#uncounted(node, cx)
    const written = this.#coverage === null ? uncounted : this.#coverage.around(node, uncounted)
    if (cx.frame === null) return this.#reported(node, written)
    const by = this.#converted.get(node)
    return by === undefined ? written : rope`${this.names.runtime(by)}(${written})`
  }

  /** A part of a call in a plain form, which the runtime gets. */
  #reported(node: Node, written: Rope): Rope {
    const called = this.#called.get(node)
    if (called === undefined) return written
    const { by, key, isNew } = called
    const reported = rope`${this.names.runtime(by)}(${written}${key === null ? '' : `, ${key}`})`
    return isNew ? rope`(${reported})` : reported
  }

  #uncounted(node: Node, cx: Context): Rope {
    if (cx.frame !== null) return super.node(node, cx)
    const isBody = cx.func.isArrow && cx.func.node.body === node && node.type !== 'BlockStatement'
    if (isBody && !this.#entering.has(node)) {
      this.#entering.add(node)
      const written = this.#uncounted(node, cx)
      this.#entering.delete(node)
      const enter = this.#enter(cx.func)
      return waits(cx.func) ? rope`(${enter} ? void 0 : ${written})` : rope`(${enter}, ${written})`
    }
    // `new f(x)[i]()` would construct something else.
    if (node.type === 'NewExpression') {
      for (let part = node.callee; part?.type === 'MemberExpression'; part = part.object)
        this.#named.add(part)
    }
    return isIndexedMember(node) && !this.#named.has(node)
      ? writeDirect(this, node, cx)
      : super.node(node, cx)
  }

  override safepoint(): string {
    return ''
  }

  override staysPlain(call: Call): boolean {
    if (call.reach === 'short') return this.#hasNoEffect(call.node)
    return call.target !== null && !call.target.twin
  }

  /** A call of a built-in that has no effect, with arguments that are not objects. */
  #hasNoEffect(node: Node): boolean {
    const callee = bare(node.callee ?? node.tag)
    const global = callee.type === 'MemberExpression' ? callee.object : callee
    const name = globalName(global, this.analysis.bindingOf)
    if (name === null || node.type !== 'CallExpression') return false
    if (callee === global) return shortGlobals.has(name) && name !== 'structuredClone'
    return effectFreeObjects.has(name) && memoryMethod(callee) === undefined
  }

  override taggedMember(node: Node, cx: Context): Rope | null {
    return writeTagged(this, node, cx)
  }

  override awaited(value: Rope, node: Node): Rope {
    return rope`(yield ${this.names.runtime('waits')}(${this.site(node)}, ${value}))`
  }

  override driven(steps: Rope, node: Node, target: Func | null): Rope {
    return this.#awaited.has(node) ? steps : this.#waits.watched(steps, target)
  }

  /** Each element of a view may be a shared access. */
  override isPlainList(value: Node): boolean {
    return isArray(typeOf(value, this.analysis))
  }

  override loop(node: Node, cx: Context, labels: Node[]): Rope {
    const prefix = labelsText(labels)
    if (node.type === 'ForOfStatement') {
      return writeReportedLoop(this, node, cx, check =>
        node.await
          ? writeForAwait(this, node, cx, check, prefix)
          : rope`${prefix}${writeForOf(this, node, cx, check)}`,
      )
    }
    if (node.type === 'ForInStatement') {
      return writeReportedLoop(this, node, cx, check => rope`${prefix}${writeLoop(this, node, cx, check)}`)
    }
    return writeTurns(this, node, cx, prefix)
  }

  /** Reports a possible effect on the thread's own state. */
  effect(written: Rope): Rope {
    return rope`${this.names.runtime('effect')}(${written})`
  }

  override plainly(written: Rope, node: Node): Rope {
    const callee = bare(node.callee ?? node.tag)
    if (callee.type === 'Super' || callee.type === 'Import') return written
    return this.#hasNoEffect(node) ? written : this.effect(written)
  }

  convert(operand: Node): void {
    if (mayBeObject(operand)) this.#converted.set(operand, 'primitive')
  }

  override peeked(object: Rope, member: Node): Rope {
    return writePeek(this, object, member)
  }

  override plainCall(
    written: Rope,
    fn: Piece,
    receiver: Piece | null,
    args: Piece,
    text: string,
    node: Node,
  ): Rope {
    // `eval` under another name would see other variables.
    if (bare(node.callee).name === 'eval') return this.plainly(written, node)
    return rope`${this.names.runtime('plain')}(${fn}, ${receiver ?? 'void 0'}, [${args}], ${JSON.stringify(text)})`
  }

  /** True if a name in the target belongs to another function. */
  #isOuter(target: Node, cx: Context): boolean {
    return boundNames(target).some(name => this.analysis.bindingOf.get(name)?.scope.func !== cx.func)
  }

  override resumable(node: Node, cx: Context): Rope | null {
    switch (node.type) {
      case 'MemberExpression':
        if (node.object.type === 'Super') return null
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
        const written = this.node(node.argument, cx)
        return rope`...(yield* ${this.names.runtime('list')}(${this.site(node)}, ${written}))`
      }
      case 'NewExpression':
        return this.#new(node, cx)
      case 'YieldExpression':
        return cx.func.isGenerator ? writeYield(this, node, cx) : null
      case 'CallExpression': {
        const call = this.callOf(node)
        if (call !== undefined && this.staysPlain(call) && this.#hasNoEffect(node)) {
          if (node.arguments.some(({ type }: Node) => type === 'SpreadElement'))
            return this.effect(this.copy(node, cx))
          for (const argument of node.arguments as Node[]) this.convert(argument)
        }
        return writeAtomic(this, node, cx) ?? super.resumable(node, cx)
      }
      default:
        return super.resumable(node, cx)
    }
  }

  /** Constructors that copy a view read it. */
  #new(node: Node, cx: Context): Rope {
    const name = globalName(bare(node.callee), this.analysis.bindingOf)
    if (name === null || !copyingConstructors.test(name) || node.arguments.length === 0) {
      const { names } = this
      const list = this.argumentsText(node, cx)
      if (node.callee.type === 'Identifier')
        return this.effect(rope`new ${node.callee}(...${names.runtime('given')}(${node.callee}, [${list}]))`)
      const fn = cx.frame!.take()
      const text = JSON.stringify(calleeText(node.callee))
      const made = rope`(${fn} = ${this.node(node.callee, cx)}, ${names.runtime('make')}(${fn}, ${names.runtime('given')}(${fn}, [${list}]), ${text}))`
      cx.frame!.give(fn)
      return this.effect(made)
    }
    return rope`(yield* ${this.names.runtime('construct')}(${this.site(node)}, ${name}, [${this.argumentsText(node, cx)}]))`
  }

  override spreadProperty(node: Node, cx: Context): Rope {
    if (cx.frame === null) return super.spreadProperty(node, cx)
    return rope`...(yield* ${this.names.runtime('fields')}(${this.site(node)}, ${this.node(node.argument, cx)}, true, []))`
  }

  override ownOf(fn: Piece, node: Node): Rope {
    return rope`${this.names.runtime(this.#awaited.has(node) ? 'awaitedAt' : 'ownAt')}(${fn}, ${this.site(node)})`
  }

  /**
   * An async function that is not awaited where it is called runs concurrently with its caller: the runtime
   * checks what it does.
   */
  override isCertain(target: Func, node: Node): boolean {
    return !target.isAsync || this.#awaited.has(node)
  }

  /** An assignment to any other target. */
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

  /** A member as the target of a write or a deletion. */
  place(member: Node, cx: Context): Rope {
    return writePlace(this, member, cx)
  }

  /** A member that a loop sets in each turn. */
  override head(left: Node, cx: Context): Rope {
    return bare(left).type === 'MemberExpression' ? this.place(bare(left), cx) : this.node(left, cx)
  }

  /** An element that a loop sets in each turn: a write. */
  override setHead(left: Node, value: string, cx: Context): Rope {
    const member = bare(left)
    if (!isIndexedMember(member)) return super.setHead(left, value, cx)
    const [view, index] = [cx.frame!.take(), cx.frame!.take()] as const
    const places = rope`${view} = ${this.node(member.object, cx)}, ${index} = ${this.node(member.property, cx)}`
    cx.frame!.give(view, index)
    const write = this.op(plainWrite, member, view, index, value)
    return rope`(${places}, ${this.isShared(view)} ? ${write} : ${this.effect(rope`${view}[${index}] = ${value}`)});`
  }

  override takesApart(left: Node): boolean {
    const pattern = left.type === 'VariableDeclaration' ? left.declarations[0].id : bare(left)
    return isIndexedMember(pattern) || (isPattern(pattern) && readsElements(pattern))
  }

  override element(value: string, left: Node): Rope {
    if (!this.takesApart(left)) return rope`${value}`
    const pattern = left.type === 'VariableDeclaration' ? left.declarations[0].id : bare(left)
    return writeParts(this, pattern, left, rope`${value}`)
  }

  /**
   * A parameter with a default or a pattern is set at the start of the body, where the thread can stop;
   * except if a variable of the same name in the body would change its meaning.
   */
  override parameter(
    parameter: Node,
    index: number,
    func: Func,
    beside: Context,
    cx: Context,
  ): { written: Rope; opening: Rope } {
    if (!isLate(this, parameter, index, func)) return super.parameter(parameter, index, func, beside, cx)
    return writeLateParameter(this, parameter, index, cx)
  }

  override accessed(object: Rope, node: Node, cx: Context): Rope {
    if (this.#accessors.has(node, 'getter')) return writeGet(this, object, node, cx)
    if (isLength(node)) return this.#length(object, node, cx)
    if (isIndexed(node)) return writeRead(this, object, node, cx)
    return super.accessed(this.peeked(object, node), node, cx)
  }

  /** `x.length` is an operation if the buffer of `x` can grow. */
  #length(object: Rope, node: Node, cx: Context): Rope {
    const { names } = this
    const name = node.property.name as string
    const held = cx.frame!.take()
    cx.frame!.give(held)
    const step = rope`yield* ${names.runtime('lengthOf')}(${this.site(node)}, ${held}, ${JSON.stringify(name)})`
    return rope`(${held} = ${object}, ${names.runtime('pending')}.grows ? ${step} : ${names.runtime('peek')}(${held}, ${JSON.stringify(name)}).${name})`
  }

  override chainStops(): boolean {
    return true
  }

  override iterated(node: Node, cx: Context): Rope {
    const frame = cx.frame!
    const value = frame.take()
    const written = this.node(node, cx)
    frame.give(value)
    const elements = rope`${this.names.runtime('elements')}(${this.site(node)}, ${value})`
    return rope`(${this.isShared(rope`${value} = ${written}`)} ? ${elements} : ${this.names.runtime('through')}(${value}))`
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
