import type { LockOwner } from '../../futex/core/owner.ts'
import type { RwLock } from './rwlock.ts'

/** Disposing of it ends one read. A lock object has one ReadGuard: dispose of it once for each read. */
export class ReadGuard {
  readonly lock: RwLock

  /** @internal */
  constructor(lock: RwLock) {
    this.lock = lock
  }

  unlock(): void {
    this.lock.unlockRead()
  }

  [Symbol.dispose](): void {
    this.unlock()
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
