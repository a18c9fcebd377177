import { isMovableModule, ModuleMissingError } from '../../coroutine/core/movable.ts'
import { ArenaFullError } from '../../arena/memory/arena.ts'
import { MOVES, pushAway, releasePacked, shouldMove, takePacked } from '../../sched/balance/move.ts'
import { isWorthMoving, reliefFor, STATE_BYTES_A_MS } from '../../sched/balance/relief.ts'
import { Entity } from '../../sched/core/entity.ts'
import { recordMove } from '../../sched/core/events.ts'
import { RunQueue } from '../../sched/core/runqueue.ts'
import { SWITCH_YIELDS } from '../../sched/core/switch.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { interruptBy } from '../../sched/core/tick.ts'
import { isCurrent, wakeupTask } from '../../sched/core/wakeup.ts'
import { askMoveTo } from '../../sched/ext/extcpu.ts'
import { EXT_MAJOR_PRIORITY } from '../../sched/core/priority.ts'
import { registerKillImages } from '../join/killimages.ts'
import { importModule } from '../spawn/functions.ts'
import {
  JOB_ASYNC,
  JOB_IMAGE_BYTES,
  JOB_MOVABLE,
  JOB_NO_IMPORTS,
  JOB_PINNED,
  Job,
  JobImages,
} from '../spawn/job.ts'
import { type CpuTask, extrasOf, RUN_LEAVES, RUN_MOVABLE, RUN_RESTARTS } from './cputask.ts'
import type { KernelCpu } from './kernelcpu.ts'
import { GOES_ON } from './checkpointer.ts'
import { lastCheckpoint } from './checkpoint.ts'
import { imageFromBytes, modulesOfBytes } from '../../payload/imagebytes.ts'
import { changesAround } from '../../coroutine/core/packedframes.ts'
import { imageOf, obstacleTo, restoreTask, type TaskImage } from './taskimage.ts'

/** `atStop`: the task goes on here. Different from every reason of `resume`. */
export const STAYS = -2

/** A larger state does not follow a lock's holder: it takes a tenth of a millisecond and more to move. */
const FOLLOW_BYTES_MOST = 50_000

/**
 * Packs and unpacks the started tasks of one CPU (sched/balance/move.ts): when they should move, and when
 * another CPU should take one.
 */
export class TaskMover {
  private readonly on: KernelCpu
  private readonly warned = new Set<string>()
  /** Whether the task that was packed last was queued here then. */
  private isQueued = false
  /** The task that ends its wait now to follow the holder of its lock, and the CPU where that is. */
  private follower: CpuTask | null = null
  private followsTo = -1

  constructor(on: KernelCpu) {
    this.on = on
    on.s.packAsked = () => this.packAsked()
    registerKillImages()
  }

  /** A task begins to run a movable function. */
  started(run: CpuTask): void {
    const { i32 } = this.on.view
    if ((Atomics.load(i32, run.job + Job.control) & JOB_PINNED) !== 0) return
    Atomics.or(i32, run.job + Job.control, JOB_MOVABLE)
    run.flags |= RUN_MOVABLE
    this.on.checkpointer.started(run)
  }

  /**
   * A movable task has stopped at a safepoint, or is about to continue. STAYS, or the result of `resume`.
   * `balances`: its slice may have ended, so another CPU may take it.
   */
  atStop(run: CpuTask, balances: boolean): number {
    const { s } = this.on
    const { i32 } = s
    const why = this.on.checkpointer.atStop(run)
    if (why !== GOES_ON) return why
    const { follower } = this
    this.follower = null
    if (follower === run) {
      const left = this.leave(run, this.followsTo, FOLLOW_BYTES_MOST)
      if (left === STAYS) extrasOf(run).followsAt = s.readClock() + s.slice
      return left
    }
    if (Atomics.load(i32, run.task + TaskRecord.moveAsked) !== 0) {
      if (shouldMove(s, run.task)) return this.leave(run, -1, Infinity)
      Atomics.store(i32, run.task + TaskRecord.moveAsked, 0)
    }
    if (!balances || Atomics.load(i32, s.queue + RunQueue.load) < 2) return STAYS
    const ran = this.ranHere(run)
    if (!isWorthMoving(s, ran, i32[this.on.view.imagesOf(run.job) + JobImages.imageBytes])) return STAYS
    const target = reliefFor(s, run.task)
    return target < 0 ? STAYS : this.leave(run, target, ran * STATE_BYTES_A_MS)
  }

