import { twin } from '../../coroutine/core/coroutine.ts'
import { LOCK, UNLOCK } from './operations.ts'
import { op, pending, vouchFor } from './pending.ts'

/**
 * The checker's own mutex, for checks of code that relies on a lock. Locking is one event and unlocking is
 * one. A thread that tries to lock a held mutex cannot be scheduled. Create it in the set-up.
 */
export class CheckedMutex {
  readonly id: number
  /** The thread that holds it, or -1. */
  owner: number = -1

  /**
   * `id` distinguishes the mutexes of one check. Without an id, the mutexes that each thread and the set-up
   * create are numbered in order.
   */
  constructor(id: number = -(++pending.mutexes[pending.current + 1] * 64 + pending.current + 1)) {
    this.id = id
  }

  /** Locks the mutex; waits while another thread holds it. Inside a thread body only. */
  lock(): void {
    outside('lock')
  }

  unlock(): void {
    outside('unlock')
  }
}

function outside(name: string): never {
  throw new Error(
    pending.current < 0
      ? `CheckedMutex.${name} was called outside a thread body; call it in a thread body of a check`
      : `CheckedMutex.${name} was called by code that is not instrumented; call it in the check file, or name the module in \`modules\``,
  )
}

function* lock(this: CheckedMutex): Generator<number, void, unknown> {
  yield op(LOCK, -1, this)
}

function* unlock(this: CheckedMutex): Generator<number, void, unknown> {
  yield op(UNLOCK, -1, this)
}

vouchFor(CheckedMutex)
vouchFor(CheckedMutex.prototype.lock)
vouchFor(CheckedMutex.prototype.unlock)
Object.assign(CheckedMutex.prototype.lock, { [twin]: lock })
Object.assign(CheckedMutex.prototype.unlock, { [twin]: unlock })
