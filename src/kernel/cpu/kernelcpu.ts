import { assert } from '../../arena/assert.ts'
import { throwIfInside } from '../../arena/sync/section.ts'
import { wakeAll } from '../../futex/core/queue.ts'
import { isGenerator } from '../../coroutine/core/generators.ts'
import type { Coroutine } from '../../coroutine/core/coroutine.ts'
import { CpuRunner } from '../../coroutine/core/cpurunner.ts'
import { follow, isAwaited } from '../../coroutine/core/thenable.ts'
import { addStackFloor } from '../../coroutine/core/uncaught.ts'
import {
  type FaceUser,
  isUnrun,
  PLAIN,
  runFace,
  swapFaceUser,
  unrunError,
} from '../../coroutine/core/faces.ts'
import { TIMED_OUT } from '../../coroutine/core/runner.ts'
import type { Cpu } from '../../machine/core/machine.ts'
import { bindTask } from '../../sched/balance/affinity.ts'
import { isPacked, takePacked } from '../../sched/balance/move.ts'
import { CONTINUES } from '../../sched/core/cpuloop.ts'
import { Entity, POLICY_BOUND } from '../../sched/core/entity.ts'
import { taskName } from '../../sched/core/taskname.ts'
import type { Scheduler } from '../../sched/core/scheduler.ts'
import { beginSleep, endSleep, takePending } from '../../sched/core/sleep.ts'
import { SWITCH_PREEMPTED, SWITCH_SLEEPS, SWITCH_YIELDS } from '../../sched/core/switch.ts'
import {
  INTERRUPTIBLE,
  PENDING_KILL,
  RUNNING,
  TaskRecord,
  SLEEP_TIMED_OUT as SLEPT_OUT,
} from '../../sched/core/taskrecord.ts'
import { cancelTimer } from '../../sched/core/timer.ts'
import { wakeupTask } from '../../sched/core/wakeup.ts'
import { beginCounting, endCounting, switchTo } from '../../thread/context.ts'
import type { AfterAwait, Runner, Waker } from '../../thread/runner.ts'
import { asyncContext } from './asynccontext.ts'
import { awaitResult, DRIVEN_TO_END, resumeAsync } from './asynctask.ts'
import { killError } from '../join/cancel.ts'
import { CpuMail } from './cpumail.ts'
import { type CapturedContext, enterContext } from './context.ts'
import { type Ending, finishJob } from '../join/finish.ts'
import { type TaskFunction, taskFunction } from '../spawn/functions.ts'
import { stackOfTask } from './stoppedstack.ts'
import { Job, LOCAL_FUNCTION, NOT_KILLED } from '../spawn/job.ts'
import { JobCode } from '../spawn/jobcode.ts'
import { JobArguments } from './jobarguments.ts'
import { Checkpointer } from './checkpointer.ts'
import { STAYS, TaskMover } from './mover.ts'
import { beginsJob } from './mailwords.ts'
import { here } from './here.ts'
import { Stretches } from './stretches.ts'
import { CpuTaskWaker, Raised, timeOnly } from './taskwaker.ts'
import {
  RUN_CLAIMED,
  RUN_FOLLOWS,
  RUN_MOVABLE,
  RUN_YIELDS,
  RUN_OVER,
  RUN_PARKED,
  extrasOf,
  CpuTask,
  RUN_TIMED,
  RUN_WAKEABLE,
} from './cputask.ts'
import type { CpuBoot } from '../boot/layout.ts'
import type { KernelView } from '../boot/view.ts'

/** In a stack trace, the frames from this one outwards do not belong to a function that runs in one go. */
addStackFloor('KernelCpu.call')

/**
 * A simulated CPU is charged so much for a stretch between two safepoints, and for a function without any.
 */
const STRETCH_MS = 0.001
const ONE_GO_MS = 0.01

const noEffect = (): void => {}

/**
 * A CPU of the kernel as its own thread sees it: it runs the code of tasks. A task that is resumed for the
 * first time has only a job; one that has stopped has a `CpuTask` here, under its slot.
 */
