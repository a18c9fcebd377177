import type { Kernel } from '../../kernel/boot/kernel.ts'
import { priorityName } from '../../kernel/boot/options.ts'
import { withTraceContext } from '../../kernel/cpu/context.ts'
import { CpuLostError } from '../../kernel/join/errors.ts'
import type { Task } from '../../kernel/join/task.ts'
import type { TraceContext } from '../../kernel/cpu/tracecontext.ts'
import { ImageError } from '../../payload/imagekinds.ts'
import { FencedError, ImageTooLargeError, RunCancelledError } from '../errors.ts'
import { isTransient } from '../database/database.ts'
import { FROM_START, packImage, unpackImage } from '../image.ts'
import { decodeValue, encodeError, encodeResult, errorText } from '../outcome.ts'
import { CLAIM_SECONDS_MAX } from '../engine.ts'
import type { ClaimedRun, Ending, Leaving } from '../store/rows.ts'
import type { Store } from '../store/store.ts'
import type { RunState } from '../states.ts'
import type { Message, Pause, Question, Stored } from '../task/questions.ts'
import type { Activity, Departure } from './activity.ts'
import type { FunctionReference } from '../../kernel/spawn/modules.ts'
import type { RunModules } from './modules.ts'

/** What one attempt of a run came to. Times are those of this process, in milliseconds since 1970. */
export interface AttemptReport {
  readonly run: string
  readonly name: string
  readonly function: string
  readonly queue: string
  readonly epoch: number
  readonly attempt: number
  /**
   * The state that it left the run in. 'fenced': the run is another worker's. 'running': the database did not
   * answer, and the run is left to its lease.
   */
  readonly end: RunState | 'fenced'
  readonly began: number
  readonly ended: number
  readonly checkpoints: number
  readonly checkpointBytes: number
  /** The trace context of the caller that started the run. */
  readonly trace: Readonly<Record<string, string>> | null
}

/** What an attempt needs of its worker. */
export interface AttemptHost {
  readonly kernel: Kernel
  readonly store: Store
  readonly modules: RunModules
  /** The most bytes of a stored image. */
  readonly imageLimit: number
  /** Milliseconds: a run that waits no longer than this stays in memory. */
  readonly patience: number
  finish(ending: Ending): Promise<void>
  report(report: AttemptReport): void
  /** A run may be claimed after so many milliseconds. */
  startsIn(ms: number): void
  /** The worker closes: nothing is retried any more. */
  readonly isClosing: boolean
  warn(run: string, message: string): void
  show(activity: Activity): void
}

/** A task that its worker suspends asks again after this time, in case the suspension is refused. */
const SUSPENDING_MS = 50
/** A run whose state cannot be written waits in memory, and asks so often. */
const IN_MEMORY_MS = 1000
/** After that it is tried again to write the state of a run that waits. */
const REFUSED_AGAIN_MS = 10_000
/** A run that no worker can go on with is tried again so often. */
const BLOCKED_SECONDS = 5
/** The kernel takes no task now; another worker may have room. */
const noRoom: ReadonlySet<unknown> = new Set(['ERR_HEDDLE_SPAWN_QUEUE_FULL', 'ERR_HEDDLE_ARENA_FULL'])
/** How tasks end that their kernel ends. */
const endsOfKernel: ReadonlySet<unknown> = new Set([
  'ERR_HEDDLE_TASK_KILLED',
  'ERR_HEDDLE_CPU_LOST',
  'ERR_HEDDLE_KERNEL_CLOSED',
  'ERR_HEDDLE_KERNEL_FAULT',
])
/** A CPU that dies under a run more often than this is the run's fault. */
const CPU_LOSSES_MAX = 3
/** A run hands itself over before the engine takes its job away. */
const HAND_OVER_MS = (CLAIM_SECONDS_MAX - 3600) * 1000

/**
 * One attempt of a run, from its claim until it leaves this worker:
 *
 *   running ── its task ends ──────────────────────────► finish: completed, failed, cancelled; or queued again
 *      │ ── it sleeps, waits, or the worker drains ───► suspended, then leave: asleep, waiting, queued
 *      └── a write finds another epoch ───────────────► fenced: the task is killed, nothing more is written
 */
