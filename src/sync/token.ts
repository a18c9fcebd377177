import type { LockOwner } from '../futex/owner.ts'
import type { Mutex } from './mutex.ts'

/**
 * Says that a mutex is locked, and unlocks it: `using token = yield* mutex.lock()`. What `lock` and `lockSync` give is one and the same for
 * all locks of a mutex object, so that locking allocates nothing: it stands for "the mutex, as held by whoever calls". What
 * `lockAsync` gives has a life of its own, because async code has no identity but this.
 */
export class UnlockToken {
  /** @internal Null: empty. */
  mutex: Mutex | null
  /** @internal Who holds the lock; null: whoever calls. */
  owner: LockOwner | null
  /** @internal It is the mutex's own, and is never empty. */
  readonly lasting: boolean

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

  /** Unlocks. False: there was nothing to unlock. */
  unlock(): boolean {
    const { mutex } = this
    if (mutex === null) return false
    if (this.lasting) return mutex.unlockIfHeld()
    if (!mutex.isHeldThrough(this)) return false
    mutex.unlockThrough(this)
    return true
  }

  [Symbol.dispose](): void {
    this.unlock()
  }
}
