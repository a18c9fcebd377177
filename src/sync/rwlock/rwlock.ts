import { pause } from '../../arena/sync/pause.ts'
import type { Blocking } from '../../coroutine/core/blocking.ts'
import { facesOpen, toRun } from '../../coroutine/core/faces.ts'
import { countLock, countReleased, countShares, countUnlock, here } from '../../thread/context.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { LockOwner } from '../../futex/core/owner.ts'
import { asyncOwner, asyncOwnerOf, returnOwner } from '../wait/asyncowner.ts'
import type { SyncError } from '../wait/errors.ts'
import { finishGrant } from '../wait/countgrant.ts'
import { HOLDER_WORDS, Holders } from '../wait/holders.ts'
import { asPromise, inTask, type ObjectOptions, onThread, optionsOf, SyncObject } from '../wait/object.ts'
import { observer, tellMade } from '../debug/observer.ts'
import { currentTid, refuseInTask, refuseOutsideTask } from '../wait/caller.ts'
import { OBJECT_WORDS, type SyncHandle, HAS_WAITERS } from '../wait/objectwords.ts'
import { ReadGuard, UpgradeGuard, WriteGuard } from './rwguards.ts'
import { HolderWatch } from '../debug/holderwatch.ts'
import {
  changeAndServe,
  type LineWait,
  notHeld,
  readersOf,
  ReadWait,
  UpgradeWait,
  WRITER,
  writerOf,
  WriteWait,
} from './rwwaits.ts'
import { RwWatch } from './rwwatch.ts'
import { blockingMethods, checkWait, WAIT_SPINS, Finished, type WaitOptions } from '../wait/waiting.ts'

/**
 * Many readers or one writer.
 *
 *   HAS_WAITERS | WRITER | rest | meaning
 *   --------+--------+------+------------------------------------------------------------------------------
 *      0    |   0    |   0  | [1] free
 *      0    |   0    |   n  | [2] n readers, no waiters: reading and unlocking are one compare-exchange
 *      0    |   1    |  tid | [3] a writer, no waiters
 *      1    |   .    |   .  | [4] there are waiters: every change is under the queue's lock
 *
 * UPGRADING, beside [4] and readers: the first waiter is a reader that wants to write, and still reads.
 *
 * In [4] no reader joins the others: a reader that comes while a writer waits queues behind it. When the lock
 * becomes free, the first waiter is woken; if it is a reader, all waiting readers are, also those behind
 * writers. A woken waiter competes with every other thread, because a running thread can use the lock while a
 * sleeping one wakes up. If the lock were handed to the sleeper, every section would last as long as a
 * wakeup. No waiter starves: one that has lost LOSSES times is handed the lock when it is first in the queue.
 *
 * A writer that died with the lock is known by its TID; callers get an error. The first eight readers have
 * names (holders.ts): a writer that has to wait releases the shares of dead readers.
 */
export class RwLock extends SyncObject {
  static readonly words: number = OBJECT_WORDS + HOLDER_WORDS
  /** @internal */
  readonly holders: Holders
  private readonly readGuard: ReadGuard
  private readonly writeGuard: WriteGuard
  private readonly upgradeGuard: UpgradeGuard
  private readonly reading: Finished<ReadGuard>
  private readonly writing: Finished<WriteGuard>
  private readonly upgraded: Finished<UpgradeGuard>

  constructor(options: ObjectOptions = {}) {
    super('RwLock', RwLock.words, options)
    this.holders = new Holders(this.i32, this.at + OBJECT_WORDS)
    this.readGuard = new ReadGuard(this, true)
    this.writeGuard = new WriteGuard(this, null)
    this.upgradeGuard = new UpgradeGuard(this)
    this.reading = new Finished(this.readGuard)
    this.writing = new Finished(this.writeGuard)
    this.upgraded = new Finished(this.upgradeGuard)
    tellMade()
  }

  static from(handle: SyncHandle): RwLock {
    return new RwLock(optionsOf('RwLock', handle))
  }

  /** What `console.log` and JSON show of it. */
  override toJSON(): { readonly name?: string; readonly readers: number; readonly isWriting: boolean } {
    return { ...super.toJSON(), readers: this.readers, isWriting: this.isWriting }
  }

