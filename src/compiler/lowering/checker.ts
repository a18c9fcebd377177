/**
 * The lowering for the model checker: every function is a generator, and every access that may touch shared memory is
 * a `yield` that names the operation, so that whoever drives the thread performs it, when it chooses.
 */
import type { Analysis } from '../analysis.ts'
import { Lines } from '../lines.ts'
import type { Call, Func } from '../functions.ts'
import { join, type Piece, Rope, rope } from '../rope.ts'
import type { Binding } from '../scope.ts'
import { shortGlobals } from '../builtins.ts'
import { bare, boundNames, contains, isFunction, type Node, walk } from '../syntax.ts'
import type { Context, Frame } from './context.ts'
import { GeneratorLowering } from './generator.ts'
import type { Flavor } from './writer.ts'

/** The kinds of operations, as the checker numbers them. */
const plainRead = 0
const plainWrite = 1
const awaiting = 14
const dataViewRead = 15
const dataViewWrite = 16
const bulk = 17
const iteration = 18
const pause = 19

const atomics: ReadonlyMap<string, number> = new Map([
  ['load', 2],
  ['store', 3],
  ['add', 4],
  ['sub', 5],
  ['and', 6],
  ['or', 7],
  ['xor', 8],
  ['exchange', 9],
  ['compareExchange', 10],
  ['wait', 11],
  ['notify', 12],
  ['waitAsync', 13],
])

/** Methods of typed arrays that touch many elements at once. */
const bulkMethods: ReadonlySet<string> = new Set([
  'set',
  'fill',
  'slice',
  'copyWithin',
  'at',
  'indexOf',
  'lastIndexOf',
  'includes',
  'join',
  'reverse',
  'sort',
  'toSorted',
  'toReversed',
  'with',
  'map',
  'filter',
  'forEach',
  'every',
  'some',
  'find',
  'findIndex',
  'findLast',
  'findLastIndex',
  'reduce',
  'reduceRight',
  'values',
  'entries',
  'toString',
  'toLocaleString',
])

/** Global objects whose functions change nothing. */
const quietObjects: ReadonlySet<string> = new Set([
  'Math',
  'Atomics',
  'Number',
  'String',
  'BigInt',
  'Symbol',
  'JSON',
])

const dataViewMethod = /^([gs]et)(?:Big)?(?:Int|Uint|Float)(?:8|16|32|64)$/

export class CheckerLowering extends GeneratorLowering {
  readonly #lines: Lines
  readonly #file: string
  readonly #sites: string[] = []

  constructor(source: string, analysis: Analysis, file: string) {
    super(source, analysis, { strip: 1 })
    this.#lines = new Lines(source)
    this.#file = file
  }

  override program(runtime: string): Rope {
    const base = `${this.names.prefix}base`
    const body = super.program(runtime, () => {
      if (this.#sites.length === 0) return ''
      return `const ${base} = ${this.names.runtime('module')}(${JSON.stringify(this.#file)}, [${this.#sites.join(', ')}]);`
    })
    return body
  }

  /** The text that names this place at run time. */
  #site(node: Node): string {
    const { line, column } = this.#lines.at(node.start)
    const text = this.source.slice(node.start, node.end).replace(/\s+/g, ' ')
    this.#sites.push(JSON.stringify([line, column, text.length > 60 ? `${text.slice(0, 59)}…` : text]))
    return `${this.names.prefix}base + ${this.#sites.length - 1}`
  }

