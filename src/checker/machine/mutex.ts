import { twin } from '../../coroutine/core/coroutine.ts'
import { LOCK, UNLOCK } from './operations.ts'
import { op, pending, vouchFor } from './pending.ts'

/**
 * A mutex of the checker's own, for checks of code that takes its lock for granted: one event to lock, one to
 * unlock, and a thread that finds it taken cannot be scheduled. Make it in the set-up.
 */
export class CheckedMutex {
  readonly id: number
  /** The thread that holds it, or -1. */
  owner: number = -1

  /**
   * `id` tells the mutexes of one check apart; without one they are numbered as each thread, or the set-up,
   * makes them.
   */
  constructor(id: number = -(++pending.mutexes[pending.current + 1] * 64 + pending.current + 1)) {
    this.id = id
  }

  /** Takes the mutex; waits while another thread holds it. Inside a thread body only. */
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
      ? `CheckedMutex.${name} belongs into the thread bodies of a check`
      : `CheckedMutex.${name} was called by code that is not instrumented`,
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
