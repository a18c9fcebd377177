import { Futex, Owner, PI_LOCK, TASK, Waiter } from '../futex/core/records.ts'
import { cpuAccount, taskAccount } from '../sched/core/account.ts'
import { Entity } from '../sched/core/entity.ts'
import { taskName } from '../sched/core/taskname.ts'
import { isOnline } from '../sched/balance/hotplug.ts'
import { RunQueue } from '../sched/core/runqueue.ts'
import {
  isSleeping,
  RUNNING,
  stateNames,
  TaskRecord,
  UNUSED,
  WAKENING,
  ZOMBIE,
} from '../sched/core/taskrecord.ts'
import { Job, JobImages, NOT_KILLED } from '../kernel/spawn/job.ts'
import type { KernelView } from '../kernel/boot/view.ts'

/**
 * A snapshot of the kernel, read from the arena by any thread, without a lock and without the help of a CPU:
 * it shows a stuck CPU too. The figures of one task are consistent to within a slice.
 */
export interface CpuSnapshot {
  readonly cpu: number
  readonly online: boolean
  /** Total time in which the CPU ran tasks, in milliseconds. */
  readonly busyTime: number
  /** Queued tasks and the running one. */
  readonly load: number
  readonly switches: number
  readonly preemptions: number
  readonly migrations: number
  readonly steals: number
  readonly moves: number
  readonly wakeups: number
  /** The task that runs there, or null. */
  readonly running: string | null
}

export interface TaskSnapshot {
  readonly id: number
  readonly slot: number
  readonly name: string
  /** The function that it runs. Null: it is not a call of one, such as an import. */
  readonly code: string | null
  readonly state: 'running' | 'runnable' | 'sleeping' | 'stopped' | 'ended'
  /** The kind of sleep: a state of taskrecord.ts. */
  readonly sleep: string | null
  readonly cpu: number
  readonly started: boolean
  readonly priority: number
  /** Its base priority, without inheritance. */
  readonly basePriority: number
  readonly nice: number
  readonly runTime: number
  readonly waitTime: number
  readonly switches: number
  readonly preemptions: number
  /**
   * What the task waits for: `futex 1:64` is word 64 of buffer 1, `lock 1:64` a lock that passes priorities
   * on. Null: nothing.
   */
  readonly waitsFor: string | null
  /** Locks that the task holds and other tasks wait for. */
  readonly contendedLocks: number
  /** How often it has moved to another CPU after its start. */
  readonly moves: number
  readonly killed: boolean
}

export interface KernelSnapshot {
  /** Milliseconds since boot. */
  readonly time: number
  readonly cpus: readonly CpuSnapshot[]
  readonly tasks: readonly TaskSnapshot[]
}

export function takeSnapshot(view: KernelView): KernelSnapshot {
  const { s, i32 } = view
  const { context } = view.futexes
  // Inside, no record is reused for another task.
  context.enter()
  try {
    const cpus = Array.from({ length: s.cpus }, (_, cpu) => snapshotCpu(view, cpu))
    const tasks: TaskSnapshot[] = []
    const futexes = futexesOf(view)
    const idle = new Set(cpus.map(({ cpu }) => i32[i32[s.queueOf(cpu) + RunQueue.idle] + Entity.task]))
    for (let at = 0; at < s.tasks.capacity; at++) {
      const task = s.tasks.pointerAt(at)
      if (!s.tasks.isAllocated(i32, task) || idle.has(task)) continue
      const snapshot = snapshotTask(view, task, futexes)
      if (snapshot !== null) tasks.push(snapshot)
    }
    return { time: s.now(), cpus, tasks }
  } finally {
    context.leave()
  }
}

function snapshotCpu(view: KernelView, cpu: number): CpuSnapshot {
  const { s, i32 } = view
  const queue = s.queueOf(cpu)
  const current = Atomics.load(i32, queue + RunQueue.current)
  const idles = current === 0 || current === i32[queue + RunQueue.idle]
  return {
    cpu,
    online: isOnline(s, cpu),
    ...cpuAccount(i32, queue),
    running: idles ? null : taskName(s, i32[current + Entity.task]),
  }
}