  #op(kind: number, node: Node, ...args: Piece[]): Rope {
    return rope`(yield ${this.names.runtime('op')}(${join([String(kind), this.#site(node), ...args], ', ')}))`
  }

  #isShared(name: string): string {
    return `${this.names.runtime('isShared')}(${name})`
  }

  override flavor(func: Func): Flavor {
    const flavor = super.flavor(func)
    return flavor === 'async' ? 'plain' : flavor
  }

  override isDirect(func: Func): boolean {
    return func.kind === 'declaration' && !func.isGenerator
  }

  override entry(_func: Func, _frame: Frame): string {
    return ''
  }

  override safepoint(): string {
    return ''
  }

  override staysPlain(call: Call): boolean {
    if (call.reach === 'short') return !mayTouchView(call.node)
    return call.target !== null && !call.target.twin
  }

  override awaited(value: Rope, node: Node): Rope {
    return this.#op(awaiting, node, value)
  }

  /** A turn that leaves everything as it was is one that the checker need not repeat: it is told of each turn. */
  override loop(node: Node, cx: Context, labels: Node[]): Rope {
    const prefix = join(
      labels.map(label => rope`${label}: `),
      '',
    )
    const effect = `${this.names.runtime('effect')}();`
    if (node.type === 'ForOfStatement') {
      return node.await
        ? this.forAwait(node, cx, effect, prefix)
        : rope`${prefix}${this.forOf(node, cx, effect)}`
    }
    if (node.type === 'ForInStatement') return rope`${prefix}${this.around(node, cx, effect)}`
    const entered = cx.frame!.take()
    const enter = `${entered} = ${this.names.runtime('loop')}(${this.#site(node)});`
    const turn = `${this.names.runtime('turn')}(${[entered, ...this.#changing(node, cx.func)].join(', ')})`
    const written = this.#turning(node, cx, turn)
    cx.frame!.give(entered)
    return rope`{ ${enter} ${prefix}${written} }`
  }

  #turning(node: Node, cx: Context, turn: string): Rope {
    const body = rope`{ ${this.node(node.body, cx)} }`
    const test =
      node.test === null || node.test === undefined ? rope`` : rope` && (${this.node(node.test, cx)})`
    if (node.type === 'WhileStatement') return rope`while (${turn}${test}) ${body}`
    if (node.type === 'DoWhileStatement') {
      return rope`do { ${turn}; ${this.node(node.body, cx)} } while (${this.node(node.test, cx)});`
    }
    const init = node.init === null ? rope`` : this.node(node.init, cx)
    const update = node.update === null ? rope`` : this.node(node.update, cx)
    return rope`for (${init}; ${turn}${test}; ${update}) ${body}`
  }

  /** The variables that a turn of the loop may change and that the next one sees. */
  #changing(loop: Node, func: Func): string[] {
    this.#bindings ??= new Set([...this.analysis.bindingOf.values()].filter(binding => binding !== null))
    const names: string[] = []
    for (const binding of this.#bindings) {
      if (binding.scope.func !== func) continue
      if (binding.declarations.some(place => contains(loop.body, place))) continue
      const changes = binding.references.some(
        ({ node, write, func: writer }) => write && writer === func && contains(loop, node),
      )
      if (changes) names.push(binding.name)
    }
    return names
  }

  #bindings: Set<Binding> | null = null

  /** What changes something besides shared memory and the function's own variables. */
  #effect(written: Rope): Rope {
    return rope`${this.names.runtime('effect')}(${written})`
  }

  override plainly(written: Rope, node: Node): Rope {
    const callee = bare(node.callee ?? node.tag)
    if (callee.type === 'Super' || callee.type === 'Import') return written
    const global = callee.type === 'MemberExpression' ? callee.object : callee
    if (global.type === 'Identifier' && (this.analysis.bindingOf.get(global) ?? null) === null) {
      const quiet =
        callee === global
          ? node.type === 'CallExpression' && shortGlobals.has(global.name)
          : quietObjects.has(global.name)
      if (quiet) return written
    }
    return this.#effect(written)
  }

  #isOuter(target: Node, cx: Context): boolean {
    return boundNames(target).some(name => this.analysis.bindingOf.get(name)?.scope.func !== cx.func)
  }

  override resumable(node: Node, cx: Context): Rope | null {
    switch (node.type) {
      case 'MemberExpression':
        if (node.object.type === 'Super' || !(isIndexed(node) || this.#isAccessor(node, 'getter')))
          return null
        return this.accessed(this.node(node.object, cx), node, cx)
      case 'AssignmentExpression': {
        const left = bare(node.left)
        if (left.type !== 'MemberExpression' || !isIndexed(left) || left.object.type === 'Super') {
          return this.#assignment(node, cx)
        }
        return this.#write(node, left, cx)
      }
      case 'UpdateExpression': {
        const argument = bare(node.argument)
        if (argument.type === 'Identifier')
          return this.#isOuter(argument, cx) ? this.#effect(this.copy(node, cx)) : null
        if (argument.type !== 'MemberExpression') return null
        if (!isIndexed(argument) || argument.object.type === 'Super') return this.#target(node, argument, cx)
        return this.#update(node, argument, cx)
      }
      case 'UnaryExpression':
        if (node.operator === 'delete' || node.operator === 'typeof') {
          const argument = bare(node.argument)
          if (argument.type === 'MemberExpression' && node.operator === 'delete')
            return this.#target(node, argument, cx)
        }
        return super.resumable(node, cx)
      case 'ArrayPattern':
      case 'ObjectPattern':
        return this.#pattern(node, cx)
      case 'VariableDeclarator':
        if (node.init === null || !isPattern(node.id)) return null
        return rope`${this.node(node.id, cx)}${{ start: node.id.end, end: node.init.start }}${this.#source(node.id, node.init, cx)}`
      case 'ForInStatement':
        return super.resumable(node, cx)
      case 'SpreadElement': {
        const value = cx.frame!.take()
        const written = this.iterated(node.argument, cx)
        cx.frame!.give(value)
        const stops = rope`${this.names.runtime('stops')}(${value} = ${written})`
        return rope`...(${stops} ? yield* ${this.names.runtime('collect')}(${value}) : ${value})`
      }
      case 'CallExpression': {
        const atomic = this.#atomic(node, cx)
        if (atomic !== null) return atomic
        return super.resumable(node, cx)
      }
      default:
        return super.resumable(node, cx)
    }
  }

  /** An assignment to something else: the left side is a place, not a value. */
  #assignment(node: Node, cx: Context): Rope {
    const left = bare(node.left)
    if (isPattern(left)) return this.#destructure(node, left, cx)
    const isMember = left.type === 'MemberExpression'
    if (
      isMember &&
      node.operator === '=' &&
      left.object.type !== 'Super' &&
      this.#isAccessor(left, 'setter')
    ) {
      return this.#set(node, left, cx)
    }
    const place = isMember ? this.#place(left, cx) : this.node(node.left, cx)
    const written = rope`${place}${{ start: node.left.end, end: node.right.start }}${this.node(node.right, cx)}`
    return left.type === 'Identifier' && !this.#isOuter(left, cx) ? written : this.#effect(written)
  }

  /** An assignment that may call a setter. */
  #set(node: Node, left: Node, cx: Context): Rope {
    const frame = cx.frame!
    const [holder, value, found] = [frame.take(), frame.take(), frame.take()] as const
    const setup = rope`${holder} = ${this.node(left.object, cx)}, ${value} = ${this.node(node.right, cx)}`
    frame.give(holder, value, found)
    const name = JSON.stringify(left.property.name)
    const plain = this.#effect(rope`${holder}.${left.property} = ${value}`)
    return rope`(${setup}, ${found} = ${this.names.runtime('setter')}(${holder}, ${name}), ${found} === void 0 ? ${plain} : yield* ${found}.call(${holder}, ${value}), ${value})`
  }

  /** What a destructuring takes apart: the elements of a view are read before. */
  #source(pattern: Node, node: Node, cx: Context): Rope {
    return readsElements(pattern) ? this.iterated(node, cx) : this.node(node, cx)
  }

  /** A destructuring that assigns: what goes to shared memory goes there at its end, each an operation. */
  #destructure(node: Node, pattern: Node, cx: Context): Rope {
    const frame = cx.frame!
    const whole = frame.take()
    const parts = frame.take()
    const taken = [whole, parts]
    const writes = new Rope()
    let count = 0
    const held = this.#held
    this.#held = member => {
      const view = frame.take()
      const index = frame.take()
      const shared = frame.take()
      taken.push(view, index, shared)
      const number = String(count++)
      const found = rope`${shared} = ${this.names.runtime('isShared')}(${view} = ${this.node(member.object, cx)}), ${index} = ${this.node(member.property, cx)}`
      writes.add(rope`${shared} && ${this.#op(plainWrite, member, view, index, `${parts}[${number}]`)}, `)
      return rope`(${found}, ${shared} ? ${parts} : ${view})[${shared} ? ${number} : ${index}]`
    }
    const left = this.node(pattern, cx)
    this.#held = held
    const source = readsElements(pattern)
      ? rope`${this.#isShared(whole)} ? ${this.#op(iteration, node.right, whole)} : ${whole}`
      : rope`${whole}`
    const made = rope`(${whole} = ${this.node(node.right, cx)}, ${parts} = [], ${left} = ${source}, ${writes}${whole})`
    frame.give(...taken)
    return this.#effect(made)
  }

  /** Inside a destructuring that assigns: the place that stands for a member of what may be shared. */
  #held: ((member: Node) => Rope) | null = null

  #target(node: Node, argument: Node, cx: Context): Rope {
    return this.#effect(
      rope`${{ start: node.start, end: argument.start }}${this.#place(argument, cx)}${{ start: argument.end, end: node.end }}`,
    )
  }

  /** A member as a place to write or delete. */
  #place(member: Node, cx: Context): Rope {
    const object = this.node(member.object, cx)
    return member.computed
      ? rope`${object}[${this.node(member.property, cx)}]`
      : rope`${object}.${member.property}`
  }

  /** A member that a loop sets in each turn is a place. */
  override head(left: Node, cx: Context): Rope {
    return bare(left).type === 'MemberExpression' ? this.#place(bare(left), cx) : this.node(left, cx)
  }

  override takesApart(left: Node): boolean {
    const pattern = left.type === 'VariableDeclaration' ? left.declarations[0].id : bare(left)
    return isPattern(pattern) && readsElements(pattern)
  }

  override element(value: string, left: Node): Rope {
    return this.takesApart(left) ? this.#elements(value, left) : rope`${value}`
  }

  #elements(value: string, node: Node): Rope {
    return rope`(${this.#isShared(value)} ? ${this.#op(iteration, node, value)} : ${value})`
  }

  /**
   * A parameter that is taken apart is taken apart at the start of the body, where the thread can stop; unless its order among
   * the defaults of others, or a variable of its name in the body, would make a difference.
   */
  override parameter(
    parameter: Node,
    index: number,
    func: Func,
    beside: Context,
    cx: Context,
  ): { written: Rope; opening: Rope } {
    const late =
      isPattern(parameter) &&
      readsElements(parameter) &&
      !(func.node.params as Node[]).some(({ type }) => type === 'AssignmentPattern') &&
      boundNames(parameter).every(name => this.analysis.bindingOf.get(name)?.declarations.length === 1)
    if (!late) return super.parameter(parameter, index, func, beside, cx)
    const whole = `${this.names.prefix}p${index}`
    const opening = rope`let ${this.node(parameter, cx)} = ${this.#elements(whole, parameter)};`
    return { written: rope`${whole}`, opening }
  }

  /** The members that a destructuring writes to are places. */
  #pattern(node: Node, cx: Context): Rope {
    const made = new Rope()
    let reached = node.start
    const visit = (part: Node): void => {
      const inner =
        part.type === 'AssignmentPattern' ? part.left : part.type === 'RestElement' ? part.argument : part
      if (inner.type === 'MemberExpression') {
        const indexed = isIndexed(inner) && inner.object.type !== 'Super'
        const place = indexed && this.#held !== null ? this.#held(inner) : this.#place(inner, cx)
        made.add({ start: reached, end: inner.start }).add(place)
        reached = inner.end
        if (part.type === 'AssignmentPattern') {
          made.add({ start: reached, end: part.right.start }).add(this.node(part.right, cx))
          reached = part.right.end
        }
        return
      }
      made.add({ start: reached, end: part.start }).add(this.node(part, cx))
      reached = part.end
    }
    if (node.type === 'ArrayPattern') for (const element of node.elements.filter(Boolean)) visit(element)
    else {
      for (const property of node.properties) {
        if (property.type === 'RestElement') visit(property)
        else {
          if (property.computed) visit(property.key)
          visit(property.value)
        }
      }
    }
    return made.add({ start: reached, end: node.end })
  }

  override accessed(object: Rope, node: Node, cx: Context): Rope {
    const frame = cx.frame!
    if (this.#isAccessor(node, 'getter')) {
      const holder = frame.take()
      const found = frame.take()
      frame.give(holder, found)
      const name = JSON.stringify(node.property.name)
      return rope`(${holder} = ${object}, ${found} = ${this.names.runtime('getter')}(${holder}, ${name}), ${found} === void 0 ? ${holder}.${node.property} : yield* ${found}.call(${holder}))`
    }
    if (!isIndexed(node)) return super.accessed(object, node, cx)
    const view = frame.take()
    const index = frame.take()
    const key = this.node(node.property, cx)
    frame.give(view, index)
    const read = this.#op(plainRead, node, view, index)
    return rope`(${view} = ${object}, ${index} = ${key}, ${this.#isShared(view)} ? ${read} : ${view}[${index}])`
  }

  /** True when this file has an accessor of that name. */
  #isAccessor(node: Node, kind: 'getter' | 'setter'): boolean {
    if (node.type !== 'MemberExpression' || node.computed || node.property.type !== 'Identifier') return false
    this.#accessors ??= new Set(
      this.analysis.funcs
        .filter(func => func.twin && func.holder !== null)
        .map(func => `${func.kind} ${func.name}`),
    )
    return this.#accessors.has(`${kind} ${node.property.name}`)
  }

  #accessors: Set<string> | null = null

  override chainStops(node: Node): boolean {
    let stops = super.chainStops(node)
    walk(node, child => {
      if (isFunction(child)) return false
      if (child.type === 'MemberExpression' && isIndexed(child)) stops = true
      if (this.#isAccessor(child, 'getter')) stops = true
      return !stops
    })
    return stops
  }

  #write(node: Node, left: Node, cx: Context): Rope {
    const frame = cx.frame!
    const view = frame.take()
    const index = frame.take()
    const setup = rope`${view} = ${this.node(left.object, cx)}, ${index} = ${this.node(left.property, cx)}`
    const shared = this.#isShared(view)
    const value = frame.take()
    const right = this.node(node.right, cx)
    const write = (): Rope =>
      rope`(${shared} ? ${this.#op(plainWrite, node, view, index, value)} : ${this.#effect(rope`${view}[${index}] = ${value}`)})`
    let made: Rope
    if (node.operator === '=') {
      made = rope`(${setup}, ${value} = ${right}, ${write()}, ${value})`
    } else {
      const read = rope`${shared} ? ${this.#op(plainRead, left, view, index)} : ${view}[${index}]`
      const operator = node.operator.slice(0, -1) as string
      if (operator === '&&' || operator === '||' || operator === '??') {
        made = rope`(${setup}, ${value} = ${read}, ${value} ${operator} (${value} = ${right}, ${write()}, ${value}))`
      } else {
        const old = frame.take()
        made = rope`(${setup}, ${old} = ${read}, ${value} = ${old} ${operator} (${right}), ${write()}, ${value})`
        frame.give(old)
      }
    }
    frame.give(view, index, value)
    return made
  }

  #update(node: Node, argument: Node, cx: Context): Rope {
    const frame = cx.frame!
    const view = frame.take()
    const index = frame.take()
    const old = frame.take()
    const setup = rope`${view} = ${this.node(argument.object, cx)}, ${index} = ${this.node(argument.property, cx)}`
    const sign = node.operator === '++' ? '+' : '-'
    const next = `typeof ${old} === 'bigint' ? ${old} ${sign} 1n : ${old} ${sign} 1`
    const read = this.#op(plainRead, argument, view, index)
    const write = this.#op(plainWrite, node, view, index, next)
    const plain = node.prefix ? `${node.operator}${view}[${index}]` : `${view}[${index}]${node.operator}`
    const result = node.prefix ? `(${next})` : old
    frame.give(view, index, old)
    return rope`(${setup}, ${this.#isShared(view)} ? (${old} = ${read}, ${write}, ${result}) : ${this.#effect(rope`${plain}`)})`
  }

  #atomic(node: Node, cx: Context): Rope | null {
    const callee = bare(node.callee)
    if (callee.type !== 'MemberExpression' || callee.computed || callee.object.type !== 'Identifier')
      return null
    if (callee.object.name !== 'Atomics' || (this.analysis.bindingOf.get(callee.object) ?? null) !== null)
      return null
    const args: Node[] = node.arguments
    if (args.some(({ type }) => type === 'SpreadElement')) return null
    const name = callee.property.name as string
    if (name === 'pause') {
      const hint = args[0] === undefined ? 'void 0' : this.node(args[0], cx)
      return this.#op(pause, node, 'null', '0', hint)
    }
    const kind = atomics.get(name)
    if (kind === undefined || args.length < 2) return null
    const frame = cx.frame!
    const taken = args.map(() => frame.take())
    const setup = join(
      args.map((argument, index) => rope`${taken[index]!} = ${this.node(argument, cx)}`),
      ', ',
    )
    frame.give(...taken)
    return rope`(${setup}, ${this.#isShared(taken[0]!)} ? ${this.#op(kind, node, ...taken)} : Atomics.${name}(${taken.join(', ')}))`
  }

  override iterated(node: Node, cx: Context): Rope {
    const frame = cx.frame!
    const value = frame.take()
    const written = this.node(node, cx)
    frame.give(value)
    return rope`(${this.names.runtime('isShared')}(${value} = ${written}) ? ${this.#op(iteration, node, value)} : ${value})`
  }

  override sharedMethod(
    node: Node,
    callee: Node,
    receiver: Rope,
    args: Piece[],
  ): { test: Rope; value: Rope } | null {
    if (callee.computed || callee.property.type !== 'Identifier') return null
    const name = callee.property.name as string
    const test = rope`${this.names.runtime('isShared')}(${receiver})`
    const method = JSON.stringify(name)
    const match = dataViewMethod.exec(name)
    if (match !== null) {
      if (node.arguments.some(({ type }: Node) => type === 'SpreadElement')) return null
      const [offset = 'void 0', second = 'void 0', third = 'void 0'] = args
      const value =
        match[1] === 'get'
          ? this.#op(dataViewRead, node, receiver, offset, 'void 0', rope`[${method}, ${second}]`)
          : this.#op(dataViewWrite, node, receiver, offset, second, rope`[${method}, ${third}]`)
      return { test, value }
    }
    if (!bulkMethods.has(name)) return null
    return { test, value: this.#op(bulk, node, receiver, '0', method, rope`[${join(args, ', ')}]`) }
  }
}

/** A method that, on a view of shared memory, is an operation. */
function mayTouchView(node: Node): boolean {
  const callee = bare(node.callee ?? node.tag)
  if (callee.type !== 'MemberExpression' || callee.computed || callee.property.type !== 'Identifier')
    return false
  return bulkMethods.has(callee.property.name) || dataViewMethod.test(callee.property.name)
}

/** `x[i]`, with a key that could be an index. */
function isPattern({ type }: Node): boolean {
  return type === 'ArrayPattern' || type === 'ObjectPattern'
}

/** True when the pattern reads elements, not just named properties. */
function readsElements(pattern: Node): boolean {
  if (pattern.type === 'ArrayPattern') return true
  return (pattern.properties as Node[]).some(
    ({ type, computed, key }) => type === 'RestElement' || computed || typeof key.value === 'number',
  )
}

function isIndexed(node: Node): boolean {
  if (!node.computed) return false
  const key = bare(node.property)
  if (key.type === 'Literal') return typeof key.value !== 'string'
  if (key.type === 'TemplateLiteral') return false
  return !(
    key.type === 'MemberExpression' &&
    !key.computed &&
    key.object.type === 'Identifier' &&
    key.object.name === 'Symbol'
  )
}