export class Attempt {
  readonly run: ClaimedRun
  private readonly host: AttemptHost
  private task: Task<unknown> | null = null
  private cancelReason: string | null = null
  private lastImage: number
  private hasImage: boolean
  /** Where the run goes when its task is suspended; null: it is not being suspended. */
  private leaving: Leaving | null = null
  /** Why its state could not be written, and when; null: it could always. */
  private refusal: string | null = null
  private refusedAt = -Infinity
  private isFenced = false
  /** Its worker ends, and its state could not be written in time. */
  private isAbandoned = false
  /** Its outcome is being stored. */
  private isEnding = false
  /**
   * The write of a checkpoint; a suspension waits for it, so that an older image never replaces a newer one.
   */
  private saving: Promise<void> = Promise.resolve()
  /** The write of a progress: a run that leaves or ends waits for it. */
  private telling: Promise<void> = Promise.resolve()
  private timer: NodeJS.Timeout | undefined
  private handOver: NodeJS.Timeout | undefined
  private readonly beganAt = Date.now()
  private isOver = false
  private endedAs: RunState = 'running'
  private checkpoints = 0
  private checkpointBytes = 0

  constructor(host: AttemptHost, run: ClaimedRun) {
    this.host = host
    this.run = run
    this.cancelReason = run.cancelReason
    this.lastImage = run.imageSeq
    this.hasImage = run.image !== null
  }

  /** Runs the attempt to its end. Never rejects. */
  async execute(): Promise<void> {
    this.show('claimed', null)
    try {
      if (this.cancelReason !== null) return await this.end('cancelled', null, null)
      await this.begin()
    } catch (error) {
      await this.settle(error).catch(failure => this.failAnyhow(failure))
    } finally {
      this.isOver = true
      clearTimeout(this.timer)
      clearTimeout(this.handOver)
      this.host.report(this.reportOf())
    }
  }

  private reportOf(): AttemptReport {
    const { id, name, queue, fn, epoch, attempts, trace } = this.run
    return {
      run: id,
      name,
      function: fn,
      queue,
      epoch,
      attempt: attempts,
      end: this.isFenced ? 'fenced' : this.endedAs,
      began: this.beganAt,
      ended: Date.now(),
      checkpoints: this.checkpoints,
      checkpointBytes: this.checkpointBytes,
      trace,
    }
  }

  /** Kills the task: the run was cancelled. */
  cancel(reason: string): void {
    if (this.cancelReason !== null) return
    this.cancelReason = reason
    this.task?.kill(new RunCancelledError(this.run.id, reason))
  }

  /** The run is another worker's. */
  fence(error: FencedError = new FencedError(this.run.id, this.run.epoch)): void {
    if (this.isFenced) return
    this.isFenced = true
    this.host.warn(this.run.id, error.message)
    this.show('lost', error.message)
    this.task?.kill(error)
  }

  /**
   * A look at the rows, or a write beside the task, did not find it: it has just left, or it is another
   * worker's. The write with which it leaves or ends says which.
   */
  lost(error?: FencedError): void {
    if (this.leaving === null && !this.isEnding) this.fence(error)
  }

  /** Lets the run go on elsewhere, from here. */
  release(): void {
    void this.suspend({ state: 'queued', kind: 'released', delay: 0 })
  }

  /** Lets the run go on elsewhere, from its last checkpoint. */
  async abandon(): Promise<void> {
    if (this.isFenced || this.isEnding || this.isAbandoned) return
    this.isAbandoned = true
    this.leaving = { state: 'queued', kind: 'released', delay: 0 }
    // The task ends with this error, which is not the run's: `settle` waits for the row instead.
    this.suspended = this.leave(this.leaving).catch(error => this.giveUp(error))
    this.task?.kill(new Error('the worker ends, and the state of the run cannot be written now'), {
      grace: 0,
    })
    await this.suspended
    this.isFenced = true
  }

  private async begin(): Promise<void> {
    const { run, host } = this
    if (run.damage !== null) throw new ImageError(`run ${run.id}: ${run.damage}; start another run`)
    const image = await this.load()
    const fn = await host.modules.find(run.module, run.fn)
    if (fn === null) {
      return void (await this.leave({
        state: 'queued',
        kind: 'blocked',
        delay: BLOCKED_SECONDS,
        blocked: `this worker has not imported ${run.module}, or it exports no function ${run.fn}; start a worker with it: heddle work --import <file>`,
      }))
    }
    await this.watch(image === null ? this.spawn(fn, this.args(), run.name) : this.resume(image))
  }

