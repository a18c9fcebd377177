/** Facts about the place in the output for which a piece is written. */
import type { Func } from '../../analysis/functions.ts'
import type { Rope } from '../../output/rope.ts'
import type { Binding } from '../../analysis/scope.ts'

/** The variables of one resumable function that the compiler adds. */
export class Frame {
  readonly func: Func
  readonly #prefix: string
  readonly #free: string[] = []
  readonly temporaries: string[] = []
  /** True if it counts turns down to the next check of the safepoint. */
  usesFuel = false
  #labels = 0

  constructor(func: Func, prefix: string) {
    this.func = func
    this.#prefix = prefix
  }

  /** A variable for a value, until it is released. */
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

/** Functions whose resumable form is in scope: a chain of scopes, so that an inner one copies nothing. */
export class Available {
  readonly #around: Available | null
  readonly #own: ReadonlySet<Func>
  /** Private names that the class of this scope declares. They hide those of outer classes. */
  readonly #hidden: ReadonlySet<string>

  constructor(around: Available | null, own: ReadonlySet<Func>, hidden: ReadonlySet<string> = nothingHidden) {
    this.#around = around
    this.#own = own
    this.#hidden = hidden
  }

  has(func: Func): boolean {
    if (this.#own.has(func)) return true
    const key = func.holder?.key
    if (key?.type === 'PrivateIdentifier' && this.#hidden.has(key.name)) return false
    return this.#around !== null && this.#around.has(func)
  }

  privateMethod(name: string): Func | null {
    if (!this.#hidden.has(name)) return this.#around?.privateMethod(name) ?? null
    for (const func of this.#own) {
      const key = func.holder?.key
      if (key?.type === 'PrivateIdentifier' && key.name === name) return func
    }
    return null
  }

  with(func: Func): Available {
    return new Available(this, new Set([func]))
  }
}

const nothingHidden: ReadonlySet<string> = new Set()

export interface Context {
  /** The function that contains the code. */
  func: Func
  /** The resumable function that contains the code, if it may stop there; else null. */
  frame: Frame | null
  /**
   * Which functions made here get their resumable form attached.
   *   all       every function that has one
   *   explicit  functions that are marked themselves, or by their module
   *   none      none: this is the plain form of a function whose resumable form is beside it
   */
  attach: 'all' | 'explicit' | 'none'
  /**
   * `this`, `arguments`, `new.target` and `super` are read by their capture names: this is an arrow's twin.
   */
  readsCaptures: boolean
  /** The function whose `this` and so on have capture names here. */
  captureOwner: Func | null
  available: Available
  /** Replacements for jumps whose loop was split. */
  jumps: ReadonlyMap<object, Rope>
  /** The cursors of the loops around, innermost first, that a `return` must close. */
  closing?: readonly string[] | undefined
  /**
   * For a `return` inside a `try` with a `finally` that may suspend: the label to leave by, and the variables
   * for the kind of exit and the value.
   */
  ending?: { readonly label: string; readonly how: string; readonly value: string } | undefined
  /** In the second form of a constructor: the runtime function that returns the object to `new`. */
  building?: string | undefined
  /** Variables that have another name here, perhaps with `.v` appended. */
  renamed: ReadonlyMap<Binding | 'arguments' | 'target', string> | null
}

/** For code outside split loops. */
export const noJumps: Context['jumps'] = new Map()
