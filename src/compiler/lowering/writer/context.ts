/** What the writer of a piece of output must know of the place where that piece will stand. */
import type { Func } from '../../analysis/functions.ts'
import type { Rope } from '../../output/rope.ts'
import type { Binding } from '../../analysis/scope.ts'

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

/**
 * Functions whose resumable form is in scope: a chain of scopes, so that a deep one costs no copy of those
 * around it.
 */
export class Available {
  readonly #around: Available | null
  readonly #own: ReadonlySet<Func>
  /** Private names that the class of this scope declares: they hide those of the classes around it. */
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

  /** The private method of this name that is in scope, or null. */
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
  readsCaptures: boolean
  /** The function whose `this` and so on are lent out by name here. */
  captureOwner: Func | null
  /** Functions whose resumable form is in scope here. */
  available: Available
  /** Jumps that must go elsewhere, because their loop was taken apart. */
  jumps: ReadonlyMap<object, Rope>
  /** The cursors of the loops around, innermost first, that a `return` has to close here. */
  closing?: readonly string[] | undefined
  /**
   * Where a `return` goes that a `finally` has to see first: what it leaves by, and where its value is kept.
   */
  ending?: { readonly label: string; readonly how: string; readonly value: string } | undefined
  /** A constructor that goes on: what gives `new` the object, where the engine would have done so. */
  building?: string | undefined
  /** Variables that go by another name here, because they were moved; `.v` and the like included. */
  renamed: ReadonlyMap<Binding | 'arguments' | 'target', string> | null
}

/** The jumps of code that stands in no loop which was taken apart. */
export const noJumps: Context['jumps'] = new Map()
