/**
 * Calls in a resumable function. A known target is called by the name of its twin. An unknown callee is
 * checked at run time. A call that cannot run long stays as it is. Every form evaluates its parts in order,
 * once.
 */
import type { Call, Func } from '../../analysis/functions.ts'
import { join, type Piece, Rope, rope } from '../../output/rope.ts'
import { bare, isAnonymous, isFunction, type Node, walk } from '../../analysis/syntax.ts'
import type { Context } from '../writer/context.ts'
import { calleeText } from '../writer/enginemessages.ts'
import { Writer } from '../writer/writer.ts'

/** A link of a chain of members and calls: its value, and the test that makes the whole chain undefined. */
interface Link {
  guards: Rope[]
  value: Rope
  /** Temporaries to release when the whole chain is written. */
  held: string[]
}

export abstract class CallLowering extends Writer {
  #calls: Map<Node, Call> | null = null

  callOf(node: Node): Call | undefined {
    if (this.#calls === null) {
      this.#calls = new Map()
      for (const func of this.analysis.funcs) for (const call of func.calls) this.#calls.set(call.node, call)
    }
    return this.#calls.get(node)
  }

  /** A call that stays as it is. The object of its callee and its arguments may suspend. */
  #plainCall(node: Node, cx: Context): Rope {
    return this.plainly(this.copy(node, cx), node)
  }

  /** The resumable form of the callee. */
  ownOf(fn: Piece, _node: Node): Rope {
    return rope`${this.names.runtime('own')}(${fn})`
  }

  /** Runs a function that has no resumable form. */
  plainly(written: Rope, _node: Node): Rope {
    return written
  }

  /** True if a call of this function may use its twin's own name. */
  isCertain(_target: Func, _node: Node): boolean {
    return true
  }

  /** The steps of a call; `target` is the function if it is certain. */
  driven(steps: Rope, _node: Node, _target: Func | null): Rope {
    return steps
  }

  /** The object of a member, just before the member is read. */
  peeked(object: Rope, _member: Node): Rope {
    return object
  }

  /** The call of a function without a resumable form; `written` is the text of the call. */
  plainCall(
    written: Rope,
    _fn: Piece,
    _receiver: Piece | null,
    _args: Piece,
    _text: string,
    node: Node,
  ): Rope {
    return this.plainly(written, node)
  }

  call(node: Node, cx: Context): Rope {
    const call = this.callOf(node)
    if (call === undefined || this.staysPlain(call)) return this.#plainCall(node, cx)
    const target = call.target !== null && this.isCertain(call.target, node) ? call.target : null
    const callee = bare(node.callee)
    if (target !== null && isFunction(callee)) return this.#immediate(node, target, cx)
    if (target !== null && cx.available.has(target) && this.isItself(target)) {
      return this.#entered(
        callee.type === 'Identifier' ? this.node(callee, cx) : rope`${callee.name}`,
        node,
        cx,
      )
    }
    if (target !== null && cx.available.has(target) && target.binding?.kind !== 'var') {
      const args = this.argumentsText(node, cx)
      const name = callee.name as string
      const steps = this.isDirect(target)
        ? rope`yield* ${this.twinName(target)}(${args})`
        : rope`yield* (0, ${name}[${this.names.runtime('twin')}])(${args})`
      return rope`(${this.driven(steps, node, target)})`
    }
    const privateTwin = this.privateTarget(callee, cx)
    if (privateTwin !== null && this.isCertain(privateTwin, node)) {
      const object = this.node(callee.object, cx)
      if (this.isItself(privateTwin)) return this.#entered(rope`${object}.${callee.property}`, node, cx)
      const steps = rope`yield* ${object}.${this.privateName(callee.property.name)}(${this.argumentsText(node, cx)})`
      return rope`(${this.driven(steps, node, privateTwin)})`
    }
    const link = this.#link(node, cx)
    cx.frame!.give(...link.held)
    return link.value
  }

  /** Calls a function that unwinds, with the permission, and runs the frames that it saved to their end. */
  #entered(callee: Rope, node: Node, cx: Context): Rope {
    const frame = cx.frame!
    const frames = this.names.runtime('frames')
    const permit = rope`${frames}.ok = 1`
    const last = node.arguments.length - 1
    const list = this.argumentsThen(node, cx, permit)
    const result = frame.take()
    frame.give(result)
    const call = rope`${result} = ${callee}(${join(list, ', ')})`
    const first = last < 0 ? rope`${permit}, ` : ''
    // A sequence before the `?` would appear in the engine's error text, with the name of the temporary.
    return rope`((${first}${call}, ${frames}.u) === 0 ? ${result} : yield* ${this.names.runtime('rest')}())`
  }

  /** The arguments of a call, and code that runs after them, just before the call. */
  argumentsThen(node: Node, cx: Context, then: Rope): Rope[] {
    const frame = cx.frame!
    const list: Rope[] = node.arguments.map((argument: Node) => this.#unnamed(argument, cx))
    const last = list.length - 1
    if (last < 0) return list
    const held = frame.take()
    const text = list[last]!
    list[last] =
      node.arguments[last].type === 'SpreadElement'
        ? rope`...(${held} = [${text}], ${then}, ${held})`
        : rope`(${held} = ${text}, ${then}, ${held})`
    frame.give(held)
    return list
  }

  staysPlain(call: Call): boolean {
    if (call.reach === 'short' || call.plain) return true
    return call.target !== null && (!call.target.twin || !call.target.long)
  }

  /** A function that is called where it is written: only its resumable form is needed. */
  #immediate(node: Node, target: Func, cx: Context): Rope {
    const named = target.self !== null && target.self.references.length > 0
    // A function that unwinds has no other form, because its text says where its variables are.
    if (named || this.isItself(target) || this.flavor(target) !== 'plain' || !this.attachesTwin(target, cx)) {
      const link = this.#link(node, cx)
      cx.frame!.give(...link.held)
      return link.value
    }
    const steps = rope`yield* (${this.twin(target, cx, 'function* ')})(${this.argumentsText(node, cx)})`
    return rope`(${this.driven(steps, node, target)})`
  }

  privateTarget(callee: Node, cx: Context): Func | null {
    if (callee.type !== 'MemberExpression' || callee.property.type !== 'PrivateIdentifier') return null
    return cx.available.privateMethod(callee.property.name)
  }

  /** The value of a member of `object`. */
  accessed(object: Rope, node: Node, cx: Context): Rope {
    return rope`${object}${this.#access(node, cx)}`
  }

  /** True if a part of the chain may suspend. */
  chainStops(node: Node): boolean {
    let stops = false
    walk(node, child => {
      if (isFunction(child)) return false
      const call = this.callOf(child)
      if (call !== undefined && !this.staysPlain(call)) stops = true
      return !stops
    })
    return stops
  }

  chain(node: Node, cx: Context): Rope {
    if (!this.chainStops(node)) return this.copy(node, cx)
    const { guards, value, held } = this.#link(node.expression, cx)
    cx.frame!.give(...held)
    const made = new Rope().add('(')
    for (const guard of guards) made.add(guard).add(' ? void 0 : ')
    return made.add(value).add(')')
  }

  /** The test that a callee has no resumable form. */
  #isPlain(fn: Piece): Rope {
    return rope`(${fn}?.[${this.names.runtime('twin')}] ?? ${fn}?.[${this.names.runtime('itself')}]) === void 0`
  }

  #link(node: Node, cx: Context): Link {
    switch (node.type) {
      case 'TSNonNullExpression':
        return this.#link(node.expression, cx)
      case 'MemberExpression': {
        if (node.object.type === 'Super') return { guards: [], value: this.node(node, cx), held: [] }
        const object = this.#link(node.object, cx)
        if (node.optional) this.#guard(object, cx)
        return { ...object, value: this.accessed(object.value, node, cx) }
      }
      case 'CallExpression':
        return this.#linkCall(node, cx)
      default:
        return { guards: [], value: this.#unnamed(node, cx), held: [] }
    }
  }

  /** Stores the value so far in a variable. If it is null or undefined, the chain ends. */
  #guard(link: Link, cx: Context): void {
    const name = cx.frame!.take()
    link.held.push(name)
    link.guards.push(rope`(${name} = ${link.value}) == null`)
    link.value = rope`${name}`
  }

  #access(node: Node, cx: Context): Rope {
    if (node.computed) return rope`[${this.node(node.property, cx)}]`
    return rope`.${node.property}`
  }

  #linkCall(node: Node, cx: Context): Link {
    const frame = cx.frame!
    const { callee } = node
    const call = this.callOf(node)
    const plain = call === undefined || this.staysPlain(call)
    const inner = bare(callee)
    if (inner.type === 'MemberExpression') return this.#linkMethod(node, inner, cx, plain)
    if (inner.type === 'Super' || inner.type === 'Import')
      return { guards: [], value: this.#plainCall(node, cx), held: [] }
    if (inner.type === 'ChainExpression' && inner.expression.type === 'MemberExpression') {
      return this.#linkParenthesized(node, inner.expression, cx)
    }
    const link = this.#link(callee, cx)
    if (plain) {
      if (node.optional) this.#guard(link, cx)
      return { ...link, value: this.plainly(rope`${link.value}(${this.argumentsText(node, cx)})`, node) }
    }
    if (node.optional) this.#guard(link, cx)
    if (
      inner.type === 'Identifier' &&
      !node.optional &&
      node.arguments.every(isRepeatable) &&
      textLength(node) < 40
    ) {
      const args = this.argumentsText(node, cx)
      const name = link.value
      const called = this.plainCall(rope`${name}(${args})`, name, null, args, calleeText(callee), node)
      return {
        ...link,
        value: rope`(${this.#isPlain(name)} ? ${called} : ${this.driven(rope`yield* (0, ${this.ownOf(name, node)})(${args})`, node, null)})`,
      }
    }
    const fn = frame.take()
    const { setup, args, taken } = this.#holdArguments(node, cx)
    frame.give(fn, ...taken)
    const text = calleeText(callee)
    const refuse = `${this.names.runtime('refuse')}(${JSON.stringify(text)})`
    const called = this.plainCall(rope`${fn}(${args})`, fn, null, args, text, node)
    return {
      ...link,
      value: rope`(${fn} = ${link.value}, ${setup}${this.#isPlain(fn)} ? typeof ${fn} === 'function' ? ${called} : ${refuse} : ${this.driven(rope`yield* (0, ${this.ownOf(fn, node)})(${args})`, node, null)})`,
    }
  }

  /** `(a?.b)()`: the parentheses end the chain, but the call still gets `a` as its receiver. */
  #linkParenthesized(node: Node, member: Node, cx: Context): Link {
    const frame = cx.frame!
    const object = this.#link(member.object, cx)
    if (member.optional) this.#guard(object, cx)
    const receiver = frame.take()
    const fn = frame.take()
    const { names } = this
    const chain = new Rope()
    for (const guard of object.guards) chain.add(guard).add(' ? void 0 : ')
    chain.add(rope`(${receiver} = ${object.value}, ${this.accessed(rope`${receiver}`, member, cx)})`)
    const link: Link = { guards: [], value: rope``, held: [...object.held, receiver, fn] }
    let setup = rope`${receiver} = void 0, ${fn} = ${chain}`
    if (node.optional) {
      link.guards.push(rope`(${setup}) == null`)
      setup = rope``
    } else setup = rope`${setup}, `
    const { setup: settingUp, args, taken } = this.#holdArguments(node, cx)
    frame.give(...taken)
    const text = calleeText(member)
    const applied = rope`${names.runtime('apply')}(${fn}, ${receiver}, [${args}], ${JSON.stringify(text)})`
    const plainCall = this.plainCall(applied, fn, receiver, args, text, node)
    const comma = node.arguments.length > 0 ? ', ' : ''
    link.value = rope`(${setup}${settingUp}${this.#isPlain(fn)} ? ${plainCall} : ${this.driven(rope`yield* ${this.ownOf(fn, node)}.call(${receiver}${comma}${args})`, node, null)})`
    return link
  }

  #linkMethod(node: Node, callee: Node, cx: Context, plain: boolean): Link {
    const frame = cx.frame!
    const isSuper = callee.object.type === 'Super'
    const link: Link = isSuper ? { guards: [], value: rope``, held: [] } : this.#link(callee.object, cx)
    if (callee.optional) this.#guard(link, cx)
    if (plain && !node.optional && !isSuper) {
      return {
        ...link,
        value: this.plainly(
          rope`${this.peeked(link.value, callee)}${this.#access(callee, cx)}(${this.argumentsText(node, cx)})`,
          node,
        ),
      }
    }
    const repeatable = node.arguments.every(isRepeatable) && textLength(node) < 40
    let receiver: Rope
    const taken: string[] = []
    let setup = rope``
    if (isSuper) receiver = cx.readsCaptures ? rope`${this.names.capture('this')}` : rope`this`
    else if (callee.optional || this.#isStable(callee.object, repeatable && !callee.computed))
      receiver = link.value
    else {
      const name = frame.take()
      taken.push(name)
      setup = rope`${name} = ${link.value}, `
      receiver = rope`${name}`
    }
    const fn = frame.take()
    taken.push(fn)
    const found = isSuper
      ? this.node(callee, cx)
      : rope`${this.peeked(receiver, callee)}${this.#access(callee, cx)}`
    if (node.optional) {
      link.guards.push(rope`(${setup}${fn} = ${found}) == null`)
      setup = rope``
      link.held.push(...taken.splice(0))
    } else setup = rope`${setup}${fn} = ${found}, `
    let list: Piece[]
    if (repeatable) list = node.arguments.map((argument: Node) => this.node(argument, cx))
    else {
      const held = this.#holdArguments(node, cx)
      taken.push(...held.taken)
      setup = rope`${setup}${held.setup}`
      list = held.list
    }
    const args = join(list, ', ')
    frame.give(...taken)
    const comma = node.arguments.length > 0 ? ', ' : ''
    const text = calleeText(callee)
    const apply = this.names.runtime('apply')
    const shared = this.sharedMethod(node, callee, receiver, list)
    if (shared !== null) setup = rope`${setup}${shared.test} ? ${shared.value} : `
    const plainCall = this.plainCall(
      rope`(${fn}?.call === ${this.names.runtime('call')} ? ${fn}.call(${receiver}${comma}${args}) : ${apply}(${fn}, ${receiver}, [${args}], ${JSON.stringify(text)}))`,
      fn,
      receiver,
      args,
      text,
      node,
    )
    if (plain) return { ...link, value: rope`(${setup}${plainCall})` }
    return {
      ...link,
      value: rope`(${setup}${this.#isPlain(fn)} ? ${plainCall} : ${this.driven(rope`yield* ${this.ownOf(fn, node)}.call(${receiver}${comma}${args})`, node, null)})`,
    }
  }

  /** A method call that takes another path if its receiver is shared memory. */
  sharedMethod(
    _node: Node,
    _callee: Node,
    _receiver: Rope,
    _args: Piece[],
  ): { test: Rope; value: Rope } | null {
    return null
  }

  /** True if the receiver has the same value when it is read again after the code in between. */
  #isStable(object: Node, nothingBetween: boolean): boolean {
    if (object.type === 'ThisExpression') return true
    if (object.type !== 'Identifier') return false
    if (nothingBetween) return true
    const binding = this.analysis.bindingOf.get(object)
    return binding !== null && binding !== undefined && !binding.written
  }

  /** The arguments in variables, evaluated in order, because the text uses them more than once. */
  #holdArguments(node: Node, cx: Context): { setup: Rope; args: Rope; list: Piece[]; taken: string[] } {
    const frame = cx.frame!
    const setup = new Rope()
    const args: Piece[] = []
    const taken: string[] = []
    for (const argument of node.arguments as Node[]) {
      if (argument.type === 'Literal' && typeof argument.value !== 'object') {
        args.push(argument)
        continue
      }
      const name = frame.take()
      taken.push(name)
      if (argument.type === 'SpreadElement') {
        setup.add(rope`${name} = [${this.node(argument, cx)}], `)
        args.push(`...${name}`)
      } else {
        setup.add(rope`${name} = ${this.#unnamed(argument, cx)}, `)
        args.push(name)
      }
    }
    return { setup, args: join(args, ', '), list: args, taken }
  }

  /** A value for one of the compiler's variables: a function must not take its name from that. */
  #unnamed(node: Node, cx: Context): Rope {
    const value = this.node(node, cx)
    return isAnonymous(bare(node)) ? rope`(0, ${value})` : value
  }

  /** A template whose tag is a member. If the member is not a function, the error shows the member's name. */
  taggedMember(node: Node, cx: Context): Rope | null {
    const tag = bare(node.tag)
    if (bare(tag.object).type !== 'CallExpression') return null
    const frame = cx.frame!
    const object = frame.take()
    const setup = rope`${object} = ${this.node(tag.object, cx)}`
    const key = tag.computed ? rope`[${this.node(tag.property, cx)}]` : rope`.${tag.property}`
    frame.give(object)
    const text = JSON.stringify(calleeText(tag))
    const fn = rope`${this.names.runtime('taggingBy')}((${setup}, ${object}${key}), ${object}, ${text})`
    return this.plainly(this.taggedBy(fn, node, cx), node)
  }

  override taggedBy(tag: Rope, node: Node, cx: Context): Rope {
    const strings = this.stringsOf(node)
    if (strings === null) return super.taggedBy(tag, node, cx)
    const values = (node.quasi.expressions as Node[]).map(expression => this.node(expression, cx))
    return rope`${tag}(${join([strings, ...values], ', ')})`
  }

  /** The expression for the array of strings of a template that stands elsewhere; null: it stands there. */
  stringsOf(_node: Node): string | null {
    return null
  }

  tagged(node: Node, cx: Context): Rope | null {
    const call = this.callOf(node)
    const tag = bare(node.tag)
    if (tag.type === 'MemberExpression') return this.taggedMember(node, cx)
    if (call === undefined || this.staysPlain(call)) return null
    const frame = cx.frame!
    const fn = frame.take()
    const taken = [fn]
    const setup = rope`${fn} = ${this.#unnamed(node.tag, cx)}, `
    const strings = this.stringsOf(node)
    const values: string[] = []
    for (const expression of node.quasi.expressions as Node[]) {
      const name = frame.take()
      taken.push(name)
      values.push(name)
      setup.add(rope`${name} = ${this.#unnamed(expression, cx)}, `)
    }
    const quasi = strings === null ? templateText(node, values) : rope`(${[strings, ...values].join(', ')})`
    frame.give(...taken)
    const text = JSON.stringify(calleeText(tag))
    return rope`(${setup}${this.#isPlain(fn)} ? typeof ${fn} === 'function' ? ${this.plainly(rope`${fn}${quasi}`, node)} : ${this.names.runtime('refuse')}(${text}) : ${this.driven(rope`yield* (0, ${this.ownOf(fn, node)})${quasi}`, node, null)})`
  }
}

/** The template where it stands, with these values. */
function templateText(node: Node, values: readonly string[]): Rope {
  const quasi = new Rope()
  let reached = node.quasi.start
  for (const [index, expression] of (node.quasi.expressions as Node[]).entries()) {
    quasi.add({ start: reached, end: expression.start }).add(values[index]!)
    reached = expression.end
  }
  return quasi.add({ start: reached, end: node.quasi.end })
}

function textLength(call: Node): number {
  const args: Node[] = call.arguments
  return args.length === 0 ? 0 : args[args.length - 1]!.end - args[0]!.start
}

/** True for an argument that may appear in two branches, of which one runs. */
function isRepeatable(node: Node): boolean {
  switch (node.type) {
    case 'Literal':
    case 'Identifier':
    case 'ThisExpression':
      return true
    case 'UnaryExpression':
      return node.operator !== 'delete' && isRepeatable(node.argument)
    case 'BinaryExpression':
      return isRepeatable(node.left) && isRepeatable(node.right)
    case 'MemberExpression':
      return (
        node.object.type !== 'Super' &&
        isRepeatable(node.object) &&
        (!node.computed || isRepeatable(node.property))
      )
    default:
      return false
  }
}
