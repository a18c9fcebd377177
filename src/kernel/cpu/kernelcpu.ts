import { assert } from '../../arena/assert.ts'
import { throwIfInside } from '../../arena/sync/section.ts'
import { wakeAll } from '../../futex/core/queue.ts'
import { isGenerator } from '../../coroutine/core/generators.ts'
import { type Coroutine, coroutineOf } from '../../coroutine/core/coroutine.ts'
import { CpuRunner } from '../../coroutine/core/cpurunner.ts'
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
import { AWAITS, CONTINUES } from '../../sched/core/cpuloop.ts'
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
import { switchTo } from '../../thread/context.ts'
import type { AfterAwait, Runner, Waker } from '../../thread/runner.ts'
import { asyncContext } from './asynccontext.ts'
import { killError } from '../join/cancel.ts'
import { CpuMail } from './cpumail.ts'
import { type CapturedContext, enterContext } from './context.ts'
import { type Ending, finishJob } from '../join/finish.ts'
import { type TaskFunction, taskFunction } from '../spawn/functions.ts'
import { JOB_ARGS_MAILED, JOB_ASYNC, Job, LOCAL_FUNCTION, NOT_KILLED } from '../spawn/job.ts'
import { JobCode } from '../spawn/jobcode.ts'
import type { MailedArgs } from './mail.ts'
import { beginsJob } from './mailwords.ts'
import { here } from './here.ts'
import { Stretches } from './stretches.ts'
import {
  RUN_CLAIMED,
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

/** Below a function that runs in one go there is only this. */
addStackFloor('KernelCpu.call')

/**
 * What a simulated CPU is charged for the stretch between two safepoints, and for a function that has none.
 */
const STRETCH_MS = 0.001
const ONE_GO_MS = 0.01

/**
 * After so many stretches an async task gives its CPU back: the event loop must turn, and the clock be read.
 */
const STRETCHES_MAX = 16

/** `drive`: the coroutine has finished. No reason of src/sched for a stop. */
const DRIVEN_TO_END = -1

const nobodyWakes: Waker = { wake: () => {}, fail: () => {} }

/**
 * A CPU of the kernel, as its own thread sees it: it turns kernel tasks into running code. A task that is
 * resumed for the first time has a job and nothing else; one that has stopped has a `CpuTask` here, under its
 * slot.
 */
export class KernelCpu implements Runner {
  readonly cpu: Cpu
  readonly view: KernelView
  readonly s: Scheduler
  readonly code: JobCode
  readonly mail: CpuMail
  /** The run of the task that runs now; null: none does, or it has needed none so far. */
  run: CpuTask | null = null
  /** The job of the task that runs now; 0: none does. */
  job = 0
  private task = 0
  private localName: string | null = null
  /** The user of blocking calls while a task runs in one go. */
  private readonly plainCode: FaceUser = { kind: PLAIN, unrun: null }
  private readonly runs: (CpuTask | undefined)[] = []
  private readonly runner: CpuRunner
  private readonly life: number
  /** Sleepers that a call was about to wake, and has not: its stack was full. */
  private readonly wakeQueue: readonly number[]
  /** This CPU is about to die of what it left half done. */
  private isFaulty = false

  constructor(cpu: Cpu, view: KernelView, boot: CpuBoot) {
    this.cpu = cpu
    this.view = view
    this.s = view.s
    this.runner = new CpuRunner(cpu)
    this.life = cpu.lives
    this.wakeQueue = view.futexes.context.wakeQueue
    this.code = new JobCode(view, boot)
    this.mail = new CpuMail(cpu, view.codec.published)
  }

  /** Runs a task until it stops; says why, as cpuLoop wants it. */
  resume(task: number): number {
    const run = this.runs[this.view.i32[task + TaskRecord.slot]]
    const { runner, cpu } = here
    this.task = task
    this.job = this.view.jobOf(task)
    switchTo(this, this)
    try {
      if (run === undefined) return this.begin(task)
      this.run = run
      return run.extras !== null && run.extras.promise !== null ? this.resumeAsync(run) : this.advance(run)
    } finally {
      const isInside = this.s.thread.sections !== 0 && !this.isFaulty
      const who = isInside ? this.describeTask() : ''
      this.run = null
      this.job = 0
      switchTo(runner, cpu)
      if (isInside) throwIfInside(this.s.thread, who)
      if (this.wakeQueue.length > 0) wakeAll(this.view.futexes.context)
    }
  }

  /** The CPU has died, and its event loop has not: that of a simulated machine. */
  get isGone(): boolean {
    return this.cpu.lives !== this.life
  }

  /** The run of the task that runs now, made if it has none: a function in one go seldom needs it. */
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
    const waker = wakeable ? new RunWaker(this, run, wait) : nobodyWakes
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

  /** Nobody listens to a task of the kernel: who spawned it is on another thread. */
  progress(): void {}

  /** Ends a wait of a run, from this thread: another of its tasks, or a callback of its event loop. */
  wake(run: CpuTask, wait: number, value: unknown, raises: boolean): void {
    if (this.isGone || run.waits !== wait || (run.flags & RUN_PARKED) === 0) return
    if (!wakeupTask(this.s, run.task)) return
    run.waits++
    run.sent = raises ? new Raised(value) : value
    this.kickSelf()
  }

  /** What people call a task: the name that it was spawned with, or its function's. */
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

  /** What the task would see of a kill that nobody has delivered yet: thrown here. */
  throwIfKilled(run: CpuTask): void {
    if (this.takeKill(run)) throw run.extras?.killedWith
  }

  /** The task is bound to this CPU from its first stop on: its coroutine is in this heap. */
  private bind(task: number): void {
    const { i32 } = this.view
    if ((i32[i32[task + TaskRecord.entity] + Entity.policy] & POLICY_BOUND) === 0) bindTask(this.s, task)
  }

  /**
   * This CPU gives the job its outcome from here on, also if it dies: before it begins the task, and before
   * it ends one that never began. In this order: who recovers a dead CPU takes a bound task for one of that
   * CPU's, which ends with it. True: messages for the task wait.
   *
   *   CPU 0                                   who recovers it              CPU 1
   *   -----                                   ---------------              -----
   *   the task was killed before its start:
   *   job and task part; dies
   *                                           the job is KILLED; the task
   *                                           is not bound: queues it
   *                                                                        runs a task that has no job: an invariant fails,
   *                                                                        and the CPU dies of it, and the next, for ever
   */
  private claim(task: number, job: number): boolean {
    const mailWaits = beginsJob(this.view.i32, job, this.cpu.id)
    this.bind(task)
    return mailWaits
  }

  private begin(task: number): number {
    const { i32, f64 } = this.view
    const { job } = this
    assert(i32[job + Job.task] === task, 'a job and its task know each other')
    if (Atomics.load(i32, job + Job.killKind) !== NOT_KILLED) {
      this.claim(task, job)
      return this.finish({ threw: true, value: undefined, isKill: true })
    }
    // A thread that joined late asks for what was lent before.
    if (this.view.codec.published.isAsked) this.view.codec.published.serve()
    const fn = this.code.functionOf(job)
    if (fn === undefined) return this.loadFirst(task, job)
    const missing = this.missingFor(job) ?? this.mailedArgs(job)
    if (missing !== null) return this.awaitResult(this.currentRun(), missing)
    if (this.claim(task, job)) this.mail.send({ kind: 'began', task: i32[job + Job.number] })
    i32[job + Job.starts]++
    if (i32[job + Job.starts] === 1) f64[(job + Job.began) >> 1] = this.s.clock
    this.localName = i32[job + Job.fn] === LOCAL_FUNCTION ? fn.name : null
    let args: readonly unknown[]
    try {
      if (i32[job + Job.context] !== 0) this.openContext(job)
      if (fn.onBehalfOf !== undefined) this.standInFor(fn.onBehalfOf)
      args = this.argumentsOf(job)
    } catch (error) {
      return this.finish({ threw: true, value: error })
    }
    return fn.neverSuspends ? this.runInOneGo(fn, args) : this.start(fn, args)
  }

  /** In a browser, what the job refers to may be on its way. */
  private missingFor(job: number): Promise<unknown> | null {
    const { codec, i32 } = this.view
    return codec.missing(i32[job + Job.args]) ?? codec.missing(i32[job + Job.context])
  }

  /** Arguments that come as a message: a promise while they are on their way. */
  private mailedArgs(job: number): Promise<unknown> | null {
    const { codec, i32 } = this.view
    if ((i32[job + Job.control] & JOB_ARGS_MAILED) === 0) return null
    const { id, cpu } = codec.decode(i32[job + Job.args]) as MailedArgs
    return cpu === this.cpu.id ? this.mail.missing(id) : null
  }

  /** What whoever spawned the task gave it along: every stretch of the task runs in it. The job keeps it. */
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

  /** A CPU that came later has not loaded every module: the task waits until it has. */
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
    return this.awaitResult(run, load)
  }

  private argumentsOf(job: number): readonly unknown[] {
    const args = this.code.takeArguments(job)
    if ((this.view.i32[job + Job.control] & JOB_ARGS_MAILED) === 0) return args
    const { id, cpu } = args as unknown as MailedArgs
    if (cpu !== this.cpu.id)
      throw new Error(`CPU ${cpu} died, and with it the objects that were transferred to the task`)
    return this.mail.takeArgs(id)
  }

  private runInOneGo(fn: TaskFunction, args: readonly unknown[]): number {
    let value: unknown
    let forgotten: Error | null
    const outer = swapFaceUser(this.plainCode)
    try {
      const enter = this.run === null ? null : (this.run.extras?.enter ?? null)
      value = enter === null ? this.call(fn, args) : enter(() => this.call(fn, args))
      if (isUnrun(value)) value = runFace(value)
      forgotten = unrunError()
    } catch (error) {
      return this.finish({ threw: true, value: error })
    } finally {
      this.plainCode.unrun = null
      swapFaceUser(outer)
    }
    if (forgotten !== null) {
      if (isThenable(value)) value.then(undefined, () => {})
      return this.finish({ threw: true, value: forgotten })
    }
    if (this.cpu.stepwise) this.cpu.charge(ONE_GO_MS)
    if (isThenable(value)) return this.awaitResult(this.currentRun(), value)
    if (isGenerator(value))
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
    run.coroutine = coroutineOf(fn.fn, args)
    return this.advance(run)
  }

  private advance(run: CpuTask): number {
    const coroutine = run.coroutine
    if (coroutine === null) return this.begin(run.task)
    if (run.extras?.end) return this.finish(run.extras.end)
    const why = this.drive(run, coroutine)
    return why === DRIVEN_TO_END ? this.ended(run, coroutine.state === 'threw', coroutine.result) : why
  }

  /** Runs a coroutine of the task until it stops, ends (DRIVEN_TO_END), or must be left. */
  private drive(run: CpuTask, coroutine: Coroutine): number {
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
      // A stretch after an await begins before a kill is thrown into it: its function stands at the await,
      // and must see it.
      if ((coroutine === run.coroutine || coroutine.state !== 'ready') && this.takeKill(run)) {
        sent = run.extras?.killedWith
        raising = true
      }
      const enter = run.extras === null ? null : (run.extras.stretches?.enter ?? run.extras.enter)
      const finished =
        enter === null
          ? this.stretch(coroutine, raising, sent)
          : enter(() => this.stretch(coroutine, raising, sent))
      if (this.cpu.stepwise) this.cpu.charge(STRETCH_MS)
      if (finished) return DRIVEN_TO_END
      if (coroutine.state === 'suspended') return SWITCH_SLEEPS
      if (!this.isKillPending(run.task)) break
    }
    if ((run.flags & RUN_YIELDS) !== 0) {
      run.flags &= ~RUN_YIELDS
      return SWITCH_YIELDS
    }
    return this.cpu.stepwise && !this.cpu.needResched ? CONTINUES : SWITCH_PREEMPTED
  }

  private stretch(coroutine: Coroutine, raising: boolean, sent: unknown): boolean {
    return raising ? this.runner.raise(coroutine, sent) : this.runner.resume(coroutine, sent)
  }

  private ended(run: CpuTask, threw: boolean, value: unknown): number {
    if (!threw && isThenable(value)) return this.awaitResult(run, value)
    return this.finish({ threw, value })
  }

  /** The task waits for a promise outside of its own code: it is async, or its module is not loaded yet. */
  private awaitResult(run: CpuTask, promise: PromiseLike<unknown>): number {
    const rare = extrasOf(run)
    rare.promise = promise
    rare.settled = null
    this.bind(run.task)
    this.beginOutside()
    Atomics.or(this.view.i32, run.job + Job.control, JOB_ASYNC)
    const settle = (threw: boolean, value: unknown): void => {
      if (this.isGone || rare.promise !== promise) return
      rare.settled = { threw, value }
      this.wakeFromAwait(run)
    }
    promise.then(
      value => settle(false, value),
      error => settle(true, error),
    )
    return this.awaitMicrotasks(run)
  }

  /** What follows an await is often a few microtasks away: then the task need not sleep for it. */
  private awaitMicrotasks(run: CpuTask): number {
    const stretches = run.extras?.stretches ?? null
    return stretches === null || this.cpu.stepwise ? this.sleepAsync(run) : AWAITS
  }

  /**
   * Asleep until the promise is settled. A kill cannot be thrown into an `await`: the task's signal is
   * aborted.
   */
  private sleepAsync(run: CpuTask): number {
    while (!beginSleep(this.s, run.task, INTERRUPTIBLE)) {
      if (!this.takeKill(run)) takePending(this.view.i32, run.task)
    }
    extrasOf(run).sleepsAsync = true
    return SWITCH_SLEEPS
  }

  private resumeAsync(run: CpuTask): number {
    const rare = extrasOf(run)
    if (rare.sleepsAsync) {
      rare.sleepsAsync = false
      endSleep(this.s, run.task)
    }
    const { stretches } = rare
    if (stretches !== null && stretches.isReady) {
      const why = this.runStretches(run, stretches)
      if (why !== DRIVEN_TO_END) return why
      if (rare.settled === null) return this.awaitMicrotasks(run)
    }
    this.takeKill(run)
    const { settled } = rare
    if (settled === null) return this.sleepAsync(run)
    rare.promise = null
    this.endOutside()
    stretches?.release()
    // It was the module that was waited for, or what the arguments refer to: now it can begin.
    if (run.coroutine === null && this.view.i32[run.job + Job.cpu] === 0 && !settled.threw)
      return this.begin(run.task)
    return this.finish(settled)
  }

  // What follows the awaits of an async function, as a coroutine of its task (stretches.ts).

  afterAwait(): AfterAwait {
    const run = this.currentRun()
    return (extrasOf(run).stretches ??= new Stretches(this, run))
  }

  /** Whether the task has nothing to run but what follows its awaits. */
  takesStretches(run: CpuTask): boolean {
    return run.extras !== null && run.extras.promise !== null && run.extras.settled === null
  }

  wakeFromAwait(run: CpuTask): void {
    if (run.extras?.sleepsAsync !== true) return
    wakeupTask(this.s, run.task)
    this.kickSelf()
  }

  /** Runs what is ready until the task must give its CPU back. DRIVEN_TO_END: nothing is ready any more. */
  private runStretches(run: CpuTask, stretches: Stretches): number {
    for (;;) {
      if (this.cpu.needResched || stretches.inARow >= STRETCHES_MAX) {
        stretches.inARow = 0
        return SWITCH_PREEMPTED
      }
      stretches.inARow++
      const why = this.drive(run, stretches.begin())
      if (why !== DRIVEN_TO_END) {
        if (why === SWITCH_SLEEPS) stretches.release()
        return why
      }
      stretches.end()
      if (!stretches.isReady) return DRIVEN_TO_END
    }
  }

  private finish(ending: Ending): number {
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

  /** Takes a kill that has been asked for, once; `killedWith` is what the task shall see. */
  private takeKill(run: CpuTask): boolean {
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

  /** A task waits for something that the event loop brings: it must turn, now and then. */
  private beginOutside(): void {
    if (this.cpu.outstanding++ === 0) this.s.turnAt = this.s.clock + this.s.slice
  }

  private endOutside(): void {
    assert(this.cpu.outstanding > 0, 'what is awaited was counted')
    if (--this.cpu.outstanding === 0) this.s.turnAt = Infinity
  }

  /** This CPU is asleep while its event loop turns, and nobody kicks the CPU that it is. */
  kickSelf(): void {
    if (this.job === 0) this.cpu.kick(this.cpu.id)
  }
}

class RunWaker implements Waker {
  private readonly on: KernelCpu
  private readonly run: CpuTask
  private readonly wait: number

  constructor(on: KernelCpu, run: CpuTask, wait: number) {
    this.on = on
    this.run = run
    this.wait = wait
  }

  wake(value?: unknown): void {
    this.on.wake(this.run, this.wait, value, false)
  }

  fail(error: unknown): void {
    this.on.wake(this.run, this.wait, error, true)
  }
}

/** What a wait ends with, when it ends by a throw. */
class Raised {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
  )
}
