import type { Futexes } from '../../futex/core/futexes.ts'
import { lockTag } from '../../futex/core/locktag.ts'
import type { LockOwner } from '../../futex/core/owner.ts'
import type { FutexWord } from '../../futex/core/space.ts'
import { WordMutex } from '../../futex/robust/mutex.ts'
import type { OwnedLock } from '../../futex/robust/ownedlock.ts'
import { HandoffMutex } from '../../handoff/mutex.ts'
import { here } from '../../kernel/cpu/here.ts'
import { currentTid } from '../wait/caller.ts'
import { FutexLock } from './futexlock.ts'

const NO_DOMAIN = undefined

/**
 * A lock that the scheduler's policy hands over: the same word and futex, with hints around them
 * (handoff/mutex.ts). Outside of a kernel no policy reads hints, and it waits as FutexLock does.
 */
export class HandoffLock extends FutexLock {
  private shim: HandoffMutex | null = null
  /** The domain of the shim, if there is one: a TID means the same owner only there. */
  private domain: Futexes | typeof NO_DOMAIN = NO_DOMAIN

  protected override make(futexes: Futexes, word: FutexWord): OwnedLock {
    const handoff = here.view?.handoff
    if (handoff === undefined) {
      this.shim = null
      this.domain = NO_DOMAIN
      return super.make(futexes, word)
    }
    const inner = new WordMutex(futexes, word, this.kind, true)
    this.domain = futexes
    this.shim = new HandoffMutex(inner, handoff, lockTag(word.mapped.backing, word.index))
    return this.shim
  }

  override tryLockHere(): boolean {
    if (here.futexes === this.domain && (this.shim as HandoffMutex).tryLockAgain(currentTid())) return true
    return super.tryLockHere()
  }

  override unlockHere(): boolean {
    if (here.futexes === this.domain && (this.shim as HandoffMutex).unlockAgain(currentTid())) return true
    return super.unlockHere()
  }

  /** The owner has come from another CPU, and begins its wait here again. */
  came(owner: LockOwner): void {
    this.lockOf(owner)
    this.shim?.came(owner)
  }

  override tryLockSoon(owner: LockOwner, blocks: boolean): boolean {
    return !blocks && this.shim !== null && this.isTaken(this.shim.tryLockSoon(owner))
  }
}