export class KernelCpu implements Runner {
  readonly cpu: Cpu
  readonly view: KernelView
  readonly s: Scheduler
  readonly code: JobCode
  readonly mail: CpuMail
  private readonly args: JobArguments
  readonly mover: TaskMover
  readonly checkpointer: Checkpointer
  /** The CPU task of the running task; null: none runs, or it has needed none so far. */
  run: CpuTask | null = null
  /** The job of the running task; 0: none runs. */
  job = 0
  private task = 0
  private localName: string | null = null
  /** The caller of blocking calls while a task runs in one go. */
  private readonly plainCode: FaceUser = { kind: PLAIN, unrun: null }
  private readonly runs: (CpuTask | undefined)[] = []
  private readonly runner: CpuRunner
  private readonly life: number
  /** Sleepers that a call could not wake because its stack was full. */
  private readonly wakeQueue: readonly number[]
  /** A task ended inside a section of the kernel: this CPU is about to die. */
  private isFaulty = false

  constructor(cpu: Cpu, view: KernelView, boot: CpuBoot) {
    this.cpu = cpu
    this.view = view
    this.s = view.s
    this.runner = new CpuRunner(cpu)
    this.life = cpu.lives
    this.wakeQueue = view.futexes.context.wakeQueue
    this.code = new JobCode(view, boot)
    this.mail = new CpuMail(cpu, view.codec.published, task => stackOfTask(this, this.runs, task))
    this.args = new JobArguments(view, cpu.id, this.mail, this.code)
    this.mover = new TaskMover(this)
    this.checkpointer = new Checkpointer(this)
  }

  /** Runs a task until it stops. Returns the reason, for cpuLoop. */
  resume(task: number): number {
    const run = this.runs[this.view.i32[task + TaskRecord.slot]]
    const { runner, cpu } = here
    this.task = task
    this.job = this.view.jobOf(task)
    switchTo(this, this)
    try {
      if (run === undefined) return this.begin(task)
      this.run = run
      if ((run.flags & RUN_MOVABLE) !== 0) {
        const why = this.mover.atStop(run, false)
        if (why !== STAYS) return why
      }
      return run.extras !== null && run.extras.promise !== null ? resumeAsync(this, run) : this.advance(run)
    } finally {
      const isInside = this.s.thread.sections !== 0 && !this.isFaulty
      const who = isInside ? this.describeTask() : ''
      this.run = null
      this.job = 0
      if (here.counts) endCounting()
      switchTo(runner, cpu)
      if (isInside) throwIfInside(this.s.thread, who)
      if (this.wakeQueue.length > 0) wakeAll(this.view.futexes.context)
    }
  }

  /** The CPU has died and its event loop has not: only on a simulated machine. */
  get isGone(): boolean {
    return this.cpu.lives !== this.life
  }

  /** The CPU task of the running task, made at first use: a function that runs in one go seldom needs it. */
  currentRun(): CpuTask {
    assert(this.job !== 0, 'a task is running')
    return (this.run ??= this.addRun(this.job, this.task))
  }

  // The blocking calls of src/coroutine.

  park(ms: number, wakeable: boolean): Waker {
    const run = this.currentRun()
    this.throwIfKilled(run)
    run.flags |= RUN_PARKED | (ms === Infinity ? 0 : RUN_TIMED) | (wakeable ? RUN_WAKEABLE : 0)
    const wait = ++run.waits
    const waker = wakeable ? new CpuTaskWaker(this, run, wait) : timeOnly
    if (wakeable) this.beginOutside()
    if (!beginSleep(this.s, run.task, INTERRUPTIBLE, ms)) {
      this.endPark(run)
      this.throwIfKilled(run)
    }
    return waker
  }

  unpark(): void {
    const run = this.currentRun()
    const { i32 } = this.view
    const claimed =
      Atomics.compareExchange(i32, run.task + TaskRecord.state, INTERRUPTIBLE, RUNNING) !== INTERRUPTIBLE
    if (claimed && Atomics.load(i32, run.task + TaskRecord.state) !== RUNNING) run.flags |= RUN_CLAIMED
    if ((run.flags & RUN_TIMED) !== 0) cancelTimer(this.s, run.task)
    this.endPark(run)
  }

  giveWay(): void {
    this.currentRun().flags |= RUN_YIELDS
  }

  /** A task of the kernel has no listener for progress: its spawner is on another thread. */
  progress(): void {}

  /** Ends a wait of a task. Called on this thread: by another task, or by a callback of the event loop. */
  wake(run: CpuTask, wait: number, value: unknown, raises: boolean): void {
    if (this.isGone || run.waits !== wait || (run.flags & RUN_PARKED) === 0) return
    if (!wakeupTask(this.s, run.task)) return
    run.waits++
    run.sent = raises ? new Raised(value) : value
    this.kickSelf()
  }

