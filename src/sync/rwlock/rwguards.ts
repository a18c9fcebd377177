import type { LockOwner } from '../../futex/core/owner.ts'
import { SyncError } from '../wait/errors.ts'
import type { RwLock } from './rwlock.ts'

/**
 * Disposing of it ends one read. In a task and on a thread, a lock object has one ReadGuard, so that reading
 * allocates nothing: unlock or dispose of it once for each read. `lockReadAsync` returns one for each read,
 * which is unlocked once; disposing of it after that does nothing.
 */
export class ReadGuard {
  readonly lock: RwLock
  private readonly lasting: boolean
  private isSpent = false

  /** @internal */
  constructor(lock: RwLock, lasting: boolean) {
    this.lock = lock
    this.lasting = lasting
  }

  unlock(): void {
    if (this.isSpent)
      throw new SyncError('ERR_HEDDLE_NOT_HELD', 'unlockRead: this guard was unlocked before; unlock it once')
    this.lock.unlockRead()
    if (!this.lasting) this.isSpent = true
  }

  [Symbol.dispose](): void {
    if (!this.isSpent) this.unlock()
  }
}

/** Disposing of it unlocks, unless the writer has unlocked or was downgraded. */
export class WriteGuard {
  readonly lock: RwLock
  private readonly owner: LockOwner | null

  /** @internal */
  constructor(lock: RwLock, owner: LockOwner | null) {
    this.lock = lock
    this.owner = owner
  }

  get locked(): boolean {
    return this.lock.isWrittenBy(this.owner)
  }

  /** False: there was nothing to unlock. */
  unlock(): boolean {
    if (!this.locked) return false
    if (this.owner === null) this.lock.unlockWrite()
    else this.lock.unlockWriteAs(this.owner.tid)
    return true
  }

  [Symbol.dispose](): void {
    this.unlock()
  }
}

/** Disposing of it makes the writer a reader again. */
export class UpgradeGuard {
  readonly lock: RwLock

  /** @internal */
  constructor(lock: RwLock) {
    this.lock = lock
  }

  get locked(): boolean {
    return this.lock.isWrittenBy(null)
  }

  downgrade(): boolean {
    if (!this.locked) return false
    this.lock.downgrade()
    return true
  }

  [Symbol.dispose](): void {
    this.downgrade()
  }
}
