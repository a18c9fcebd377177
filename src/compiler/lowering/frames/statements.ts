/**
 * Statements of a function that unwinds. Those that can stop inside are written so that they can be entered in the middle;
 * the language's own `try`, loops and labels do the rest, because a form that goes on enters them all again.
 */
import { type Piece, Rope, rope } from '../../rope.ts'
import { boundNames, isLoop, type Node, unlabeled } from '../../syntax.ts'
import type { Context } from '../context.ts'
import { jumpsOutOf } from '../jumps.ts'
import { Calls } from './calls.ts'
import type { Slots } from './emitter.ts'
import type { Host } from './host.ts'
import type { Plan, Variable } from './plan.ts'

export abstract class Statements extends Calls {
  /** Turns are counted in a variable that nobody saves. */
  counts = false
  /** A safepoint has been passed on the way here. */
  protected polled: boolean

  constructor(
    plan: Plan,
    prefix: string,
    guards: boolean,
    slots: Slots,
    host: Host,
    cx: Context,
    canRecurse: boolean,
  ) {
    super(plan, prefix, guards, slots, host, cx)
    this.polled = !canRecurse
  }

  /** The function's body, or the expression that it returns. */
  body(node: Node, skipped: (statement: Node) => boolean): Rope {
    return this.nested(() => {
      if (node.type !== 'BlockStatement') {
        this.simple(rope`return ${this.value(node)};`)
        return
      }
      this.list(node.body.filter((statement: Node) => !skipped(statement)))
    }).text
  }

  protected list(statements: readonly Node[]): void {
    const outer = this.cx
    this.cx = { ...outer, available: this.host.availableIn(statements, outer) }
    for (const statement of statements) {
      const held = this.held
      this.statement(statement, [])
      this.release(held)
    }
    this.cx = outer
  }

  /** One call on every way that leads around is enough: before it, a recursion looks at its safepoint. */
  override call(node: Node): Rope {
    if (!this.polled) {
      const call = this.host.callOf(node)
      if (call !== undefined && !this.host.staysPlain(call)) {
        this.polled = true
        this.poll(node.start)
      }
    }
    return super.call(node)
  }

  /** What may or may not run: a safepoint in it counts for nothing after it. */
  override nested(write: () => void): { text: Rope; last: number } {
    const polled = this.polled
    const made = super.nested(write)
    this.polled = polled
    return made
  }

