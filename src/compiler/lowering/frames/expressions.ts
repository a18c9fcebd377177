/**
 * Expressions of a function that unwinds. A call that may suspend becomes a statement of its own, so what is
 * evaluated before it goes into temporaries first, in the order of the source. What cannot stop is left as it stands.
 */
import type { Call, Func } from '../../functions.ts'
import { join, type Piece, Rope, rope } from '../../rope.ts'
import { bare, isFunction, type Node } from '../../syntax.ts'
import type { Context } from '../context.ts'
import { calleeText, notIterableText } from '../message.ts'
import { Emitter, type Slots } from './emitter.ts'
import type { Plan } from './plan.ts'

/** What the emitter asks of the lowering that it writes for. */
export interface Host {
  readonly source: string
  /** A node that cannot stop, as it stands. */
  node(node: Node, cx: Context): Rope
  runtime(name: string): string
  callOf(node: Node): Call | undefined
  staysPlain(call: Call): boolean
  /** How a call of this known function is made. */
  wayTo(target: Func, cx: Context): 'frames' | 'generator' | 'unknown'
  twinName(target: Func): string
  privateTarget(callee: Node, cx: Context): Func | null
  privateName(name: string): string
  isFrames(func: Func): boolean
  /** After how many arguments the function takes its permission as one more; null: it does not. */
  handedAfter(func: Func): number | null
  /** True when the function takes its permission as an argument, or calls one that does. */
  hands(func: Func): boolean
  spreadStops(node: Node): boolean
  /** A function that unwinds, as it is made but without its mark; null for any other. */
  unmarked(node: Node, cx: Context): Rope | null
  renamed(node: Node, cx: Context): string | undefined
  hint(value: Node, name: string): void
  bindingIsConstant(node: Node): boolean
}

export class Expressions extends Emitter {
  protected readonly host: Host
  /** The permission is the object itself, which it hands on or was handed; else it is 1 or 0. */
  readonly hands: boolean
  /** Where the code stands: names and jumps change on the way in. */
  protected cx: Context
  /** What a null inside the chain that is being written leaves. */
  #chain: string | null = null

  constructor(plan: Plan, prefix: string, guards: boolean, slots: Slots, host: Host, cx: Context) {
    super(plan, prefix, guards, slots)
    this.host = host
    this.hands = host.hands(plan.func)
    this.cx = cx
  }

  protected get frames(): string {
    return this.host.runtime('frames')
  }

  /** Gives the permission to whoever is called next. */
  protected get permit(): string {
    const { frames, ok } = this
    return `${frames}.ok = ${this.hands ? `${ok} === ${frames} ? 1 : 0` : ok}`
  }

  protected stops(node: Node | null | undefined): boolean {
    return node != null && this.plan.stopping.has(node)
  }

  protected verbatim(node: Node): Rope {
    return this.host.node(node, this.cx)
  }

  /** The value in a variable that stays as it is. */
  protected hold(value: Rope): string {
    const held = this.#temporaryIn(value)
    if (held !== null) return held
    const name = this.take()
    this.simple(rope`${name} = ${value};`)
    return name
  }

