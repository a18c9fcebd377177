/**
 * The generator lowering: a resumable form is a generator. To suspend, it yields a small integer; it calls
 * another resumable function with `yield*`. Since `yield` is an expression, operands keep their order.
 */
import type { Analysis } from '../../analysis/analysis.ts'
import { constructStops } from '../../analysis/construct.ts'
import type { Func } from '../../analysis/functions.ts'
import { join, type Rope, rope } from '../../output/rope.ts'
import { bare, isLoop, type Node, unlabeled } from '../../analysis/syntax.ts'
import { isList, typeOf } from '../../analysis/types.ts'
import { CallLowering } from './calls.ts'
import type { Context, Frame } from '../writer/context.ts'
import { writeCounted, writeInStrips } from '../loops/striploops.ts'
import { labelsText, writeForAwait, writeForOf, writeLoop, writeShortForOf } from '../loops/safepointloops.ts'
import { checkedValue, isDestructured } from '../writer/destructuring.ts'
import {
  destructuredName,
  calleeText,
  delegateText,
  spreadsIn,
  loopElementName,
} from '../writer/enginemessages.ts'
import { nestOf, writeNest } from '../loops/nestedloops.ts'
import { type Strip, stripOf } from '../loops/strip.ts'
import { deepWeight, isSmall, loopDepth, nestWeight, type Weight, weightOf } from '../loops/weight.ts'

export interface LoweringOptions {
  /** How many turns of a loop without calls run between two safepoints. */
  strip: number
}

export class GeneratorLowering extends CallLowering {
  readonly strip: number

  constructor(source: string, analysis: Analysis, { strip }: LoweringOptions) {
    super(source, analysis)
    this.strip = strip
  }

  entry(func: Func, _frame: Frame): string {
    const canRecurse = func.recursive || func.calls.some(({ reach }) => reach === 'unknown')
    return canRecurse ? this.safepoint() : ''
  }

  safepoint(): string {
    return `if (${this.names.runtime('poll')}()) yield 0;`
  }

  resumable(node: Node, cx: Context): Rope | null {
    switch (node.type) {
      case 'CallExpression':
        return this.call(node, cx)
      case 'ChainExpression':
        return this.chain(node, cx)
      case 'TaggedTemplateExpression':
        return this.tagged(node, cx)
      case 'UnaryExpression':
        if (node.operator === 'delete' && bare(node.argument).type === 'ChainExpression')
          return this.unresumed(node, cx)
        return null
      case 'SpreadElement':
        return this.spread(node, cx)
      case 'NewExpression':
        return this.#construct(node, cx) ?? this.plainly(this.#constructNamed(node, cx), node)
      case 'VariableDeclarator':
        if (node.init === null || !isDestructured(node.id, node.init)) return null
        return rope`${this.node(node.id, cx)} = ${checkedValue(this.names, node.id, destructuredName(node.id, node.init), this.node(node.init, cx))}`
      case 'AssignmentExpression': {
        const left = bare(node.left)
        if (left.type !== 'ObjectPattern' || node.operator !== '=' || !isDestructured(left, node.right))
          return null
        const value = checkedValue(
          this.names,
          left,
          destructuredName(left, node.right),
          this.node(node.right, cx),
        )
        return rope`${this.node(node.left, cx)} = ${value}`
      }
      case 'YieldExpression':
        if (!cx.func.isGenerator) return null
        if (node.delegate)
          return rope`(yield* ${this.names.runtime('delegate')}(${this.node(node.argument, cx)}, ${JSON.stringify(delegateText(node.argument))}))`
        return rope`(yield new ${this.names.runtime('Out')}(${node.argument === null ? '' : this.node(node.argument, cx)}))`
      case 'AwaitExpression':
        return this.awaited(this.node(node.argument, cx), node)
      case 'TSEnumDeclaration':
        // Its values become the body of a function, in which nothing can suspend.
        return this.unresumed(node, cx)
      case 'LabeledStatement':
        return this.#labeled(node, cx)
      case 'BreakStatement':
      case 'ContinueStatement':
        return (cx.jumps.get(node) as Rope | undefined) ?? null
      default:
        return isLoop(node) ? this.loop(node, cx, []) : null
    }
  }

