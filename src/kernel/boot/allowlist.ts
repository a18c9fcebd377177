import { ALLOWLIST_BYTES, ExtRecord } from '../../sched/ext/extlayout.ts'
import { joinAsListed, listedTasks } from '../../sched/ext/extload.ts'
import { moduleUrl } from '../spawn/modules.ts'
import { ModuleTable } from '../spawn/moduletable.ts'
import { show } from './options.ts'
import type { KernelView } from './view.ts'

/**
 * Which tasks a policy schedules, by what they are called and where their functions are from. One match is
 * enough.
 */
export interface Allowlist {
  /** A task's name: a pattern, or text in which `*` stands for anything. */
  readonly names?: readonly (string | RegExp)[]
  /** The modules that the tasks' functions are exported from, as given to `kernel.import`. */
  readonly modules?: readonly (URL | string)[]
}

/** How the list is written in the arena: every thread that starts tasks reads it there. */
interface Written {
  readonly names: readonly (readonly [source: string, flags: string])[]
  readonly modules: readonly string[]
}

/** The list as text. Throws for what is no list. */
export function writeAllowlist(list: unknown): string {
  if (typeof list !== 'object' || list === null) {
    throw new TypeError(
      `tasks: ${show(list)} is no allowlist; give 'all', 'listed', or { names: ['render *'], modules: [url] }`,
    )
  }
  const { names = [], modules = [] } = list as Allowlist
  if (!Array.isArray(names)) throw new TypeError(`tasks.names: ${show(names)} is not a list of names`)
  if (!Array.isArray(modules)) throw new TypeError(`tasks.modules: ${show(modules)} is not a list of modules`)
  if (names.length + modules.length === 0) {
    throw new TypeError("tasks: the allowlist names nothing; give `names` or `modules`, or tasks: 'listed'")
  }
  const written: Written = { names: names.map(namePattern), modules: modules.map(moduleUrl) }
  const text = JSON.stringify(written)
  const bytes = new TextEncoder().encode(text).length
  if (bytes > ALLOWLIST_BYTES) {
    throw new RangeError(
      `tasks: an allowlist of ${bytes} bytes does not fit into ${ALLOWLIST_BYTES}; give shorter patterns or fewer modules`,
    )
  }
  return text
}

function namePattern(name: unknown): [source: string, flags: string] {
  // A global or sticky pattern remembers where it was: two equal names would not match alike.
  if (name instanceof RegExp) return [name.source, name.flags.replace(/[gy]/g, '')]
  if (typeof name !== 'string') {
    throw new TypeError(`tasks.names: ${show(name)} is not a name; give text, as in 'render *', or a RegExp`)
  }
  const parts = name.split('*').map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return [`^${parts.join('.*')}$`, 's']
}

/** The allowlist as one thread reads it: parsed once for each policy. */
export class AllowlistReader {
  private readonly view: KernelView
  private readonly modules: ModuleTable
  private generation = -1
  private patterns: readonly RegExp[] = []
  private hrefs = new Set<string>()
  /** Whether the module with this number is listed. */
  private readonly known = new Map<number, boolean>()

  constructor(view: KernelView) {
    this.view = view
    this.modules = new ModuleTable(view.i32, view.plan.moduleTable)
  }

  /**
   * Gives the policy a task that it has not started, if the list has its name or the module of its function.
   */
  offer(task: number, name: string, fn: number): void {
    if (this.names(name, fn)) joinAsListed(this.view.s, task)
  }

  /** Whether the list has the name, or the module that this function belongs to. */
  names(name: string, fn: number): boolean {
    return this.read() && (this.patterns.some(pattern => pattern.test(name)) || this.hasModuleOf(fn))
  }

  private hasModuleOf(fn: number): boolean {
    const module = this.modules.find(fn)
    if (module === undefined) return false
    let listed = this.known.get(module.base)
    if (listed === undefined) {
      listed = this.hrefs.has(this.view.codec.decode(module.url) as string)
      this.known.set(module.base, listed)
    }
    return listed
  }

  /** False: there is no list. */
  private read(): boolean {
    const { i32, s } = this.view
    const at = s.ext.record + ExtRecord.generation
    for (;;) {
      const generation = Atomics.load(i32, at)
      if (generation === this.generation) return true
      const text = listedTasks(s)
      // Another policy came meanwhile: what was read may be half of its list.
      if (Atomics.load(i32, at) !== generation) continue
      if (text === null) return false
      const { names, modules } = JSON.parse(text) as Written
      this.patterns = names.map(([source, flags]) => new RegExp(source, flags))
      this.hrefs = new Set(modules)
      this.known.clear()
      this.generation = generation
      return true
    }
  }
}