  /** The temporary that this is, and nothing else. */
  #temporaryIn(value: Rope): string | null {
    const { parts } = value
    const [only] = parts
    if (parts.length !== 1 || typeof only !== 'string' || !only.startsWith(this.prefix)) return null
    return /^\d+$/.test(only.slice(this.prefix.length)) ? only : null
  }

  /** Values of which the later ones may stop: the earlier are held. */
  protected values(nodes: readonly Node[]): Rope[] {
    let last = -1
    for (const [index, node] of nodes.entries()) if (this.stops(node)) last = index
    return nodes.map((node, index) => {
      const value = this.value(node)
      return index < last && !this.#stays(node) ? rope`${this.hold(value)}` : value
    })
  }

  /** True when a second look, after whatever, gives the same. */
  #stays(node: Node): boolean {
    const inner = bare(node)
    if (inner.type === 'ThisExpression') return true
    if (inner.type === 'Literal') return typeof inner.value !== 'object' || inner.value === null
    return inner.type === 'Identifier' && this.host.bindingIsConstant(inner)
  }

  /** The value of an expression, to be used at once: whatever has to come before is written. */
  value(node: Node): Rope {
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
        return this.#assignment(node)
      case 'UpdateExpression': {
        const target = this.#target(node.argument, false)
        return node.prefix ? rope`(${node.operator}${target})` : rope`(${target}${node.operator})`
      }
      case 'UnaryExpression': {
        const { operator } = node
        const word = operator.length > 1 ? `${operator} ` : operator
        return rope`(${word}${this.value(node.argument)})`
      }
      case 'SequenceExpression': {
        const [...before] = node.expressions as Node[]
        const last = before.pop()!
        for (const expression of before) this.effect(expression)
        return this.value(last)
      }
      case 'NewExpression': {
        const [callee, ...args] = this.values([node.callee, ...node.arguments])
        return rope`new (${callee!})(${join(args, ', ')})`
      }
      case 'ArrayExpression':
        return this.#array(node)
      case 'ObjectExpression':
        return this.#object(node)
      case 'TemplateLiteral':
        return this.#template(node)
      case 'TaggedTemplateExpression':
        return this.#tagged(node)
      case 'SpreadElement':
        return this.#spread(node)
      case 'ImportExpression':
        return rope`import(${this.value(node.source)})`
      default:
        throw new Error(`a ${node.type} that can stop`)
    }
  }

  /** An expression for what it does. */
  protected effect(node: Node): void {
    const held = this.held
    const value = this.value(node)
    // What was only waited for is in a temporary: it has been done.
    if (this.#temporaryIn(value) === null) this.simple(rope`;(${value});`)
    this.release(held)
  }

  #member(node: Node): Rope {
    if (node.object.type === 'Super') {
      return node.computed ? rope`super[${this.value(node.property)}]` : this.verbatim(node)
    }
    let object = this.value(node.object)
    if (node.optional) object = rope`${this.#guard(object)}`
    if (!node.computed) return rope`${operand(object)}.${node.property}`
    if (this.stops(node.property) && !node.optional && !this.#stays(node.object)) {
      object = rope`${this.hold(object)}`
    }
    return rope`${operand(object)}[${this.value(node.property)}]`
  }

  /** Leaves the chain when the value so far is null. */
  #guard(value: Rope): string {
    const name = this.hold(value)
    this.simple(rope`if (${name} == null) break ${this.#chain!};`)
    return name
  }

  #chained(node: Node): Rope {
    const held = this.held
    const result = this.take()
    this.simple(rope`${result} = void 0;`)
    const outer = this.#chain
    const label = this.label()
    this.#chain = label
    this.unset.add(result)
    const { text, last } = this.nested(() => {
      const value = this.value(node.expression)
      this.simple(rope`${result} = ${value};`)
    })
    this.#chain = outer
    this.unset.delete(result)
    this.compound(rope`${label}: { ${text} }`, last)
    this.release(held + 1)
    return rope`${result}`
  }

  #logical(node: Node): Rope {
    if (!this.stops(node.right)) {
      return rope`(${this.value(node.left)} ${node.operator} ${this.verbatim(node.right)})`
    }
    const result = this.take()
    const held = this.held
    this.simple(rope`${result} = ${this.value(node.left)};`)
    this.release(held)
    const { operator } = node
    this.#when(conditionOf(operator, result), () => {
      this.unset.add(result)
      const right = this.value(node.right)
      this.unset.delete(result)
      this.simple(rope`${result} = ${right};`)
    })
    this.release(held)
    return rope`${result}`
  }

  #when(test: Rope | string, write: () => void): void {
    const { text, last } = this.nested(write)
    const { p } = this
    this.compound(
      this.guards ? rope`if (${p} !== 0 || ${test}) { ${text} }` : rope`if (${test}) { ${text} }`,
      last,
    )
  }

  #conditional(node: Node): Rope {
    const result = this.take()
    const held = this.held
    const test = this.value(node.test)
    this.flush()
    this.release(held)
    const branch = (part: Node): { text: Rope; last: number } =>
      this.nested(() => {
        this.unset.add(result)
        const value = this.value(part)
        this.unset.delete(result)
        this.simple(rope`${result} = ${value};`)
        this.release(held)
      })
    const first = branch(node.consequent)
    const second = branch(node.alternate)
    this.choose(test, first, second)
    return rope`${result}`
  }

  protected choose(
    test: Rope,
    first: { text: Rope; last: number },
    second: { text: Rope; last: number } | null,
  ): void {
    const { p } = this
    const condition = this.guards ? rope`${p} === 0 ? ${test} : ${p} <= ${String(first.last)}` : test
    const otherwise = second === null ? rope`` : rope` else { ${second.text} }`
    this.compound(rope`{ if (${condition}) { ${first.text} }${otherwise} }`, (second ?? first).last)
  }

  /** What is assigned to; with `held`, in a form that can be read and then written. */
  #target(node: Node, held: boolean): Rope {
    const target = bare(node)
    if (target.type !== 'MemberExpression') return this.verbatim(target)
    const isSuper = target.object.type === 'Super'
    const keep = (part: Node): Rope => {
      const value = this.value(part)
      return this.#stays(part) ? value : rope`${this.hold(value)}`
    }
    const object = isSuper
      ? rope`super`
      : held || this.stops(target.property)
        ? keep(target.object)
        : operand(this.value(target.object))
    if (!target.computed) return rope`${object}.${target.property}`
    return rope`${object}[${held ? keep(target.property) : this.value(target.property)}]`
  }

  #assignment(node: Node): Rope {
    const { operator, right } = node
    const left = bare(node.left)
    const isPattern = left.type === 'ObjectPattern' || left.type === 'ArrayPattern'
    if (isPattern) return rope`(${this.pattern(left)} = ${this.apart(left, right, this.value(right))})`
    if (!this.stops(right)) return rope`(${this.#target(left, false)} ${operator} ${this.verbatim(right)})`
    const target = this.#target(left, true)
    if (operator === '=') return rope`(${target} = ${this.value(right)})`
    if (operator === '&&=' || operator === '||=' || operator === '??=') {
      const result = this.take()
      const held = this.held
      this.simple(rope`${result} = ${target};`)
      this.#when(conditionOf(operator.slice(0, -1), result), () => {
        this.simple(rope`${result} = ${target} = ${this.value(right)};`)
      })
      this.release(held)
      return rope`${result}`
    }
    const before = this.hold(target)
    return rope`(${target} = ${before} ${operator.slice(0, -1)} (${this.value(right)}))`
  }

  /** A value that is to be taken apart. What cannot be is refused by the name that it has in the source. */
  protected apart(pattern: Node, source: Node, value: Rope): Rope {
    if (!this.stops(source)) return value
    const held = this.hold(value)
    if (pattern.type === 'ArrayPattern') {
      const text = JSON.stringify(notIterableText(source))
      this.simple(rope`if (${held} == null) ${this.host.runtime('refuseList')}(${text});`)
    } else {
      const first = pattern.properties[0]
      const isNamed = first !== undefined && first.type === 'Property' && !first.computed
      const property = isNamed ? `property '${first.key.name ?? String(first.key.value)}' of ` : ''
      const text = JSON.stringify(`Cannot destructure ${property}'${calleeText(bare(source))}' as it is `)
      this.simple(rope`if (${held} == null) ${this.host.runtime('refuseObject')}(${text}, ${held});`)
    }
    return rope`${held}`
  }

  /** A pattern as it is assigned to: without types, each name as it goes here. */
  pattern(node: Node): Rope {
    switch (node.type) {
      case 'Identifier':
        return rope`${this.host.renamed(node, this.cx) ?? node.name}`
      case 'ObjectPattern': {
        const properties = node.properties.map((property: Node) => {
          if (property.type === 'RestElement') return rope`...${this.pattern(property.argument)}`
          const key: Piece = property.computed
            ? rope`[${this.verbatim(property.key)}]`
            : { start: property.key.start, end: property.key.end }
          return rope`${key}: ${this.pattern(property.value)}`
        })
        return rope`{ ${join(properties, ', ')} }`
      }
      case 'ArrayPattern': {
        const elements = node.elements.map((element: Node | null) =>
          element === null ? rope`` : this.pattern(element),
        )
        const last = node.elements.at(-1)
        return rope`[${join(elements, ', ')}${last === null ? ',' : ''}]`
      }
      case 'AssignmentPattern': {
        if (node.left.type === 'Identifier') this.host.hint(node.right, node.left.name)
        return rope`${this.pattern(node.left)} = ${this.named(node.left, node.right)}`
      }
      case 'RestElement':
        return rope`...${this.pattern(node.argument)}`
      case 'ParenthesizedExpression':
      case 'TSAsExpression':
      case 'TSSatisfiesExpression':
      case 'TSNonNullExpression':
      case 'TSTypeAssertion':
        return this.pattern(node.expression)
      default:
        return this.verbatim(node)
    }
  }

  /** A value that takes its name from the variable it is given to, also where that goes by another. */
  protected named(id: Node, value: Node): Rope {
    const inner = bare(value)
    if (id.type !== 'Identifier') return this.value(value)
    this.host.hint(inner, id.name)
    const text = this.value(value)
    const isAnonymous = (isFunction(inner) || inner.type === 'ClassExpression') && inner.id == null
    const renamed = this.host.renamed(id, this.cx)
    if (!isAnonymous || renamed === undefined || renamed === id.name) return text
    return rope`{ ${JSON.stringify(id.name)}: ${text} }[${JSON.stringify(id.name)}]`
  }

  #array(node: Node): Rope {
    const elements = node.elements as (Node | null)[]
    let last = -1
    for (const [index, element] of elements.entries()) if (this.stops(element)) last = index
    const parts = elements.map((element, index) => {
      if (element === null) return rope``
      const value = this.value(element)
      if (index >= last || this.#stays(element)) return value
      if (element.type !== 'SpreadElement') return rope`${this.hold(value)}`
      return rope`...${this.hold(rope`[${value}]`)}`
    })
    return rope`[${join(parts, ', ')}${elements.at(-1) === null ? ',' : ''}]`
  }

  #spread(node: Node): Rope {
    if (!this.host.spreadStops(node)) return rope`...${this.value(node.argument)}`
    const held = this.held
    const value = this.value(node.argument)
    this.release(held)
    const result = this.take()
    this.release(held)
    this.place(node.end, result, unwind => {
      const { frames, ok } = this
      return rope`${result} = ${this.host.runtime('spreads')}(${ok}, ${value}); if (${frames}.u) ${unwind}`
    })
    return rope`...${this.take()}`
  }

  #object(node: Node): Rope {
    const properties = node.properties as Node[]
    let last = -1
    for (const [index, property] of properties.entries()) if (this.stops(property)) last = index
    // Methods that know `super` cannot be made elsewhere, and getters have no value: what comes before is held alone.
    const parts = properties.map((property, index): Rope => {
      const before = index < last
      if (property.type === 'SpreadElement') {
        const value = this.value(property.argument)
        return rope`...${before ? this.hold(rope`{ ...${value} }`) : value}`
      }
      const isPlain = property.kind === 'init' && !property.method
      if (!isPlain) {
        if (property.computed && (before || this.stops(property.key))) {
          throw new Error('a method under a name that can stop')
        }
        return this.verbatim(property)
      }
      let key: Piece = { start: property.key.start, end: property.key.end }
      if (property.computed) {
        let name = this.value(property.key)
        if (before || this.stops(property.value)) {
          name = rope`${this.hold(rope`${this.host.runtime('keyOf')}(${name})`)}`
        }
        key = rope`[${name}]`
      }
      if (!property.computed && isFunction(bare(property.value)) && !before) return this.verbatim(property)
      const text = this.#propertyValue(property)
      const value = before && !this.#stays(property.value) ? rope`${this.hold(text)}` : text
      return rope`${key}: ${value}`
    })
    return rope`({ ${join(parts, ', ')} })`
  }

  #propertyValue(property: Node): Rope {
    const inner = bare(property.value)
    const isAnonymous = (isFunction(inner) || inner.type === 'ClassExpression') && inner.id == null
    if (!isAnonymous || property.computed) return this.value(property.value)
    const name = property.key.name ?? String(property.key.value)
    return rope`{ ${JSON.stringify(name)}: ${this.value(property.value)} }[${JSON.stringify(name)}]`
  }

  #template(node: Node): Rope {
    const expressions = node.expressions as Node[]
    let last = -1
    for (const [index, expression] of expressions.entries()) if (this.stops(expression)) last = index
    const made = new Rope()
    let reached = node.start
    for (const [index, expression] of expressions.entries()) {
      let value = this.value(expression)
      if (index < last) value = rope`${this.hold(rope`\`\${${value}}\``)}`
      made.add({ start: reached, end: expression.start }).add(value)
      reached = expression.end
    }
    return made.add({ start: reached, end: node.end })
  }

  // Calls

  /** Arguments that a call may be given more than once in the text, of which once is run. */
  #arguments(nodes: readonly Node[]): Rope[] {
    const values = this.#argumentValues(nodes)
    return values.map((value, index) => {
      const node = nodes[index]!
      if (isTrivial(node)) return value
      if (node.type !== 'SpreadElement') return rope`${this.hold(value)}`
      return rope`...${this.hold(rope`[${value}]`)}`
    })
  }

  #argumentValues(nodes: readonly Node[]): Rope[] {
    let last = -1
    for (const [index, node] of nodes.entries()) if (this.stops(node)) last = index
    return nodes.map((node, index) => {
      const value = this.value(node)
      if (index >= last || this.#stays(node)) return value
      if (node.type !== 'SpreadElement') return rope`${this.hold(value)}`
      return rope`...${this.hold(rope`[${value}]`)}`
    })
  }

  /** A call on its way to a function that takes the permission to unwind: nothing runs in between. */
  #permitted(callee: Rope, receiver: Piece | null, nodes: readonly Node[], values: Rope[]): Rope {
    let last = -1
    for (const [index, node] of nodes.entries()) if (!isTrivial(node)) last = index
    const { permit } = this
    const list: Piece[] = values.map((value, index) => {
      if (index !== last) return value
      const held = this.take()
      const node = nodes[index]!
      if (node.type !== 'SpreadElement') return rope`(${held} = ${value}, ${permit}, ${held})`
      return rope`...(${held} = [${value}], ${permit}, ${held})`
    })
    if (receiver !== null) list.unshift(receiver)
    const call = rope`${callee}(${join(list, ', ')})`
    return last === -1 ? rope`(${permit}, ${call})` : call
  }

  /** The same, by a last argument, where the function takes one. */
  #handed(callee: Rope, target: Func, nodes: readonly Node[], values: readonly Rope[]): Rope | null {
    const count = this.host.handedAfter(target)
    if (count === null || nodes.length > count || nodes.some(({ type }) => type === 'SpreadElement'))
      return null
    const missing = Array.from({ length: count - nodes.length }, () => 'void 0')
    return rope`${callee}(${join([...values, ...missing, this.ok], ', ')})`
  }

  call(node: Node): Rope {
    const { host, cx } = this
    const call = host.callOf(node)
    const callee = bare(node.callee)
    if (call === undefined || host.staysPlain(call)) return this.#plainCall(node, callee)
    const held = this.held
    if (call.target !== null && callee.type === 'Identifier') {
      const way = host.wayTo(call.target, cx)
      if (way !== 'unknown') return this.#known(node, callee, call.target, way, held)
    }
    if (callee.type === 'MemberExpression') {
      const target = host.privateTarget(callee, cx)
      if (target !== null && !callee.optional && !node.optional)
        return this.#private(node, callee, target, held)
      return this.#method(node, callee, held)
    }
    return this.#unknown(node, callee, held)
  }

  /** A call that cannot stop itself, with something in it that can. */
  #plainCall(node: Node, callee: Node): Rope {
    if (callee.type === 'MemberExpression' && callee.object.type !== 'Super') {
      let object = this.value(callee.object)
      if (callee.optional) object = rope`${this.#guard(object)}`
      else if (node.arguments.some((argument: Node) => this.stops(argument)) && !isPath(callee.object)) {
        object = rope`${this.hold(object)}`
      }
      const access = callee.computed
        ? rope`[${this.hold(this.value(callee.property))}]`
        : rope`.${callee.property}`
      if (!node.optional)
        return rope`${operand(object)}${access}(${join(this.#argumentValues(node.arguments), ', ')})`
      const receiver = this.hold(object)
      const fn = this.#guard(rope`${receiver}${access}`)
      return rope`${fn}.call(${join([receiver, ...this.#argumentValues(node.arguments)], ', ')})`
    }
    let fn: Piece = callee.type === 'Super' ? rope`super` : this.value(node.callee)
    if (node.optional) fn = this.#guard(fn)
    return rope`${fn}(${join(this.#argumentValues(node.arguments), ', ')})`
  }

  #known(node: Node, callee: Node, target: Func, way: 'frames' | 'generator', held: number): Rope {
    const { host, frames, ok } = this
    const values = way === 'frames' ? this.#argumentValues(node.arguments) : this.#arguments(node.arguments)
    const name = this.verbatim(callee)
    const direct = this.#callable(name)
    const call =
      way === 'frames'
        ? (this.#handed(direct, target, node.arguments, values) ??
          this.#permitted(direct, null, node.arguments, values))
        : rope`!${ok} ? ${direct}(${join(values, ', ')}) : ${host.runtime('run')}(${host.twinName(target)}(${join(values, ', ')}))`
    return this.#result(node, held, (result, unwind) => {
      return rope`${result} = ${call}; if (${frames}.u) ${unwind}`
    })
  }

  /** A variable in a form that lends no object to its call. */
  #callable(name: Rope): Rope {
    return name.text(this.host.source).includes('.') ? rope`(0, ${name})` : name
  }

  #private(node: Node, callee: Node, target: Func, held: number): Rope {
    const { host, frames, ok } = this
    const stays = this.#stays(callee.object)
    const itself = host.isFrames(target)
    const object = this.value(callee.object)
    const receiver = stays && itself ? object : rope`${this.hold(object)}`
    const values = itself ? this.#argumentValues(node.arguments) : this.#arguments(node.arguments)
    const method = rope`${receiver}.${callee.property}`
    const list = join(values, ', ')
    const call = itself
      ? (this.#handed(method, target, node.arguments, values) ??
        this.#permitted(method, null, node.arguments, values))
      : rope`!${ok} ? ${method}(${list}) : ${host.runtime('run')}(${receiver}.${host.privateName(callee.property.name)}(${list}))`
    return this.#result(node, held, (result, unwind) => {
      return rope`${result} = ${call}; if (${frames}.u) ${unwind}`
    })
  }

  /** The result of a call, in the temporary that is lowest when its operands are free again. */
  #result(node: Node, held: number, write: (result: string, unwind: string) => Rope): Rope {
    this.release(held)
    const result = this.take()
    this.release(held)
    this.place(node.end, result, unwind => write(result, unwind))
    this.take()
    return rope`${result}`
  }

  /** A call of what has another twin: a built-in, mostly, with one or two arguments. */
  #elsewhere(fn: Piece, self: Piece, nodes: readonly Node[], values: Rope[], text: string): Rope {
    const { host, ok } = this
    const isShort = nodes.length <= 2 && !nodes.some(({ type }) => type === 'SpreadElement')
    if (!isShort)
      return rope`${host.runtime('other')}(${ok}, ${fn}, ${self}, [${join(values, ', ')}], ${text})`
    const name = host.runtime(`other${nodes.length}`)
    return rope`${name}(${join([ok, fn, self, ...values, text], ', ')})`
  }

  #unknown(node: Node, callee: Node, held: number): Rope {
    const { frames } = this
    let fn: Rope
    if (node.optional) fn = rope`${this.#guard(this.value(node.callee))}`
    else if (callee.type === 'Identifier' && (this.#stays(callee) || node.arguments.every(isTrivial))) {
      fn = this.verbatim(callee)
    } else fn = rope`${this.hold(this.value(node.callee))}`
    const values = this.#arguments(node.arguments)
    const args = join(values, ', ')
    const found = this.take()
    const text = JSON.stringify(calleeText(callee))
    const direct = callee.type === 'Identifier' || node.optional ? this.#callable(fn) : fn
    const elsewhere = this.#elsewhere(fn, 'void 0', node.arguments, values, text)
    const isNamed = callee.type === 'Identifier' && !node.optional
    // What is no function at all is called as it is, so that the engine says so.
    const isOurs = isNamed
      ? this.#isCalled(found, fn, '?.')
      : rope`typeof ${fn} === 'function' && ${this.#isCalled(found, fn, '')}`
    return this.#result(node, held, (result, unwind) => {
      return rope`if (${isOurs}) ${result} = ${direct}(${args}); else ${result} = ${elsewhere}; if (${frames}.u) ${unwind}`
    })
  }

  #method(node: Node, callee: Node, held: number): Rope {
    const { host, frames } = this
    const isSuper = callee.object.type === 'Super'
    let receiver: Rope
    if (isSuper)
      receiver = this.cx.alias ? this.verbatim({ type: 'ThisExpression', start: 0, end: 0 }) : rope`this`
    else {
      const object = this.value(callee.object)
      if (callee.optional) receiver = rope`${this.#guard(object)}`
      else if (this.#stays(callee.object)) receiver = object
      else if (
        callee.object.type === 'Identifier' &&
        !callee.computed &&
        !node.optional &&
        node.arguments.every(isTrivial)
      ) {
        receiver = object
      } else receiver = rope`${this.hold(object)}`
    }
    const method = isSuper
      ? this.value(callee)
      : callee.computed
        ? rope`${receiver}[${this.value(callee.property)}]`
        : rope`${receiver}.${callee.property}`
    const fn = node.optional ? this.#guard(method) : this.hold(method)
    const made = this.#made(node)
    const values =
      made === null
        ? this.#arguments(node.arguments)
        : [rope`${this.hold(made)}`, ...this.#arguments(node.arguments.slice(1))]
    const found = this.take()
    const args = join([receiver, ...values], ', ')
    const text = JSON.stringify(calleeText(callee))
    const elsewhere =
      made === null
        ? this.#elsewhere(fn, receiver, node.arguments, values, text)
        : this.#given(fn, receiver, values, text)
    const isOurs = rope`${fn}?.call === ${host.runtime('call')} && ${this.#isCalled(found, fn, '')}`
    // What is made here is marked before it is given away: nothing runs in between.
    const call =
      made === null
        ? rope`${fn}.call(${args})`
        : rope`(${host.runtime('unwinding')}(${values[0]!}), ${fn}.call(${args}))`
    return this.#result(node, held, (result, unwind) => {
      return rope`if (${isOurs}) ${result} = ${call}; else ${result} = ${elsewhere}; if (${frames}.u) ${unwind}`
    })
  }

  /** A function that unwinds and is made where it is given, without its mark; null when the call is given no such. */
  #made(node: Node): Rope | null {
    const [first, ...rest] = node.arguments as Node[]
    if (first === undefined || !isFunction(first)) return null
    if (rest.some(argument => argument.type === 'SpreadElement' || this.stops(argument))) return null
    return this.host.unmarked(first, this.cx)
  }

  #given(fn: Piece, self: Piece, [callback, ...rest]: Rope[], text: string): Rope {
    const { host, ok } = this
    const list = rest.length === 0 ? host.runtime('nothing') : rope`[${join(rest, ', ')}]`
    return rope`${host.runtime('given')}(${ok}, ${fn}, ${self}, ${callback!}, ${list}, ${text})`
  }

  /**
   * Whether a callee is called as it is: one that unwinds, which is given the permission by the way, or one that has no
   * other form. `found` is what it carries as itself.
   */
  #isCalled(found: string, fn: Piece, dot: '' | '?.'): Rope {
    const { host } = this
    const other = rope`${found} === void 0 && ${fn}${dot}[${host.runtime('twin')}] === void 0`
    return rope`((${found} = ${fn}${dot}[${host.runtime('itself')}]) === ${fn} ? (${this.permit}, true) : ${other})`
  }

  #tagged(node: Node): Rope {
    const { host, frames, ok } = this
    const call = host.callOf(node)
    const tag = bare(node.tag)
    const held = this.held
    const canStop = call !== undefined && !host.staysPlain(call) && tag.type !== 'MemberExpression'
    const expressions = node.quasi.expressions as Node[]
    const [fn, ...values] = this.values([node.tag, ...expressions])
    const kept = canStop ? rope`${this.hold(fn!)}` : fn!
    const quasi = new Rope()
    let reached = node.quasi.start
    for (const [index, expression] of expressions.entries()) {
      const value = canStop && !isTrivial(expression) ? rope`${this.hold(values[index]!)}` : values[index]!
      quasi.add({ start: reached, end: expression.start }).add(value)
      reached = expression.end
    }
    quasi.add({ start: reached, end: node.quasi.end })
    if (!canStop) return rope`${kept}${quasi}`
    const found = this.take()
    const text = JSON.stringify(calleeText(tag))
    const made = host.runtime('tagging')
    // The text stands once: the list of its strings is one and the same in each call.
    return this.#result(node, held, (result, unwind) => {
      return rope`${found} = ${made}(${ok}, ${kept}, ${text}); ${result} = ${found}${quasi}; if (${frames}.u) ${unwind}`
    })
  }
}

/** An argument of which nothing runs when it is read: a variable, a constant. */
function isTrivial(node: Node): boolean {
  switch (node.type) {
    case 'Identifier':
    case 'ThisExpression':
      return true
    case 'Literal':
      return typeof node.value !== 'object' || node.value === null
    default:
      return false
  }
}

/** Names joined by dots, which a call in between does not change in any way that matters: a namespace. */
function isPath(node: Node): boolean {
  return node.type === 'Identifier' || node.type === 'ThisExpression'
}

/** True when a null somewhere in the node ends the chain that it is part of. */
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

function conditionOf(operator: string, name: string): string {
  return operator === '&&' ? name : operator === '||' ? `!${name}` : `${name} == null`
}

/** A value in a form that a member can be taken of. */
function operand(value: Rope): Rope {
  return rope`(${value})`
}