  /**
   * A movable task waits for a lock, and has just yielded. True: the policy sends it to the CPU of the lock's
   * holder. Its call ends the wait next, and stops: then `atStop` packs the task.
   */
  follows(run: CpuTask): boolean {
    const { s, view } = this.on
    if (view.i32[view.imagesOf(run.job) + JobImages.imageBytes] > FOLLOW_BYTES_MOST) return false
    if (run.extras !== null && s.clock < run.extras.followsAt) return false
    const target = askMoveTo(s, run.task)
    if (target < 0 || target === s.cpu || obstacleTo(view, run, true) !== null) return false
    this.follower = run
    this.followsTo = target
    run.flags |= RUN_LEAVES
    return true
  }

  /** Packs the tasks that should move and are queued or asleep here. The others are packed when they stop. */
  private packAsked(): void {
    const { s } = this.on
    for (const run of this.on.startedTasks()) {
      if ((run.flags & RUN_MOVABLE) === 0) continue
      const se = s.i32[run.task + TaskRecord.entity]
      if (!shouldMove(s, run.task)) continue
      Atomics.store(s.i32, run.task + TaskRecord.moveAsked, 1)
      if (isCurrent(s, se)) continue
      if ((run.flags & RUN_RESTARTS) !== 0) {
        this.endWait(run)
        continue
      }
      if (!this.pack(run, Infinity)) continue
      this.on.forget(run)
      if (this.isQueued) pushAway(s, se, -1)
    }
  }

  /**
   * The task waits at a queue, or is about to run: it leaves the queue when it runs, and stops; then `atStop`
   * packs it.
   */
  private endWait(run: CpuTask): void {
    const { s } = this.on
    run.flags |= RUN_LEAVES
    wakeupTask(s, run.task)
    // A task that cannot be packed then waits again: the next try is a slice later.
    s.moveAt = Math.min(s.moveAt, s.readClock() + s.slice)
  }

  /** Packs the current task, which leaves this CPU. `bytesMost`: a larger state stays. */
  private leave(run: CpuTask, target: number, bytesMost: number): number {
    const { s } = this.on
    if (!this.pack(run, bytesMost)) return STAYS
    this.on.forget(run)
    s.moveTarget = target
    // A policy places its own tasks.
    const { i32 } = s
    return i32[i32[run.task + TaskRecord.entity] + Entity.priority] >> 2 === EXT_MAJOR_PRIORITY
      ? SWITCH_YIELDS
      : MOVES
  }

  /**
   * (A) to (C) of move.ts. False: it cannot move now; the obstacle is written down.
   */
  private pack(run: CpuTask, bytesMost: number): boolean {
    const { view, s } = this.on
    const { i32, codec, heap } = view
    const obstacle = obstacleTo(view, run)
    if (obstacle !== null) return this.refuse(run, obstacle)
    let word: number
    try {
      const image = imageOf(run)
      if (view.arena.debug) this.warnOfState(run, image)
      word = codec.encodeImage(image, '')
    } catch (error) {
      const what = error instanceof ArenaFullError ? 'the arena has no room for its state' : String(error)
      return this.refuse(run, what.replace(/^\w*Error: /, ''))
    }
    const images = view.openImages(run.job)
    i32[images + JobImages.imageBytes] = heap.capacityOf(word)
    if (i32[images + JobImages.imageBytes] > bytesMost) {
      codec.free(word)
      return this.refuse(run, 'its state is large for the time that it has run')
    }
    Atomics.and(i32, run.job + Job.control, ~JOB_ASYNC)
    i32[images + JobImages.moves]++
    i32[images + JobImages.movedFrom] = s.cpu
    if (i32[s.recording] !== 0) recordMove(s, run.task, i32[images + JobImages.imageBytes])
    codec.put(images + JobImages.image, word) // (A)
    Atomics.add(i32, s.queue + RunQueue.sends, 1)
    this.isQueued = releasePacked(s, run.task)
    // By compare-exchange: another CPU may have begun it already.
    Atomics.compareExchange(i32, run.job + Job.cpu, s.cpu + 1, 0)
    return true
  }