  /** How many readers there are now. */
  get readers(): number {
    return readersOf(Atomics.load(this.i32, this.at))
  }

  /** Whether there is a writer now. */
  get isWriting(): boolean {
    return (Atomics.load(this.i32, this.at) & WRITER) !== 0
  }

  protected override isHeld(): boolean {
    return this.isWriting || this.readers > 0
  }

  /** In a task: waits until it may read. */
  lockRead(options?: WaitOptions): Blocking<ReadGuard> {
    if (!facesOpen()) refuseOutsideTask('lockRead')
    if (options !== undefined) checkWait(options)
    const tid = currentTid()
    if (this.tryReading(tid)) return this.reading as unknown as Blocking<ReadGuard>
    return toRun('lockRead', this.readInLine(tid, options)) as Blocking<ReadGuard>
  }

  lockReadSync(options?: WaitOptions): ReadGuard {
    if (here.runner !== null) refuseInTask('lockRead')
    if (options !== undefined) checkWait(options)
    const tid = currentTid()
    if (this.tryReading(tid) || this.spin(tid, true)) return this.readGuard
    this.blockInLine(new ReadWait(this), options, tid)
    this.holders.add(tid, 1)
    return this.readGuard
  }

  async lockReadAsync(options?: WaitOptions): Promise<ReadGuard> {
    checkWait(options)
    const { tid } = currentFutexes().self
    if (!this.tryReading(tid)) {
      await asPromise(new ReadWait(this), options)
      this.holders.add(tid, 1)
    }
    return new ReadGuard(this, false)
  }

  tryLockRead(): ReadGuard | null {
    return this.tryReading(currentTid()) ? this.readGuard : null
  }

  /** In a task: waits until it may write. */
  lockWrite(options?: WaitOptions): Blocking<WriteGuard> {
    if (!facesOpen()) refuseOutsideTask('lockWrite')
    if (options !== undefined) checkWait(options)
    const tid = currentTid()
    if (this.tryWriting(tid)) return this.writing as unknown as Blocking<WriteGuard>
    return toRun(
      'lockWrite',
      this.inLine(new WriteWait(this, tid), options, this.writeGuard),
    ) as Blocking<WriteGuard>
  }

  lockWriteSync(options?: WaitOptions): WriteGuard {
    if (here.runner !== null) refuseInTask('lockWrite')
    if (options !== undefined) checkWait(options)
    const tid = currentTid()
    if (!this.tryWriting(tid) && !this.spin(tid, false))
      this.blockInLine(new WriteWait(this, tid), options, tid)
    return this.writeGuard
  }

  /** An async writer is an owner of its own, which the guard carries. */
  async lockWriteAsync(options?: WaitOptions): Promise<WriteGuard> {
    checkWait(options)
    const owner = asyncOwner()
    let held = false
    try {
      held = this.tryWriting(owner.tid)
      if (!held) await asPromise(new WriteWait(this, owner.tid), options)
      held = true
      return new WriteGuard(this, owner)
    } finally {
      if (!held) returnOwner(owner)
    }
  }

  tryLockWrite(): WriteGuard | null {
    const tid = currentTid()
    if (this.tryWriting(tid)) return this.writeGuard
    if (this.readers === 0) return null
    const dead = this.holders.takeDead(currentFutexes().context)
    if (dead === 0) return null
    this.inLock(seen => seen - Math.min(dead, readersOf(seen)))
    return this.tryWriting(tid) ? this.writeGuard : null
  }

  unlockRead(): void {
    const { i32, at } = this
    const tid = currentTid()
    if (observer !== null) observer.released(this, tid)
    if (!this.holders.removeNamed(tid, 1)) {
      if (readersOf(Atomics.load(i32, at)) === 0) throw this.notHeld('unlockRead', 'it has no reader')
      this.holders.remove(tid, 1)
    }
    countReleased(1)
    for (let expected = 1; ; ) {
      const seen = Atomics.compareExchange(i32, at, expected, expected - 1)
      if (seen === expected) return
      if (seen < 0) break
      if (readersOf(seen) === 0) throw this.notHeld('unlockRead', 'it has no reader')
      expected = seen
    }
    this.inLock(seen => {
      if (readersOf(seen) === 0) throw this.notHeld('unlockRead', 'it has no reader')
      return seen - 1
    })
  }

