import { show } from '../../coroutine/core/knownoptions.ts'
import type { Blocking } from '../../coroutine/core/blocking.ts'
import { wait as waitForPromise } from '../../coroutine/core/blocking.ts'
import { facesOpen, toRun } from '../../coroutine/core/faces.ts'
import { here } from '../../thread/context.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { findOwner } from '../../futex/core/owner.ts'
import { asyncOwner, returnOwner } from '../wait/asyncowner.ts'
import { SyncError } from '../wait/errors.ts'
import { asPromise, inTask, type ObjectOptions, onThread, optionsOf, SyncObject } from '../wait/object.ts'
import { currentTid, refuseInTask, refuseOutsideTask } from '../wait/caller.ts'
import { OBJECT_WORDS, type SyncHandle, HAS_WAITERS } from '../wait/objectwords.ts'
import { blockingMethods, checkWait, Finished, QueueWait, type WaitOptions } from '../wait/waiting.ts'
import { WakeCount } from '../wait/wakecount.ts'

const TID_MASK = 0x3fff_ffff
const DONE = 0x4000_0000

/**
 * Runs a function once: the first caller runs it, and the others wait until it is done.
 *
 *   HAS_WAITERS | DONE | TID | meaning
 *   --------+------+-----+------------------------------------------------------------------------------
 *      0    |  0   |  0  | [1] not done
 *      .    |  0   | tid | [2] running; a caller that finds that the runner has died runs it instead
 *      1    |  0   |  0  | [3] the function threw, and a waiter was woken to run it
 *      0    |  1   |  0  | [4] done for ever: the check is one load
 */
export class Once extends SyncObject {
  static readonly words: number = OBJECT_WORDS
  private static readonly finished: Finished<boolean> = new Finished(false)

  constructor(options: ObjectOptions = {}) {
    super('Once', Once.words, options)
  }

  static from(handle: SyncHandle): Once {
    return new Once(optionsOf('Once', handle))
  }

  protected override isHeld(): boolean {
    return (Atomics.load(this.i32, this.at) & TID_MASK) !== 0
  }

  /** What `console.log` and JSON show of it. */
  override toJSON(): { readonly name?: string; readonly done: boolean } {
    return { ...super.toJSON(), done: this.done }
  }

  get done(): boolean {
    return Atomics.load(this.i32, this.at) === DONE
  }

  /**
   * In a task: runs `fn`, a generator function or a plain one, unless a call has run its function; returns
   * when it is done. True: this call ran it. If `fn` throws, the call throws, and a waiter runs its own
   * function.
   */
  run(fn: () => unknown, options?: WaitOptions): Blocking<boolean> {
    if (!facesOpen()) refuseOutsideTask('run')
    if (Atomics.load(this.i32, this.at) === DONE) return Once.finished as unknown as Blocking<boolean>
    return toRun('run', this.runInTask(fn, options)) as Blocking<boolean>
  }

  runSync(fn: () => unknown, options?: WaitOptions): boolean {
    if (here.runner !== null) refuseInTask('run')
    if (Atomics.load(this.i32, this.at) === DONE) return false
    checkWait(options)
    checkFunction('runSync', fn, LATER)
    const wait = new OnceWait(this, currentTid())
    onThread(wait, options)
    if (!wait.mine) return false
    this.runAndFinish(fn)
    return true
  }

  async runAsync(fn: () => unknown, options?: WaitOptions): Promise<boolean> {
    if (Atomics.load(this.i32, this.at) === DONE) return false
    checkWait(options)
    checkFunction('runAsync', fn, GENERATORS)
    const owner = asyncOwner()
    try {
      const wait = new OnceWait(this, owner.tid)
      await asPromise(wait, options)
      if (!wait.mine) return false
      let ok = false
      try {
        await fn()
        ok = true
      } finally {
        this.finish(ok)
      }
      return true
    } finally {
      returnOwner(owner)
    }
  }

  private *runInTask(
    fn: () => unknown,
    options: WaitOptions | undefined,
  ): Generator<number, boolean, unknown> {
    checkWait(options)
    checkFunction('run', fn, NONE)
    const wait = new OnceWait(this, currentTid())
    yield* inTask(wait, options)
    if (!wait.mine) return false
    let ok = false
    try {
      const made = fn()
      if (isIterator(made)) yield* made
      else yield* waitForPromise(made)
      ok = true
    } finally {
      this.finish(ok)
    }
    return true
  }

  private runAndFinish(fn: () => unknown): void {
    let ok = false
    try {
      fn()
      ok = true
    } finally {
      this.finish(ok)
    }
  }

  /** From [2] to [4], or to [1] or [3]. */
  private finish(ok: boolean): void {
    const { i32, at, queue } = this
    const { context } = currentFutexes()
    queue.lock(context)
    // The word first: if this thread dies here, the waiters that it did not wake check again, and find it.
    Atomics.store(i32, at, ok ? DONE : queue.isEmpty(context) ? 0 : HAS_WAITERS)
    queue.walk(context, new WakeCount(ok ? Infinity : 1))
    queue.unlock(context)
  }
}

export class OnceWait extends QueueWait {
  readonly what = 'run'
  /** This caller runs the function. */
  mine = false
  private readonly once: Once
  private readonly tid: number

  constructor(once: Once, tid: number) {
    super(once.queue)
    this.once = once
    this.tid = tid
  }

  admit(context: FutexContext): boolean {
    const { i32, at } = this.once
    this.once.refuseDisposed(this.what)
    for (;;) {
      const seen = Atomics.load(i32, at)
      if ((seen & DONE) !== 0) return true
      const runner = seen & TID_MASK
      if (runner === this.tid) {
        throw new SyncError(
          'ERR_HEDDLE_DEADLOCK',
          'run: the function calls run of the same Once, and would wait for itself',
        )
      }
      const free = runner === 0 || findOwner(context, runner) === 0
      const next = free ? (seen & HAS_WAITERS) | this.tid : seen | HAS_WAITERS
      if (Atomics.compareExchange(i32, at, seen, next) !== seen) continue
      this.mine = free
      return free
    }
  }

  /** It checks again: the function is done, or threw. */
  override woken(): boolean {
    return false
  }

  override leave(context: FutexContext, _waiters: readonly number[], index: number): void {
    const { i32, at } = this.once
    if (index < 0 || !this.queue.lockIfWaiting(context)) return
    if ((Atomics.load(i32, at) & (TID_MASK | DONE)) === 0) this.queue.walk(context, new WakeCount(1))
    this.queue.unlock(context)
  }
}

const NONE: readonly string[] = []
const GENERATORS = ['GeneratorFunction', 'AsyncGeneratorFunction']
const LATER = [...GENERATORS, 'AsyncFunction']

/** Refuses a function whose code would run after the call has returned, or never. */
function checkFunction(what: string, fn: unknown, refused: readonly string[]): void {
  if (typeof fn !== 'function') throw new TypeError(`${what}: got ${show(fn)}; give a function`)
  const kind = Object.prototype.toString.call(fn).slice(8, -1)
  if (!refused.includes(kind)) return
  const verb = kind === 'AsyncFunction' ? 'runAsync' : 'run in a task'
  throw new TypeError(
    `${what}: it does not wait for the code of this ${kind}; use ${verb}, or a plain function`,
  )
}

function isIterator(value: unknown): value is Generator<number, unknown, unknown> {
  return (
    typeof value === 'object' && value !== null && typeof (value as { next?: unknown }).next === 'function'
  )
}

blockingMethods(Once.prototype, 'run')
