import type { LockOwner } from '../../futex/core/owner.ts'
import { SyncError } from '../wait/errors.ts'
import type { Mutex } from './mutex.ts'

/**
 * Says that a mutex is locked, and unlocks it: `using token = yield* mutex.lock()`. What `lock` and
 * `lockSync` give is one and the same for all locks of a mutex object, so that locking allocates nothing: it
 * stands for "the mutex, as held by whoever calls". What `lockAsync` gives has a life of its own, because
 * async code has no identity but this.
 */
export class UnlockToken {
  /** @internal Null: empty. */
  mutex: Mutex | null
  /** @internal Who holds the lock; null: whoever calls. */
  owner: LockOwner | null
  /** @internal It is the mutex's own, and is never empty. */
  readonly lasting: boolean
  /** It was given with a lock, which has been unlocked. */
  private isSpent = false

  /** @internal Use `UnlockToken.empty()`. */
  constructor(mutex: Mutex | null, owner: LockOwner | null, lasting: boolean) {
    this.mutex = mutex
    this.owner = owner
    this.lasting = lasting
  }

  /** A token that locks nothing yet: pass it to a lock, again and again. */
  static empty(): UnlockToken {
    return new UnlockToken(null, null, false)
  }

  /** Whether it holds the mutex now. */
  get locked(): boolean {
    return this.mutex !== null && this.mutex.isHeldThrough(this)
  }

  /**
   * Unlocks. Throws if the caller does not hold the mutex through it any more: it was unlocked before. A
   * token that was made empty is as the structs proposal has it: false, and nothing happens.
   */
  unlock(): boolean {
    if (this.release()) return true
    const { mutex } = this
    if (mutex !== null && this.lasting) throw mutex.notHeld('unlock')
    if (this.isSpent) {
      throw new SyncError('ERR_HEDDLE_NOT_HELD', 'unlock: the token was unlocked before, and holds nothing')
    }
    return false
  }

  /** As `unlock`, for the end of a block: there may be nothing to unlock any more. */
  [Symbol.dispose](): void {
    this.release()
  }

  private release(): boolean {
    const { mutex } = this
    if (mutex === null) return false
    if (this.lasting) return mutex.unlockIfHeld()
    if (!mutex.isHeldThrough(this)) return false
    this.isSpent = this.owner !== null
    mutex.unlockThrough(this)
    return true
  }
}