  /**
   * Counts a safepoint that is passed. Told that the count is an integer the engine is quicker; but the text is longer,
   * and where calls are looked at there is enough of that.
   */
  get #count(): string {
    const { frames } = this
    const isKnown = this.plan.func.calls.every(({ reach }) => reach === 'known' || reach === 'short')
    return isKnown ? `(${frames}.left = ${frames}.left - 1 | 0)` : `--${frames}.left`
  }

  /** A safepoint. */
  protected poll(at: number, when = ''): void {
    const { ok } = this
    const look = this.host.runtime('lookInTime')
    this.place(at, null, unwind => rope`if (${when}${this.#count} < 0 && ${look}(${ok})) ${unwind}`)
  }

  /** A loop that is no loop over something. */
  protected abstract loop(node: Node, labels: Node[]): void
  /** `for…of` and `for…in`. */
  protected abstract each(node: Node, labels: Node[]): void

  statement(node: Node, labels: Node[]): void {
    const outer = this.from
    this.from = node.start
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
        this.declaration(node)
        break
      case 'ReturnStatement':
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
        this.#try(node)
        break
      case 'SwitchStatement':
        this.#switch(node, labels)
        break
      case 'ForOfStatement':
      case 'ForInStatement':
        this.loops.push(node)
        this.each(node, labels)
        this.loops.pop()
        break
      default:
        if (!isLoop(node)) throw new Error(`a ${node.type} that can stop`)
        this.loops.push(node)
        this.loop(node, labels)
        this.loops.pop()
    }
  }

  /** A statement that cannot stop: as it stands, but for what it declares. */
  #plain(node: Node): void {
    switch (node.type) {
      case 'VariableDeclaration':
        if (node.declare !== true) this.declaration(node)
        break
      case 'FunctionDeclaration':
        break
      case 'ClassDeclaration': {
        this.#set(this.#declaredBy(node), node.id, this.verbatim(node))
        break
      }
      case 'EmptyStatement':
        break
      case 'ExpressionStatement':
        this.simple(rope`;${this.verbatim(node.expression)};`)
        break
      default:
        this.simple(rope`${this.verbatim(node)};`)
    }
  }

  #variableOf(id: Node): Variable | undefined {
    const binding = this.host.bindingOf(id)
    return binding == null ? undefined : this.plan.variables.get(binding)
  }

  /** The variable that a function or class declaration declares. */
  #declaredBy(declaration: Node): Variable | undefined {
    for (const variable of this.plan.variables.values()) {
      if (variable.binding.declarations.includes(declaration)) return variable
    }
    return undefined
  }

  #set(variable: Variable | undefined, id: Node, value: Rope): void {
    if (variable === undefined) this.simple(rope`${id.name} = ${value};`)
    else if (variable.box === 'early') {
      this.simple(rope`${this.host.runtime('declared')}(${variable.name}, ${value});`)
    } else this.simple(rope`${variable.name}${variable.box === null ? '' : '.v'} = ${value};`)
  }

  /** Gives a declared variable its value. */
  protected assign(id: Node, value: Rope): void {
    const variable = id.type === 'Identifier' ? this.#variableOf(id) : undefined
    if (variable?.box === 'early') {
      this.simple(rope`${this.host.runtime('declared')}(${variable.name}, ${value});`)
      return
    }
    if (id.type === 'Identifier') {
      this.simple(rope`${this.pattern(id)} = ${value};`)
      return
    }
    const early = boundNames(id).filter(name => this.#variableOf(name)?.box === 'early')
    // A pattern sets its variables one by one; those that wait for their declaration are set from it.
    for (const name of early) {
      const { name: text } = this.#variableOf(name)!
      this.simple(rope`${this.host.runtime('declared')}(${text}, void 0);`)
    }
    this.simple(rope`(${this.pattern(id)} = ${value});`)
  }

  protected declaration(node: Node): void {
    for (const { id, init } of node.declarations as Node[]) {
      const held = this.held
      if (init === null) {
        if (node.kind !== 'var') this.assign(id, rope`void 0`)
      } else {
        const value = this.named(id, init)
        this.assign(id, id.type === 'Identifier' ? value : this.apart(id, init, value))
      }
      this.release(held)
    }
  }

  /** Lets the variables of a block be seen while `write` writes. */
  protected within(owner: Node, write: () => void): void {
    const declared = (this.plan.declared.get(owner) ?? []).filter(({ place }) => place === 'block')
    for (const variable of declared) this.opened.add(variable)
    write()
    for (const variable of declared) this.opened.delete(variable)
  }

  /** Declares what lives in a block, and makes the functions that are declared in it. */
  protected open(owner: Node, statements: readonly Node[]): Rope {
    const declared = this.plan.declared.get(owner) ?? []
    const made = new Rope()
    for (const { place, name, box, binding } of declared) {
      const fresh =
        box === 'early'
          ? `${this.host.runtime('early')}(${JSON.stringify(binding.name)})`
          : box === 'box'
            ? `new ${this.host.runtime('Box')}()`
            : 'void 0'
      if (place === 'block') {
        const index = this.slots.indexOf(name)
        const from = this.guards ? `${this.p} === 0 ? ${fresh} : ${this.prefix}v[${index}]` : fresh
        made.add(`let ${name} = ${from}; `)
      } else if (box !== null && owner !== this.plan.func.node) this.simple(rope`${name} = ${fresh};`)
    }
    for (const statement of statements) {
      if (statement.type !== 'FunctionDeclaration' || statement.body === null) continue
      const value = this.host.functionValue(statement, this.cx)
      this.#set(this.#declaredBy(statement), statement.id, value)
    }
    return made
  }

  #block(node: Node, labels: Node[]): void {
    let opened = new Rope()
    const { text, last } = this.nested(() =>
      this.within(node, () => {
        opened = this.open(node, node.body)
        this.list(node.body)
      }),
    )
    this.compound(rope`${prefixOf(labels)}{ ${opened}${text} }`, last)
  }

  /** A statement that is the body of another. */
  protected inner(node: Node): void {
    const held = this.held
    this.statement(node, [])
    this.release(held)
  }

  #if(node: Node): void {
    const held = this.held
    const test = this.value(node.test)
    this.flush()
    this.release(held)
    const polled = this.polled
    const first = this.nested(() => this.inner(node.consequent))
    const second = node.alternate === null ? null : this.nested(() => this.inner(node.alternate))
    this.polled = polled
    this.choose(test, first, second)
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

  /**
   * A `finally` that can stop stands behind its `try`. How the `try` was left is kept meanwhile: 0, at its end; 1, by an
   * error; 2, by a `return`; from 3 on, by a jump.
   */
  #ending(node: Node): void {
    const { block, handler, finalizer } = node
    const { frames } = this
    const outer = this.cx
    const how = this.take()
    const value = this.take()
    const label = this.label()
    const targets = new Map<string, { jump: Node; code: number }>()
    const jumps = new Map(outer.jumps)
    for (const jump of [...jumpsOutOf(block), ...(handler === null ? [] : jumpsOutOf(handler.body))]) {
      const key = `${jump.type} ${jump.label?.name ?? ''}`
      const target = targets.get(key) ?? { jump, code: 3 + targets.size }
      targets.set(key, target)
      jumps.set(jump, rope`{ ${how} = ${String(target.code)}; break ${label}; }`)
    }
    this.simple(rope`${how} = 0;`)
    this.cx = { ...outer, jumps, closing: undefined, ending: { label, how, value } }
    const { text, last } = this.nested(() => {
      if (handler === null) this.inner(block)
      else this.#try({ ...node, finalizer: null })
    })
    this.cx = outer
    const name = `${this.prefix}e`
    const caught = `catch (${name}) { ${frames}.ok = 0; ${how} = 1; ${value} = ${name}; }`
    this.compound(rope`${label}: { try { ${text} } ${caught} }`, last)
    this.inner(finalizer)
    this.simple(rope`if (${how} === 1) throw ${value};`)
    this.simple(rope`if (${how} === 2) ${returning(outer, rope`${value}`, this.prefix, 'return')}`)
    for (const { jump, code } of targets.values()) {
      this.simple(rope`if (${how} === ${String(code)}) { ${outer.jumps.get(jump) ?? this.verbatim(jump)}; }`)
    }
  }

  #try(node: Node): void {
    const { block, handler, finalizer } = node
    if (this.stops(finalizer)) {
      this.#ending(node)
      return
    }
    const { frames, guards, p } = this
    const ending =
      finalizer === null
        ? rope``
        : rope` finally { ${frames}.ok = 0; if (${frames}.u === 0) ${this.verbatim(finalizer)} }`
    const name = `${this.prefix}e`
    if (handler === null) {
      const { text, last } = this.nested(() => this.inner(block))
      this.compound(rope`try { ${text} }${ending}`, last)
      return
    }
    if (!this.stops(handler.body)) {
      const { text, last } = this.nested(() => this.inner(block))
      const param = handler.param === null ? rope`` : rope` (${this.verbatim(handler.param)})`
      const caught = rope` catch${param} { ${frames}.ok = 0; ${this.verbatim(handler.body)} }`
      this.compound(rope`try { ${text} }${caught}${ending}`, last)
      return
    }
    // A handler that can stop stands behind its `try`, so that it can be entered without one.
    const thrown = this.take()
    const error = this.take()
    const { text, last } = this.nested(() => {
      this.simple(rope`${thrown} = false;`)
      const { text: tried, last: triedLast } = this.nested(() => this.inner(block))
      this.compound(
        rope`try { ${tried} } catch (${name}) { ${frames}.ok = 0; ${thrown} = true; ${error} = ${name}; }`,
        triedLast,
      )
      let opened = new Rope()
      const handled = this.nested(() =>
        this.within(handler, () => {
          opened = this.open(handler, [])
          if (handler.param !== null) this.assign(handler.param, rope`${error}`)
          this.inner(handler.body)
        }),
      )
      const test = guards ? `${p} !== 0 || ${thrown}` : thrown
      this.compound(rope`if (${test}) { ${opened}${handled.text} }`, handled.last)
    })
    if (finalizer === null) this.compound(rope`{ ${text} }`, last)
    else this.compound(rope`try { ${text} }${ending}`, last)
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
      opened = this.open(node, statements)
      const choices = new Rope()
      let otherwise = cases.length
      for (const [index, { test }] of cases.entries()) {
        if (test === null) otherwise = index
        else choices.add(rope`case ${this.verbatim(test)}: ${at} = ${String(index)}; break; `)
      }
      this.simple(rope`switch (${on}) { ${choices}default: ${at} = ${String(otherwise)}; }`)
      for (const [index, { consequent }] of cases.entries()) {
        const branch = this.nested(() => this.within(node, () => this.list(consequent)))
        const test = guards ? `${p} === 0 ? ${at} <= ${index} : ${p} <= ${branch.last}` : `${at} <= ${index}`
        this.add(rope`if (${test}) { ${branch.text} }`)
      }
    })
    // A switch that is entered at once: `break` leaves it, and `continue` is that of the loop around.
    this.compound(rope`{ ${opened}${prefixOf(labels)}switch (0) { default: ${text} } }`, last)
  }
}

/** A `return`, by way of what it has to close, and of the `finally` that has to see it. */
export function returning(cx: Context, value: Rope | null, prefix: string, word: Piece): Rope {
  const { closing, ending } = cx
  const given = value ?? rope`void 0`
  if (closing === undefined && ending === undefined)
    return value === null ? rope`${word};` : rope`${word} ${value};`
  const close = closing === undefined ? '' : closingText(closing)
  if (ending !== undefined) {
    return rope`{ ${ending.value} = ${given}; ${close} ${ending.how} = 2; break ${ending.label}; }`
  }
  const result = `${prefix}x`
  return rope`{ const ${result} = ${given}; ${close} ${word} ${result}; }`
}

/** The word that a statement begins with, at its place in the source. */
function keyword({ start }: Node, word: string): { start: number; end: number } {
  return { start, end: start + word.length }
}

/** Closes the loops over these cursors. */
export function closingText(cursors: readonly string[]): string {
  return cursors.map(cursor => `if (${cursor} !== null) ${cursor}.close();`).join(' ')
}

export function prefixOf(labels: readonly Node[]): string {
  return labels.map(({ name }) => `${name}: `).join('')
}
