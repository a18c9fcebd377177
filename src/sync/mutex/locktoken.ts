import type { LockOwner } from '../../futex/core/owner.ts'
import { SyncError } from '../wait/errors.ts'
import type { Mutex } from './mutex.ts'

/**
 * The proof that a mutex is locked, which also unlocks it: `using token = yield* mutex.lock()`. `lock` and
 * `lockSync` return one token for all locks of a mutex object, so that locking allocates nothing: it means
 * "the mutex, as held by the caller". Each `lockAsync` returns a token of its own, because async code has no
 * other identity.
 */
export class UnlockToken {
  /** @internal Null: empty. */
  mutex: Mutex | null
  /** @internal The owner that holds the lock; null: the caller. */
  owner: LockOwner | null
  /** @internal It is the one token of the mutex object, and never becomes empty. */
  readonly lasting: boolean
  /** Its lock has been unlocked. */
  private isSpent = false

  /** @internal Use `UnlockToken.empty()`. */
  constructor(mutex: Mutex | null, owner: LockOwner | null, lasting: boolean) {
    this.mutex = mutex
    this.owner = owner
    this.lasting = lasting
  }

  /** A token that holds nothing yet: pass it to `lock`, as often as needed. */
  static empty(): UnlockToken {
    return new UnlockToken(null, null, false)
  }

  /** Whether it holds the mutex now. */
  get locked(): boolean {
    return this.mutex !== null && this.mutex.isHeldThrough(this)
  }

  /**
   * Unlocks. Throws if the caller has unlocked it before. A token from `empty()` that holds nothing returns
   * false, as in the structs proposal.
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

  /** As `unlock`, at the end of a block; does nothing if it was unlocked before. */
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
