import { listIsEmpty } from '../../arena/trees/list.ts'
import { ArenaFullError } from '../../arena/memory/arena.ts'
import { Owner } from '../../futex/core/records.ts'
import { holdsRobust } from '../../futex/robust/robust.ts'
import { PENDING_KILL, TaskRecord } from '../../sched/core/taskrecord.ts'
import { interruptBy } from '../../sched/core/tick.ts'
import { UntravelableError } from '../../payload/untravelable.ts'
import { JOB_CHECKPOINT_WAITS, Job, JobImages } from '../spawn/job.ts'
import { answer, ASK_BYTES, ASK_CHECKPOINT, kindOf, openRequest } from './asking.ts'
import { storeCheckpoint } from './checkpoint.ts'
import { type CpuTask, extrasOf } from './cputask.ts'
import type { KernelCpu } from './kernelcpu.ts'
import { suspendedBytes } from './suspendedtask.ts'
import { imageOf, obstacleTo } from './taskimage.ts'

/** The task goes on. Different from every reason of `resume`. */
export const GOES_ON = -2

/** A checkpoint that is due and has to wait is tried again so often in an interval, or after each slice. */
const RETRIES = 16

/** Writes checkpoints of the tasks of one CPU, and takes tasks out of the kernel as bytes. */
export class Checkpointer {
  private readonly on: KernelCpu

  constructor(on: KernelCpu) {
    this.on = on
  }

  /** A task begins to run a movable function on this CPU, or goes on here. */
  started(run: CpuTask): void {
    const { view } = this.on
    const { f64, s } = view
    this.tellWaiting(run, null)
    const every = f64[(view.imagesOf(run.job) + JobImages.checkpointEvery) >> 1]
    if (every > 0) this.schedule(run, s.clock + every)
    if (openRequest(view, run.job) !== 0) interruptBy(s, s.clock)
  }

  /**
   * A movable task has stopped at a safepoint, or is about to continue. GOES_ON, or the result of `resume`.
   */
  atStop(run: CpuTask): number {
    const { s, view } = this.on
    const asks = openRequest(view, run.job)
    if (asks !== 0) return this.serve(run, asks)
    const at = run.extras?.checkpointAt ?? Infinity
    if (s.clock < at) {
      interruptBy(s, at)
      return GOES_ON
    }
    const every = s.f64[(view.imagesOf(run.job) + JobImages.checkpointEvery) >> 1]
    const obstacle = this.obstacle(run)
    const error = obstacle === null ? this.write(run) : null
    this.tellWaiting(run, error === null ? obstacle : (error as Error).message)
    // Soon, at a later safepoint, and seldom enough to cost nothing.
    const pause = obstacle === null ? every : Math.min(every, Math.max(s.slice, every / RETRIES))
    this.schedule(run, s.readClock() + pause)
    return GOES_ON
  }

  private serve(run: CpuTask, asks: number): number {
    const { on } = this
    const { view, s } = on
    // A kill that is pending would stay behind with the record: it is thrown first.
    if ((Atomics.load(s.i32, run.task + TaskRecord.pending) & PENDING_KILL) !== 0) return GOES_ON
    const obstacle = this.obstacle(run)
    if (obstacle !== null) {
      // The request stays open: the task may have no obstacle at a later safepoint.
      on.mover.writeObstacle(run, obstacle)
      interruptBy(s, s.readClock() + s.slice)
      return GOES_ON
    }
    if (kindOf(asks) === ASK_CHECKPOINT) {
      const error = this.write(run)
      if (error !== null) return this.refuse(run, asks, error)
      answer(view, run.job, asks)
      return GOES_ON
    }
    let word: number
    try {
      // With room in the arena for them: from here on nothing refuses.
      word = view.codec.encode(suspendedBytes(on, run), 'image')
    } catch (error) {
      return this.refuse(run, asks, error)
    }
    if (kindOf(asks) !== ASK_BYTES) return on.finish({ threw: false, value: undefined, suspendedAs: word })
    const reply = view.openImages(run.job) + JobImages.reply
    view.codec.drop(reply)
    view.codec.put(reply, word)
    answer(view, run.job, asks)
    return GOES_ON
  }

  /** Null, or the reason why there is no checkpoint. The task has no obstacle. */
  private write(run: CpuTask): unknown {
    const { view } = this.on
    try {
      const word = view.codec.encodeImage(imageOf(run), '')
      view.i32[view.openImages(run.job) + JobImages.imageBytes] = view.heap.capacityOf(word)
      storeCheckpoint(view, run.job, word)
      return null
    } catch (error) {
      if (error instanceof UntravelableError || error instanceof ArenaFullError) return error
      throw error
    }
  }

  /** What the task waits for before its state can be written, as text; null: nothing. */
  private obstacle(run: CpuTask): string | null {
    return obstacleTo(this.on.view, run) ?? this.heldLock(run)
  }

  /**
   * A task that goes on from its state is another owner, and the locks of the old one go to their waiters: so
   * it holds none.
   */
  private heldLock(run: CpuTask): string | null {
    const { i32, futexes } = this.on.view
    if (run.extras !== null) {
      const { locks, shares } = run.extras
      if (locks > 0) return 'it holds a lock; its state is written after the unlock'
      if (shares > 0)
        return 'it holds a read lock, or a permit of a semaphore; its state is written after the release'
    }
    // Words that code locks without this library.
    const owner = Atomics.load(i32, run.task + TaskRecord.owner)
    if (owner === 0) return null
    return !listIsEmpty(i32, owner + Owner.contended) || holdsRobust(futexes.context, owner)
      ? 'it holds the lock of a futex word; its state is written after the unlock'
      : null
  }

  /** For `task.status`. */
  private tellWaiting(run: CpuTask, obstacle: string | null): void {
    const { i32 } = this.on.view
    const isTold = (Atomics.load(i32, run.job + Job.control) & JOB_CHECKPOINT_WAITS) !== 0
    if (obstacle !== null) this.on.mover.writeObstacle(run, obstacle)
    if (isTold === (obstacle !== null)) return
    if (isTold) Atomics.and(i32, run.job + Job.control, ~JOB_CHECKPOINT_WAITS)
    else Atomics.or(i32, run.job + Job.control, JOB_CHECKPOINT_WAITS)
  }

  private refuse(run: CpuTask, asks: number, error: unknown): number {
    this.on.mover.writeObstacle(run, (error as Error).message)
    answer(this.on.view, run.job, -asks)
    return GOES_ON
  }

  private schedule(run: CpuTask, at: number): void {
    extrasOf(run).checkpointAt = at
    interruptBy(this.on.s, at)
  }
}
