/**
 * Writes the statements of a function that unwinds, in one of two ways. Without guards, the form starts at
 * the beginning. With guards, it can start at any resume point: `p` is the point that it must reach, or 0
 * while it runs normally. Resume points are numbered in the order of the text. So a statement whose last
 * point is 7 is skipped if `p` is greater.
 */
import { Rope, rope } from '../../output/rope.ts'
import { contains, type Node } from '../../analysis/syntax.ts'
import type { Plan, Variable } from './plan.ts'

/** The names that the two forms of a function share. */
export class Slots {
  readonly names: string[] = []
  readonly #index = new Map<string, number>()

  indexOf(name: string): number {
    let index = this.#index.get(name)
    if (index === undefined) {
      index = this.names.length
      this.names.push(name)
      this.#index.set(name, index)
    }
    return index
  }

  has(name: string): boolean {
    return this.#index.has(name)
  }
}

const resumePointsFew = 1

export class Emitter {
  readonly plan: Plan
  readonly prefix: string
  readonly guards: boolean
  readonly slots: Slots
  /** The highest number of temporaries in use. */
  temporaries = 0
  /** The number of resume points so far. */
  resumePoints = 0
  #held = 0
  #labels = 0
  #out = new Rope()
  #simple = new Rope()
  /** The loops around the code that is being written. */
  readonly loops: Node[] = []
  /** The number of loops around it that the compiler added. */
  repeats = 0

  /** The start of the current statement: code after a resume point may read its variables again. */
  from = 0
  /** Temporaries without a value so far. */
  readonly unset: Set<string> = new Set()
  /** The block variables that are visible here. */
  readonly opened: Set<Variable> = new Set()
  /** Saved variables of blocks. */
  readonly blocks: Set<string> = new Set()
  /** By resume point: the slots that code after it may read. */
  readonly live: Set<number>[] = []
  /** Names that are saved at every resume point. */
  readonly always: string[] = []

  constructor(plan: Plan, prefix: string, guards: boolean, slots: Slots) {
    this.plan = plan
    this.prefix = prefix
    this.guards = guards
    this.slots = slots
  }

  get p(): string {
    return `${this.prefix}p`
  }

  get ok(): string {
    return `${this.prefix}k`
  }

  // Temporaries are a stack: a statement releases the ones that it takes.

