import type { Blocking } from '../../coroutine/core/blocking.ts'
import { facesOpen, toRun } from '../../coroutine/core/faces.ts'
import { here } from '../../thread/context.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { checkCount } from '../wait/errors.ts'
import { asPromise, inTask, type ObjectOptions, onThread, optionsOf, SyncObject } from '../wait/object.ts'
import { refuseInTask, refuseOutsideTask } from '../wait/caller.ts'
import { type OwnPlace, OBJECT_WORDS, type SyncHandle, HAS_WAITERS } from '../wait/objectwords.ts'
import { blockingMethods, checkWait, Finished, QueueWait, type WaitOptions } from '../wait/waiting.ts'
import { WakeCount } from '../wait/wakecount.ts'

const COUNT = 0x3fff_ffff

/**
 * A wait for a count to become 0. While there are waiters, the sign bit is set and every change is under the
 * queue's lock.
 */
abstract class Countdown extends SyncObject {
  private static readonly finished: Finished<void> = new Finished<void>(undefined)

  protected constructor(kind: string, count: number, options: ObjectOptions) {
    checkCount(`new ${kind}(count)`, count, 0)
    super(kind, OBJECT_WORDS, options)
    if (count > 0) Atomics.add(this.i32, this.at, count)
  }

  /** What `console.log` and JSON show of it. */
  override toJSON(): { readonly name?: string; readonly count: number } {
    return { ...super.toJSON(), count: this.count }
  }

  get count(): number {
    return Atomics.load(this.i32, this.at) & COUNT
  }

  /** In a task: waits until the count is 0. */
  wait(options?: WaitOptions): Blocking<void> {
    if (!facesOpen()) refuseOutsideTask('wait')
    if (options !== undefined) checkWait(options)
    if (this.isDone()) return Countdown.finished as unknown as Blocking<void>
    return toRun('wait', inTask(new ZeroWait(this), options)) as Blocking<void>
  }

  waitSync(options?: WaitOptions): void {
    if (here.runner !== null) refuseInTask('wait')
    if (options !== undefined) checkWait(options)
    if (!this.isDone()) onThread(new ZeroWait(this), options)
  }

  async waitAsync(options?: WaitOptions): Promise<void> {
    checkWait(options)
    if (!this.isDone()) await asPromise(new ZeroWait(this), options)
  }

  /** Changes the count by `by`. Throws RangeError when it would be negative. */
  protected change(what: string, by: number): void {
    const { i32, at } = this
    for (;;) {
      const seen = Atomics.load(i32, at)
      const next = this.checked(what, seen & COUNT, by)
      if (seen < 0) break
      if (Atomics.compareExchange(i32, at, seen, next) === seen) return
    }
    this.refuseDisposed(what)
    this.changeLocked(currentFutexes().context, what, by)
  }

  private changeLocked(context: FutexContext, what: string, by: number): void {
    const { i32, at, queue } = this
    queue.lockedDo(context, () => {
      for (;;) {
        const seen = Atomics.load(i32, at)
        const next = this.checked(what, seen & COUNT, by)
        const bits = next === 0 || queue.isEmpty(context) ? 0 : HAS_WAITERS
        // Before any waiter is woken: if this thread dies in between, the waiters check again and find it.
        if (Atomics.compareExchange(i32, at, seen, next | bits) !== seen) continue
        if (next === 0) queue.walk(context, new WakeCount(Infinity))
        break
      }
    })
  }

  private checked(what: string, count: number, by: number): number {
    const next = count + by
    if (next >= 0 && next <= COUNT) return next
    throw new RangeError(
      next < 0
        ? `${what}(${-by}): the count is ${count}, and must not become negative`
        : `${what}(${by}): the count is ${count}, and the maximum is ${COUNT}`,
    )
  }

  private isDone(): boolean {
    const seen = Atomics.load(this.i32, this.at)
    if (seen < 0) this.refuseDisposed('wait')
    return (seen & COUNT) === 0
  }
}

export class ZeroWait extends QueueWait {
  readonly what = 'wait'
  private readonly countdown: Countdown

  constructor(countdown: Countdown) {
    super(countdown.queue)
    this.countdown = countdown
  }

  admit(): boolean {
    const { i32, at } = this.countdown
    this.countdown.refuseDisposed('wait')
    for (;;) {
      const seen = Atomics.load(i32, at)
      if ((seen & COUNT) === 0) return true
      if (Atomics.compareExchange(i32, at, seen, seen | HAS_WAITERS) === seen) return false
    }
  }
}

/**
 * Waits until a number of things are done. More may be added while the count is not 0, and it can be used
 * again.
 */
export class WaitGroup extends Countdown {
  static readonly words: number = OBJECT_WORDS

  constructor(count = 0, options: ObjectOptions = {}) {
    super('WaitGroup', count, options)
  }

  static from(handle: SyncHandle): WaitGroup {
    return new WaitGroup(0, optionsOf('WaitGroup', handle))
  }

  /** The one that is in this memory already. */
  static at(place: OwnPlace): WaitGroup {
    return new WaitGroup(0, place)
  }

  add(count = 1): void {
    checkCount('add(count)', count, 0)
    this.change('add', count)
  }

  done(count = 1): void {
    checkCount('done(count)', count, 0)
    this.change('done', -count)
  }
}

/** Opens when it has been counted down to 0, and stays open. */
export class Latch extends Countdown {
  static readonly words: number = OBJECT_WORDS

  constructor(count: number, options: ObjectOptions = {}) {
    super('Latch', count, options)
  }

  static from(handle: SyncHandle): Latch {
    return new Latch(0, optionsOf('Latch', handle))
  }

  /** The one that is in this memory already. */
  static at(place: OwnPlace): Latch {
    return new Latch(0, place)
  }

  countDown(count = 1): void {
    checkCount('countDown(count)', count, 0)
    this.change('countDown', -count)
  }
}

blockingMethods(Countdown.prototype, 'wait')
