import type { Region } from '../../arena/memory/arena.ts'
import { assert } from '../../arena/assert.ts'

/**
 * The modules that export functions of tasks, in the arena, so that a new CPU finds the modules to load. Only
 * the booting thread writes an entry, before the count that makes it visible; no entry is ever removed.
 *
 * The functions of the kernel are numbered: those of a module start at its `base`, in the order of their
 * names, the same on every CPU.
 */
const COUNT = 0
const ENTRIES = 2
const BASE = 0
const URL_PAYLOAD = 1
const ENTRY_WORDS = 2
const MODULES_MAX = 1023
export const MODULE_TABLE_WORDS: number = ENTRIES + MODULES_MAX * ENTRY_WORDS

/** The maximum for one module: the distance between two bases. */
export const FUNCTIONS_PER_MODULE = 4096
/** The lower numbers belong to the kernel itself. */
const FIRST_BASE = FUNCTIONS_PER_MODULE

export class ModuleTable {
  private readonly i32: Int32Array
  private readonly start: number

  constructor(i32: Int32Array, region: Region) {
    this.i32 = i32
    this.start = region.start
  }

  get count(): number {
    return Atomics.load(this.i32, this.start + COUNT)
  }

  /** Booting thread only. `url` is a payload, owned by the table from now on. Returns the module's base. */
  add(url: number): number {
    const { i32, start } = this
    const index = i32[start + COUNT]
    assert(index < MODULES_MAX, 'a kernel has at most 1023 modules')
    const base = FIRST_BASE + index * FUNCTIONS_PER_MODULE
    const entry = start + ENTRIES + index * ENTRY_WORDS
    i32[entry + BASE] = base
    i32[entry + URL_PAYLOAD] = url
    Atomics.store(i32, start + COUNT, index + 1)
    return base
  }

  /** Every module, in the order in which they were added. */
  all(): { base: number; url: number }[] {
    const { i32, start } = this
    return Array.from({ length: this.count }, (_, index) => {
      const entry = start + ENTRIES + index * ENTRY_WORDS
      return { base: i32[entry + BASE], url: i32[entry + URL_PAYLOAD] }
    })
  }

  /** The base of the module of a function, and the payload of its URL; undefined: there is no such module. */
  find(fn: number): { base: number; url: number } | undefined {
    const index = Math.floor((fn - FIRST_BASE) / FUNCTIONS_PER_MODULE)
    if (index < 0 || index >= this.count) return undefined
    const entry = this.start + ENTRIES + index * ENTRY_WORDS
    return { base: this.i32[entry + BASE], url: this.i32[entry + URL_PAYLOAD] }
  }
}
