/**
 * The first lowering: a resumable form is a generator. A stop is a `yield` of a small integer; a call of another
 * resumable function is a `yield*`. Expressions keep their order by themselves, because `yield` is an expression.
 */
import type { Func, Call } from '../functions.ts'
import { join, type Piece, Rope, rope } from '../rope.ts'
import { bare, boundNames, isFunction, isLoop, type Node, walk } from '../syntax.ts'
import type { Context, Frame } from './context.ts'
import { calleeText, notIterableText } from './message.ts'
import { type Strip, stripOf } from './strip.ts'
import { flavor, Writer } from './writer.ts'

/** A link of a chain of members and calls: what must be null for the whole to be undefined, and the value. */
interface Link {
  guards: Rope[]
  value: Rope
  /** Given back when the whole chain has been written. */
  held: string[]
}

export class GeneratorLowering extends Writer {
  #calls: Map<Node, Call> | null = null

  protected callOf(node: Node): Call | undefined {
    if (this.#calls === null) {
      this.#calls = new Map()
      for (const func of this.analysis.funcs) for (const call of func.calls) this.#calls.set(call.node, call)
    }
    return this.#calls.get(node)
  }

  protected entry(func: Func, _frame: Frame): string {
    const canRecurse = func.recursive || func.calls.some(({ reach }) => reach === 'unknown')
    return canRecurse ? this.safepoint() : ''
  }

  protected safepoint(): string {
    return `if (${this.names.runtime('poll')}()) yield 0;`
  }

  protected resumable(node: Node, cx: Context): Rope | null {
    switch (node.type) {
      case 'CallExpression':
        return this.#call(node, cx)
      case 'ChainExpression':
        return this.#chain(node, cx)
      case 'TaggedTemplateExpression':
        return this.#tagged(node, cx)
      case 'UnaryExpression':
        if (node.operator === 'delete' && bare(node.argument).type === 'ChainExpression')
          return this.unresumed(node, cx)
        return null
      case 'NewExpression':
        return this.plainly(this.copy(node, cx), node)
      case 'YieldExpression':
        if (!cx.func.isGenerator) return null
        if (node.delegate)
          return rope`(yield* ${this.names.runtime('delegate')}(${this.node(node.argument, cx)}))`
        return rope`(yield new ${this.names.runtime('Out')}(${node.argument === null ? '' : this.node(node.argument, cx)}))`
      case 'AwaitExpression':
        return this.awaited(node, cx)
      case 'LabeledStatement':
        return this.#labeled(node, cx)
      case 'BreakStatement':
      case 'ContinueStatement':
        return (cx.jumps.get(node) as Rope | undefined) ?? null
      default:
        return isLoop(node) ? this.loop(node, cx, []) : null
    }
  }

  protected awaited(node: Node, cx: Context): Rope {
    return rope`(yield new ${this.names.runtime('Await')}(${this.node(node.argument, cx)}))`
  }

  /** Code inside a resumable function that is left as it is, calls and all. */
  protected unresumed(node: Node, cx: Context): Rope {
    return this.copy(node, { ...cx, frame: null })
  }

  // Calls

