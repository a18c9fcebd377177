import type { ViewData } from '../model/data.ts'
import type { Lane } from '../model/lane.ts'

export interface Finding {
  readonly what: 'task' | 'lock'
  readonly name: string
  /** For a task, why it was found if not by its name: its function. */
  readonly detail: string
  /** Tracks of tasks: the task itself, or all tasks that used the lock. */
  readonly tracks: readonly number[]
}

const FINDINGS_MAX = 30
/** Slices of one lane that are searched for waits at a lock. */
const SLICES_MAX = 2000

/** Tasks by name and function, and locks by number or name. */
export function find(data: ViewData, text: string): Finding[] {
  const wanted = text.trim().toLowerCase()
  if (wanted === '') return []
  const { trace } = data
  const found: Finding[] = []
  const functions = functionsByName(data)
  for (const lane of trace.tasks) {
    const { name, id } = lane.track
    const code = functions.get(name) ?? ''
    const byName = name.toLowerCase().includes(wanted)
    if (!byName && !code.toLowerCase().includes(wanted)) continue
    found.push({ what: 'task', name, detail: code, tracks: [id] })
    if (found.length === FINDINGS_MAX) return found
  }
  for (const lock of trace.locks.keys()) {
    const name = `lock ${lock}`
    if (!name.includes(wanted)) continue
    const tracks = trace.tasks.filter(lane => usesLock(lane, lock)).map(({ track }) => track.id)
    found.push({ what: 'lock', name, detail: `${tracks.length} tasks waited`, tracks })
    if (found.length === FINDINGS_MAX) break
  }
  return found
}

function functionsByName({ tasks }: ViewData): Map<string, string> {
  const functions = new Map<string, string>()
  for (const { name, code } of tasks.values()) if (code !== null) functions.set(name, code)
  return functions
}

function usesLock(lane: Lane, lock: number): boolean {
  for (let row = Math.max(0, lane.count - SLICES_MAX); row < lane.count; row++) {
    if (lane.argsOf(row)?.on === lock) return true
  }
  return false
}
