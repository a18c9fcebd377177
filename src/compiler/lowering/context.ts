/** What the writer of a piece of output must know of the place where that piece will stand. */
import type { Func } from '../functions.ts'
import type { Rope } from '../rope.ts'
import type { Binding } from '../scope.ts'

/** The variables of one resumable function that are the compiler's own. */
export class Frame {
  readonly func: Func
  readonly #prefix: string
  readonly #free: string[] = []
  readonly temporaries: string[] = []
  /** Counts turns down to the next look at the safepoint. */
  usesFuel = false
  #labels = 0

  constructor(func: Func, prefix: string) {
    this.func = func
    this.#prefix = prefix
  }

  /** A variable that holds its value until it is given back. */
  take(): string {
    const free = this.#free.pop()
    if (free !== undefined) return free
    const name = `${this.#prefix}${this.temporaries.length}`
    this.temporaries.push(name)
    return name
  }

  give(...names: string[]): void {
    this.#free.push(...names)
  }

  label(): string {
    return `${this.#prefix}l${this.#labels++}`
  }
}

export interface Context {
  /** The function whose code this is. */
  func: Func
  /** The resumable function that this code is part of, where it may stop; null in code that may not. */
  frame: Frame | null
  /**
   * Which functions made here get their resumable form attached.
   *   all       every one that has one
   *   explicit  those marked themselves, or by their module
   *   none      none: this is the plain form of a function that stands beside its resumable one
   */
  attach: 'all' | 'explicit' | 'none'
  /** `this`, `arguments`, `new.target` and `super` go by their lent names: an arrow's twin is no arrow. */
  alias: boolean
  /** The function whose `this` and so on are lent out by name here. */
  lent: Func | null
  /** Functions whose resumable form is in scope here. */
  available: ReadonlySet<Func>
  /** Jumps that must go elsewhere, because their loop was taken apart. */
  jumps: ReadonlyMap<object, Rope>
  /** The cursors of the loops around, innermost first, that a `return` has to close here. */
  closing?: readonly string[] | undefined
  /** Where a `return` goes that a `finally` has to see first: what it leaves by, and where its value is kept. */
  ending?: { readonly label: string; readonly how: string; readonly value: string } | undefined
  /** Variables that go by another name here, because they were moved; `.v` and the like included. */
  renamed: ReadonlyMap<Binding | 'arguments' | 'target', string> | null
}

/** The jumps of code that stands in no loop which was taken apart. */
export const noJumps: Context['jumps'] = new Map()
