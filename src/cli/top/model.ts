import type { KernelSnapshot, TaskSnapshot } from '../../trace/snapshot.ts'

/** The state of `heddle top`: keys.ts and `update` change it, screen.ts draws it. */
export type SortKey = 'cpu' | 'time' | 'wait' | 'priority' | 'name' | 'id'
export const sortKeys: readonly SortKey[] = ['cpu', 'time', 'wait', 'priority', 'name', 'id']

export type Mode = 'list' | 'filter' | 'priority' | 'help'

export interface TaskRow extends TaskSnapshot {
  /** Its share of one CPU since the last snapshot, 0 to 1. */
  readonly share: number
}

export interface TopModel {
  snapshot: KernelSnapshot | null
  /** The busy share of each CPU since the last snapshot. */
  cpuShares: readonly number[]
  rows: readonly TaskRow[]
  sort: SortKey
  reverse: boolean
  filter: string
  /** The id of the task under the cursor; 0: the first. */
  selected: number
  /** Whether to draw a cursor: not in a single display (`--once`). */
  hasCursor: boolean
  mode: Mode
  /** The line of input, in the modes `filter` and `priority`. */
  input: string
  paused: boolean
  message: string
}

export function newModel(): TopModel {
  return {
    snapshot: null,
    cpuShares: [],
    rows: [],
    sort: 'cpu',
    reverse: false,
    filter: '',
    selected: 0,
    hasCursor: true,
    mode: 'list',
    input: '',
    paused: false,
    message: '',
  }
}

/** Takes a new snapshot; shares are relative to the previous one. */
export function update(model: TopModel, snapshot: KernelSnapshot): void {
  const before = model.snapshot
  const span = before === null ? snapshot.time : snapshot.time - before.time
  const share = (now: number, then: number): number => (span <= 0 ? 0 : Math.max(0, (now - then) / span))
  const ran = new Map(before?.tasks.map(task => [task.id, task.runTime]))
  model.cpuShares = snapshot.cpus.map((cpu, at) => share(cpu.busyTime, before?.cpus[at]?.busyTime ?? 0))
  model.rows = snapshot.tasks.map(task => ({ ...task, share: share(task.runTime, ran.get(task.id) ?? 0) }))
  model.snapshot = snapshot
}

/** The rows of the display: filtered and sorted. */
export function listed(model: TopModel): readonly TaskRow[] {
  const wanted = model.filter.toLowerCase()
  const rows = model.rows.filter(
    ({ name, state }) => wanted === '' || name.toLowerCase().includes(wanted) || state === wanted,
  )
  rows.sort((a, b) => compare(model.sort, a, b) || a.id - b.id)
  return model.reverse ? rows.toReversed() : rows
}

function compare(key: SortKey, a: TaskRow, b: TaskRow): number {
  switch (key) {
    case 'cpu':
      return b.share - a.share || b.runTime - a.runTime
    case 'time':
      return b.runTime - a.runTime
    case 'wait':
      return b.waitTime - a.waitTime
    case 'priority':
      return a.priority - b.priority
    case 'name':
      return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
    case 'id':
      return a.id - b.id
  }
}

/** Where the cursor is among the listed rows. */
export function cursor(model: TopModel, rows: readonly TaskRow[]): number {
  return Math.max(
    0,
    rows.findIndex(({ id }) => id === model.selected),
  )
}