  private spawn(fn: FunctionReference, args: readonly unknown[], name: string): Task<unknown> {
    const priority = priorityName(this.run.priority)
    return this.traced(() => this.host.kernel.spawn(fn, args, { name, priority }))
  }

  private resume(image: Uint8Array): Task<unknown> {
    const { name, priority } = this.run
    const options = { name, priority: priorityName(priority), imports: false }
    return this.traced(() => this.host.kernel.resume(image, options))
  }

  private traced(start: () => Task<unknown>): Task<unknown> {
    const { trace } = this.run
    try {
      return trace === null ? start() : withTraceContext(trace as unknown as TraceContext, start)
    } catch (error) {
      throw noRoom.has((error as { code?: unknown }).code) ? new NoRoomError(error as Error) : error
    }
  }

  private args(): unknown[] {
    const { id, args } = this.run
    return decodeValue(args, `the arguments of run ${id}`) as unknown[]
  }

  private async load(): Promise<Uint8Array | null> {
    const { image, imageRawBytes } = this.run
    if (image === null) return null
    if (image.length === 0) throw new ImageError(`the stored image is gone; ${FROM_START}`)
    return await unpackImage(image, imageRawBytes)
  }

  /** Follows a task of the run until it ends. */
  private async watch(task: Task<unknown>): Promise<void> {
    this.task = task
    this.host.kernel.internals.view.booter!.mail.answers(task, question => this.answer(question as Question))
    if (this.cancelReason !== null) task.kill(new RunCancelledError(this.run.id, this.cancelReason))
    this.scheduleCheckpoint()
    this.handOver ??= setTimeout(() => this.release(), HAND_OVER_MS)
    let value: unknown
    try {
      value = await task
    } catch (error) {
      return await this.settle(error)
    }
    if (this.isFenced) return
    if (this.isAbandoned) return await this.suspended
    await this.end('completed', encodeResult(this.run.id, value), null)
  }

  /** The task has ended with an error, or could not begin. */
  private async settle(error: unknown): Promise<void> {
    if (this.isFenced) return
    if (this.isAbandoned) return await this.suspended
    if (error instanceof FencedError) return this.fence(error)
    const code = (error as { code?: unknown } | null)?.code
    if (code === 'ERR_HEDDLE_TASK_SUSPENDED') return await this.suspended
    if (this.cancelReason !== null) return await this.end('cancelled', null, errorText(error))
    if (endsOfKernel.has(code) && this.isKernelOver()) {
      return void (await this.leave({ state: 'queued', kind: 'released', delay: 0 }))
    }
    if (error instanceof NoRoomError) {
      return void (await this.leave({
        state: 'queued',
        kind: 'blocked',
        delay: BLOCKED_SECONDS,
        blocked: `this worker has no room for it now: ${error.message}`,
      }))
    }
    if (code === 'ERR_HEDDLE_CODE_CHANGED' || code === 'ERR_HEDDLE_MODULE_MISSING')
      return await this.codeChanged(error as Error)
    const { failures, options } = this.run
    const isLost = error instanceof CpuLostError
    const tries = isLost ? Math.max(options.retries, CPU_LOSSES_MAX) : options.retries
    if (failures >= tries || error instanceof ImageError)
      return await this.end('failed', encodeError(error), errorText(error))
    const delay = isLost ? 0 : backoffMs(options.backoff, failures) / 1000
    await this.leave({
      state: 'queued',
      kind: 'error',
      delay,
      failed: errorText(error),
      dropsImage: options.retryFrom === 'start' && !isLost,
    })
  }

  /** The program closes the kernel, or it has broken. Its runs go on elsewhere. */
  private isKernelOver(): boolean {
    return this.host.kernel.internals.endedBy() !== null
  }

  /** The image is that of other code. */
  private async codeChanged(error: Error): Promise<void> {
    const { onCodeChanged } = this.run.options
    if (onCodeChanged === 'restart') {
      return void (await this.leave({ state: 'queued', kind: 'released', delay: 0, dropsImage: true }))
    }
    if (onCodeChanged === 'wait') {
      return void (await this.leave({
        state: 'queued',
        kind: 'blocked',
        delay: BLOCKED_SECONDS,
        blocked: `${error.message}; the run waits for a worker with the code that it began with`,
      }))
    }
    const migrate = await this.host.modules.find(onCodeChanged.module, onCodeChanged.name)
    if (migrate === null) {
      return void (await this.leave({
        state: 'queued',
        kind: 'blocked',
        delay: BLOCKED_SECONDS,
        blocked: `its function for changed code, ${onCodeChanged.name} of ${onCodeChanged.module}, is not imported in this worker`,
      }))
    }
    const image = await this.load()
    const info = { run: this.run.id, args: this.args(), image, error: errorText(error) }
    await this.watch(this.spawn(migrate, [info], `${this.run.name} (migration)`))
  }

