/**
 * Expressions of a function that unwinds. A call that may suspend becomes a separate statement, so values
 * that are evaluated before it go into temporaries, in source order. Code that cannot suspend stays as it is.
 */
import { join, type Rope, rope } from '../../../output/rope.ts'
import { bare, isAnonymous, type Node } from '../../../analysis/syntax.ts'
import type { Context } from '../../writer/context.ts'
import { assignmentValue, readValue, targetText } from './assignments.ts'
import { Emitter, type Slots } from '../emitter.ts'
import type { FramesLowering } from '../frames.ts'
import { arrayValue, objectValue, spreadValue, templateValue } from './literals.ts'
import { conditionOf, operand } from './operands.ts'
import { Order } from './order.ts'
import type { Plan } from '../plan.ts'

export abstract class Expressions extends Emitter {
  readonly lowering: FramesLowering
  /**
   * True if the permission is the object `frames` itself, which the function takes or passes as an argument;
   * else it is 1 or 0.
   */
  readonly passesPermission: boolean
  readonly order: Order
  /** The context, which changes inside blocks and loops. */
  cx: Context
  /**
   * Calls whose value the function returns. If such a call unwinds, the function has nothing left to do: it
   * saves no frame, and the result of the call goes to the function's own caller.
   */
  readonly tailCalls: Set<Node> = new Set()
  /** The label that a null in the current chain leaves. */
  #chain: string | null = null

  constructor(
    plan: Plan,
    prefix: string,
    guards: boolean,
    slots: Slots,
    lowering: FramesLowering,
    cx: Context,
  ) {
    super(plan, prefix, guards, slots)
    this.lowering = lowering
    this.passesPermission = lowering.passesPermission(plan.func)
    this.order = new Order(lowering.analysis.bindingOf, plan.func)
    this.cx = cx
  }

  runtime(name: string): string {
    return this.lowering.names.runtime(name)
  }

  get frames(): string {
    return this.runtime('frames')
  }

  /** Gives the permission to the next callee. */
  get permit(): string {
    const { frames, ok } = this
    return `${frames}.ok=${this.passesPermission ? `${ok}===${frames}?1:0` : ok}`
  }

  stops(node: Node | null | undefined): boolean {
    return node != null && this.plan.stopping.has(node)
  }

  /** The index of the last node that can suspend, before which values must be held; -1 if there is none. */
  lastStop(nodes: readonly (Node | null)[]): number {
    return nodes.findLastIndex(node => this.stops(node))
  }

  verbatim(node: Node): Rope {
    return this.lowering.node(node, this.cx)
  }

  /** The value in a variable that does not change. */
  hold(value: Rope): string {
    const held = this.#temporaryIn(value)
    if (held !== null) return held
    const name = this.take()
    this.simple(rope`${name}=${value};`)
    return name
  }

