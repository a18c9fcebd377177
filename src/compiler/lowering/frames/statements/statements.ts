/**
 * Statements of a function that unwinds. A statement that can suspend inside is written so that it can be
 * entered in the middle. The second form enters the language's own `try`, loops and labels again, so they
 * need no other treatment.
 */
import { constructStops } from '../../../analysis/construct.ts'
import { Rope, rope } from '../../../output/rope.ts'
import { isLoop, type Node, unlabeled } from '../../../analysis/syntax.ts'
import type { Context } from '../../writer/context.ts'
import { Calls } from '../expressions/calls.ts'
import { availableIn, declare, declareClass, open, within } from './declarations.ts'
import type { Slots } from '../emitter.ts'
import type { FramesLowering } from '../frames.ts'
import { returning } from './return.ts'
import type { Plan } from '../plan.ts'
import { writeTry } from './try.ts'

export abstract class Statements extends Calls {
  /** True if it counts turns in a variable that is not saved. */
  counts = false
  /** How many `try` statements are around the code that is being written. */
  tries = 0
  /** True after a safepoint on every path to here. */
  polled: boolean

  constructor(
    plan: Plan,
    prefix: string,
    guards: boolean,
    slots: Slots,
    lowering: FramesLowering,
    cx: Context,
    canRecurse: boolean,
  ) {
    super(plan, prefix, guards, slots, lowering, cx)
    this.polled = !canRecurse
  }

  /** The function's body, or the expression that it returns. */
  body(node: Node, skipped: (statement: Node) => boolean): Rope {
    return this.nested(() => {
      if (node.type !== 'BlockStatement') {
        this.markTailCalls(node)
        this.simple(rope`return ${this.value(node)};`)
        return
      }
      const statements = node.body.filter((statement: Node) => !skipped(statement))
      if (this.plan.movable) this.#functions(statements)
      this.list(statements)
    }).text
  }