  take(): string {
    const name = `${this.prefix}${this.#held++}`
    this.temporaries = Math.max(this.temporaries, this.#held)
    return name
  }

  get held(): number {
    return this.#held
  }

  release(to: number): void {
    this.#held = to
  }

  label(): string {
    return `${this.prefix}l${this.#labels++}`
  }

  /** True in the second form for code before the first resume point: it has already run. */
  get hasRun(): boolean {
    return this.guards && !this.plan.single && this.resumePoints === 0 && !this.isRepeated
  }

  /** True for code that may run more than once in a call. */
  get isRepeated(): boolean {
    return this.loops.length > 0 || this.repeats > 0
  }

  /** A statement that cannot suspend. It ends with a semicolon or a brace. */
  simple(statement: Rope): void {
    this.#simple.add(statement)
  }

  /** Marks the start of a source statement. */
  anchor(start: number): void {
    this.#simple.add({ start, end: start })
  }

  flush(): void {
    if (this.#simple.isEmpty) return
    const statements = this.#simple
    this.#simple = new Rope()
    if (this.hasRun) return
    this.#out.add(this.guards ? rope`if(!${this.p}){${statements}}` : statements)
  }

  /** Adds text that handles resume points itself. */
  add(text: Rope): void {
    this.flush()
    this.#out.add(text)
  }

  /** The text that `write` writes, and the last resume point in it. */
  nested(write: () => void): { text: Rope; last: number } {
    this.flush()
    const out = this.#out
    this.#out = new Rope()
    write()
    this.flush()
    const text = this.#out
    this.#out = out
    return { text, last: this.resumePoints }
  }

  /** A statement that contains resume points, up to `last`. */
  compound(statement: Rope, last: number): void {
    this.add(this.guards ? rope`if(${this.p}<=${String(last)})${statement}` : statement)
  }

  /**
   * A resume point. `write` returns the statements that lead to it and contain the text that unwinds there.
   * On resumption, `target` gets the value or error that the resumer passes, as `given` says.
   */
  resumePoint(
    at: number,
    target: string | null,
    write: (unwind: string) => Rope,
    given = (taken: string): string => taken,
  ): void {
    const { hasRun } = this
    const point = ++this.resumePoints
    const statements = rope`${this.#simple}${write(this.unwind(point, at))}`
    this.#simple = new Rope()
    if (!this.guards) {
      this.#out.add(statements)
      return
    }
    const take = `${this.prefix}t(${this.p}=0)`
    const taking = target === null ? `${take};` : `${target}=${given(take)};`
    if (hasRun) {
      this.#out.add(`if(${this.p}===${point})${taking}`)
      return
    }
    this.#out.add(rope`if(!${this.p}){${statements}}else if(${this.p}===${String(point)})${taking}`)
  }

  /**
   * True if the function has many resume points. Few points save only the live variables of each. With many,
   * that text would prevent the inlining of the function: then one list saves all variables.
   */
  get isCompact(): boolean {
    return this.plan.resumePoints > resumePointsFew
  }

  /** The saved values, at the end of the form. */
  get savedText(): string {
    if (!this.isCompact) return `${this.prefix}v`
    const { blocks, prefix } = this
    const inBlocks = new Set<string>()
    for (const { name, storage } of this.plan.variables.values()) if (storage === 'block') inBlocks.add(name)
    const saved = this.slots.names.map(name => {
      if (blocks.has(name)) return `${prefix}b_${name}`
      // No resume point of this form is in the block.
      return inBlocks.has(name) ? 'void 0' : name
    })
    return `[${saved.join(',')}]`
  }

  /**
   * The statement that records this resume point and exits. Variables that are used after the offset `at` are
   * saved.
   */
  unwind(point: number, at: number): string {
    const values: (string | undefined)[] = []
    for (const name of this.always) values[this.slots.indexOf(name)] = name
    for (const { name } of this.#live(at)) values[this.slots.indexOf(name)] = name
    for (let held = 0; held < this.#held; held++) {
      const name = `${this.prefix}${held}`
      if (this.unset.has(name)) continue
      values[this.slots.indexOf(name)] = name
    }
    const { prefix } = this
    if (this.plan.movable) this.live[point] = new Set(Object.keys(values).map(Number))
    if (!this.isCompact) {
      const list = Array.from(values, value => value ?? 'void 0').join(',')
      return `{${prefix}p=${point};${prefix}v=[${list}];break ${prefix}o}`
    }
    const open = [...this.opened].map(({ name }) => `${prefix}b_${name}=${name};`).join('')
    for (const { name } of this.opened) this.blocks.add(name)
    return `{${open}${prefix}p=${point};break ${prefix}o}`
  }

  /** The variables in scope that are used after this offset, or again in a loop around it. */
  *#live(at: number): Generator<Variable> {
    const from = Math.min(at, this.from)
    const { func, variables } = this.plan
    for (const variable of variables.values()) {
      const { binding, owner, storage } = variable
      if (storage === 'entry' || (storage === 'block' && !this.opened.has(variable))) continue
      const top = owner === func.node
      if (!top && !(at >= owner.start && at <= owner.end)) continue
      const { kind, declarations } = binding
      const isLexical = kind === 'let' || kind === 'const' || kind === 'class'
      if (variable.box === null && isLexical && declarations[0]!.start >= at) continue
      const later = binding.isUsedIn(from, Number.POSITIVE_INFINITY)
      const again = this.loops.some(
        loop =>
          (top || owner === loop || !contains(loop.body, owner)) && binding.isUsedIn(loop.start, loop.end),
      )
      // The declaration sets a box, and is no reference.
      const isBox = this.plan.movable && variable.box !== null
      if (later || again || isBox || storage === 'block') yield variable
    }
  }
}