  /** The temporary that this value is, or null. */
  #temporaryIn(value: Rope): string | null {
    const { only } = value
    if (only === null || !only.startsWith(this.prefix)) return null
    return /^\d+$/.test(only.slice(this.prefix.length)) ? only : null
  }

  /** Values of which later ones may suspend. Earlier ones are held if the code in between may change them. */
  values(nodes: readonly Node[]): Rope[] {
    const last = this.lastStop(nodes)
    return nodes.map((node, index) => {
      const value = this.value(node)
      return index < last && this.order.mayChange(node, nodes.slice(index + 1))
        ? rope`${this.hold(value)}`
        : value
    })
  }

  /** The value of this expression is returned directly. */
  protected markTailCalls(value: Node): void {
    // The caller of a constructor does not get its returned value.
    if (this.plan.func.kind === 'constructor') return
    const node = bare(value)
    switch (node.type) {
      case 'CallExpression': {
        // An infinite recursion must still end with an error, even if it is preempted often, so it keeps its
        // frames.
        const target = this.lowering.callOf(node)?.target ?? null
        if (target === null || !target.recursive) this.tailCalls.add(node)
        break
      }
      case 'ConditionalExpression':
        this.markTailCalls(node.consequent)
        this.markTailCalls(node.alternate)
        break
      case 'LogicalExpression':
        this.markTailCalls(node.right)
        break
      case 'SequenceExpression':
        this.markTailCalls(node.expressions.at(-1))
        break
      default:
    }
  }

  /** A call, also one that cannot suspend itself. */
  abstract call(node: Node): Rope
  abstract tagged(node: Node): Rope
  /** `new`, also of a constructor that cannot suspend. */
  abstract construct(node: Node): Rope

  /** The value of an expression, for immediate use. Statements that must run before it are written first. */
  value(node: Node): Rope {
    // A function takes its name from its place in the source, not from the temporary that holds it.
    if (isAnonymous(bare(node))) return rope`(0, ${this.verbatim(node)})`
    if (!this.stops(node) && !(this.#chain !== null && isLink(node))) {
      return node.type === 'SequenceExpression' ? rope`(${this.verbatim(node)})` : this.verbatim(node)
    }
    switch (node.type) {
      case 'ParenthesizedExpression':
        return rope`(${this.value(node.expression)})`
      case 'TSAsExpression':
      case 'TSSatisfiesExpression':
      case 'TSNonNullExpression':
      case 'TSTypeAssertion':
      case 'TSInstantiationExpression':
        return this.value(node.expression)
      case 'CallExpression':
        return this.call(node)
      case 'ChainExpression':
        return this.#chained(node)
      case 'MemberExpression':
        return this.#member(node)
      case 'BinaryExpression': {
        if (node.left.type === 'PrivateIdentifier') return rope`(${node.left} in ${this.value(node.right)})`
        const [left, right] = this.values([node.left, node.right])
        return rope`(${left!} ${node.operator} ${right!})`
      }
      case 'LogicalExpression':
        return this.#logical(node)
      case 'ConditionalExpression':
        return this.#conditional(node)
      case 'AssignmentExpression':
        return assignmentValue(this, node)
      case 'UpdateExpression': {
        const target = targetText(this, node.argument, false, null)
        return node.prefix ? rope`(${node.operator}${target})` : rope`(${target}${node.operator})`
      }
      case 'UnaryExpression': {
        const { operator } = node
        if (operator === 'delete' && bare(node.argument).type !== 'MemberExpression') {
          // The value of a call is no reference: `delete` of it does nothing, and is true.
          return rope`(${this.value(node.argument)}, true)`
        }
        const word = operator.length > 1 ? `${operator} ` : operator
        return rope`(${word}${this.value(node.argument)})`
      }
      case 'SequenceExpression': {
        const [...before] = node.expressions as Node[]
        const last = before.pop()!
        for (const expression of before) this.effect(expression)
        return this.value(last)
      }
      case 'NewExpression':
        return this.construct(node)
      case 'ArrayExpression':
        return arrayValue(this, node)
      case 'ObjectExpression':
        return objectValue(this, node)
      case 'TemplateLiteral':
        return templateValue(this, node)
      case 'TaggedTemplateExpression':
        return this.tagged(node)
      case 'SpreadElement':
        return spreadValue(this, node)
      case 'ImportExpression':
        return rope`import(${join(this.values([node.source, node.options ?? []].flat()), ', ')})`
      default:
        throw new Error(`a ${node.type} that can suspend`)
    }
  }

  /** An expression for its effect. */
  effect(node: Node): void {
    const held = this.held
    if (!this.stops(node) || !this.#chooses(node)) {
      const value = this.value(node)
      // A value that is only a temporary has been computed already.
      if (this.#temporaryIn(value) === null) this.simple(rope`;(${value});`)
    }
    this.release(held)
  }

  /** Writes a conditional expression as a statement: its value needs no temporary. */
  #chooses(node: Node): boolean {
    const held = this.held
    switch (node.type) {
      case 'ParenthesizedExpression':
        this.effect(node.expression)
        return true
      case 'SequenceExpression':
        for (const expression of node.expressions as Node[]) this.effect(expression)
        return true
      case 'ConditionalExpression': {
        const test = this.value(node.test)
        this.flush()
        this.release(held)
        const { hasRun } = this
        const first = this.nested(() => this.effect(node.consequent))
        const second = this.nested(() => this.effect(node.alternate))
        this.choose(test, first, second, hasRun)
        return true
      }
      case 'LogicalExpression': {
        if (!this.stops(node.right)) return false
        const left = rope`(${this.value(node.left)})`
        this.flush()
        this.release(held)
        this.when(conditionOf(node.operator, left), () => this.effect(node.right))
        return true
      }
      default:
        return false
    }
  }

  #member(node: Node): Rope {
    if (node.object.type === 'Super') {
      this.needThis(node)
      return node.computed ? rope`super[${this.value(node.property)}]` : this.verbatim(node)
    }
    if (this.lowering.mayAccess(node)) return readValue(this, node)
    let object = this.value(node.object)
    if (node.optional) object = rope`${this.guard(object)}`
    if (!node.computed) return rope`${operand(object)}.${node.property}`
    if (this.stops(node.property) && !node.optional && this.order.mayChange(node.object, [node.property])) {
      object = rope`${this.hold(object)}`
    }
    return rope`${operand(object)}[${this.value(node.property)}]`
  }

  /** `super[…]` throws before its key is evaluated, if `this` is not set. */
  needThis({ start, end }: Node): void {
    const self: Node = { type: 'ThisExpression', start, end }
    if (!this.order.isRead(self)) this.simple(rope`this;`)
  }

  /** Leaves the chain if the value so far is null. */
  guard(value: Rope): string {
    const name = this.hold(value)
    this.simple(rope`if (${name} == null) break ${this.#chain!};`)
    return name
  }

  #chained(node: Node): Rope {
    const held = this.held
    const result = this.take()
    this.simple(rope`${result}=void 0;`)
    const outer = this.#chain
    const label = this.label()
    this.#chain = label
    this.unset.add(result)
    const { text, last } = this.nested(() => {
      const value = this.value(node.expression)
      this.simple(rope`${result}=${value};`)
    })
    this.#chain = outer
    this.unset.delete(result)
    this.compound(rope`${label}:{${text}}`, last)
    this.release(held + 1)
    return rope`${result}`
  }

  #logical(node: Node): Rope {
    if (!this.stops(node.right)) {
      return rope`(${this.value(node.left)} ${node.operator} ${this.verbatim(node.right)})`
    }
    const result = this.take()
    const held = this.held
    this.simple(rope`${result}=${this.value(node.left)};`)
    this.release(held)
    const { operator } = node
    this.when(conditionOf(operator, result), () => {
      this.unset.add(result)
      const right = this.value(node.right)
      this.unset.delete(result)
      this.simple(rope`${result}=${right};`)
    })
    this.release(held)
    return rope`${result}`
  }

  when(test: Rope | string, write: () => void): void {
    const { text, last } = this.nested(write)
    const { p } = this
    this.compound(this.guards ? rope`if(${p}||${test}){${text}}` : rope`if(${test}){${text}}`, last)
  }

  #conditional(node: Node): Rope {
    const result = this.take()
    const held = this.held
    const test = this.value(node.test)
    this.flush()
    this.release(held)
    const { hasRun } = this
    const branch = (part: Node): { text: Rope; last: number } =>
      this.nested(() => {
        this.unset.add(result)
        const value = this.value(part)
        this.unset.delete(result)
        this.simple(rope`${result}=${value};`)
        this.release(held)
      })
    const first = branch(node.consequent)
    const second = branch(node.alternate)
    this.choose(test, first, second, hasRun)
    return rope`${result}`
  }

  choose(
    test: Rope,
    first: { text: Rope; last: number },
    second: { text: Rope; last: number } | null,
    hasRun = false,
  ): void {
    const { p } = this
    // If the second branch has no resume point, a resumption continues in the first.
    const inFirst = hasRun || first.last !== (second ?? first).last ? `${p}<=${first.last}` : '1'
    const condition = hasRun ? rope`${inFirst}` : this.guards ? rope`${p}?${inFirst}:${test}` : test
    const otherwise = second === null ? rope`` : rope`else{${second.text}}`
    this.compound(rope`if(${condition}){${first.text}}${otherwise}`, (second ?? first).last)
  }
}

/** True if a null in the node ends the chain that contains it. */
function isLink(node: Node): boolean {
  for (let inner = node; ; ) {
    if (inner.type === 'TSNonNullExpression') inner = inner.expression
    else if (inner.type === 'MemberExpression') {
      if (inner.optional) return true
      inner = inner.object
    } else if (inner.type === 'CallExpression') {
      if (inner.optional) return true
      inner = inner.callee
    } else return false
  }
}
