import { twin } from '../../coroutine/core/coroutine.ts'
import { blocks, closeFaces, openFaces, ran } from '../../coroutine/core/faces.ts'
import { asFrame, continueAs, frameValues } from '../../coroutine/core/frames.ts'
import { registerMovable } from '../../coroutine/core/movable.ts'
import { PREEMPTED } from '../../coroutine/core/stops.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { LEAVES } from '../../futex/core/sleep.ts'
import { currentTask, KernelTaskWaiter } from '../../kernel/cpu/taskwaiter.ts'
import { ImageError, registerImageKind } from '../../payload/imagekinds.ts'
import type { WaitOptions } from '../wait/waiting.ts'
import type { UnlockToken } from './locktoken.ts'
import type { Mutex } from './mutex.ts'

/**
 * A call of `lock` in a movable task, which can move while it waits. A wait is made of things that belong to
 * one CPU: a generator, and a waiter record that recovery frees when the CPU that made it dies. So the wait
 * does not travel. The call ends it, is nothing but data while the task moves, and begins it again.
 *
 *        | wait   | hints       | the call is
 *   -----+--------+-------------+--------------------------------------------------------------------------
 *   [1]  | runs   | as it says  | inside its wait: yields, or sleeps at the futex. The task stays on its CPU
 *   [2]  | none   | active      | data. The task stops here, and may be packed (sched/balance/move.ts)
 *   [3]  | none   | withdrawn   | back, on any CPU: tries the lock, and goes to [1] or returns
 *
 *   the CPU of the waiter                             other threads
 *   ---------------------                             -------------
 *   [1] the task yields or sleeps
 *   (A) between two tasks: RUN_LEAVES; wakes the
 *       task if it sleeps
 *                                                     an unlocker wakes the waiter, before (B) or never
 *   (B) the task runs: its waiter leaves the queue
 *   (C) it was woken before (B): takes the lock;      the holder sees WAITERS at its unlock,
 *       not free: sets WAITERS, back to [1]           and wakes a waiter
 *   (D) LEAVES: the generator ends  -> [2]
 *   (E) packs the task, and sends it away             a killer: the task throws at (F)
 *                                                     a CPU dies: before (E) the task is lost with it; after
 *                                                     (E) it is data, and another CPU takes it
 *   (F) on the other CPU: withdraws the hints,
 *       tries the lock  -> [3]
 *
 * (C) An unlocker wakes one waiter, and relies on it: a waiter that left with that wakeup would leave the
 * others asleep at a free lock. So a waiter that was woken competes, and only one that was not leaves.
 * (B) before (E): a waiter record on a queue while the task moves would be freed when the old CPU dies, and
 * its task would never be woken.
 * The timeout is a moment of the kernel's clock, so it is the same after (F). The call gives up its place in
 * the queue: it is the last one when it begins to wait again.
 *
 * A task that cannot be packed at (E) begins again where it is. A follower leaves once in a call: so two CPUs
 * do not pass it to and fro.
 *
 * Lock order: none is held at (A) to (F), except inside the calls.
 */
export class LockCall implements Iterator<number, UnlockToken | null, unknown> {
  mutex!: Mutex
  what: 'lock' | 'lockIfAvailable' = 'lock'
  /** As the program gave them. Without a signal. */
  options: WaitOptions | undefined = undefined
  /** When its timeout is over; Infinity: never, or at `until`. */
  deadline: number = Infinity
  /** It has left a wait to follow the holder, or because it had to. */
  hasLeft = false
  /** Where the wait began, for reports; null: its first wait is not over. */
  site: string | null = null
  /** [1]; null in [2]. */
  private wait: Generator<number, UnlockToken | null | typeof LEAVES, unknown> | null = null

  /** Whether the call may begin again elsewhere: the task can move, and has no signal, which cannot. */
  static canRestart(options: WaitOptions | undefined): boolean {
    const task = currentTask()
    return task instanceof KernelTaskWaiter && task.isMovable && options?.signal === undefined
  }

  static of(mutex: Mutex, what: LockCall['what'], options: WaitOptions | undefined): LockCall {
    const made = new LockCall()
    made.mutex = mutex
    made.what = what
    if (options !== undefined) {
      const { timeout, until } = options
      made.options = until === undefined ? { timeout } : { until }
      if (timeout !== undefined) made.deadline = currentFutexes().context.now() + timeout
    }
    return made
  }

