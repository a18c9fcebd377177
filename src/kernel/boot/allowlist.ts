import { show } from '../../coroutine/core/knownoptions.ts'
import { ALLOWLIST_BYTES, ExtRecord } from '../../sched/ext/extlayout.ts'
import { joinAsListed, listedTasks } from '../../sched/ext/extload.ts'
import { moduleUrl } from '../spawn/modules.ts'
import { ModuleTable } from '../spawn/moduletable.ts'

import type { KernelView } from './view.ts'

/** The tasks that a policy schedules, by task name and by the module of the function. One match is enough. */
export interface Allowlist {
  /** Task names: a RegExp, or text in which `*` matches anything. */
  readonly names?: readonly (string | RegExp)[]
  /** The modules that export the tasks' functions, as given to `kernel.import`. */
  readonly modules?: readonly (URL | string)[]
}

/** The list in the arena, where every thread that starts tasks reads it. */
interface Written {
  readonly names: readonly (readonly [source: string, flags: string])[]
  readonly modules: readonly string[]
}

/** Returns the list as text. Throws for an invalid list. */
export function writeAllowlist(list: unknown): string {
  if (typeof list !== 'object' || list === null) {
    throw new TypeError(
      `tasks: ${show(list)} is not an allowlist; give 'all', 'listed', or { names: ['render *'], modules: [url] }`,
    )
  }
  const { names = [], modules = [] } = list as Allowlist
  if (!Array.isArray(names))
    throw new TypeError(`tasks.names: ${show(names)} is not a list of names; give a list, as in ['render *']`)
  if (!Array.isArray(modules))
    throw new TypeError(`tasks.modules: ${show(modules)} is not a list of modules; give a list of URLs`)
  if (names.length + modules.length === 0) {
    throw new TypeError("tasks: the allowlist is empty; give `names` or `modules`, or tasks: 'listed'")
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
  // A global or sticky RegExp keeps a position: two equal names would match differently.
  if (name instanceof RegExp) return [name.source, name.flags.replace(/[gy]/g, '')]
  if (typeof name !== 'string') {
    throw new TypeError(`tasks.names: ${show(name)} is not a name; give text, as in 'render *', or a RegExp`)
  }
  const parts = name.split('*').map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return [`^${parts.join('.*')}$`, 's']
}

/** The allowlist of one thread: parsed once for each policy. */
export class AllowlistReader {
  private readonly view: KernelView
  private readonly modules: ModuleTable
  private generation = -1
  private patterns: readonly RegExp[] = []
  private hrefs = new Set<string>()
  /** By module number: whether it is listed. */
  private readonly known = new Map<number, boolean>()

  constructor(view: KernelView) {
    this.view = view
    this.modules = new ModuleTable(view.i32, view.plan.moduleTable)
  }

  /**
   * Moves a task that is not started to the policy, if the list has its name or the module of its function.
   */
  offer(task: number, name: string, fn: number): void {
    if (this.names(name, fn)) joinAsListed(this.view.s, task)
  }

  /** Whether the list has the name, or the module of this function. */
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
      // Another policy was loaded in the meantime: the text may be a mixture of both lists.
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
