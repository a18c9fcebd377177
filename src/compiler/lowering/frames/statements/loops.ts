/**
 * Loops of a function that unwinds. Each turn begins with a safepoint, at which the second form enters the
 * loop again. Loops without calls run in strips instead.
 */
import { Rope, rope } from '../../../output/rope.ts'
import { bare, isFunction, type Node, walk } from '../../../analysis/syntax.ts'
import type { Context } from '../../writer/context.ts'
import { collectJumps, leavesOf } from '../../loops/jumps.ts'
import { isSmall } from '../../loops/weight.ts'
import { madeIterator } from '../iterators.ts'
import { notIterableText } from '../../writer/enginemessages.ts'
import { assign, declare, livingIn, opening, within } from './declarations.ts'
import { closingText } from './return.ts'
import { patternText, loopElementValue } from '../expressions/patterns.ts'
import type { FramesLowering } from '../frames.ts'
import type { Variable } from '../plan.ts'
import { prefixOf, Statements } from './statements.ts'

export class Loops extends Statements {
  /** The text of a loop's body, with its safepoint. `bind` sets the variables of the turn. */
  #turn(node: Node, bind: (() => void) | null, when = ''): { text: Rope; last: number; opened: string } {
    const write = (): void => {
      const polled = this.polled
      this.poll(node.body.start, when)
      this.polled = true
      bind?.()
      this.inner(node.body)
      this.polled = polled
    }
    const made = this.nested(() => within(this, node, write))
    const head = bind === null ? [] : livingIn(this, node)
    return { ...made, opened: head.map(variable => opening(this, variable)).join('') }
  }

  loop(node: Node, labels: Node[]): void {
    const { guards, p } = this
    if (this.#inStrips(node, labels)) return
    const head = livingIn(this, node)
    if (head.length > 0) {
      this.#fresh(node, labels, head)
      return
    }
    if (node.type === 'ForStatement' && node.init !== null) this.#init(node.init)
    if (this.stops(node.test) || this.stops(node.update)) {
      this.#unfolded(node, labels)
      return
    }
    if (!this.plan.single && node.type !== 'DoWhileStatement') {
      this.#leaving(node, labels)
      return
    }
    const { text, last } = this.#turn(node, null, this.#everyEighth(node))
    const test = node.test === null ? rope`true` : this.verbatim(node.test)
    const prefix = prefixOf(labels)
    if (node.type === 'DoWhileStatement') {
      this.compound(rope`${prefix}do { ${text} } while (${test});`, last)
      return
    }
    const condition = guards ? rope`${p}||(${test})` : test
    const update = node.type === 'ForStatement' && node.update !== null ? this.verbatim(node.update) : rope``
    this.compound(rope`${prefix}for(;${condition};${update}){${text}}`, last)
  }

  /**
   * The condition before a safepoint, if the functions that a turn calls have safepoints: a counter in a
   * local variable.
   */
  #everyEighth(node: Node): string {
    if (!callsHaveSafepoints(this.lowering, node) || this.lowering.strip <= 64) return ''
    this.counts = true
    return `!(++${this.prefix}n&7)&&`
  }

  /**
   * A loop whose safepoint is outside: when the count ends, the code leaves the loop, checks, and enters the
   * loop again before its test. A call inside, though rare, would make the engine read all that it knows of
   * objects again in each turn.
   */
  #leaving(node: Node, labels: Node[]): void {
    const { p } = this
    const outer = this.cx
    const when = this.#everyEighth(node)
    const update = node.type === 'ForStatement' && node.update !== null ? this.verbatim(node.update) : rope``
    if (this.guards) {
      const { text, last } = this.nested(() =>
        within(this, node, () => {
          this.poll(node.body.start, when)
          if (node.test !== null) this.add(rope`if(!${p}&&!(${this.verbatim(node.test)}))break;`)
          this.#polledBody(node)
        }),
      )
      this.compound(rope`${prefixOf(labels)}for(;;${update}){${text}}`, last)
      return
    }
    const point = ++this.resumePoints
    const unwind = this.unwind(point, node.body.start)
    const label = this.label()
    const breaks: Node[] = []
    collectJumps(node.body, new Set(labels.map(({ name }) => name as string)), breaks, [])
    const jumps = new Map(outer.jumps)
    for (const jump of breaks) jumps.set(jump, rope`break ${label};`)
    this.cx = { ...outer, jumps }
    const { text, last } = this.nested(() => within(this, node, () => this.#polledBody(node)))
    this.cx = outer
    const test = node.test === null ? rope`` : rope`if(!(${this.verbatim(node.test)}))break ${label};`
    const count = when === '' ? '' : `++${this.prefix}n&7||`
    const turns = rope`${prefixOf(labels)}for(;${count}${this.count}>=0;${update}){${test}${text}}`
    const check = `if(${this.runtime('lookInTime')}(${this.ok}))${unwind}`
    // The next test of the count must not end the loop again before a turn has run.
    const again = when === '' ? `${this.frames}.left++;` : ''
    this.compound(rope`${label}:for(;;){${turns}${check}${again}}`, last)
  }

  /** The body of a loop whose safepoint is before it. */
  #polledBody(node: Node): void {
    const { polled } = this
    this.polled = true
    this.inner(node.body)
    this.polled = polled
  }

  /** Leaves the loop if its test fails. */
  #test(test: Node | null): void {
    if (test === null) return
    const held = this.held
    const value = this.value(test)
    this.simple(rope`if (!(${value})) break;`)
    this.release(held)
  }

  #init(init: Node): void {
    const held = this.held
    if (init.type === 'VariableDeclaration') declare(this, init)
    else this.effect(init)
    this.release(held)
  }

  /** The jumps of a body that is in a block of its own: a `continue` leaves the block. */
  #endingTurn({ body }: Node, labels: Node[], turn: string): Context['jumps'] {
    const jumps = new Map(this.cx.jumps)
    const continues: Node[] = []
    collectJumps(body, new Set(labels.map(({ name }) => name as string)), [], continues)
    for (const jump of continues) jumps.set(jump, rope`break ${turn};`)
    return jumps
  }

  /** A loop whose test or update can suspend: its parts one after the other. */
  #unfolded(node: Node, labels: Node[]): void {
    const turn = this.label()
    const outer = this.cx
    const jumps = this.#endingTurn(node, labels, turn)
    const body = (): void => {
      this.cx = { ...outer, jumps }
      const { text, last } = this.#turn(node, null, this.#everyEighth(node))
      this.cx = outer
      this.compound(rope`${turn}: { ${text} }`, last)
    }
    const { text, last } = this.nested(() => {
      if (node.type === 'DoWhileStatement') {
        body()
        this.#test(node.test)
      } else {
        this.#test(node.test)
        body()
        if (node.type === 'ForStatement' && node.update !== null) this.effect(node.update)
      }
    })
    this.compound(rope`${prefixOf(labels)}for (;;) { ${text} }`, last)
  }

  /** A `for` whose variables closures capture: each turn has its own. */
  #fresh(node: Node, labels: Node[], head: readonly Variable[]): void {
    const outer = this.cx
    // Outside the turn the variables have other names, which no closure sees.
    const between = new Map(outer.renamed)
    const copies: { variable: Variable; name: string }[] = []
    for (const variable of head) {
      const name = this.take()
      between.set(variable.binding, name)
      copies.push({ variable, name })
    }
    const turn = this.label()
    const jumps = this.#endingTurn(node, labels, turn)
    this.cx = { ...outer, renamed: between }
    for (const { id, init } of node.init.declarations as Node[]) {
      const held = this.held
      this.simple(rope`(${patternText(this, id)} = ${init === null ? 'void 0' : this.value(init)});`)
      this.release(held)
    }
    const { text, last } = this.nested(() => {
      this.cx = { ...outer, renamed: between }
      this.#test(node.test)
      this.cx = { ...outer, jumps }
      const {
        text: turning,
        last: turned,
        opened,
      } = this.#turn(node, () => {
        for (const { variable, name } of copies) {
          this.simple(rope`${variable.box === null ? variable.name : `${variable.name}.v`} = ${name};`)
        }
      })
      const back = copies
        .map(
          ({ variable, name }) =>
            `${name} = ${variable.box === null ? variable.name : `${variable.name}.v`};`,
        )
        .join(' ')
      this.cx = { ...outer, renamed: between }
      // The variables of the turn are visible until they are copied for the next.
      const whole = rope`{ ${opened}${turn}: { ${turning} } ${back} }`
      this.compound(whole, turned)
      if (node.update !== null) this.effect(node.update)
      this.cx = outer
    })
    this.cx = outer
    this.compound(rope`${prefixOf(labels)}for (;;) { ${text} }`, last)
  }

  /**
   * A loop in which nothing suspends runs many turns between two safepoints; the second form continues with
   * the next turn.
   */
  #inStrips(node: Node, labels: Node[]): boolean {
    if ([node.test, node.update, node.body].some(part => this.stops(part))) return false
    const turns = this.lowering.turnsInStrip(node, labels)
    if (turns === null) return false
    const { guards, p, ok } = this
    const held = this.held
    const temporaries = { take: () => this.take(), label: () => this.label() }
    if (node.type === 'ForStatement' && node.init !== null) this.#init(node.init)
    this.flush()
    const point = ++this.resumePoints
    const isLong = turns === this.lowering.strip
    const asks = isLong ? `${this.runtime('look')}(${ok})` : this.safepointTest
    const look = `if(${asks})${this.unwind(point, node.body.start)}`
    const text = this.lowering.strips(node, labels, this.cx, look, temporaries)
    const again = guards ? `if(${p})${this.prefix}t(${p}=0);` : ''
    this.compound(rope`{${again}${text}}`, point)
    this.release(held)
    return true
  }

  /**
   * The context inside a loop with a cursor: its `return`s and its jumps out of the loop close the cursor.
   */
  #closing({ jumps }: { jumps: readonly Node[] }, cursor: string): Context {
    const outer = this.cx
    const closing = [cursor, ...(outer.closing ?? [])]
    const all = new Map(outer.jumps)
    for (const jump of jumps) {
      const to = all.get(jump) ?? this.verbatim(jump)
      all.set(jump, rope`{ ${closingText([cursor])} ${to} }`)
    }
    return { ...outer, jumps: all, closing }
  }

  /** `for…of` and `for…in` over a cursor, which is saved like any other value. */
  each(node: Node, labels: Node[]): void {
    const { left, right, body } = node
    const { frames, ok } = this
    const held = this.held
    const isOf = node.type === 'ForOfStatement'
    const inTurn = livingIn(this, node).length > 0
    const text = JSON.stringify(notIterableText(right))
    // Sloppy code may write `for (var key = first in object)`.
    const first = left.type === 'VariableDeclaration' ? left.declarations[0].init : null
    if (first !== null) assign(this, left.declarations[0].id, this.value(first))
    const direct = isOf && this.plan.movable ? madeIterator(bare(right), this.lowering.analysis) : null
    const value = direct === null ? this.value(right) : this.value(direct.object)
    let list = ''
    let short: Rope | null = null
    if (isOf) {
      list = this.hold(value)
      if (!this.stops(body) && !inTurn && direct === null && isShortBody(node)) {
        const entering = this.guards ? `!${this.p}&&` : ''
        const isShort = `${entering}${this.runtime('isShortList')}(${list},${String(this.lowering.strip)})`
        const aim = left.type === 'VariableDeclaration' ? left.declarations[0].id : bare(left)
        // In parentheses, because a variable may be named `async`.
        const target = aim.type === 'Identifier' ? rope`(${patternText(this, aim)})` : patternText(this, aim)
        const element = `${this.prefix}y`
        const isApart = left.type === 'VariableDeclaration' && aim.type !== 'Identifier'
        const head = isApart ? rope`const ${element}` : target
        const unpacking = isApart ? rope`(${target}=${loopElementValue(this, aim, rope`${element}`)});` : ''
        short = rope`if(${isShort})${prefixOf(labels)}for(${head} of ${list}){${unpacking}${this.verbatim(body)}}else`
      }
    }
    const leaves = leavesOf(body, new Set(labels.map(({ name }) => name as string)))
    const cursor = this.take()
    const at = isOf ? this.take() : ''
    const kept = this.held
    const more = this.take()
    const { text: turns, last } = this.nested(() => {
      if (isOf) {
        const made =
          direct === null
            ? rope`${this.runtime(this.plan.movable ? 'movableCursor' : 'cursor')}(${ok},${list},${text})`
            : this.lowering.iteratorText(direct, rope`${list}`, this.cx, 'cursorOf', `${ok}, ${text}, `)
        this.simple(rope`${cursor}=${made};${at}=0;`)
      } else
        this.simple(
          rope`${cursor} = ${this.plan.movable ? this.runtime('movableKeys') : `new ${this.runtime('KeyCursor')}`}(${value});`,
        )
      const loop = this.nested(() => {
        this.release(kept)
        if (isOf) {
          // An array is iterated by index; an iterator is asked for a step, which may suspend.
          this.resumePoint(body.start, more, unwind => {
            const step = rope`${more}=${cursor}.step();if(${frames}.u)${unwind}`
            return rope`if(${cursor}===null)${more}=${at}<${list}.length;else{${step}}`
          })
        } else this.simple(rope`${more} = ${cursor}.step();`)
        this.simple(rope`if(!${more})break;`)
        const bind = (): void => {
          const next = isOf
            ? rope`${cursor}===null?${list}[${at}++]:(${at}++,${cursor}.value)`
            : rope`${cursor}.value`
          if (left.type === 'VariableDeclaration') {
            const { id } = left.declarations[0]
            assign(this, id, loopElementValue(this, id, next))
          } else this.simple(rope`(${patternText(this, bare(left))} = ${next});`)
        }
        const outer = this.cx
        if (isOf && leaves !== null) this.cx = this.#closing(leaves, cursor)
        // Every eighth turn is enough if the functions that a turn calls have safepoints; a short list needs
        // none.
        const often = callsHaveSafepoints(this.lowering, node) && this.lowering.strip > 64
        const turn = this.#turn(node, bind, isOf && often ? `(${at}&7)===7&&` : '')
        this.cx = outer
        this.compound(rope`{${turn.opened}${turn.text}}`, turn.last)
      })
      const looping = rope`${prefixOf(labels)}for(;;){${loop.text}}`
      if (!isOf) {
        this.compound(looping, loop.last)
        return
      }
      const error = `${this.prefix}e`
      const failed = rope`catch(${error}){${frames}.ok=0;if(${cursor}!==null)${cursor}.fail();throw ${error};}`
      // A `finally` would cost every turn. Instead, every exit of the loop closes the cursor.
      const closed =
        leaves === null
          ? rope`finally{if(${cursor}!==null&&${frames}.u===0)${cursor}.close();}`
          : rope`if(${this.guards ? `!${this.p}&&` : ''}${cursor}!==null)${cursor}.close();`
      this.compound(rope`{try{${looping}}${failed}${closed}}`, loop.last)
    })
    this.compound(rope`${short ?? ''}{${turns}}`, last)
    this.release(held)
  }
}

/** True if every function that a turn of the loop calls is in this file or brief. */
function callsHaveSafepoints(lowering: FramesLowering, loop: Node): boolean {
  let all = true
  walk(loop, node => {
    if (isFunction(node)) return false
    const call = lowering.callOf(node)
    if (call !== undefined && call.reach === 'unknown') {
      const callee = node.callee === undefined ? null : bare(node.callee)
      const name = callee?.type === 'MemberExpression' && !callee.computed ? callee.property.name : null
      if (name === null || !lowering.analysis.ownMethods.has(name)) all = false
    }
    return all
  })
  return all
}

/** True for a loop over an array that needs no safepoint if the array is short. */
function isShortBody({ body }: Node): boolean {
  if (!isSmall(body)) return false
  let makesObjects = false
  walk(body, node => {
    if (node.type === 'NewExpression') makesObjects = true
    return !makesObjects
  })
  return !makesObjects
}