  /** Debug mode: says, once for each, which state of its modules the task leaves. */
  private warnOfState(run: CpuTask, { frames }: TaskImage): void {
    const { view } = this.on
    for (const changed of changesAround(frames)) {
      const text = `task ${this.on.nameOf(run)} moves, and ${changed} has changed since the module was loaded: the task finds that of the other CPU; pass it as an argument, share its memory, or spawn with \`movable: false\``
      if (this.warned.has(text)) continue
      this.warned.add(text)
      // By mail: this thread prints nothing before its event loop turns.
      this.on.mail.send({ kind: 'warning', task: view.i32[run.job + Job.number], text })
    }
  }

  private refuse(run: CpuTask, obstacle: string): false {
    const { view, s } = this.on
    if (Atomics.load(view.i32, run.task + TaskRecord.moveAsked) !== 0) {
      interruptBy(s, s.readClock() + s.slice)
    }
    this.writeObstacle(run, obstacle)
    return false
  }

  /** For `task.status`, and for the booting thread that asked for the state. */
  writeObstacle(run: CpuTask, obstacle: string): void {
    const { view, cpu } = this.on
    view.obstacles.write(cpu.id, view.jobs.indexOf(run.job), view.i32[run.job + Job.number], obstacle)
  }

  /** Milliseconds that the task has run since it came to this CPU. */
  private ranHere(run: CpuTask): number {
    const { s } = this.on
    const se = s.i32[run.task + TaskRecord.entity]
    const ran = s.f64[(se + Entity.runTime) >> 1] + Math.max(0, s.now() - s.f64[(se + Entity.execStart) >> 1])
    return ran - (run.extras?.ranElsewhere ?? 0)
  }

  /** A promise of the code that the packed task needs and this CPU has not loaded; null: it has all. */
  missingCode(job: number): Promise<unknown> | null {
    const { view, code } = this.on
    const bytes = this.bytesOf(job)
    const word = this.wordOf(job)
    const modules = bytes === null ? view.codec.modulesOfImage(word) : modulesOfBytes(bytes)
    const missing = modules.filter(({ key }) => !isMovableModule(key))
    if (missing.length === 0) return bytes === null ? view.codec.missing(word) : null
    if (bytes !== null && (Atomics.load(view.i32, job + Job.control) & JOB_NO_IMPORTS) !== 0)
      throw new ModuleMissingError({ module: missing[0].key, url: missing[0].url })
    return Promise.all(missing.map(({ url }) => importModule(url, code.source)))
  }

  /**
   * (F) Reads the state of a packed task into a new CPU task. Throws, and has changed nothing, if its code
   * has changed, or if the image is none.
   */
  read(run: CpuTask): void {
    const { view } = this.on
    const bytes = this.bytesOf(run.job)
    restoreTask(run, bytes === null ? view.codec.decodeImage(this.wordOf(run.job)) : imageFromBytes(bytes))
  }

  /** The image of a packed task: its state, or its last checkpoint. */
  private wordOf(job: number): number {
    const { view } = this.on
    return view.i32[view.imagesOf(job) + JobImages.image] || lastCheckpoint(view, job)
  }

  /** The image of a task that came from outside of this kernel; null: from inside. */
  private bytesOf(job: number): Uint8Array | null {
    const { view } = this.on
    const isBytes = (Atomics.load(view.i32, job + Job.control) & JOB_IMAGE_BYTES) !== 0
    const image = view.i32[view.imagesOf(job) + JobImages.image]
    return isBytes && image !== 0 ? (view.codec.decode(image) as Uint8Array) : null
  }

  /** (G) to (I): from here on the task is this CPU's. */
  take(run: CpuTask): void {
    const { view, s } = this.on
    takePacked(s, run.task)
    view.codec.drop(view.openImages(run.job) + JobImages.image) // (I)
    Atomics.and(view.i32, run.job + Job.control, ~JOB_IMAGE_BYTES)
    this.on.checkpointer.started(run)
    run.flags |= RUN_MOVABLE
    const se = s.i32[run.task + TaskRecord.entity]
    extrasOf(run).ranElsewhere = s.f64[(se + Entity.runTime) >> 1]
  }
}
