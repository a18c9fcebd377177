import { listIsEmpty } from '../../arena/trees/list.ts'
import { ArenaFullError } from '../../arena/memory/arena.ts'
import { Owner } from '../../futex/core/records.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { UntravelableError } from '../../payload/untravelable.ts'
import { Job } from '../spawn/job.ts'
import { answer, ASK_BYTES, ASK_CHECKPOINT, kindOf, openRequest } from './asking.ts'
import { storeCheckpoint } from './checkpoint.ts'
import { type CpuTask, extrasOf } from './cputask.ts'
import type { KernelCpu } from './kernelcpu.ts'
import { suspendedBytes } from './suspendedtask.ts'
import { imageOf, obstacleTo } from './taskimage.ts'

/** The task goes on. Different from every reason of `resume`. */
export const GOES_ON = -2

/** Writes checkpoints of the tasks of one CPU, and takes tasks out of the kernel as bytes. */
export class Checkpointer {
  private readonly on: KernelCpu

  constructor(on: KernelCpu) {
    this.on = on
  }

  /** A task begins to run a movable function on this CPU, or goes on here. */
  started(run: CpuTask): void {
    const { i32, f64, s } = this.on.view
    const every = f64[(run.job + Job.checkpointEvery) >> 1]
    if (every > 0) this.schedule(run, s.clock + every)
    if (openRequest(i32, run.job) !== 0) this.wakeAt(s.clock)
  }

  /**
   * A movable task has stopped at a safepoint, or is about to continue. GOES_ON, or the result of `resume`.
   */
  atStop(run: CpuTask): number {
    const { s } = this.on
    const asks = openRequest(s.i32, run.job)
    if (asks !== 0) return this.serve(run, asks)
    if (run.extras === null || s.clock < run.extras.checkpointAt) return GOES_ON
    if (obstacleTo(this.on.view, run) === null) this.write(run)
    this.schedule(run, s.readClock() + s.f64[(run.job + Job.checkpointEvery) >> 1])
    return GOES_ON
  }

  /** An interrupt of this CPU: the timers of its tasks. `isQueued`: the task does not run now. */
  atInterrupt(run: CpuTask, isQueued: boolean): void {
    const { s } = this.on
    const at = run.extras?.checkpointAt ?? Infinity
    if (isQueued && openRequest(s.i32, run.job) !== 0) this.wakeAt(s.clock + s.slice)
    this.wakeAt(Math.max(at, s.clock))
  }

  private serve(run: CpuTask, asks: number): number {
    const { on } = this
    const { view, s } = on
    const obstacle = obstacleTo(view, run) ?? this.heldLock(run)
    if (obstacle !== null) {
      // The request stays open: the task may have no obstacle at a later safepoint.
      on.mover.writeObstacle(run, obstacle)
      this.wakeAt(s.readClock() + s.slice)
      return GOES_ON
    }
    if (kindOf(asks) === ASK_CHECKPOINT) {
      const error = this.write(run)
      if (error !== null) return this.refuse(run, asks, error)
      answer(view, run.job, asks)
      return GOES_ON
    }
    let bytes: Uint8Array
    let word = 0
    try {
      bytes = suspendedBytes(on, run)
      if (kindOf(asks) === ASK_BYTES) word = view.codec.encode(bytes, 'image')
    } catch (error) {
      return this.refuse(run, asks, error)
    }
    if (word === 0) return on.finish({ threw: false, value: bytes, isSuspended: true })
    view.codec.drop(run.job + Job.reply)
    view.codec.put(run.job + Job.reply, word)
    answer(view, run.job, asks)
    return GOES_ON
  }

  /** Null, or the reason why there is no checkpoint. The task has no obstacle. */
  private write(run: CpuTask): unknown {
    const { view } = this.on
    const held = this.heldLock(run)
    if (held !== null) return new Error(held)
    try {
      const word = view.codec.encodeImage(imageOf(run), '')
      view.i32[run.job + Job.imageBytes] = view.heap.capacityOf(word)
      storeCheckpoint(view, run.job, word)
      return null
    } catch (error) {
      if (error instanceof UntravelableError || error instanceof ArenaFullError) return error
      throw error
    }
  }

  /** A task that goes on from a checkpoint has no locks: so it holds none at the checkpoint. */
  private heldLock(run: CpuTask): string | null {
    const { i32 } = this.on.view
    const owner = Atomics.load(i32, run.task + TaskRecord.owner)
    return owner !== 0 && !listIsEmpty(i32, owner + Owner.contended)
      ? 'it holds a lock that others wait for; a checkpoint is taken after the unlock'
      : null
  }

  private refuse(run: CpuTask, asks: number, error: unknown): number {
    this.on.mover.writeObstacle(run, (error as Error).message)
    answer(this.on.view, run.job, -asks)
    return GOES_ON
  }

  private schedule(run: CpuTask, at: number): void {
    extrasOf(run).checkpointAt = at
    this.wakeAt(at)
  }

  private wakeAt(at: number): void {
    const { s } = this.on
    if (at < s.moveAt) s.moveAt = at
  }
}