  /** A call that stays as it is; its callee's object and its arguments may stop. */
  #plainCall(node: Node, cx: Context): Rope {
    return this.plainly(this.copy(node, cx), node)
  }

  /** What runs something that has no resumable form. */
  protected plainly(written: Rope, _node: Node): Rope {
    return written
  }

  #call(node: Node, cx: Context): Rope {
    const call = this.callOf(node)
    if (call === undefined || this.staysPlain(call)) return this.#plainCall(node, cx)
    const { target } = call
    const callee = bare(node.callee)
    if (target !== null && isFunction(callee)) return this.#immediate(node, callee, target, cx)
    if (target !== null && cx.available.has(target)) {
      const args = this.argumentsText(node, cx)
      if (this.isDirect(target)) return rope`(yield* ${this.twinName(target)}(${args}))`
      const name = callee.name as string
      return rope`(yield* (0, ${name}[${this.names.runtime('twin')}])(${args}))`
    }
    const privateTwin = this.#privateTarget(callee, cx)
    if (privateTwin !== null) {
      const object = this.node(callee.object, cx)
      return rope`(yield* ${object}.${this.privateName(callee.property.name)}(${this.argumentsText(node, cx)}))`
    }
    if (node.callee.type === 'ParenthesizedExpression' && bare(node.callee).type === 'ChainExpression') {
      return this.#plainCall(node, cx)
    }
    const link = this.#link(node, cx)
    cx.frame!.give(...link.held)
    return link.value
  }

  protected staysPlain(call: Call): boolean {
    if (call.reach === 'short') return true
    return call.target !== null && (!call.target.twin || !call.target.long)
  }

  /** A function called where it is written: only its resumable form is needed. */
  #immediate(node: Node, callee: Node, target: Func, cx: Context): Rope {
    const named = target.self !== null && target.self.references.length > 0
    if (named || flavor(target) !== 'plain' || !this.wants(target, cx)) {
      const link = this.#link(node, cx)
      cx.frame!.give(...link.held)
      return link.value
    }
    void callee
    return rope`(yield* (${this.twin(target, cx, 'function* ')})(${this.argumentsText(node, cx)}))`
  }

  #privateTarget(callee: Node, cx: Context): Func | null {
    if (callee.type !== 'MemberExpression' || callee.property.type !== 'PrivateIdentifier') return null
    for (const func of cx.available) {
      if (func.kind !== 'method' || func.holder?.key.type !== 'PrivateIdentifier') continue
      if (func.holder.key.name === callee.property.name) return func
    }
    return null
  }

  protected argumentsText(node: Node, cx: Context): Rope {
    return join(
      node.arguments.map((argument: Node) => this.node(argument, cx)),
      ', ',
    )
  }

  /** The value of a member of what `object` is. */
  protected accessed(object: Rope, node: Node, cx: Context): Rope {
    return rope`${object}${this.#access(node, cx)}`
  }

  /** True when something in the chain itself may stop. */
  protected chainStops(node: Node): boolean {
    let stops = false
    walk(node, child => {
      if (isFunction(child)) return false
      const call = this.callOf(child)
      if (call !== undefined && !this.staysPlain(call)) stops = true
      return !stops
    })
    return stops
  }

  #chain(node: Node, cx: Context): Rope {
    if (!this.chainStops(node)) return this.copy(node, cx)
    const { guards, value, held } = this.#link(node.expression, cx)
    cx.frame!.give(...held)
    const made = new Rope().add('(')
    for (const guard of guards) made.add(guard).add(' ? void 0 : ')
    return made.add(value).add(')')
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
        return { guards: [], value: this.node(node, cx), held: [] }
    }
  }

  /** Moves the value so far into a variable, and makes its being null the end of the chain. */
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
    const twinSymbol = this.names.runtime('twin')
    const call = this.callOf(node)
    const plain = call === undefined || this.staysPlain(call)
    const inner = bare(callee)
    if (inner.type === 'MemberExpression') return this.#linkMethod(node, inner, cx, plain)
    if (inner.type === 'Super' || inner.type === 'Import')
      return { guards: [], value: this.#plainCall(node, cx), held: [] }
    const link = this.#link(callee, cx)
    if (plain) {
      if (node.optional) this.#guard(link, cx)
      return { ...link, value: this.plainly(rope`${link.value}(${this.argumentsText(node, cx)})`, node) }
    }
    if (node.optional) this.#guard(link, cx)
    const own = this.names.runtime('own')
    if (
      inner.type === 'Identifier' &&
      !node.optional &&
      node.arguments.every(isRepeatable) &&
      textLength(node) < 40
    ) {
      const args = this.argumentsText(node, cx)
      const name = link.value
      return {
        ...link,
        value: rope`(${name}?.[${twinSymbol}] === void 0 ? ${this.plainly(rope`${name}(${args})`, node)} : yield* (0, ${own}(${name}))(${args}))`,
      }
    }
    const fn = frame.take()
    const { setup, args, taken } = this.#holdArguments(node, cx)
    frame.give(fn, ...taken)
    const text = JSON.stringify(calleeText(callee))
    const refuse = this.names.runtime('refuse')
    return {
      ...link,
      value: rope`(${fn} = ${link.value}, ${setup}${fn}?.[${twinSymbol}] === void 0 ? typeof ${fn} === 'function' ? ${this.plainly(rope`${fn}(${args})`, node)} : ${refuse}(${text}) : yield* (0, ${own}(${fn}))(${args}))`,
    }
  }

  #linkMethod(node: Node, callee: Node, cx: Context, plain: boolean): Link {
    const frame = cx.frame!
    const twinSymbol = this.names.runtime('twin')
    const isSuper = callee.object.type === 'Super'
    const link: Link = isSuper ? { guards: [], value: rope``, held: [] } : this.#link(callee.object, cx)
    if (callee.optional) this.#guard(link, cx)
    if (plain && !node.optional && !isSuper) {
      return {
        ...link,
        value: this.plainly(
          rope`${link.value}${this.#access(callee, cx)}(${this.argumentsText(node, cx)})`,
          node,
        ),
      }
    }
    const repeatable = node.arguments.every(isRepeatable) && textLength(node) < 40
    let receiver: Rope
    const taken: string[] = []
    let setup = rope``
    if (isSuper) receiver = cx.alias ? rope`${this.names.lent('this')}` : rope`this`
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
    const found = isSuper ? this.node(callee, cx) : rope`${receiver}${this.#access(callee, cx)}`
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
    const text = JSON.stringify(calleeText(callee))
    const own = this.names.runtime('own')
    const apply = this.names.runtime('apply')
    const shared = this.sharedMethod(node, callee, receiver, list)
    if (shared !== null) setup = rope`${setup}${shared.test} ? ${shared.value} : `
    const plainCall = this.plainly(
      rope`(${fn}?.call === ${this.names.runtime('call')} ? ${fn}.call(${receiver}${comma}${args}) : ${apply}(${fn}, ${receiver}, [${args}], ${text}))`,
      node,
    )
    if (plain) return { ...link, value: rope`(${setup}${plainCall})` }
    return {
      ...link,
      value: rope`(${setup}${fn}?.[${twinSymbol}] === void 0 ? ${plainCall} : yield* ${own}(${fn}).call(${receiver}${comma}${args}))`,
    }
  }

  /** A method that is to be done otherwise when its receiver turns out to be shared memory. */
  protected sharedMethod(
    _node: Node,
    _callee: Node,
    _receiver: Rope,
    _args: Piece[],
  ): { test: Rope; value: Rope } | null {
    return null
  }

  /** True when reading the receiver a second time, after what stands between, gives the same. */
  #isStable(object: Node, nothingBetween: boolean): boolean {
    if (object.type === 'ThisExpression') return true
    if (object.type !== 'Identifier') return false
    if (nothingBetween) return true
    const binding = this.analysis.bindingOf.get(object)
    return binding !== null && binding !== undefined && !binding.written
  }

  /** Arguments in variables, evaluated in order, for text that stands more than once. */
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
        setup.add(rope`${name} = ${this.node(argument, cx)}, `)
        args.push(name)
      }
    }
    return { setup, args: join(args, ', '), list: args, taken }
  }

  #tagged(node: Node, cx: Context): Rope | null {
    const call = this.callOf(node)
    const tag = bare(node.tag)
    if (call === undefined || this.staysPlain(call) || tag.type !== 'Identifier') return null
    const frame = cx.frame!
    const fn = frame.take()
    const taken = [fn]
    const setup = new Rope().add(`${fn} = ${tag.name}, `)
    const quasi = new Rope()
    let reached = node.quasi.start
    for (const expression of node.quasi.expressions as Node[]) {
      const name = frame.take()
      taken.push(name)
      setup.add(rope`${name} = ${this.node(expression, cx)}, `)
      quasi.add({ start: reached, end: expression.start }).add(name)
      reached = expression.end
    }
    quasi.add({ start: reached, end: node.quasi.end })
    frame.give(...taken)
    const text = JSON.stringify(tag.name)
    return rope`(${setup}${fn}?.[${this.names.runtime('twin')}] === void 0 ? typeof ${fn} === 'function' ? ${this.plainly(rope`${fn}${quasi}`, node)} : ${this.names.runtime('refuse')}(${text}) : yield* (0, ${this.names.runtime('own')}(${fn}))${quasi})`
  }

  // Loops

  #labeled(node: Node, cx: Context): Rope | null {
    const labels: Node[] = []
    let inner = node
    while (inner.type === 'LabeledStatement') {
      labels.push(inner.label)
      inner = inner.body
    }
    if (!isLoop(inner)) return null
    return this.loop(inner, cx, labels)
  }

  /** How much of a strip one turn of this loop is worth, or 'each': look every time. */
  protected weight(loop: Node): 'each' | number {
    let heavy = false
    let light = false
    let nested = false
    walk(loop, node => {
      if (isFunction(node)) return false
      if (node !== loop && isLoop(node)) nested = true
      if (node.type === 'YieldExpression' || node.type === 'AwaitExpression') heavy = true
      if (node.type === 'NewExpression') light = true
      const call = this.callOf(node)
      if (call !== undefined && call.reach !== 'short') {
        if (call.reach === 'light') light = true
        else if (call.target === null || call.target.long) heavy = true
      }
      return !heavy
    })
    if (heavy) return 'each'
    if (light) return 64
    return nested ? 16 : 1
  }

  protected loop(node: Node, cx: Context, labels: Node[]): Rope {
    const weight = this.weight(node)
    if (weight === 1) {
      const strip = stripOf(node, labels, this.analysis)
      if (strip !== null) return this.#strip(node, strip, cx, labels)
    }
    const check = this.#check(weight, cx)
    const prefix = join(
      labels.map(label => rope`${label}: `),
      '',
    )
    if (node.type === 'ForOfStatement') return rope`${prefix}${this.forOf(node, cx, check)}`
    return rope`${prefix}${this.around(node, cx, check)}`
  }

  #check(weight: 'each' | number, cx: Context): string {
    if (weight === 'each') return this.safepoint()
    cx.frame!.usesFuel = true
    const fuel = `${this.names.prefix}fuel`
    const spend = weight === 1 ? `--${fuel}` : `(${fuel} -= ${weight})`
    return `if (${spend} <= 0) { ${fuel} = 512; ${this.safepoint()} }`
  }

  /** The loop as it is, with `check` at the start of each turn. */
  protected around(node: Node, cx: Context, check: string): Rope {
    const { body } = node
    const made = new Rope()
    let reached = node.start
    for (const child of [node.init, node.left, node.right, node.test, node.update, body]) {
      if (child === null || child === undefined || child.start < reached) continue
      made.add({ start: reached, end: child.start })
      if (child === body && check !== '') made.add(`{${check}`).add(this.node(child, cx)).add('}')
      else made.add(this.node(child, cx))
      reached = child.end
    }
    if (node.type === 'DoWhileStatement') {
      const written = new Rope().add({ start: node.start, end: body.start })
      written
        .add(check === '' ? '' : `{${check}`)
        .add(this.node(body, cx))
        .add(check === '' ? '' : '}')
      written.add({ start: body.end, end: node.test.start }).add(this.node(node.test, cx))
      return written.add({ start: node.test.end, end: node.end })
    }
    return made.add({ start: reached, end: node.end })
  }

  /** What a loop runs over. */
  protected iterated(node: Node, cx: Context): Rope {
    return this.node(node, cx)
  }

  /** A loop over what may be a generator that stops inside. */
  protected forOf(node: Node, cx: Context, check: string): Rope {
    const { left, right, body } = node
    const declares = left.type === 'VariableDeclaration'
    const bound = declares ? boundNames(left.declarations[0].id) : []
    const names = new Set(bound.map(({ name }) => name as string))
    let selfReferring = false
    walk(right, child => {
      if (child.type === 'Identifier' && names.has(child.name)) selfReferring = true
    })
    const disposes = declares && left.kind.includes('using')
    if (disposes || selfReferring || bare(right).type === 'ArrayExpression')
      return this.around(node, cx, check)
    const frame = cx.frame!
    const source = frame.take()
    const value = `${this.names.prefix}v`
    const text = JSON.stringify(notIterableText(right))
    const iterate = rope`${source} = ${this.names.runtime('iterate')}(${this.iterated(right, cx)}, ${text})`
    const bind = declares
      ? rope`${left.kind} ${this.node(left.declarations[0].id, cx)} = ${value};`
      : rope`(${this.node(left, cx)} = ${value});`
    const onPending = `if (${value} === ${this.names.runtime('paused')}) { yield* ${this.names.runtime('wait')}(${source}); continue; }`
    const written = rope`for (const ${value} of ${iterate}) { ${onPending} ${check} ${bind} ${this.node(body, cx)} }`
    frame.give(source)
    return written
  }

  /** Two loops for one: the inner has no stop in it, and ends after some hundreds of turns. */
  #strip(node: Node, strip: Strip, cx: Context, labels: Node[]): Rope {
    const frame = cx.frame!
    const outer = frame.label()
    const turn = frame.label()
    const jumps = new Map(cx.jumps)
    for (const jump of strip.breaks) jumps.set(jump, rope`break ${outer};`)
    if (node.type === 'DoWhileStatement')
      for (const jump of strip.continues) jumps.set(jump, rope`break ${turn};`)
    const inner: Context = { ...cx, jumps }
    const prefix = join(node.type === 'DoWhileStatement' ? [] : labels.map(label => rope`${label}: `), '')
    const own = frame.take()
    const body = this.node(node.body, inner)
    const init =
      node.type === 'ForStatement' && node.init !== null ? rope`${this.node(node.init, cx)};` : rope``
    const { counted } = strip
    if (counted !== null) {
      const end = own
      const { counter, bound, operator, step } = counted
      const update = this.node(node.update, inner)
      const boundText = this.node(bound, inner)
      const made = rope`{ ${init} ${outer}: for (;;) { ${end} = ${this.names.runtime('limit')}(${counter}, ${boundText}, ${String(step)}); ${prefix}for (; ${counter} ${operator} ${end}; ${update}) { ${body} } if (!(${counter} ${operator} ${boundText})) break; ${this.safepoint()} } }`
      frame.give(end)
      return made
    }
    const count = own
    let made: Rope
    if (node.type === 'DoWhileStatement') {
      const test = this.node(node.test, inner)
      made = rope`{ ${outer}: for (;;) { for (${count} = 512; ${count} > 0; ${count}--) { ${turn}: { ${body} } if (!(${test})) break ${outer}; } ${this.safepoint()} } }`
    } else {
      const test = node.test === null ? rope`` : rope`if (!(${this.node(node.test, inner)})) break ${outer};`
      const update =
        node.type === 'ForStatement' && node.update !== null
          ? rope`, ${this.node(node.update, inner)}`
          : rope``
      made = rope`{ ${init} ${outer}: for (;;) { ${prefix}for (${count} = 512; ${count} > 0; ${count}--${update}) { ${test} { ${body} } } ${this.safepoint()} } }`
    }
    frame.give(count)
    return made
  }
}

function textLength(call: Node): number {
  const args: Node[] = call.arguments
  return args.length === 0 ? 0 : args[args.length - 1]!.end - args[0]!.start
}

/** True for an argument whose text may stand in two branches, of which one runs. */
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