  /** The name that the task was spawned with, or the name of its function. */
  nameOf(run: CpuTask): string {
    const { i32 } = this.view
    const task = i32[run.job + Job.task]
    if (task !== 0 && i32[task + TaskRecord.name] !== 0) return taskName(this.s, task)
    return (
      run.extras?.localName ??
      this.code.functions.get(i32[run.job + Job.fn])?.name ??
      `#${i32[run.job + Job.number]}`
    )
  }

  private describeTask(): string {
    return `task ${this.nameOf(this.currentRun())} on CPU ${this.cpu.id}`
  }

  /** Throws the error of a kill that is pending. */
  throwIfKilled(run: CpuTask): void {
    if (this.takeKill(run)) throw run.extras?.killedWith
  }

  /** Binds the task to this CPU: from its first stop on, its coroutine is in this heap. */
  bind(task: number): void {
    const { i32 } = this.view
    if ((i32[i32[task + TaskRecord.entity] + Entity.policy] & POLICY_BOUND) === 0) bindTask(this.s, task)
  }

  /**
   * From here on the outcome of the job depends on this CPU, also if it dies. Called before the CPU begins
   * the task, and before it ends a task that never began. A task that is bound is lost with its CPU, so the
   * order matters: first the job names this CPU, then the task is bound. Returns whether messages for the
   * task wait. Without the binding:
   *
   *   CPU 0                                   recovering thread            CPU 1
   *   -----                                   -----------------            -----
   *   the task was killed before its start:
   *   separates job and task; dies
   *                                           the job is KILLED; the task
   *                                           is not bound: queues it
   *                                                                        runs a task without a job: an invariant fails,
   *                                                                        and the CPU dies, and so do all that follow
   */
  private claim(task: number, job: number): boolean {
    const mailWaits = beginsJob(this.view.i32, job, this.cpu.id)
    this.bind(task)
    return mailWaits
  }

  begin(task: number): number {
    const { i32, f64 } = this.view
    const { job } = this
    assert(i32[job + Job.task] === task, 'a job and its task know each other')
    if (isPacked(i32, task)) return this.goOn(task, job)
    if (Atomics.load(i32, job + Job.killKind) !== NOT_KILLED) {
      this.claim(task, job)
      return this.finish({ threw: true, value: undefined, isKill: true })
    }
    // A thread that joined late asks for objects that were published before.
    if (this.view.codec.published.isAsked) this.view.codec.published.serve()
    const fn = this.code.functionOf(job)
    if (fn === undefined) return this.loadFirst(task, job)
    const missing = this.args.missing(job)
    if (missing !== null) return awaitResult(this, this.currentRun(), missing)
    if (this.claim(task, job)) this.mail.send({ kind: 'began', task: i32[job + Job.number] })
    i32[job + Job.starts]++
    if (i32[job + Job.starts] === 1) f64[(job + Job.began) >> 1] = this.s.clock
    this.localName = i32[job + Job.fn] === LOCAL_FUNCTION ? fn.name : null
    let args: readonly unknown[]
    try {
      if (i32[job + Job.context] !== 0) this.openContext(job)
      if (fn.onBehalfOf !== undefined) this.standInFor(fn.onBehalfOf)
      args = this.args.take(job)
    } catch (error) {
      return this.finish({ threw: true, value: error })
    }
    return fn.neverSuspends ? this.runInOneGo(fn, args) : this.start(fn, args)
  }

  /** Continues a task that was packed on another CPU. */
  private goOn(task: number, job: number): number {
    const failed = this.run?.extras?.settled?.threw === true
    const run = this.currentRun()
    try {
      const missing = failed ? null : this.mover.missingCode(job)
      if (missing !== null) return awaitResult(this, run, missing)
      this.mover.read(run)
    } catch (error) {
      this.claim(task, job)
      takePacked(this.s, task)
      return this.finish({ threw: true, value: error })
    }
    beginsJob(this.view.i32, job, this.cpu.id)
    this.mover.take(run)
    if (this.view.i32[job + Job.context] !== 0) this.openContext(job)
    return this.advance(run)
  }

  /** The CPU tasks of this CPU that have a coroutine here. */
  *startedTasks(): Generator<CpuTask, void, void> {
    for (const run of this.runs) if (run?.hasCode) yield run
  }

  /** The task is packed: its coroutine here never runs again. */
  forget(run: CpuTask): void {
    this.runs[this.view.i32[run.task + TaskRecord.slot]] = undefined
    run.waits++
    run.flags |= RUN_OVER
  }