  /** Resolves when a suspended task has left, or goes on here. */
  private suspended: Promise<void> = Promise.resolve()

  private suspend(leaving: Leaving): Promise<void> {
    const { task } = this
    if (task === null || this.leaving !== null || this.isFenced) return Promise.resolve()
    this.leaving = leaving
    let settled: () => void = () => undefined
    this.suspended = new Promise(resolve => (settled = resolve))
    return this.suspendNow(task, leaving)
      .catch(error => this.settle(error))
      .catch(failure => this.failAnyhow(failure))
      .finally(settled)
  }

  private async suspendNow(task: Task<unknown>, leaving: Leaving): Promise<void> {
    let bytes: Uint8Array
    try {
      bytes = await task.suspendToBytes()
    } catch (error) {
      this.leaving = null
      if ((error as { code?: unknown }).code !== 'ERR_HEDDLE_TASK_ENDED') await this.refused(error as Error)
      return
    }
    await this.saving
    if (this.isAbandoned) return
    let packed: Uint8Array
    try {
      packed = await packImage(this.run.id, bytes, this.host.imageLimit)
    } catch (error) {
      if (!(error instanceof ImageTooLargeError)) throw error
      this.leaving = null
      await this.refused(error)
      return await this.watch(this.resume(bytes))
    }
    if (this.cancelReason !== null) return await this.end('cancelled', null, null)
    await this.leave({ ...leaving, image: { bytes: packed, rawBytes: bytes.length, seq: ++this.lastImage } })
  }

  /** Its state cannot be written: says so once for each reason. The sizes of too large ones differ. */
  private async refused(error: Error): Promise<void> {
    this.refusedAt = performance.now()
    const why = error.message
    const reason = error instanceof ImageTooLargeError ? error.code : why
    if (this.refusal === reason) return
    this.refusal = reason
    this.host.warn(this.run.id, why)
    await this.host.store.writes.note(this.run, 'refused', { why }).catch(() => undefined)
  }

