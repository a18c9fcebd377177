import type { ViewData } from '../model/data.ts'
import { Histogram } from '../model/histogram.ts'
import {
  isWait,
  type Lane,
  PREEMPTED,
  RUNNABLE,
  RUNNING,
  SLEEPING,
  stateNames,
  WAITS_LOCK,
  YIELDS_LOCK,
} from '../model/lane.ts'

/** A task of the table: of the kernel as it is now, or of a trace. Times are milliseconds. */
export interface TaskRow {
  readonly key: string
  /** The number that requests name it by; 0: it cannot be controlled. */
  readonly id: number
  readonly name: string
  readonly code: string
  readonly state: string
  readonly cpu: number
  readonly priority: number
  readonly basePriority: number
  /** Of one CPU, since the last message; of a trace, over its length. */
  readonly share: number
  readonly runTime: number
  /** It was runnable and had no CPU. */
  readonly waitTime: number
  readonly switches: number
  readonly waitsFor: string
  readonly slot: number
  readonly lane: Lane | undefined
}

export type SortKey =
  | 'name'
  | 'state'
  | 'cpu'
  | 'priority'
  | 'share'
  | 'runTime'
  | 'waitTime'
  | 'switches'
  | 'waitsFor'

/** The tasks of a running kernel. */
export function liveRows({ tasks, shares, trace }: ViewData): TaskRow[] {
  return [...tasks.values()].map(task => ({
    key: `${task.slot} ${task.id}`,
    id: task.id,
    slot: task.slot,
    name: task.name,
    code: task.code ?? '',
    state: task.killed && task.state !== 'ended' ? 'being killed' : task.state,
    cpu: task.cpu,
    priority: task.priority,
    basePriority: task.basePriority,
    share: shares.get(task.slot) ?? 0,
    runTime: task.runTime,
    waitTime: task.waitTime,
    switches: task.switches,
    waitsFor: task.waitsFor ?? (task.state === 'sleeping' ? (task.sleep ?? '') : ''),
    lane: trace.laneOfSlot(task.slot, task.name),
  }))
}

/** The tasks of a recorded trace, summed up over its length. */
export function recordedRows({ trace }: ViewData): TaskRow[] {
  const length = Math.max(1, trace.last - trace.first)
  return trace.tasks.map(lane => {
    const { run, wait, switches, cpu, priority } = sumOf(lane, trace.last)
    const last = lane.count === 0 ? null : lane.slice(lane.count - 1)
    return {
      key: `track ${lane.track.id}`,
      id: 0,
      slot: -1,
      name: lane.track.name,
      code: '',
      state: last === null || last.end < trace.last ? 'ended' : stateNames[last.state],
      cpu,
      priority,
      basePriority: priority,
      share: run / length,
      runTime: run / 1e6,
      waitTime: wait / 1e6,
      switches,
      waitsFor: '',
      lane,
    }
  })
}

function sumOf(
  lane: Lane,
  last: number,
): { run: number; wait: number; switches: number; cpu: number; priority: number } {
  const sum = { run: 0, wait: 0, switches: 0, cpu: -1, priority: 0 }
  for (let row = 0; row < lane.count; row++) {
    const state = lane.stateOf(row)
    const length = Math.min(lane.endOf(row), last) - lane.startOf(row)
    if (state === RUNNING) {
      sum.run += length
      sum.switches++
      sum.cpu = lane.otherOf(row) - 1
      sum.priority = Number(lane.argsOf(row)?.priority ?? sum.priority)
    } else if (state === RUNNABLE || state === PREEMPTED) sum.wait += length
  }
  return sum
}

export function sortRows(rows: TaskRow[], key: SortKey, isDown: boolean): TaskRow[] {
  const sign = isDown ? -1 : 1
  return rows.sort((a, b) => {
    const [x, y] = [a[key], b[key]]
    const order = typeof x === 'number' ? x - (y as number) : x < y ? -1 : x > y ? 1 : 0
    // Equal rows keep one order, so that none jumps.
    return order === 0 ? a.slot - b.slot || (a.key < b.key ? -1 : 1) : order * sign
  })
}

export function matches({ name, code, state, waitsFor }: TaskRow, wanted: string): boolean {
  const text = wanted.toLowerCase()
  return [name, code, state, waitsFor].some(field => field.toLowerCase().includes(text))
}

/** How long a task ran at a time, and how long it waited: for a CPU, for locks, and asleep. */
export interface LaneHistograms {
  readonly running: Histogram
  readonly runnable: Histogram
  readonly locks: Histogram
  readonly asleep: Histogram
}

const SLICES_MAX = 200_000

export function histogramsOf(lane: Lane, last: number): LaneHistograms {
  const found = {
    running: new Histogram(),
    runnable: new Histogram(),
    locks: new Histogram(),
    asleep: new Histogram(),
  }
  for (let row = Math.max(0, lane.count - SLICES_MAX); row < lane.count; row++) {
    const state = lane.stateOf(row)
    const length = Math.max(0, Math.min(lane.endOf(row), last) - lane.startOf(row))
    if (state === RUNNING) found.running.add(length)
    else if (state === WAITS_LOCK || state === YIELDS_LOCK) found.locks.add(length)
    else if (state === SLEEPING) found.asleep.add(length)
    else if (isWait(state)) found.runnable.add(length)
  }
  return found
}