  /** The context that the task inherits from its spawner: every stretch runs in it. The job keeps it. */
  private openContext(job: number): void {
    const { codec, i32 } = this.view
    extrasOf(this.currentRun()).enter = enterContext(codec.decode(i32[job + Job.context]) as CapturedContext)
  }

  private standInFor({ run, enter }: NonNullable<TaskFunction['onBehalfOf']>): void {
    const theirs = extrasOf(run)
    const own = extrasOf(this.currentRun())
    own.enter = enter
    own.locals = theirs.locals ??= new Map()
    own.abort = theirs.abort ??= new AbortController()
  }

  /** A CPU that started later has not loaded every module: the task waits until it is loaded. */
  private loadFirst(task: number, job: number): number {
    const { i32 } = this.view
    const isLoaded = this.run !== null && this.run.extras?.settled?.threw === false
    const load = isLoaded ? undefined : this.code.loadModuleOf(job)
    if (load === undefined) {
      this.claim(task, job)
      const error = new Error(`function ${i32[job + Job.fn]} is in no module that CPU ${this.cpu.id} knows`)
      return this.finish({ threw: true, value: error })
    }
    const run = this.currentRun()
    assert(run.task === task, 'the task that loads is the one that runs')
    return awaitResult(this, run, load)
  }

  private runInOneGo(fn: TaskFunction, args: readonly unknown[]): number {
    let value: unknown
    let forgotten: Error | null
    let isCoroutine: boolean
    const outer = swapFaceUser(this.plainCode)
    try {
      const enter = this.run === null ? null : (this.run.extras?.enter ?? null)
      value = enter === null ? this.call(fn, args) : enter(() => this.call(fn, args))
      if (isUnrun(value)) value = runFace(value)
      forgotten = unrunError()
      isCoroutine = isGenerator(value)
    } catch (error) {
      return this.finish({ threw: true, value: error })
    } finally {
      this.plainCode.unrun = null
      swapFaceUser(outer)
    }
    if (forgotten !== null) {
      if (isAwaited(value)) void follow(value, noEffect, noEffect)
      return this.finish({ threw: true, value: forgotten })
    }
    if (this.cpu.stepwise) this.cpu.charge(ONE_GO_MS)
    if (isAwaited(value)) return awaitResult(this, this.currentRun(), value)
    if (isCoroutine)
      return this.start(
        taskFunction(fn.name, () => value),
        [],
      )
    return this.finish({ threw: false, value })
  }

  private call(fn: TaskFunction, args: readonly unknown[]): unknown {
    return fn.isAsync
      ? asyncContext.run(this.asyncRun(), fn.fn, args)
      : fn.fn.apply(undefined, args as unknown[])
  }

  private asyncRun(): CpuTask {
    const run = this.currentRun()
    extrasOf(run).on = this
    return run
  }

  private start(fn: TaskFunction, args: readonly unknown[]): number {
    const run = this.currentRun()
    run.setCode(fn.fn, args)
    if (fn.isMovable) this.mover.started(run)
    return this.advance(run)
  }

  private advance(run: CpuTask): number {
    if (!run.hasCode) return this.begin(run.task)
    if (run.extras?.end) return this.finish(run.extras.end)
    const why = this.drive(run, run)
    return why === DRIVEN_TO_END ? this.ended(run, run.state === 'threw', run.result) : why
  }

  /** Runs a coroutine of the task until it stops or ends (DRIVEN_TO_END). */
  drive(run: CpuTask, coroutine: Coroutine): number {
    let sent = run.sent
    run.sent = undefined
    let raising = false
    if ((run.flags & RUN_PARKED) !== 0) {
      const timedOut = endSleep(this.s, run.task, (run.flags & RUN_TIMED) === 0 ? Infinity : 0) === SLEPT_OUT
      this.endPark(run)
      if (timedOut) sent = TIMED_OUT
      else if (sent instanceof Raised) {
        sent = sent.error
        raising = true
      }
    }
    for (;;) {
      // A stretch after an await begins before a kill is thrown into it: its function waits at the await, and
      // must receive the error there.
      if ((coroutine === run || coroutine.state !== 'ready') && this.takeKill(run)) {
        sent = run.extras?.killedWith
        raising = true
      }
      const enter = run.extras === null ? null : (run.extras.stretches?.enter ?? run.extras.enter)
      if ((run.flags & RUN_MOVABLE) !== 0) beginCounting(run.extras?.locks ?? 0, run.extras?.shares ?? 0)
      const finished =
        enter === null
          ? this.stretch(coroutine, raising, sent)
          : enter(() => this.stretch(coroutine, raising, sent))
      if (here.counts) keepCounts(run)
      if (this.cpu.stepwise) this.cpu.charge(STRETCH_MS)
      if (finished) return DRIVEN_TO_END
      if (coroutine.state === 'suspended') return SWITCH_SLEEPS
      if (this.isKillPending(run.task)) continue
      if ((run.flags & RUN_YIELDS) === 0) break
      run.flags &= ~RUN_YIELDS
      if ((run.flags & RUN_FOLLOWS) === 0 || !this.mover.follows(run)) return SWITCH_YIELDS
      sent = undefined
      raising = false
    }
    const continues = this.cpu.stepwise && !this.cpu.needResched
    if ((run.flags & RUN_MOVABLE) !== 0) {
      const why = this.mover.atStop(run, !continues)
      if (why !== STAYS) return why
    }
    return continues ? CONTINUES : SWITCH_PREEMPTED
  }