  /** `new` of a name that may be a constructor which unwinds; null if it stays as it is. */
  #construct(node: Node, cx: Context): Rope | null {
    const callee = bare(node.callee)
    if (callee.type !== 'Identifier' || !constructStops(node, this.analysis)) return null
    const frame = cx.frame!
    const fn = frame.take()
    const args = frame.take()
    const { names } = this
    const list = this.argumentsText(node, cx)
    frame.give(fn, args)
    const name = this.node(callee, cx)
    const isOurs = rope`${fn}?.[${names.runtime('itself')}] === ${fn} && ${fn} !== void 0`
    const plain = rope`${names.runtime('make')}(${fn}, ${args}, ${JSON.stringify(callee.name)})`
    return rope`(${fn} = ${name}, ${args} = [${list}], ${isOurs} ? yield* ${names.runtime('construct')}(${fn}, ${args}) : ${plain})`
  }

  /**
   * `new` of any expression but a name. If it is no constructor, the error shows the source text, and the
   * arguments are evaluated before it.
   */
  #constructNamed(node: Node, cx: Context): Rope {
    const callee = bare(node.callee)
    const called = callee.type === 'MemberExpression' ? bare(callee.object) : callee
    if (called.type !== 'CallExpression') return this.copy(node, cx)
    const text = JSON.stringify(calleeText(callee))
    const written = this.node(node.callee, cx)
    const constructible = this.names.runtime('constructible')
    if (node.arguments.length === 0) return rope`new (${constructible}(${written}, ${text}))()`
    const fn = cx.frame!.take()
    const list = this.argumentsThen(node, cx, rope`${constructible}(${fn}, ${text})`)
    cx.frame!.give(fn)
    return rope`new (${fn} = ${written})(${join(list, ', ')})`
  }

  /** A generator that can suspend inside runs to its end first; any other value is spread as it is. */
  spread(node: Node, cx: Context): Rope | null {
    if (!this.spreadStops(node)) return null
    const frame = cx.frame!
    const value = frame.take()
    const written = this.node(node.argument, cx)
    frame.give(value)
    return rope`...(${this.names.runtime('stops')}(${value} = ${written}) ? yield* ${this.names.runtime('collect')}(${value}) : ${this.names.runtime('listed')}(${value}, ${JSON.stringify(this.spreads.get(node) ?? '')}))`
  }

  /**
   * Spreads in calls and arrays that may run a generator, each with the engine's message if the value is not
   * iterable.
   */
  get spreads(): ReadonlyMap<Node, string> {
    this.#spreadTexts ??= spreadsIn(this.analysis.program, node => this.spreadStops(node))
    return this.#spreadTexts
  }

  #spreadTexts: ReadonlyMap<Node, string> | null = null

  /** True if a loop over the value runs none of the program's code, and needs no step of its own. */
  isPlainList(value: Node): boolean {
    return isList(typeOf(value, this.analysis))
  }

  /** True if the spread value may be a generator that suspends inside. */
  spreadStops(node: Node): boolean {
    const argument = bare(node.argument)
    if (isList(typeOf(argument, this.analysis))) return false
    if (argument.type !== 'Identifier') return true
    if (argument.name === 'arguments') return false
    const declaration = this.analysis.bindingOf.get(argument)?.declarations[0]
    const last = declaration?.params?.at(-1)
    return !(last?.type === 'RestElement' && last.argument.name === argument.name)
  }

  awaited(value: Rope, _node: Node): Rope {
    return rope`(yield new ${this.names.runtime('Await')}(${value}))`
  }

  /** Code inside a resumable function that stays plain, with its calls. */
  unresumed(node: Node, cx: Context): Rope {
    return this.copy(node, { ...cx, frame: null })
  }

  #labeled(node: Node, cx: Context): Rope | null {
    const { labels, inner } = unlabeled(node)
    return isLoop(inner) ? this.loop(inner, cx, labels) : null
  }

  /** How much of a strip one turn of the loop counts. */
  weight(loop: Node): Weight {
    return weightOf(loop, node => this.callOf(node))
  }

  /** A loop: in strips if possible, else with a safepoint in each turn. */
  loop(node: Node, cx: Context, labels: Node[]): Rope {
    const weight = this.weight(node)
    if (weight !== 'each') {
      const strip = stripOf(node, labels, this.analysis)
      if (strip !== null && weight === 1) return this.inStrips(node, strip, cx)
      if (weight === nestWeight) {
        const nest = nestOf(node, labels, this.analysis)
        if (nest !== null && isSmall(nest.inner.body) && isSmall(node.body))
          return writeNest(this, node, nest, cx)
      }
      if (strip?.counted && (weight === nestWeight || weight === deepWeight)) {
        // Strips of nested loops multiply: the further out, the fewer turns in one.
        return writeCounted(this, node, strip, cx, this.strip / nestWeight / 8 ** (loopDepth(node) - 2))
      }
    }
    const check = this.#check(weight, cx)
    const prefix = labelsText(labels)
    if (node.type !== 'ForOfStatement') return rope`${prefix}${writeLoop(this, node, cx, check)}`
    if (node.await) return writeForAwait(this, node, cx, check, prefix)
    if (weight === 1 && isSmall(node.body) && isList(typeOf(node.right, this.analysis))) {
      return writeShortForOf(this, node, cx, check, prefix)
    }
    return rope`${prefix}${writeForOf(this, node, cx, check)}`
  }

  /** A safepoint, as often as turns of this weight need it. */
  #check(weight: Weight, cx: Context): string {
    if (weight === 'each') return this.safepoint()
    cx.frame!.usesFuel = true
    const fuel = `${this.names.prefix}fuel`
    const spend = weight === 1 ? `--${fuel}` : `(${fuel} -= ${weight})`
    return `if (${spend} <= 0) { ${fuel} = ${this.strip}; ${this.safepoint()} }`
  }

  /** The variable that a loop sets in each turn. */
  head(left: Node, cx: Context): Rope {
    return this.node(left, cx)
  }

  /** Sets that variable to the current element. */
  setHead(left: Node, value: string, cx: Context): Rope {
    return rope`(${this.head(left, cx)} = ${this.element(value, left)});`
  }

  /** True if destructuring an element into this head needs more than the language's own steps. */
  takesApart(_left: Node): boolean {
    return false
  }

  /** The current element, as the head takes it. */
  element(value: string, left: Node): Rope {
    const pattern = left.type === 'VariableDeclaration' ? left.declarations[0].id : bare(left)
    // For a destructured array, the engine's message names the value.
    const isList = pattern.type === 'ArrayPattern' && left.type === 'VariableDeclaration'
    if (!isList && pattern.type !== 'ObjectPattern') return rope`${value}`
    return checkedValue(this.names, pattern, loopElementName(pattern), rope`${value}`)
  }

  /** The iterable of a loop. */
  iterated(node: Node, cx: Context): Rope {
    return this.node(node, cx)
  }

  /** The init of a `for`. */
  init(node: Node, cx: Context): Rope {
    return node.type === 'ForStatement' && node.init !== null ? rope`${this.node(node.init, cx)};` : rope``
  }

  /** A loop without calls and without loops inside. */
  inStrips(node: Node, strip: Strip, cx: Context): Rope {
    return writeInStrips(this, node, strip, cx)
  }
}