/** By task: the futex at which it waits, and how many contended locks it holds. */
function futexesOf(view: KernelView): { waits: Map<number, string>; locks: Map<number, number> } {
  const { i32 } = view
  const { layout } = view.futexes.context
  const waits = new Map<number, string>()
  const locks = new Map<number, number>()
  for (let at = 0; at < layout.waiters.capacity; at++) {
    const waiter = layout.waiters.pointerAt(at)
    if (!layout.waiters.isAllocated(i32, waiter) || i32[waiter + Waiter.kind] !== TASK) continue
    const futex = Atomics.load(i32, waiter + Waiter.queue)
    if (futex <= 0) continue
    const kind = i32[waiter + Waiter.pi] === PI_LOCK ? 'lock' : 'futex'
    waits.set(i32[waiter + Waiter.task], `${kind} ${i32[futex + Futex.owner]}:${i32[futex + Futex.index]}`)
  }
  for (let at = 0; at < layout.futexes.capacity; at++) {
    const futex = layout.futexes.pointerAt(at)
    if (!layout.futexes.isAllocated(i32, futex)) continue
    const owner = i32[futex + Futex.pi]
    const task = owner === 0 ? 0 : i32[owner + Owner.task]
    if (task !== 0) locks.set(task, (locks.get(task) ?? 0) + 1)
  }
  return { waits, locks }
}

function snapshotTask(
  view: KernelView,
  task: number,
  { waits, locks }: ReturnType<typeof futexesOf>,
): TaskSnapshot | null {
  const { i32 } = view
  const state = Atomics.load(i32, task + TaskRecord.state)
  const se = i32[task + TaskRecord.entity]
  if (state === UNUSED || se === 0) return null
  const { runTime, waitTime, switches, preemptions } = taskAccount(i32, se)
  const job = view.jobOf(task)
  const priority = i32[se + Entity.priority]
  return {
    id: job === 0 ? 0 : i32[job + Job.number],
    slot: i32[task + TaskRecord.slot],
    name: shownName(view, task, job),
    code: job === 0 ? null : (view.booter?.functionName(i32[job + Job.fn]) ?? null),
    state: stateOf(i32, task, se, state),
    sleep: isSleeping(state) ? stateNames[state] : null,
    cpu: i32[se + Entity.cpu],
    started: i32[se + Entity.turns] !== 0,
    priority,
    basePriority: i32[se + Entity.basePriority],
    nice: i32[se + Entity.nice],
    runTime,
    waitTime,
    switches,
    preemptions,
    waitsFor:
      waits.get(task) ??
      (i32[task + TaskRecord.channel] === 0 ? null : `channel ${i32[task + TaskRecord.channel]}`),
    contendedLocks: locks.get(task) ?? 0,
    moves: job === 0 || !view.hasImages(job) ? 0 : i32[view.imagesOf(job) + JobImages.moves],
    killed: job !== 0 && Atomics.load(i32, job + Job.killKind) !== NOT_KILLED,
  }
}

/** The record has a name if the program gave one, or if events were recorded; else its function's name is. */
function shownName(view: KernelView, task: number, job: number): string {
  const name = taskName(view.s, task)
  if (job === 0 || name !== `task ${view.i32[task + TaskRecord.slot]}`) return name
  return view.booter?.functionName(view.i32[job + Job.fn]) ?? name
}

function stateOf(i32: Int32Array, task: number, se: number, state: number): TaskSnapshot['state'] {
  if (state === ZOMBIE) return 'ended'
  if (i32[task + TaskRecord.stopped] !== 0) return 'stopped'
  if (state === RUNNING) return Atomics.load(i32, se + Entity.onCpu) === 1 ? 'running' : 'runnable'
  return state === WAKENING ? 'runnable' : 'sleeping'
}