  unlockWrite(): void {
    this.unlockWriteAs(this.writerTid('unlockWrite'))
  }

  /**
   * In a task that reads: waits until it is the only reader, and writes. Disposing of the guard makes it a
   * reader again.
   */
  upgrade(options?: WaitOptions): Blocking<UpgradeGuard> {
    if (!facesOpen()) refuseOutsideTask('upgrade')
    if (options !== undefined) checkWait(options)
    const tid = currentTid()
    if (this.tryUpgrading(tid)) return this.upgraded as unknown as Blocking<UpgradeGuard>
    return toRun('upgrade', this.upgradeInLine(tid, options)) as Blocking<UpgradeGuard>
  }

  upgradeSync(options?: WaitOptions): UpgradeGuard {
    if (here.runner !== null) refuseInTask('upgrade')
    if (options !== undefined) checkWait(options)
    const tid = currentTid()
    if (this.tryUpgrading(tid)) return this.upgradeGuard
    const wait = new UpgradeWait(this, tid)
    const long = this.watched(wait, tid)
    try {
      onThread(wait, options)
    } finally {
      long.end(currentFutexes().context)
    }
    this.holders.remove(tid, 1)
    return this.upgradeGuard
  }

  async upgradeAsync(options?: WaitOptions): Promise<UpgradeGuard> {
    checkWait(options)
    const tid = currentTid()
    if (this.tryUpgrading(tid)) return this.upgradeGuard
    await asPromise(new UpgradeWait(this, tid), options)
    this.holders.remove(tid, 1)
    return this.upgradeGuard
  }

  /** The writer becomes a reader in one step: other readers may come in, no writer comes between. */
  downgrade(): ReadGuard {
    const tid = this.writerTid('downgrade')
    const flow = asyncOwnerOf(tid)
    if (observer !== null) observer.released(this, tid)
    if (Atomics.compareExchange(this.i32, this.at, WRITER | tid, 1) !== (WRITER | tid)) this.inLock(() => 1)
    this.holders.add(flow === undefined ? tid : currentFutexes().self.tid, 1)
    if (tid === here.tid) countUnlock()
    countShares(1)
    if (flow !== undefined) returnOwner(flow)
    return this.readGuard
  }

  /** @internal Whether this owner is the writer. */
  isWrittenBy(owner: LockOwner | null): boolean {
    const tid = owner === null ? currentTid() : owner.tid
    return (Atomics.load(this.i32, this.at) & ~HAS_WAITERS) === (WRITER | tid)
  }

  /** @internal */
  unlockWriteAs(tid: number): void {
    const { i32, at } = this
    if (observer !== null) observer.released(this, tid)
    if (Atomics.compareExchange(i32, at, WRITER | tid, 0) !== (WRITER | tid)) this.inLock(() => 0)
    if (tid === here.tid) countUnlock()
    const flow = asyncOwnerOf(tid)
    if (flow !== undefined) returnOwner(flow)
  }

  /** @internal Changes the state under the queue's lock, and admits the waiters that it allows. */
  inLock(change: (seen: number) => number): void {
    this.refuseDisposed('unlock')
    const { context } = currentFutexes()
    this.queue.lockedDo(context, () => {
      finishGrant(context, this)
      changeAndServe(context, this, change)
    })
  }

  /** `tid`: the name of the share. */
  private tryReading(tid: number): boolean {
    const { i32, at } = this
    // A failed exchange returns the current word: only the first is a guess.
    for (let expected = 0; ; ) {
      const seen = Atomics.compareExchange(i32, at, expected, expected + 1)
      if (seen === expected) {
        this.holders.add(tid, 1)
        countShares(1)
        if (observer !== null) this.tellAcquired(currentTid())
        return true
      }
      if (seen < 0) this.refuseDisposed('lockRead')
      if (seen < 0 || (seen & WRITER) !== 0) return false
      expected = seen
    }
  }

  private tryWriting(tid: number): boolean {
    const { i32, at } = this
    const seen = Atomics.compareExchange(i32, at, 0, WRITER | tid)
    if (seen !== 0) {
      if (seen < 0) this.refuseDisposed('lockWrite')
      return false
    }
    if (tid === here.tid) countLock()
    this.tellAcquired(tid)
    return true
  }

