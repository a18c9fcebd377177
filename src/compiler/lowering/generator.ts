/**
 * The first lowering: a resumable form is a generator. A stop is a `yield` of a small integer; a call of another
 * resumable function is a `yield*`. Expressions keep their order by themselves, because `yield` is an expression.
 */
import type { Analysis } from '../analysis.ts'
import type { Func } from '../functions.ts'
import { join, Rope, rope } from '../rope.ts'
import { bare, boundNames, children, isFunction, isLoop, type Node, walk } from '../syntax.ts'
import { isList, typeOf } from '../types.ts'
import { CallLowering } from './calls.ts'
import type { Context, Frame } from './context.ts'
import { notIterableText } from './message.ts'
import { type Nest, nestOf } from './nest.ts'
import { type Counted, type Strip, stripOf } from './strip.ts'

export interface LoweringOptions {
  /** How many turns of a loop without calls stand between two looks at the safepoint. */
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
        return this.plainly(this.copy(node, cx), node)
      case 'YieldExpression':
        if (!cx.func.isGenerator) return null
        if (node.delegate)
          return rope`(yield* ${this.names.runtime('delegate')}(${this.node(node.argument, cx)}))`
        return rope`(yield new ${this.names.runtime('Out')}(${node.argument === null ? '' : this.node(node.argument, cx)}))`
      case 'AwaitExpression':
        return this.awaited(this.node(node.argument, cx), node)
      case 'LabeledStatement':
        return this.#labeled(node, cx)
      case 'BreakStatement':
      case 'ContinueStatement':
        return (cx.jumps.get(node) as Rope | undefined) ?? null
      default:
        return isLoop(node) ? this.loop(node, cx, []) : null
    }
  }

  /** A generator that stops inside is run to its end first; anything else is spread as it is. */
  spread(node: Node, cx: Context): Rope | null {
    if (!this.spreadStops(node)) return null
    const frame = cx.frame!
    const value = frame.take()
    const written = this.node(node.argument, cx)
    frame.give(value)
    return rope`...(${this.names.runtime('stops')}(${value} = ${written}) ? yield* ${this.names.runtime('collect')}(${value}) : ${value})`
  }

  /** True when what is spread may be a generator that stops inside. */
  spreadStops(node: Node): boolean {
    const argument = bare(node.argument)
    if (isList(typeOf(argument, this.analysis))) return false
    if (argument.type !== 'Identifier') return true
    if (argument.name === 'arguments') return false
    const declaration = this.analysis.bindingOf.get(argument)?.declarations[0]
    const last = declaration?.params?.at(-1)
    return !(last?.type === 'RestElement' && last.argument.name === argument.name)
  }

  /** Waits for a value. */
  awaited(value: Rope, _node: Node): Rope {
    return rope`(yield new ${this.names.runtime('Await')}(${value}))`
  }

  /** Code inside a resumable function that is left as it is, calls and all. */
  unresumed(node: Node, cx: Context): Rope {
    return this.copy(node, { ...cx, frame: null })
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
  weight(loop: Node): 'each' | number {
    let heavy = false
    let light = false
    let nested = false
    walk(loop, node => {
      if (isFunction(node)) return false
      if (node !== loop && isLoop(node)) nested = true
      if (node.type === 'YieldExpression' || node.type === 'AwaitExpression' || node.await === true)
        heavy = true
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
    if (!nested) return 1
    return loopDepth(loop) > 2 ? deepWeight : nestWeight
  }

  loop(node: Node, cx: Context, labels: Node[]): Rope {
    const weight = this.weight(node)
    if (weight !== 'each') {
      const strip = stripOf(node, labels, this.analysis)
      if (strip !== null && weight === 1) return this.inStrips(node, strip, cx)
      if (weight === nestWeight) {
        const nest = nestOf(node, labels, this.analysis)
        if (nest !== null && isSmall(nest.inner.body) && isSmall(node.body)) return this.#nest(node, nest, cx)
      }
      if (strip?.counted && (weight === nestWeight || weight === deepWeight)) {
        // Strips at every level multiply: the further out, the fewer turns in one.
        return this.#counted(node, strip, cx, this.strip / nestWeight / 8 ** (loopDepth(node) - 2))
      }
    }
    const check = this.#check(weight, cx)
    const prefix = join(
      labels.map(label => rope`${label}: `),
      '',
    )
    if (node.type !== 'ForOfStatement') return rope`${prefix}${this.around(node, cx, check)}`
    if (node.await) return this.forAwait(node, cx, check, prefix)
    if (weight === 1 && isSmall(node.body) && isList(typeOf(node.right, this.analysis))) {
      return this.#shortForOf(node, cx, check, prefix)
    }
    return rope`${prefix}${this.forOf(node, cx, check)}`
  }

  #check(weight: 'each' | number, cx: Context): string {
    if (weight === 'each') return this.safepoint()
    cx.frame!.usesFuel = true
    const fuel = `${this.names.prefix}fuel`
    const spend = weight === 1 ? `--${fuel}` : `(${fuel} -= ${weight})`
    return `if (${spend} <= 0) { ${fuel} = ${this.strip}; ${this.safepoint()} }`
  }

  /** The loop as it is, with `check` at the start of each turn. */
  around(node: Node, cx: Context, check: string): Rope {
    const { body } = node
    const made = new Rope()
    let reached = node.start
    for (const child of [node.init, node.left, node.right, node.test, node.update, body]) {
      if (child === null || child === undefined || child.start < reached) continue
      made.add({ start: reached, end: child.start })
      if (child === body && check !== '') made.add(`{${check}`).add(this.node(child, cx)).add('}')
      else made.add(child === node.left ? this.head(child, cx) : this.node(child, cx))
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

  /** What a loop sets in each turn. */
  head(left: Node, cx: Context): Rope {
    return this.node(left, cx)
  }

  /** Whether taking apart what a loop comes to, into this head, is more than the language's own business. */
  takesApart(_left: Node): boolean {
    return false
  }

  /** What a loop has come to, as its head takes it. */
  element(value: string, _left: Node): Rope {
    return rope`${value}`
  }

  /** What a loop runs over. */
  iterated(node: Node, cx: Context): Rope {
    return this.node(node, cx)
  }

  /** A loop over what arrives later: each step is awaited, and so is the closing of what is left early. */
  forAwait(node: Node, cx: Context, check: string, prefix: Rope): Rope {
    const { left, right, body } = node
    const frame = cx.frame!
    const source = frame.take()
    const value = frame.take()
    const error = `${this.names.prefix}e`
    const message = JSON.stringify(notIterableText(right).replace(/iterable$/, 'async iterable'))
    const open = rope`${source} = new ${this.names.runtime('AsyncLoop')}(${this.node(right, cx)}, ${message});`
    const take = rope`${value} = ${source}.take(${this.awaited(rope`${source}.next()`, node)}); if (${source}.done) break;`
    const bind =
      left.type === 'VariableDeclaration'
        ? rope`${left.kind} ${this.node(left.declarations[0].id, cx)} = ${this.element(value, left)};`
        : rope`(${this.node(left, cx)} = ${this.element(value, left)});`
    const turns = rope`${prefix}for (;;) { ${take} ${check} ${bind} ${this.node(body, cx)} }`
    const quietly = rope`try { if (${source}.closes()) ${this.awaited(rope`${source}.close()`, node)}; } catch {}`
    const loudly = rope`if (${source}.closes()) ${source}.closed(${this.awaited(rope`${source}.close()`, node)});`
    const close = rope`if (${source}.open) { if (${source}.threw) { ${quietly} } else { ${loudly} } }`
    frame.give(source, value)
    return rope`{ ${open} try { ${turns} } catch (${error}) { ${source}.threw = true; throw ${error}; } finally { ${close} } }`
  }

  /** A loop over what may be a generator that stops inside. */
  forOf(node: Node, cx: Context, check: string): Rope {
    const { left, right, body } = node
    const declares = left.type === 'VariableDeclaration'
    const bound = declares ? boundNames(left.declarations[0].id) : []
    const names = new Set(bound.map(({ name }) => name as string))
    let selfReferring = false
    walk(right, child => {
      if (child.type === 'Identifier' && names.has(child.name)) selfReferring = true
    })
    const disposes = declares && left.kind.includes('using')
    const simple = isList(typeOf(right, this.analysis)) && !this.takesApart(left)
    if (disposes || selfReferring || simple) return this.around(node, cx, check)
    const frame = cx.frame!
    const source = frame.take()
    const value = `${this.names.prefix}v`
    const text = JSON.stringify(notIterableText(right))
    const iterate = rope`${source} = ${this.names.runtime('iterate')}(${this.iterated(right, cx)}, ${text})`
    const bind = declares
      ? rope`${left.kind} ${this.node(left.declarations[0].id, cx)} = ${this.element(value, left)};`
      : rope`(${this.head(left, cx)} = ${this.element(value, left)});`
    const onPending = `if (${value} === ${this.names.runtime('paused')}) { yield* ${this.names.runtime('wait')}(${source}); continue; }`
    const written = rope`for (const ${value} of ${iterate}) { ${onPending} ${check} ${bind} ${this.node(body, cx)} }`
    frame.give(source)
    return written
  }

  /** A short array is run over as it is; only else is there a safepoint in the loop. */
  #shortForOf(node: Node, cx: Context, check: string, prefix: Rope): Rope {
    const frame = cx.frame!
    const list = frame.take()
    const right = this.node(node.right, cx)
    const left = this.node(node.left, cx)
    const isShort = `${this.names.runtime('isShortList')}(${list}, ${this.strip})`
    const plain = rope`${prefix}for (${left} of ${list}) { ${this.node(node.body, cx)} }`
    const long = rope`${prefix}for (${left} of ${list}) { ${check} ${this.node(node.body, cx)} }`
    frame.give(list)
    return rope`{ ${list} = ${right}; if (${isShort}) ${plain} else ${long} }`
  }

  #nest(node: Node, { outer, inner, innerStrip, before, after, shared }: Nest, cx: Context): Rope {
    const frame = cx.frame!
    const all = frame.label()
    const turn = frame.label()
    const left = frame.label()
    const innerAll = frame.label()
    const innerTurn = frame.label()
    const count = frame.take()
    const bound = frame.take()
    const around = this.jumpsOf(outer, cx, all, turn)
    const within = this.jumpsOf(innerStrip, around, innerAll, innerTurn)
    const write = (statements: Node[]): Rope =>
      join(
        statements.map(statement => rope`${this.#moved(statement, around)};`),
        ' ',
      )
    const test = node.test === null ? rope`` : rope`if (!(${this.node(node.test, around)})) break ${all};`
    const update =
      node.type === 'ForStatement' && node.update !== null ? rope`${this.node(node.update, around)};` : rope``
    const { counter, step } = innerStrip.estimate!
    const { operator, right } = inner.test
    const innerInit = inner.init === null ? rope`` : rope`${this.#moved(inner.init, around)};`
    const first = rope`${counter} ${operator} (${bound} = ${this.node(right, within)})`
    const distance = operator.startsWith('<') ? `${counter}, ${bound}` : `${bound}, ${counter}`
    const isShort = `${this.names.runtime('isShort')}(${distance}, ${step}, ${this.strip})`
    const innerTest = this.node(inner.test, within)
    const innerTurns = rope`${innerTurn}: { ${this.node(inner.body, within)} } ${this.node(inner.update, within)};`
    const rest = write(after)
    const turns = Math.max(1, Math.trunc(this.strip / nestWeight))
    const short = rope`${innerAll}: if (${first}) { if (!${isShort}) break ${left}; do { ${innerTurns} } while (${innerTest}); }`
    const fast = rope`for (${count} = ${String(turns)}; ${count} > 0; ${count}--) { ${test} ${turn}: { ${write(before)} ${innerInit} ${short} ${rest} } ${update} }`
    const innerBody = rope`${innerTurn}: { ${this.node(inner.body, within)} }`
    const long = rope`${innerAll}: { ${this.#long(inner, innerStrip, within, bound, innerBody, innerAll)} }`
    frame.give(count, bound)
    const variables = shared.length === 0 ? '' : `let ${shared.join(', ')};`
    const strip = rope`${left}: { ${fast} }`
    // The count is at its end where the strip has been run, and not where it was left.
    const between = rope`if (${count} <= 0) { ${this.safepoint()} } else { ${turn}: { ${long} ${rest} } ${update} }`
    // The first strip, mostly the only one, stands outside of the loop that has the stops in it.
    return rope`{ ${variables} ${this.init(node, cx)} ${all}: { ${strip} for (;;) { ${between} ${strip} } } }`
  }

  /** A statement of a turn whose variables have been declared outside of it. */
  #moved(statement: Node, cx: Context): Rope {
    if (statement.type !== 'VariableDeclaration' || statement.kind === 'var') return this.node(statement, cx)
    const parts = statement.declarations.map(({ id, init }: Node) =>
      init === null ? rope`${id.name} = void 0` : rope`${id.name} = ${this.node(init, cx)}`,
    )
    return join(parts, ', ')
  }

  /** Where the jumps of a loop go that is written as a block of turns. */
  jumpsOf(strip: Strip, cx: Context, outer: string, turn: string): Context {
    const jumps = new Map(cx.jumps)
    for (const jump of strip.breaks) jumps.set(jump, rope`break ${outer};`)
    for (const jump of strip.continues) jumps.set(jump, rope`break ${turn};`)
    return { ...cx, jumps }
  }

  init(node: Node, cx: Context): Rope {
    return node.type === 'ForStatement' && node.init !== null ? rope`${this.node(node.init, cx)};` : rope``
  }

  /** A loop that counts to a bound that stays: the strips are bounds on the way. */
  #counted(node: Node, strip: Strip, cx: Context, turns: number): Rope {
    const frame = cx.frame!
    const outer = frame.label()
    const turn = frame.label()
    const inner = this.jumpsOf(strip, cx, outer, turn)
    const end = frame.take()
    const body = rope`${turn}: { ${this.node(node.body, inner)} }`
    const strips = this.#strips(node, strip.counted!, inner, end, body, turns, 'limit')
    frame.give(end)
    return rope`{ ${this.init(node, cx)} ${outer}: ${strips} }`
  }

  #strips(
    node: Node,
    counted: Counted,
    cx: Context,
    end: string,
    body: Rope,
    turns: number,
    next: 'limit' | 'near',
  ): Rope {
    const { counter, bound, operator, step } = counted
    const many = Math.max(1, Math.trunc(turns))
    const reach = typeof step === 'number' ? String(step * many) : `${step} * ${many}`
    const far = this.node(bound, cx)
    const limit = rope`${end} = ${this.names.runtime(next)}(${counter}, ${far}, ${reach})`
    const strip = rope`for (; ${counter} ${operator} ${end}; ${this.node(node.update, cx)}) { ${body} }`
    return rope`for (;;) { ${limit}; ${strip} if (!(${counter} ${operator} ${far})) break; ${this.safepoint()} }`
  }

  inCountedStrips(node: Node, strip: Strip, cx: Context): Rope {
    return this.#counted(node, strip, cx, this.strip)
  }

  /** The strips of a loop that is known to have a turn to run, and no few. */
  #long(
    node: Node,
    { counted, estimate }: Strip,
    cx: Context,
    temporary: string,
    body: Rope,
    outer: string,
  ): Rope {
    const isTiny = node.body.end - node.body.start <= 200
    if (counted !== null && !isTiny)
      return this.#strips(node, counted, cx, temporary, body, this.strip, 'limit')
    const update = this.node(node.update, cx)
    const test = this.node(node.test, cx)
    const turns = `for (${temporary} = ${this.strip}; ${temporary} > 0; ${temporary}--)`
    const byCount = rope`for (;;) { ${turns} { ${body} ${update}; if (!(${test})) break ${outer}; } ${this.safepoint()} }`
    const { steady, step, counter } = estimate!
    if (!isTiny || (counted === null && !steady)) return byCount
    // Where all that moves is a number, the strips are bounds on the way, and the loop counts nothing else.
    const { operator, right } = node.test
    const sign = operator.startsWith('<') ? '' : '-'
    const strips = this.#strips(
      node,
      counted ?? { counter, bound: right, operator, step: `${sign}${step}` },
      cx,
      temporary,
      body,
      this.strip,
      'near',
    )
    const conditions = [`typeof ${counter} === 'number'`]
    if (right.type === 'Identifier') conditions.push(`typeof ${right.name} === 'number'`)
    if (counted === null) conditions.push(`typeof ${step} === 'number'`, `${step} > 0`)
    return rope`if (${conditions.join(' && ')}) ${strips} else ${byCount}`
  }

  /** Two loops for one: the inner has no stop in it, and ends after some hundreds of turns. */
  inStrips(node: Node, strip: Strip, cx: Context): Rope {
    if (strip.estimate !== null && isSmall(node.body)) return this.#estimated(node, strip, cx)
    if (strip.counted !== null) return this.#counted(node, strip, cx, this.strip)
    const frame = cx.frame!
    const outer = frame.label()
    const turn = frame.label()
    const inner = this.jumpsOf(strip, cx, outer, turn)
    const count = frame.take()
    const turns = `${count} = ${this.strip}; ${count} > 0; ${count}--`
    const body = rope`${turn}: { ${this.node(node.body, inner)} }`
    const test = node.test === null ? rope`` : rope`if (!(${this.node(node.test, inner)})) break ${outer};`
    const update =
      node.type === 'ForStatement' && node.update !== null ? rope`, ${this.node(node.update, inner)}` : rope``
    frame.give(count)
    const turning = node.type === 'DoWhileStatement' ? rope`${body} ${test}` : rope`${test} ${body}`
    const strips = rope`for (${turns}${update}) { ${turning} }`
    if (!isSmall(node.body)) {
      return rope`{ ${this.init(node, cx)} ${outer}: for (;;) { ${strips} ${this.safepoint()} } }`
    }
    // The first strip, mostly the only one, stands outside of the loop that has the stop in it.
    return rope`{ ${this.init(node, cx)} ${outer}: { ${strips} for (;;) { ${this.safepoint()} ${strips} } } }`
  }

  /** The first test tells how far it is: a loop of few turns runs as it is, with no safepoint at all. */
  #estimated(node: Node, strip: Strip, cx: Context): Rope {
    const frame = cx.frame!
    const outer = frame.label()
    const turn = frame.label()
    const inner = this.jumpsOf(strip, cx, outer, turn)
    const bound = frame.take()
    const { counter, step } = strip.estimate!
    const { operator, right } = node.test
    const body = rope`${turn}: { ${this.node(node.body, inner)} }`
    const update = this.node(node.update, inner)
    const test = this.node(node.test, inner)
    const first = rope`${counter} ${operator} (${bound} = ${this.node(right, inner)})`
    const distance = operator.startsWith('<') ? `${counter}, ${bound}` : `${bound}, ${counter}`
    const isShort = `${this.names.runtime('isShort')}(${distance}, ${step}, ${this.strip})`
    const plain = rope`do { ${body} ${update}; } while (${test});`
    const strips = this.#long(node, strip, inner, bound, body, outer)
    frame.give(bound)
    return rope`{ ${this.init(node, cx)} ${outer}: if (${first}) { if (${isShort}) ${plain} else ${strips} } }`
  }
}

/** What a turn of a loop with loops inside is worth. */
const nestWeight = 16

/** What a turn of a loop is worth that has loops with loops inside. */
const deepWeight = 64

/** How many loops deep a loop without calls is. */
function loopDepth(loop: Node): number {
  let deepest = 0
  for (const child of children(loop)) {
    if (!isFunction(child)) deepest = Math.max(deepest, loopDepth(child))
  }
  return isLoop(loop) ? deepest + 1 : deepest
}

/** Small enough to stand in the output twice more. */
export function isSmall(body: Node): boolean {
  if (body.end - body.start > 800) return false
  let makes = false
  walk(body, node => {
    if (isFunction(node) || node.type === 'ClassExpression' || node.type === 'ClassDeclaration') makes = true
    return !makes
  })
  return !makes
}