  private scheduleCheckpoint(): void {
    const { checkpoint } = this.run.options
    if (checkpoint === null || this.isFenced || this.isOver) return
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.saving = this.checkpoint()
        .catch(error => {
          if (error instanceof FencedError) this.lost(error)
          else this.host.warn(this.run.id, `no checkpoint: ${(error as Error).message}`)
        })
        .finally(() => this.scheduleCheckpoint())
    }, checkpoint)
  }

  private async checkpoint(): Promise<void> {
    const { task, run, host } = this
    if (task === null || this.leaving !== null) return
    let bytes: Uint8Array
    try {
      bytes = await task.copyToBytes()
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ERR_HEDDLE_TASK_ENDED') await this.refused(error as Error)
      return
    }
    if (this.isFenced || this.isEnding) return
    let packed: Uint8Array
    try {
      packed = await packImage(run.id, bytes, host.imageLimit)
    } catch (error) {
      return await this.refused(error as Error)
    }
    const image = { bytes: packed, rawBytes: bytes.length, seq: ++this.lastImage }
    await this.patiently(() => host.store.writes.saveImage(run, image))
    this.refusedAt = -Infinity
    this.checkpoints++
    this.checkpointBytes += packed.length
    this.hasImage = true
  }

  /** The answer to a question of the task. A question may come twice. */
  private async answer(question: Question): Promise<Stored | Message | Pause | undefined> {
    try {
      return await this.answerNow(question)
    } catch (error) {
      if (error instanceof FencedError) this.lost(error)
      throw error
    }
  }

  private async answerNow(question: Question): Promise<Stored | Message | Pause | undefined> {
    const { run } = this
    const { store } = this.host
    switch (question.call) {
      case 'journaled':
        return { value: await this.patiently(() => store.journal.journaled(run, `once:${question.key}`)) }
      case 'journal':
        return {
          value: await this.patiently(() =>
            store.journal.journal(run, `once:${question.key}`, question.value),
          ),
        }
      case 'progress':
        this.telling = store.writes.saveProgress(run, question.value).catch(error => {
          if (!isTransient(error)) this.host.warn(run.id, `no progress: ${(error as Error).message}`)
        })
        return undefined
      case 'sleep': {
        const key = `sleep:${question.wait}`
        const ms = await this.patiently(() => store.journal.deadline(run, key, question.ms))
        return this.pause(ms, { state: 'asleep', kind: 'asleep', delay: ms / 1000 })
      }
      case 'receive':
        return await this.receive(question)
    }
  }

  private async receive({ wait, name, timeout }: Question & { call: 'receive' }): Promise<Message> {
    const { run } = this
    const { store } = this.host
    const key = `receive:${wait}:${name}`
    const value = await this.patiently(() => store.journal.receive(run, key, name))
    if (value !== null) return { value }
    const isLimited = timeout !== Infinity
    const ms = isLimited
      ? await this.patiently(() => store.journal.deadline(run, `limit:${wait}`, timeout))
      : Infinity
    if (ms <= 0) return { isLate: true }
    return this.pause(ms, {
      state: 'waiting',
      kind: 'waiting',
      delay: isLimited ? ms / 1000 : null,
      waitsFor: name,
    })
  }

  /** How long the task pauses. A long wait suspends it. */
  private pause(ms: number, leaving: Leaving): Pause {
    if (ms <= 0) return { ms: 0 }
    if (ms <= this.host.patience) return { ms }
    if (performance.now() - this.refusedAt < REFUSED_AGAIN_MS) return { ms: Math.min(ms, IN_MEMORY_MS) }
    void this.suspend(leaving)
    return { ms: Math.min(ms, SUSPENDING_MS) }
  }

  private async end(
    state: Ending['state'],
    outcome: Uint8Array | null,
    error: Ending['error'],
  ): Promise<void> {
    if (this.isFenced) return
    this.isEnding = true
    await this.telling
    await this.host.finish({ run: this.run, state, outcome, error })
    this.endedAs = state
    this.show(state, state === 'cancelled' ? this.cancelReason : error && `${error.name}: ${error.message}`)
  }

  private show(kind: Activity['kind'], why: string | null): void {
    this.host.show(this.activity(kind, why))
  }

  activity(kind: Activity['kind'], why: string | null): Activity {
    const { id, name, epoch } = this.run
    return { run: id, name, kind, epoch, hasImage: this.hasImage, why }
  }

  private async leave(leaving: Leaving): Promise<void> {
    const { store } = this.host
    this.isEnding = true
    await this.telling
    let isRepeated = false
    await this.patiently(async () => {
      // A lost answer: the transaction may have had its effect.
      if (isRepeated && (await store.writes.hasLeft(this.run))) return
      isRepeated = true
      await store.writes.leave(this.run, leaving)
    })
    this.endedAs = leaving.state
    this.hasImage = leaving.image !== undefined || (this.hasImage && leaving.dropsImage !== true)
    this.show(leaving.kind as Departure, leaving.failed?.message ?? leaving.blocked ?? null)
    if (leaving.delay !== null) this.host.startsIn(leaving.delay * 1000)
  }

  /** The database refuses what was to be stored: the run fails with its reason. */
  private async failAnyhow(failure: unknown): Promise<void> {
    if (failure instanceof FencedError || isTransient(failure) || this.host.isClosing)
      return this.giveUp(failure)
    await this.end('failed', null, errorText(failure)).catch(error => this.giveUp(error))
  }

  /** The database does not answer: the lease lapses, and the run goes on elsewhere. */
  private giveUp(error: unknown): void {
    if (error instanceof FencedError) return this.fence(error)
    this.isFenced = true
    this.task?.kill(error)
    this.show('lost', (error as Error).message)
    this.host.warn(this.run.id, `the run is left to its lease: ${(error as Error).message}`)
  }

  private patiently<T>(work: () => Promise<T>): Promise<T> {
    return this.host.store.patiently(work, () => this.isFenced || this.host.isClosing)
  }
}

/** The kernel has refused the task of a run. That is no failure of the run. */
class NoRoomError extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause })
  }
}

/** The power may be Infinity, which times 0 is no number. */
export function backoffMs(
  { initial, factor, max }: ClaimedRun['options']['backoff'],
  failures: number,
): number {
  return initial === 0 ? 0 : Math.min(max, initial * factor ** failures)
}