  private stretch(coroutine: Coroutine, raising: boolean, sent: unknown): boolean {
    return raising ? this.runner.raise(coroutine, sent) : this.runner.resume(coroutine, sent)
  }

  private ended(run: CpuTask, threw: boolean, value: unknown): number {
    if (!threw && isAwaited(value)) return awaitResult(this, run, value)
    return this.finish({ threw, value })
  }

  // The code after the awaits of an async function, as coroutines of its task (stretches.ts).

  afterAwait(): AfterAwait {
    const run = this.currentRun()
    return (extrasOf(run).stretches ??= new Stretches(this, run))
  }

  finish(ending: Ending): number {
    const { run } = this
    if (this.s.thread.sections !== 0) {
      this.isFaulty = true
      throwIfInside(this.s.thread, this.describeTask(), ending.threw ? ending.value : undefined)
    }
    if (
      run !== null &&
      (run.flags & RUN_CLAIMED) !== 0 &&
      Atomics.load(this.view.i32, run.task + TaskRecord.state) !== RUNNING
    ) {
      run.flags &= ~RUN_CLAIMED
      extrasOf(run).end = ending
      return SWITCH_SLEEPS
    }
    this.runs[this.view.i32[this.task + TaskRecord.slot]] = undefined
    if (run !== null) run.flags |= RUN_OVER
    this.mail.close(this.view.i32[this.job + Job.number])
    return finishJob(this.view, this.job, this.task, run, ending, this.mail)
  }

  private isKillPending(task: number): boolean {
    return (Atomics.load(this.view.i32, task + TaskRecord.pending) & PENDING_KILL) !== 0
  }

  /** Takes a pending kill, once; `killedWith` is the error for the task. */
  takeKill(run: CpuTask): boolean {
    if (!this.isKillPending(run.task)) return false
    takePending(this.view.i32, run.task)
    const rare = extrasOf(run)
    if (rare.isKilled) return false
    rare.isKilled = true
    rare.killedWith = killError(this.view, run.job, this.nameOf(run), 'thrown')
    if (rare.promise !== null) rare.abort?.abort(rare.killedWith)
    return true
  }

  private addRun(job: number, task: number): CpuTask {
    const run = new CpuTask(job, task)
    if (this.localName !== null) extrasOf(run).localName = this.localName
    this.runs[this.view.i32[task + TaskRecord.slot]] = run
    return run
  }

  private endPark(run: CpuTask): void {
    run.waits++
    if ((run.flags & RUN_WAKEABLE) !== 0) this.endOutside()
    run.flags &= ~(RUN_PARKED | RUN_TIMED | RUN_WAKEABLE)
  }

  /** A task waits for something that the event loop delivers: the loop must turn now and then. */
  beginOutside(): void {
    if (this.cpu.outstanding++ === 0) this.s.turnAt = this.s.clock + this.s.slice
  }

  endOutside(): void {
    assert(this.cpu.outstanding > 0, 'a wait for the event loop was counted')
    if (--this.cpu.outstanding === 0) this.s.turnAt = Infinity
  }

  /** While its event loop turns, this CPU is asleep: a wakeup on its own thread must kick it. */
  kickSelf(): void {
    if (this.job === 0) this.cpu.kick(this.cpu.id)
  }
}

/** A movable task has stopped: its locks and shares are counted in its extras. */
function keepCounts(run: CpuTask): void {
  endCounting()
  const { locks, shares } = here
  if (run.extras === null && locks === 0 && shares === 0) return
  const extras = extrasOf(run)
  extras.locks = locks
  extras.shares = shares
}