  private tryUpgrading(tid: number): boolean {
    const { i32, at } = this
    const seen = Atomics.load(i32, at)
    if (seen >= 0 && readersOf(seen) === 0) throw this.notHeld('upgrade', 'it has no reader')
    if (Atomics.compareExchange(i32, at, 1, WRITER | tid) !== 1) return false
    this.holders.remove(tid, 1)
    this.countUpgraded()
    this.tellAcquired(tid)
    return true
  }

  /** A thread spins before it blocks, because many sections are short. */
  private spin(tid: number, reads: boolean): boolean {
    const { i32, at } = this
    const { spins } = currentFutexes().context.thread
    for (let spin = 0; spin < WAIT_SPINS && spin < spins; spin++) {
      pause()
      const seen = Atomics.load(i32, at)
      // Free, with waiters: a caller that queues now may get it.
      if (seen === HAS_WAITERS) return false
      if (seen < 0) continue
      if (reads ? this.tryReading(tid) : seen === 0 && this.tryWriting(tid)) return true
    }
    return false
  }

  private *readInLine(tid: number, options: WaitOptions | undefined): Generator<number, ReadGuard, unknown> {
    yield* this.inLine(new ReadWait(this), options, this.readGuard)
    this.holders.add(tid, 1)
    countShares(1)
    return this.readGuard
  }

  /** Becomes the writer, and removes its name as a reader. */
  private *upgradeInLine(
    tid: number,
    options: WaitOptions | undefined,
  ): Generator<number, UpgradeGuard, unknown> {
    const wait = new UpgradeWait(this, tid)
    const long = this.watched(wait, tid)
    try {
      yield* inTask(wait, options)
    } finally {
      long.end(currentFutexes().context)
    }
    this.holders.remove(tid, 1)
    this.countUpgraded()
    return this.upgradeGuard
  }

  private *inLine<T>(
    wait: LineWait,
    options: WaitOptions | undefined,
    guard: T,
  ): Generator<number, T, unknown> {
    const tid = currentTid()
    this.tellWaits(tid)
    const long = this.watched(wait, tid)
    try {
      yield* inTask(wait, options)
    } finally {
      long.end(currentFutexes().context)
      if (observer !== null) observer.waited(this, tid)
    }
    if (wait instanceof WriteWait) countLock()
    this.tellAcquired(tid)
    return guard
  }

  private countUpgraded(): void {
    countReleased(1)
    countLock()
  }

  /** Makes the wait search for deadlocks, until the caller ends the watch. */
  private watched(wait: LineWait, tid: number): HolderWatch {
    const waitsForReaders = !(wait instanceof ReadWait)
    const watch = new RwWatch(this, waitsForReaders, wait instanceof UpgradeWait ? tid : 0)
    const long = HolderWatch.of(tid, watch)
    wait.long = long
    return long
  }

  private blockInLine(wait: LineWait, options: WaitOptions | undefined, tid: number): void {
    this.tellWaits(tid)
    const long = this.watched(wait, tid)
    try {
      onThread(wait, options)
    } finally {
      long.end(currentFutexes().context)
      if (observer !== null) observer.waited(this, tid)
    }
    this.tellAcquired(tid)
  }

  /** The TID of the writer, if it is the caller or async code of its thread. */
  private writerTid(what: string): number {
    const writer = writerOf(Atomics.load(this.i32, this.at))
    if (writer === 0) throw this.notHeld(what, 'it has no writer')
    if (writer !== currentTid() && asyncOwnerOf(writer) === undefined) {
      throw this.notHeld(what, `the writer is ${writer}, and the caller is ${currentTid()}`)
    }
    return writer
  }

  private notHeld(what: string, why: string): SyncError {
    this.refuseDisposed(what)
    return notHeld(this, what, why)
  }

  private tellWaits(tid: number): void {
    if (observer !== null) observer.waits(this, 'rwlock', this.name, tid)
  }

  private tellAcquired(tid: number): void {
    if (observer !== null) observer.acquired(this, 'rwlock', this.name, tid)
  }
}

blockingMethods(RwLock.prototype, 'lockRead', 'lockWrite', 'upgrade')