  next(value?: unknown): IteratorResult<number, UnlockToken | null> {
    ran(this)
    return this.step(false, value)
  }

  throw(error: unknown): IteratorResult<number, UnlockToken | null> {
    return this.step(true, error)
  }

  return(): IteratorResult<number, UnlockToken | null> {
    if (this.wait !== null) {
      this.wait.return(null)
      this.wait = null
      ;(currentTask() as KernelTaskWaiter).endRestartable()
    }
    return { value: null, done: true }
  }

  [Symbol.iterator](): this {
    return this
  }

  /** Whether it is data: [2]. */
  get isData(): boolean {
    return this.wait === null
  }

  private step(throws: boolean, value: unknown): IteratorResult<number, UnlockToken | null> {
    const task = currentTask() as KernelTaskWaiter
    const { owner } = task
    if (this.wait === null) {
      if (this.hasLeft) {
        this.mutex.cameAs(owner) // (F)
        if (throws) throw value
        const token = this.mutex.tryLock()
        if (token !== null) return { value: token, done: true }
      }
      this.wait = this.mutex.lockSlowly(this.what, owner, this.optionsNow(), this)
    }
    task.beginRestartable(!this.hasLeft)
    let result: IteratorResult<number, UnlockToken | null | typeof LEAVES> | undefined
    try {
      result = throws ? this.wait.throw(value) : this.wait.next(value)
    } finally {
      if (result?.done !== false) {
        task.endRestartable()
        this.wait = null
      }
    }
    if (!result.done) return { value: result.value, done: false }
    if (result.value !== LEAVES) return { value: result.value, done: true }
    this.hasLeft = true
    return { value: PREEMPTED, done: false } // (D)
  }

  /** The options with the time that is left. */
  private optionsNow(): WaitOptions | undefined {
    if (this.deadline === Infinity) return this.options
    return { timeout: Math.max(0, this.deadline - currentFutexes().context.now()) }
  }
}

Object.defineProperties(LockCall.prototype, {
  [asFrame]: { get: () => lockAgain },
  [frameValues]: {
    get(this: LockCall) {
      return [this]
    },
  },
})

/** The second form of the frame of a call. */
function lockAgain(_place: number, values: unknown[]): unknown {
  return continueAs(values[0] as LockCall, lockAgain, values)
}

registerMovable('heddle', 'heddle', [{ key: 'lock', hash: '1', reenter: lockAgain, slots: ['call'] }])

const PARTS = ['mutex', 'what', 'options', 'deadline', 'hasLeft', 'site'] as const

registerImageKind<LockCall>(LockCall.prototype, {
  name: 'lock call',
  parts(call) {
    if (!call.isData) throw new Error('a call that waits for a lock is not data')
    return PARTS.map(name => call[name])
  },
  create: () => new LockCall(),
  fill(call, [mutex, what, options, deadline, hasLeft, site]) {
    if (typeof mutex !== 'object' || mutex === null || typeof deadline !== 'number')
      throw new ImageError('the image is damaged: a call of lock without its mutex; use another copy of it')
    call.mutex = mutex as Mutex
    call.what = what === 'lockIfAvailable' ? 'lockIfAvailable' : 'lock'
    call.options = options as WaitOptions | undefined
    call.deadline = deadline
    call.hasLeft = hasLeft === true
    call.site = site as string | null
  },
  steps: (_call, part) => [PARTS[part]],
})

/**
 * As blockingMethods, for methods that return a LockCall in a movable task: the frame that compiled code
 * saves is then the call itself, not a generator around it.
 */
export function restartableMethods(prototype: object, ...names: string[]): void {
  for (const name of names) {
    const method = Object.getOwnPropertyDescriptor(prototype, name)?.value as (...args: unknown[]) => unknown
    const resumed = function (this: unknown, ...args: unknown[]): unknown {
      const before = openFaces()
      try {
        return method.apply(this, args)
      } finally {
        closeFaces(before)
      }
    }
    Object.defineProperty(resumed, blocks, { value: true })
    Object.defineProperty(method, twin, { value: resumed })
  }
}
