/**
 * Calls in a function that unwinds. A known callee gets the permission directly. An unknown callee is
 * checked: it unwinds, it has only a plain form, or it must be called in another way.
 */
import { constructStops, superStops } from '../../../analysis/construct.ts'
import type { Call, Func } from '../../../analysis/functions.ts'
import { join, type Piece, Rope, rope } from '../../../output/rope.ts'
import { bare, isFunction, type Node } from '../../../analysis/syntax.ts'
import { hasFixedMethods } from '../../../analysis/types.ts'
import { calleeText } from '../../writer/enginemessages.ts'
import { callForm, constructedFunction, unmarked, unmarkedForCallee } from '../callees.ts'
import { madeIterator } from '../iterators.ts'
import { permissionIndex } from '../permission.ts'
import { isSeenByCalleeOnly } from '../unmarkedarguments.ts'
import { Expressions } from './expressions.ts'
import { listValues } from './literals.ts'
import { operand } from './operands.ts'

export abstract class Calls extends Expressions {
  /** The arguments of a call whose text may appear more than once, of which one runs. */
  #arguments(nodes: readonly Node[]): Rope[] {
    return this.#heldValues(nodes, listValues(this, nodes))
  }

  /**
   * Values that may be read in any order: those whose read runs code, and those that such code may change,
   * are held.
   */
  #heldValues(nodes: readonly Node[], values: readonly Rope[]): Rope[] {
    return values.map((value, index) => {
      const node = nodes[index]!
      if (!this.order.mayChange(node, nodes.slice(index + 1))) return value
      if (node.type !== 'SpreadElement') return rope`${this.hold(value)}`
      return rope`...${this.hold(rope`[${value}]`)}`
    })
  }

  /** A call that gives the permission through `frames.ok`: no other code runs in between. */
  #permitted(
    callee: Rope,
    receiver: Piece | null,
    nodes: readonly Node[],
    values: Rope[],
    permit: Piece = this.permit,
  ): Rope {
    const last = nodes.findLastIndex(node => !this.order.isRead(node))
    const list: Piece[] = values.map((value, index) => {
      if (index !== last) return value
      const held = this.take()
      const node = nodes[index]!
      if (node.type !== 'SpreadElement') return rope`(${held} = ${value}, ${permit}, ${held})`
      return rope`...(${held} = [${value}], ${permit}, ${held})`
    })
    if (receiver !== null) list.unshift(receiver)
    const call = rope`${callee}(${join(list, ', ')})`
    return last === -1 ? rope`(${permit},${call})` : call
  }

  /** The same by an extra last argument, if the function takes one. */
  #calledWithPermission(
    callee: Rope,
    target: Func,
    nodes: readonly Node[],
    values: readonly Rope[],
  ): Rope | null {
    const count = permissionIndex(target)
    if (count === null || nodes.length > count || nodes.some(({ type }) => type === 'SpreadElement'))
      return null
    const missing = Array.from({ length: count - nodes.length }, () => 'void 0')
    return rope`${callee}(${join([...values, ...missing, this.ok], ', ')})`
  }

  call(node: Node): Rope {
    const { lowering, cx } = this
    const call = lowering.callOf(node)
    const callee = bare(node.callee)
    if (call !== undefined && callee.type === 'Super' && superStops(call, lowering.analysis))
      return this.#super(node, call)
    const made = this.plan.movable ? madeIterator(node, lowering.analysis) : null
    if (made !== null) return lowering.iteratorText(made, this.value(made.object), cx)
    if (call === undefined || lowering.staysPlain(call)) return this.#plainCall(node, callee)
    const held = this.held
    if (call.target !== null && callee.type === 'Identifier') {
      const way = callForm(lowering, call.target, cx)
      if (way !== 'unknown') return this.#known(node, callee, call.target, way, held)
    }
    if (callee.type === 'MemberExpression') {
      if (this.#passesThrough(node, callee)) return this.#passThroughCall(node, callee, held)
      const target = lowering.privateTarget(callee, cx)
      if (target !== null && !callee.optional && !node.optional)
        return this.#private(node, callee, target, held)
      return this.#method(node, callee, held)
    }
    return this.#unknown(node, callee, held)
  }

  /** A call that cannot suspend itself, with a part that can. */
  #plainCall(node: Node, callee: Node): Rope {
    const args = node.arguments as Node[]
    if (callee.type === 'MemberExpression' && callee.object.type !== 'Super') {
      const stops = this.lastStop(args) >= 0
      let object = this.value(callee.object)
      if (callee.optional) object = rope`${this.guard(object)}`
      else if (stops && this.order.mayChange(callee.object, [callee, ...args])) {
        object = rope`${this.hold(object)}`
      }
      const access = callee.computed
        ? rope`[${this.hold(this.value(callee.property))}]`
        : rope`.${callee.property}`
      const method = rope`${operand(object)}${access}`
      if (node.optional) {
        const receiver = this.hold(object)
        const fn = this.guard(rope`${receiver}${access}`)
        return rope`${fn}.call(${join([receiver, ...listValues(this, args)], ', ')})`
      }
      if (stops && !hasFixedMethods(callee.object, this.lowering.analysis))
        return this.#heldMethod(callee, method, object, args)
      return rope`${method}(${join(listValues(this, args), ', ')})`
    }
    if (callee.type === 'MemberExpression' && !node.optional && this.lastStop(args) >= 0) {
      return this.#heldMethod(callee, this.value(callee), this.#superReceiver, args)
    }
    let fn: Piece = callee.type === 'Super' ? rope`super` : this.value(node.callee)
    if (node.optional) fn = this.guard(fn)
    else if (callee.type === 'Identifier') {
      this.#refuseEarly(callee, args)
      fn = this.#callable(fn)
    }
    return rope`${fn}(${join(listValues(this, args), ', ')})`
  }

  /** A call of a method that is looked up before an argument suspends. */
  #heldMethod(callee: Node, method: Rope, receiver: Rope, args: readonly Node[]): Rope {
    const fn = this.hold(method)
    const list = join([receiver, ...listValues(this, args)], ', ')
    return rope`${this.runtime('callable')}(${fn},${JSON.stringify(calleeText(callee))}).call(${list})`
  }

  /** The receiver of a method of `super`. */
  get #superReceiver(): Rope {
    return this.cx.readsCaptures ? this.verbatim({ type: 'ThisExpression', start: 0, end: 0 }) : rope`this`
  }

  #known(node: Node, callee: Node, target: Func, way: 'frames' | 'generator', held: number): Rope {
    const { lowering, ok } = this
    const name = this.verbatim(callee)
    this.#refuseEarly(callee, node.arguments)
    const values =
      way === 'frames'
        ? (this.#unmarkedArguments(node.arguments, target) ?? listValues(this, node.arguments))
        : this.#arguments(node.arguments)
    const direct = this.#callable(name)
    const call =
      way === 'frames'
        ? (this.#calledWithPermission(direct, target, node.arguments, values) ??
          this.#permitted(direct, null, node.arguments, values))
        : rope`!${ok}?${direct}(${join(values, ', ')}) : ${this.runtime('run')}(${lowering.twinName(target)}(${join(values, ', ')}))`
    return this.#result(node, held, result => rope`${result}=${call};`)
  }

  /** The arguments, if one of them is an unmarked function for which the callee is prepared. */
  #unmarkedArguments(nodes: readonly Node[], target: Func): Rope[] | null {
    const index = this.lowering.calledParameter(target)?.index ?? nodes.length
    const after = nodes.slice(index + 1)
    const made = nodes[index]
    if (made === undefined || !isFunction(made) || !after.every(node => this.order.isRead(node))) return null
    if (nodes.some(({ type }) => type === 'SpreadElement')) return null
    const text = unmarkedForCallee(this.lowering, made, this.cx)
    if (text === null) return null
    const before = listValues(this, nodes.slice(0, index))
    return [...before, rope`${this.runtime('vouch')}(${text})`, ...listValues(this, after)]
  }

  /**
   * The variable that tells whether the callee, a parameter, is an unmarked function that unwinds; null if
   * there is none.
   */
  #unmarkedTest(callee: Node): string | null {
    if (callee.type !== 'Identifier') return null
    const parameter = this.lowering.calledParameter(this.plan.func)
    return parameter !== null && this.lowering.analysis.bindingOf.get(callee) === parameter.binding
      ? `${this.prefix}m`
      : null
  }

  /** A name that may not be declared yet must throw before the arguments are evaluated. */
  #refuseEarly(callee: Node, args: readonly Node[]): void {
    if (!this.order.isRead(callee) && this.lastStop(args) >= 0) this.simple(rope`${this.verbatim(callee)};`)
  }

  /** True if the called variable can be read after the arguments. */
  #readsLast(callee: Node, args: readonly Node[]): boolean {
    return (
      args.every(argument => this.order.isRead(argument) || isFunction(argument)) ||
      !this.order.mayChange(callee, args)
    )
  }

  /** A variable in a form that passes no receiver to its call. */
  #callable(name: Rope): Rope {
    return name.text(this.lowering.source).includes('.') ? rope`(0, ${name})` : name
  }

  #private(node: Node, callee: Node, target: Func, held: number): Rope {
    const { lowering, ok } = this
    const itself = lowering.isItself(target)
    const object = this.value(callee.object)
    const stays = itself && !this.order.mayChange(callee.object, node.arguments)
    const receiver = stays ? object : rope`${this.hold(object)}`
    const values = itself ? listValues(this, node.arguments) : this.#arguments(node.arguments)
    const method = rope`${receiver}.${callee.property}`
    const list = join(values, ', ')
    const call = itself
      ? (this.#calledWithPermission(method, target, node.arguments, values) ??
        this.#permitted(method, null, node.arguments, values))
      : rope`!${ok} ? ${method}(${list}) : ${this.runtime('run')}(${receiver}.${lowering.privateName(callee.property.name)}(${list}))`
    return this.#result(node, held, result => rope`${result}=${call};`)
  }

  /** The result of a call, in the lowest temporary that is free after its operands. */
  #result(node: Node, held: number, write: (result: string) => Rope): Rope {
    this.release(held)
    const result = this.take()
    this.release(held)
    if (this.tailCalls.has(node)) this.simple(write(result))
    else this.resumePoint(node.end, result, unwind => rope`${write(result)}if(${this.frames}.u)${unwind}`)
    this.take()
    return rope`${result}`
  }

  /** True for a call in the second form that runs at most once: there, short text matters more than speed. */
  get runsOnce(): boolean {
    return this.guards && !this.plan.single && !this.isRepeated
  }

  /** A call of a function with a twin: mostly a built-in, with one or two arguments. */
  #otherCall(fn: Piece, self: Piece, nodes: readonly Node[], values: Rope[], text: string): Rope {
    const { ok } = this
    const isShort = nodes.length <= 2 && !nodes.some(({ type }) => type === 'SpreadElement')
    if (!isShort) return rope`${this.runtime('other')}(${ok},${fn},${self},[${join(values, ',')}],${text})`
    const name = this.runtime(`other${nodes.length}`)
    return rope`${name}(${join([ok, fn, self, ...values, text], ',')})`
  }

  #unknown(node: Node, callee: Node, held: number): Rope {
    const { lowering } = this
    let fn: Rope
    const isVariable =
      !node.optional && callee.type === 'Identifier' && this.#readsLast(callee, node.arguments)
    if (node.optional) fn = rope`${this.guard(this.value(node.callee))}`
    else if (isVariable) fn = this.verbatim(callee)
    else fn = rope`${this.hold(this.value(node.callee))}`
    const { values, lent } = this.#lentArguments(node.arguments)
    const args = join(values, ',')
    const found = this.take()
    const text = JSON.stringify(calleeText(callee))
    const name = callee.type === 'Identifier' || node.optional ? this.#callable(fn) : fn
    const direct = this.#lending(fn, lent, values, rope`${name}(${args})`)
    const elsewhere = this.#marking(lent, values, this.#otherCall(fn, 'void 0', node.arguments, values, text))
    // A held value and a member would appear in the engine's message under the compiler's names.
    const isNamed = isVariable && !fn.text(lowering.source).includes('.')
    const isUnmarked = this.#unmarkedTest(callee)
    // A value that is no function is called as it is, so that the engine throws its own error.
    const looked = isNamed
      ? this.#isCalled(found, fn, '?.')
      : rope`typeof ${fn} === 'function' && ${this.#isCalled(found, fn, '')}`
    const isOurs = isUnmarked === null ? looked : rope`${isUnmarked}?(${this.permit},true):${looked}`
    const write =
      this.runsOnce && isUnmarked === null
        ? (result: string): Rope => rope`${result}=${elsewhere};`
        : (result: string): Rope => rope`if(${isOurs})${result}=${direct};else ${result}=${elsewhere};`
    return this.#result(node, held, write)
  }

  #method(node: Node, callee: Node, held: number): Rope {
    const { lowering } = this
    const isSuper = callee.object.type === 'Super'
    let receiver: Rope
    if (isSuper) receiver = this.#superReceiver
    else {
      const object = this.value(callee.object)
      if (callee.optional) receiver = rope`${this.guard(object)}`
      else if (this.order.isFixed(callee.object)) receiver = object
      // The read of the method, perhaps by a getter, happens in between.
      else if (!this.order.mayChange(callee.object, [callee, ...node.arguments])) receiver = object
      else receiver = rope`${this.hold(object)}`
    }
    const method = isSuper
      ? this.value(callee)
      : callee.computed
        ? rope`${receiver}[${this.value(callee.property)}]`
        : // A point after a number would belong to it.
          rope`${callee.object.type === 'Literal' ? operand(receiver) : receiver}.${callee.property}`
    const fn = node.optional ? this.guard(method) : this.hold(method)
    const made = this.#unmarkedArgument(node)
    const { values, lent } =
      made === null
        ? this.#lentArguments(node.arguments)
        : {
            values: [rope`${this.hold(rope`(0, ${made})`)}`, ...this.#arguments(node.arguments.slice(1))],
            lent: isSeenByCalleeOnly(lowering.analysis.funcOf.get(node.arguments[0])!) ? 0 : null,
          }
    const found = this.take()
    const args = join([receiver, ...values], ',')
    const text = JSON.stringify(calleeText(callee))
    const elsewhere =
      made === null
        ? this.#marking(lent, values, this.#otherCall(fn, receiver, node.arguments, values, text))
        : this.#given(fn, receiver, values, text)
    const isOurs = rope`${fn}?.call===${this.runtime('call')}&&${this.#isCalled(found, fn, '')}`
    // A function made here is lent or marked before it is passed on: no other code runs in between.
    const direct = rope`${fn}.call(${args})`
    const call =
      made === null || lent !== null
        ? this.#lending(rope`${fn}`, lent, values, direct)
        : this.#marking(0, values, direct)
    const write = this.runsOnce
      ? (result: string): Rope => rope`${result}=${elsewhere};`
      : (result: string): Rope => rope`if(${isOurs})${result}=${call};else ${result}=${elsewhere};`
    const isEach = !callee.computed && callee.property.name === 'forEach' && values.length === 1
    if (made === null || !isEach) return this.#result(node, held, write)
    return this.#each(node, held, fn, receiver, values[0]!, write)
  }

  /** `f.call(self, x)` and `f.apply(self, arguments)`, if no other code runs before `f` is entered. */
  #passesThrough(node: Node, { object, property, computed, optional }: Node): boolean {
    if (computed || optional || node.optional || object.type === 'Super') return false
    const args = node.arguments as Node[]
    if (property.name === 'call') {
      return args.length > 0 && !isFunction(args[0]!) && args.every(({ type }) => type !== 'SpreadElement')
    }
    const list = args[1]
    const isList = list?.type === 'Identifier' && list.name === 'arguments'
    return (
      property.name === 'apply' && args.length === 2 && isList && !this.lowering.analysis.bindingOf.get(list)
    )
  }

  /** Such a call: the function itself is checked, and gets the permission. */
  #passThroughCall(node: Node, callee: Node, held: number): Rope {
    const fn = this.hold(this.value(callee.object))
    const way = this.hold(rope`${fn}.${callee.property}`)
    const values = this.#arguments(node.arguments)
    const found = this.take()
    const text = JSON.stringify(calleeText(callee))
    const elsewhere = this.#otherCall(way, fn, node.arguments, values, text)
    const builtIn = this.runtime(callee.property.name === 'call' ? 'call' : 'applyOf')
    const isOurs = rope`${way}===${builtIn}&&${this.#isCalled(found, fn, '?.')}`
    const call = rope`${way}.call(${join([fn, ...values], ', ')})`
    const write = this.runsOnce
      ? (result: string): Rope => rope`${result}=${elsewhere};`
      : (result: string): Rope => rope`if(${isOurs})${result}=${call};else ${result}=${elsewhere};`
    return this.#result(node, held, write)
  }

  /**
   * `forEach` with a function made in the call. For an array it becomes a loop here, so that the engine can
   * inline the function. Any other receiver is called as usual.
   */
  #each(
    node: Node,
    held: number,
    fn: string,
    list: Rope,
    callback: Rope,
    write: (result: string) => Rope,
  ): Rope {
    const { frames, guards, lowering, ok, p } = this
    const at = this.take()
    const end = this.take()
    this.simple(rope`${end} = ${this.runtime('eachOf')}(${fn}, ${list}); ${at} = ${end} < 0 ? ${end} : 0;`)
    const element = this.take()
    this.repeats++
    const turn = this.nested(() => {
      this.resumePoint(node.end, null, unwind => {
        // The element is read before the permission is given, because a getter must not take it.
        const call = rope`${element} = ${list}[${at}]; ${this.permit}; ${callback}(${element}, ${at}, ${list}); if (${frames}.u) ${unwind}`
        return rope`if (${at} in ${list}) { ${call} }`
      })
      this.resumePoint(
        node.end,
        null,
        unwind => rope`if ((${at} & 63) === 63 && ${this.runtime('look')}(${ok})) ${unwind}`,
      )
    })
    this.repeats--
    const entering = guards ? `${p}||` : ''
    this.compound(rope`for (; ${entering}${at} < ${end}; ${at}++) { ${turn.text} }`, turn.last)
    let result = ''
    this.when(`${end} < 0`, () => {
      result = this.#result(node, held, write).text(lowering.source)
    })
    this.simple(rope`if (${end} >= 0) ${result} = void 0;`)
    return rope`${result}`
  }

  /** An unmarked function that unwinds, made in the argument list; null if the call has none. */
  #unmarkedArgument(node: Node): Rope | null {
    const [first, ...rest] = node.arguments as Node[]
    if (first === undefined || !isFunction(first)) return null
    if (rest.some(argument => argument.type === 'SpreadElement' || this.stops(argument))) return null
    return unmarked(this.lowering, first, this.cx)
  }

  /**
   * The arguments of a call whose text may appear more than once. `lent`: which of them is an unmarked
   * function, made here; null if none is.
   */
  #lentArguments(nodes: readonly Node[]): { values: Rope[]; lent: number | null } {
    const lent = nodes.findIndex(isFunction)
    const after = nodes.slice(lent + 1)
    const isLast = lent >= 0 && after.every(node => this.order.isRead(node) && !isFunction(node))
    const isSpread = nodes.some(({ type }) => type === 'SpreadElement')
    const made = isLast && !isSpread ? unmarkedForCallee(this.lowering, nodes[lent]!, this.cx) : null
    if (made === null) return { values: this.#arguments(nodes), lent: null }
    const before = this.#heldValues(nodes.slice(0, lent), listValues(this, nodes.slice(0, lent)))
    const held = rope`${this.hold(rope`(0, ${made})`)}`
    return { values: [...before, held, ...this.#heldValues(after, listValues(this, after))], lent }
  }

  /** The call, after its unmarked argument is lent to the callee or marked: no other code runs in between. */
  #lending(fn: Rope, lent: number | null, values: readonly Rope[], call: Rope): Rope {
    return lent === null
      ? call
      : rope`(${this.runtime('lend')}(${fn},${String(lent)},${values[lent]!}),${call})`
  }

  /** The same, after that argument is marked. */
  #marking(lent: number | null, values: readonly Rope[], call: Rope): Rope {
    return lent === null ? call : rope`(${this.runtime('unwinding')}(${values[lent]!}),${call})`
  }

  #given(fn: Piece, self: Piece, [callback, ...rest]: Rope[], text: string): Rope {
    const { ok } = this
    const list = rest.length === 0 ? this.runtime('nothing') : rope`[${join(rest, ', ')}]`
    return rope`${this.runtime('given')}(${ok}, ${fn}, ${self}, ${callback!}, ${list}, ${text})`
  }

  /**
   * The test that a callee is called as it is: it unwinds, and gets the permission here, or it has only a
   * plain form. `found` holds its mark.
   */
  #isCalled(found: string, fn: Piece, dot: '' | '?.'): Rope {
    const other = rope`${found}===void 0&&${fn}${dot}[${this.runtime('twin')}]===void 0`
    return rope`((${found}=${fn}${dot}[${this.runtime('itself')}])===${fn}?(${this.permit},1):${other})`
  }

  /**
   * `new`. If the constructor unwinds, `new` returns the unfinished object, which is saved. The second form
   * of the constructor returns nothing or an object, as constructors do.
   */
  construct(node: Node): Rope {
    const { frames, lowering } = this
    const callee = bare(node.callee)
    const args = node.arguments as Node[]
    if (!constructStops(node, lowering.analysis)) {
      const [fn, ...values] = listValues(this, [node.callee, ...args])
      return rope`new (${fn!})(${join(values, ', ')})`
    }
    const held = this.held
    const isName = callee.type === 'Identifier' && this.#readsLast(callee, args)
    const fn = isName ? this.verbatim(callee) : rope`${this.hold(this.value(node.callee))}`
    const values = listValues(this, args)
    const known = isName && constructedFunction(lowering, node, this.cx) !== null
    const itself = this.runtime('itself')
    const allowed = this.passesPermission ? `(${this.ok}===${frames}?1:0)` : this.ok
    const looked = rope`${frames}.ok=${fn}?.[${itself}]===${fn}?${allowed}:0`
    const text = JSON.stringify(calleeText(callee))
    const permit = known
      ? rope`${this.permit}`
      : isName
        ? looked
        : rope`(${this.runtime('mayBuild')}(${fn})||${this.runtime('refuseNew')}(${fn},${text}),${looked})`
    const made = this.#permitted(rope`new (${fn})`, null, args, values, permit)
    this.release(held)
    const result = this.take()
    this.resumePoint(
      node.end,
      result,
      unwind => rope`${result}=${made};if(${frames}.u)${unwind}`,
      taken => `${this.runtime('built')}(${result},${taken})`,
    )
    return rope`${result}`
  }

  /** `super(…)` of a parent that may unwind: see runtime/construct.ts. */
  #super(node: Node, { func }: Call): Rope {
    const { frames, ok } = this
    const name = func.owner!.id.name as string
    const args = node.arguments as Node[]
    const held = this.held
    const parent = this.hold(rope`${this.runtime('parentOf')}(${name})`)
    const permit = rope`${this.runtime('permitParent')}(${ok}, ${name}, ${parent})`
    const call = this.#permitted(rope`super`, null, args, listValues(this, args), permit)
    this.release(held)
    const result = this.take()
    this.release(held)
    const error = `${this.prefix}e`
    const caught = `catch (${error}) { ${frames}.ok = 0; if (${error} !== ${this.runtime('unwound')}) throw ${error}; }`
    this.resumePoint(
      node.end,
      result,
      unwind => rope`try { ${call}; } ${caught} if (${frames}.u) ${unwind} ${result} = this;`,
      taken => `(${this.runtime('give')}(${name}, ${taken}), super())`,
    )
    this.take()
    return rope`${result}`
  }

  /** A method as a tag. The engine's message would name the temporary that holds its object. */
  #taggingMethod(tag: Node): Rope {
    const text = JSON.stringify(calleeText(tag))
    const tagged = (fn: Rope, object: Piece): Rope =>
      rope`${this.hold(rope`${this.runtime('taggingBy')}(${fn}, ${object}, ${text})`)}`
    if (tag.object.type === 'Super') return tagged(this.value(tag), this.#superReceiver)
    const object = this.hold(this.value(tag.object))
    const key = tag.computed ? rope`[${this.value(tag.property)}]` : rope`.${tag.property}`
    return tagged(rope`${object}${key}`, object)
  }

  /** The template where it stands, with these values. */
  #quasi(node: Node, values: readonly Rope[]): Rope {
    const quasi = new Rope()
    let reached = node.quasi.start
    for (const [index, expression] of (node.quasi.expressions as Node[]).entries()) {
      quasi.add({ start: reached, end: expression.start }).add(values[index]!)
      reached = expression.end
    }
    return quasi.add({ start: reached, end: node.quasi.end })
  }

  tagged(node: Node): Rope {
    const { lowering, ok } = this
    const call = lowering.callOf(node)
    const tag = bare(node.tag)
    const held = this.held
    const canStop = call !== undefined && !lowering.staysPlain(call) && tag.type !== 'MemberExpression'
    const expressions = node.quasi.expressions as Node[]
    const isMethod =
      tag.type === 'MemberExpression' &&
      (tag.object.type === 'Super' ? this.cx.readsCaptures : this.stops(tag))
    const [fn, ...plain] = isMethod
      ? [this.#taggingMethod(tag), ...this.values(expressions)]
      : this.values([node.tag, ...expressions])
    const kept = canStop ? rope`${this.hold(fn!)}` : fn!
    const values = canStop ? this.#heldValues(expressions, plain) : plain
    const strings = lowering.stringsOf(node)
    const quasi = strings === null ? this.#quasi(node, values) : rope`(${join([strings, ...values], ', ')})`
    if (!canStop) return rope`${tag.type === 'Identifier' ? this.#callable(kept) : kept}${quasi}`
    const found = this.take()
    const text = JSON.stringify(calleeText(tag))
    const made = this.runtime('tagging')
    return this.#result(
      node,
      held,
      result => rope`${found} = ${made}(${ok}, ${kept}, ${text}); ${result} = ${found}${quasi};`,
    )
  }
}
