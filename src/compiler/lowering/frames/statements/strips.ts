/** Loops without calls in a function that unwinds: they run some hundreds of turns between two safepoints. */
import type { Func } from '../../../analysis/functions.ts'
import { type Rope, rope } from '../../../output/rope.ts'
import type { Node } from '../../../analysis/syntax.ts'
import { type Context, Frame } from '../../writer/context.ts'
import { GeneratorLowering } from '../../generator/generator.ts'
import { turnJumps, writeCounted } from '../../loops/striploops.ts'
import { type Strip, stripOf } from '../../loops/strip.ts'
import { turnsBetween } from '../../loops/weight.ts'

/** The source of names for the strips of a loop. */
interface Temporaries {
  take(): string
  label(): string
}

export class StripLowering extends GeneratorLowering {
  /** While a loop is written in strips: the code between two strips. */
  #between: string | null = null
  /** The number of turns in a strip. */
  #turns = 0

  override safepoint(): string {
    return this.#between ?? super.safepoint()
  }

  override init(node: Node, cx: Context): Rope {
    return this.#between === null ? super.init(node, cx) : rope``
  }

  /** Writes a function that is inside a loop in strips: it has its own safepoints. */
  separately(write: () => Rope): Rope {
    const between = this.#between
    this.#between = null
    try {
      return write()
    } finally {
      this.#between = between
    }
  }

  /** The loop's counter, by its name here. */
  #renamedStrip(strip: Strip, node: Node, cx: Context): Strip {
    const { counted, estimate } = strip
    if (counted === null && estimate === null) return strip
    const { left, right } = node.test
    const counter = this.renamed(left, cx) ?? (left.name as string)
    const other = (name: unknown): boolean =>
      typeof name === 'string' &&
      [...(cx.renamed?.keys() ?? [])].some(key => typeof key === 'object' && key.name === name)
    if (other(right.name) || other(estimate?.step)) return { ...strip, counted: null, estimate: null }
    return {
      ...strip,
      counted: counted && { ...counted, counter },
      estimate: estimate && { ...estimate, counter },
    }
  }

  /**
   * A strip of a loop with a counter ends when the counter is that many steps further, any other strip after
   * that many turns. The loop's own test comes first in a turn, so that the engine learns from it which
   * elements exist.
   */
  override inStrips(node: Node, strip: Strip, cx: Context): Rope {
    if (this.#between === null) return super.inStrips(node, strip, cx)
    const { counted, estimate } = strip
    const isFew = estimate !== null && turnsOf(node, estimate.step) <= this.#turns
    if (counted !== null && !isFew) return writeCounted(this, node, strip, cx, this.#turns)
    const frame = cx.frame!
    const outer = frame.label()
    const turn = frame.label()
    const inner = turnJumps(strip, cx, outer, turn)
    const test = node.test === null ? rope`true` : this.node(node.test, inner)
    const update =
      node.type === 'ForStatement' && node.update !== null ? this.node(node.update, inner) : rope``
    const body = rope`${strip.continues.length === 0 ? '' : `${turn}:`}{${this.node(node.body, inner)}}`
    if (isFew) return rope`${outer}:for(;${test};${update})${body}`
    const end = frame.take()
    const leave = rope`if(!(${test}))break ${outer};`
    const turning = node.type === 'DoWhileStatement' ? rope`${body}${leave}` : rope`${leave}${body}`
    const strips = (head: Rope): Rope => rope`${outer}:for(;;){for(${head}){${turning}}${this.safepoint()}}`
    if (estimate === null) {
      const also = update.isEmpty ? rope`` : rope`,${update}`
      return strips(rope`${end}=${String(this.#turns)};${end}>0;${end}--${also}`)
    }
    const { counter, step } = estimate
    const isUp = node.test.operator.startsWith('<')
    const far = `${this.names.runtime(isUp ? 'above' : 'below')}(${counter},${step},${this.#turns})`
    return strips(rope`${end}=${far};!(${counter}${isUp ? '>=' : '<='}${end});${update}`)
  }

  /** The loop in strips, with `safepoint` between them. */
  strips(node: Node, labels: Node[], cx: Context, safepoint: string, temporaries: Temporaries): Rope {
    const strip = this.#renamedStrip(stripOf(node, labels, this.analysis)!, node, cx)
    this.#between = safepoint
    this.#turns = this.turnsInStrip(node, labels)!
    try {
      return this.inStrips(node, strip, { ...cx, frame: new StripFrame(cx.func, temporaries) })
    } finally {
      this.#between = null
    }
  }

  /** How many turns a strip of the loop has; null if it must not run in strips. */
  turnsInStrip(node: Node, labels: Node[]): number | null {
    const turns = turnsBetween(node, part => this.callOf(part), this.strip)
    return turns === null || stripOf(node, labels, this.analysis) === null ? null : turns
  }
}

/** The number of turns of a loop that counts from one number to another; infinite if unknown. */
function turnsOf({ init, test }: Node, step: string): number {
  const declared: Node[] = init?.type === 'VariableDeclaration' ? init.declarations : []
  const from = declared.find(({ id }) => id.name === test.left.name)?.init
  if (from?.type !== 'Literal' || typeof from.value !== 'number') return Number.POSITIVE_INFINITY
  if (test.right.type !== 'Literal' || typeof test.right.value !== 'number') return Number.POSITIVE_INFINITY
  const turns = Math.abs(test.right.value - from.value) / Number(step)
  return turns >= 0 ? turns : Number.POSITIVE_INFINITY
}

/** A loop in strips takes its temporaries from the emitter. */
export class StripFrame extends Frame {
  readonly #temporaries: Temporaries

  constructor(func: Func, temporaries: Temporaries) {
    super(func, '')
    this.#temporaries = temporaries
  }

  override take(): string {
    return this.#temporaries.take()
  }

  override give(): void {}

  override label(): string {
    return this.#temporaries.label()
  }
}
