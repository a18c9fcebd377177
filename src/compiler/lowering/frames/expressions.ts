/**
 * Expressions of a function that unwinds. A call that may suspend becomes a statement of its own, so what is
 * evaluated before it goes into temporaries first, in the order of the source. What cannot stop is left as it stands.
 */
import { join, type Piece, Rope, rope } from '../../rope.ts'
import { bare, isFunction, type Node } from '../../syntax.ts'
import type { Context } from '../context.ts'
import { calleeText, notIterableText } from '../message.ts'
import { Emitter, type Slots } from './emitter.ts'
import type { Host } from './host.ts'
import type { Plan } from './plan.ts'

export abstract class Expressions extends Emitter {
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
      return index < last && !this.stays(node) ? rope`${this.hold(value)}` : value
    })
  }

  /** True when a second look, after whatever, gives the same. */
  protected stays(node: Node): boolean {
    const inner = bare(node)
    if (inner.type === 'ThisExpression') return true
    if (inner.type === 'Literal') return typeof inner.value !== 'object' || inner.value === null
    return inner.type === 'Identifier' && this.host.bindingIsConstant(inner)
  }

  /** A call, also one that cannot stop itself. */
  abstract call(node: Node): Rope
  protected abstract tagged(node: Node): Rope

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
        return this.tagged(node)
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
    if (node.optional) object = rope`${this.guard(object)}`
    if (!node.computed) return rope`${operand(object)}.${node.property}`
    if (this.stops(node.property) && !node.optional && !this.stays(node.object)) {
      object = rope`${this.hold(object)}`
    }
    return rope`${operand(object)}[${this.value(node.property)}]`
  }

  /** Leaves the chain when the value so far is null. */
  protected guard(value: Rope): string {
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
    this.when(conditionOf(operator, result), () => {
      this.unset.add(result)
      const right = this.value(node.right)
      this.unset.delete(result)
      this.simple(rope`${result} = ${right};`)
    })
    this.release(held)
    return rope`${result}`
  }

  protected when(test: Rope | string, write: () => void): void {
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
      return this.stays(part) ? value : rope`${this.hold(value)}`
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
      this.when(conditionOf(operator.slice(0, -1), result), () => {
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
      if (index >= last || this.stays(element)) return value
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
      const value = before && !this.stays(property.value) ? rope`${this.hold(text)}` : text
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
export function operand(value: Rope): Rope {
  return rope`(${value})`
}