  /** Makes the functions that the body declares. */
  #functions(statements: readonly Node[]): void {
    const outer = this.cx
    this.cx = { ...outer, available: availableIn(this.lowering, statements, outer) }
    open(this, this.plan.func.node, statements)
    this.cx = outer
  }

  list(statements: readonly Node[]): void {
    const outer = this.cx
    this.cx = { ...outer, available: availableIn(this.lowering, statements, outer) }
    for (const statement of statements) {
      const held = this.held
      this.statement(statement, [])
      this.release(held)
    }
    this.cx = outer
  }

  /** A recursion passes a safepoint before its first call; one on each cycle is enough. */
  override call(node: Node): Rope {
    if (!this.polled) {
      const call = this.lowering.callOf(node)
      if (call !== undefined && !this.lowering.staysPlain(call)) {
        this.polled = true
        this.poll(node.start)
      }
    }
    return super.call(node)
  }

  override construct(node: Node): Rope {
    if (!this.polled && constructStops(node, this.lowering.analysis)) {
      this.polled = true
      this.poll(node.start)
    }
    return super.construct(node)
  }

  /** Code that may not run: a safepoint in it does not count after it. */
  override nested(write: () => void): { text: Rope; last: number } {
    const polled = this.polled
    const made = super.nested(write)
    this.polled = polled
    return made
  }

  /**
   * The count at a safepoint. The engine is faster if the count is declared an integer, but the text is
   * longer; code that checks callees is long enough already.
   */
  get count(): string {
    const { frames } = this
    const isKnown = this.plan.func.calls.every(({ reach }) => reach === 'known' || reach === 'short')
    return isKnown ? `(${frames}.left=${frames}.left-1|0)` : `--${frames}.left`
  }

  poll(at: number, when = ''): void {
    this.resumePoint(at, null, unwind => rope`if(${when}${this.safepointTest})${unwind}`)
  }

  /** The condition of a safepoint. */
  get safepointTest(): string {
    return `${this.count}<0&&${this.runtime('lookInTime')}(${this.ok})`
  }

  /** A loop without an iterable. */
  abstract loop(node: Node, labels: Node[]): void
  /** `for…of` and `for…in`. */
  abstract each(node: Node, labels: Node[]): void

  statement(node: Node, labels: Node[]): void {
    const outer = this.from
    this.from = node.start
    this.anchor(node.start)
    this.#write(node, labels)
    this.from = outer
  }

  #write(node: Node, labels: Node[]): void {
    if (!this.stops(node)) {
      this.#plain(node)
      return
    }
    switch (node.type) {
      case 'ExpressionStatement':
        this.effect(node.expression)
        break
      case 'VariableDeclaration':
        declare(this, node)
        break
      case 'ReturnStatement':
        if (this.tries === 0 && this.cx.closing === undefined && this.cx.ending === undefined) {
          this.markTailCalls(node.argument)
        }
        this.simple(returning(this.cx, this.value(node.argument), this.prefix, keyword(node, 'return')))
        break
      case 'ThrowStatement':
        this.simple(rope`${keyword(node, 'throw')} ${this.value(node.argument)};`)
        break
      case 'BlockStatement':
        this.#block(node, labels)
        break
      case 'IfStatement':
        this.#if(node)
        break
      case 'LabeledStatement':
        this.#labeled(node)
        break
      case 'TryStatement':
        this.tries++
        writeTry(this, node)
        this.tries--
        break
      case 'SwitchStatement':
        this.#switch(node, labels)
        break
      case 'ForOfStatement':
      case 'ForInStatement':
        this.loops.push(node)
        this.tries++
        this.each(node, labels)
        this.tries--
        this.loops.pop()
        break
      default:
        if (!isLoop(node)) throw new Error(`a ${node.type} that can suspend`)
        this.loops.push(node)
        this.loop(node, labels)
        this.loops.pop()
    }
  }

  /** A statement that cannot suspend: as it is, except its declarations. */
  #plain(node: Node): void {
    switch (node.type) {
      case 'VariableDeclaration':
        if (node.declare !== true) declare(this, node)
        break
      case 'FunctionDeclaration':
        break
      case 'ClassDeclaration':
        declareClass(this, node)
        break
      case 'EmptyStatement':
        break
      case 'ExpressionStatement':
        this.simple(rope`;${this.verbatim(node.expression)};`)
        break
      default:
        this.simple(rope`${this.verbatim(node)};`)
    }
  }

  #block(node: Node, labels: Node[], isBody = false): void {
    let opened = new Rope()
    const { text, last } = this.nested(() =>
      within(this, node, () => {
        opened = open(this, node, node.body)
        this.list(node.body)
      }),
    )
    // The statement around it has braces of its own.
    if (isBody && opened.isEmpty) this.add(text)
    else if (isBody) this.add(rope`{${opened}${text}}`)
    else this.compound(rope`${prefixOf(labels)}{${opened}${text}}`, last)
  }

  /**
   * A statement that is the body of another, and contains its last resume point: both are entered together.
   */
  inner(node: Node): void {
    const held = this.held
    if (node.type === 'BlockStatement' && this.stops(node)) {
      const outer = this.from
      this.from = node.start
      this.#block(node, [], true)
      this.from = outer
    } else this.statement(node, [])
    this.release(held)
  }

  #if(node: Node): void {
    const held = this.held
    const test = this.value(node.test)
    this.flush()
    this.release(held)
    const { hasRun, polled } = this
    const first = this.nested(() => this.inner(node.consequent))
    const second = node.alternate === null ? null : this.nested(() => this.inner(node.alternate))
    this.polled = polled
    this.choose(test, first, second, hasRun)
  }

  #labeled(node: Node): void {
    const { labels, inner } = unlabeled(node)
    if (isLoop(inner) || inner.type === 'BlockStatement' || inner.type === 'SwitchStatement') {
      this.statement(inner, labels)
      return
    }
    const { text, last } = this.nested(() => this.inner(inner))
    this.compound(rope`${prefixOf(labels)}{ ${text} }`, last)
  }

  #switch(node: Node, labels: Node[]): void {
    const held = this.held
    const value = this.value(node.discriminant)
    const on = this.hold(value)
    this.release(held)
    const at = this.take()
    const cases = node.cases as Node[]
    const { guards, p } = this
    let opened = new Rope()
    const { text, last } = this.nested(() => {
      const statements = cases.flatMap(({ consequent }) => consequent as Node[])
      opened = open(this, node, statements)
      const choices = new Rope()
      let otherwise = cases.length
      for (const [index, { test }] of cases.entries()) {
        if (test === null) otherwise = index
        else choices.add(rope`case ${this.verbatim(test)}: ${at} = ${String(index)}; break; `)
      }
      this.simple(rope`switch (${on}) { ${choices}default: ${at} = ${String(otherwise)}; }`)
      for (const [index, { consequent }] of cases.entries()) {
        const branch = this.nested(() => within(this, node, () => this.list(consequent)))
        const test = guards ? `${p} ? ${p} <= ${branch.last} : ${at} <= ${index}` : `${at} <= ${index}`
        this.add(rope`if (${test}) { ${branch.text} }`)
      }
    })
    // A `switch (0)` with one clause: `break` leaves it, and `continue` is that of the loop around.
    this.compound(rope`{ ${opened}${prefixOf(labels)}switch (0) { default: ${text} } }`, last)
  }
}

/** The keyword of a statement, at its position in the source. */
function keyword({ start }: Node, word: string): { start: number; end: number } {
  return { start, end: start + word.length }
}

export function prefixOf(labels: readonly Node[]): string {
  return labels.map(({ name }) => `${name}: `).join('')
}
