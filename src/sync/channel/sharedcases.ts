import type { FutexContext } from '../../futex/core/context.ts'
import { ETIMEDOUT } from '../../futex/core/errno.ts'
import { Waiter } from '../../futex/core/records.ts'
import { finishWait } from '../../futex/core/sleep.ts'
import { freeWaiters, makeWaiter, type WaiterOptions } from '../../futex/operations/waitwake.ts'
import {
  CLOSED,
  copyValue,
  dropValue,
  NOTHING,
  VALUE_WORDS,
  publishValue,
  takeValue,
  TAKEN,
  type Words,
  writeValue,
} from '../wait/value.ts'
import { PIPE_DONE, type Outcome, type SharedPipe, PIPE_WOULD_WAIT } from './sharedpipe.ts'
import { underLock } from '../wait/underlock.ts'
import type { Wait } from '../wait/waiting.ts'

/** A send or a receive at a shared channel, in a wait for one or several. */
export interface SharedCase {
  readonly pipe: SharedPipe
  readonly sends: boolean
  readonly value: unknown
}

/** Words that only this thread sees. */
export function scratch(values: number): Words {
  const buffer = new ArrayBuffer(values * VALUE_WORDS * 4)
  return { i32: new Int32Array(buffer), f64: new Float64Array(buffer) }
}

/**
 * Waits until one of several sends and receives can be done, and does it. Two waits at several channels each
 * can serve each other: the values are in the waiters, and each wait is served at exactly one channel.
 */
export class CasesWait implements Wait {
  readonly what: string
  /** Which case was served, and how. */
  index = -1
  closed = false
  value: unknown = undefined
  private readonly cases: readonly SharedCase[]
  private readonly staged: Words
  private readonly start: number

  /** `start`: which case is tried first, so that no case is always preferred. */
  constructor(what: string, cases: readonly SharedCase[], start = 0) {
    this.what = what
    this.cases = cases
    this.start = start
    this.staged = scratch(cases.length)
    let written = 0
    try {
      for (; written < cases.length; written++) {
        const { sends, pipe, value } = cases[written]
        if (sends) writeValue(this.staged, written * VALUE_WORDS, value, pipe.codec)
      }
    } catch (error) {
      this.dropUnsent(-1)
      throw error
    }
  }

  /** Does one of the cases without waiting, if one can be done. */
  attempt(context: FutexContext): boolean {
    for (let turn = 0; turn < this.cases.length; turn++) {
      const index = (this.start + turn) % this.cases.length
      const { pipe, sends } = this.cases[index]
      const at = index * VALUE_WORDS
      const outcome = sends ? pipe.send(context, this.staged, at) : pipe.receive(context, this.staged.i32, at)
      if (outcome !== PIPE_WOULD_WAIT) return this.finish(context, index, outcome)
    }
    return false
  }

  /** No case was done, and the caller does not wait. */
  giveUp(): void {
    this.dropUnsent(-1)
  }

  /**
   * Locks all channels, in the order of their ids, so that no thread sees it waiting at some of them only.
   */
  begin(context: FutexContext, waiterOptions: WaiterOptions): readonly number[] {
    const pipes = this.inOrder(context)
    for (const pipe of pipes) pipe.lock(context)
    return underLock(
      () => this.performOrQueue(context, waiterOptions),
      () => {
        for (const pipe of pipes) pipe.unlock(context)
      },
    )
  }

  /** All channels are locked. Returns the queued waiters; none: one of the cases was done. */
  private performOrQueue(context: FutexContext, waiterOptions: WaiterOptions): readonly number[] {
    for (let turn = 0; turn < this.cases.length; turn++) {
      const index = (this.start + turn) % this.cases.length
      const outcome = this.perform(context, index)
      if (outcome !== PIPE_WOULD_WAIT) {
        this.finish(context, index, outcome)
        return []
      }
    }
    return this.queueAll(context, waiterOptions)
  }

  private inOrder(context: FutexContext): SharedPipe[] {
    if (this.cases.length === 1) return [this.cases[0].pipe]
    const byId = new Map(this.cases.map(({ pipe }) => [pipe.senders.objectId(context), pipe]))
    return [...byId].sort(([a], [b]) => a - b).map(([, pipe]) => pipe)
  }

  private queueAll(context: FutexContext, waiterOptions: WaiterOptions): readonly number[] {
    const { i32 } = context
    const waiters: number[] = []
    try {
      for (let index = 0; index < this.cases.length; index++) {
        const waiter = makeWaiter(context, index + 1, waiterOptions, index === 0 ? 0 : waiters[0])
        waiters.push(waiter)
        if (index === 0) Atomics.store(i32, waiter + Waiter.claim, 0)
      }
    } catch (full) {
      freeWaiters(context, waiters)
      this.dropUnsent(-1)
      throw full
    }
    let queued = 0
    try {
      for (; queued < waiters.length; queued++) this.queueAt(context, queued, waiters[queued])
    } catch (full) {
      // The channels are locked: no thread has served the queued waiters.
      finishWait(context, waiters.slice(0, queued), -ETIMEDOUT)
      this.takeBack(context, waiters.slice(0, queued + 1))
      freeWaiters(context, waiters)
      this.dropUnsent(-1)
      throw full
    }
    return waiters
  }

  private queueAt(context: FutexContext, index: number, waiter: number): void {
    const { pipe, sends } = this.cases[index]
    const slot = waiter + Waiter.handover
    if (sends) {
      copyValue(this.staged.i32, index * VALUE_WORDS, context.i32, slot)
      publishValue(this.arena(context), slot, pipe.codec)
    } else {
      context.i32[slot] = NOTHING
    }
    pipe.addWaiter(context, sends, waiter)
  }

  /** The wait is over: this thread takes back the values that no receiver has taken. */
  takeBack(context: FutexContext, waiters: readonly number[]): void {
    this.cases.forEach(({ sends, pipe }, index) => {
      if (sends && waiters[index] !== undefined && isUnsent(context.i32, waiters[index]))
        takeValue(this.arena(context), waiters[index] + Waiter.handover, pipe.codec, context.thread)
    })
  }

  woken(context: FutexContext, waiters: readonly number[], at: number): boolean {
    const slot = waiters[at] + Waiter.handover
    this.index = at
    this.closed = context.i32[slot] === CLOSED
    const { sends, pipe } = this.cases[at]
    this.takeBack(context, waiters)
    if (!sends && !this.closed) this.value = pipe.read(context, this.arena(context), slot)
    this.dropUnsent(sends && !this.closed ? at : -1)
    return true
  }

  /** A thread claimed a waiter and died. Locking the channel finishes what that thread had begun. */
  servedByDead(context: FutexContext, waiters: readonly number[]): number {
    const { i32 } = context
    const claimed = Atomics.load(i32, waiters[0] + Waiter.claim) - 1
    if (claimed < 0) return -1
    const { pipe, sends } = this.cases[claimed]
    pipe.lock(context)
    pipe.unlock(context)
    const said = i32[waiters[claimed] + Waiter.handover]
    const served = sends ? said === TAKEN || said === CLOSED : said !== NOTHING
    return served ? claimed : -1
  }

  /** A received value is put back; a sent value stays sent. */
  leave(context: FutexContext, waiters: readonly number[], at: number): void {
    this.takeBack(context, waiters)
    if (at < 0) {
      this.dropUnsent(-1)
      return
    }
    const slot = waiters[at] + Waiter.handover
    const { sends, pipe } = this.cases[at]
    const closed = context.i32[slot] === CLOSED
    if (!sends && !closed) {
      pipe.lock(context)
      pipe.putBack(context, this.arena(context), slot)
      pipe.unlock(context)
    }
    this.dropUnsent(sends && !closed ? at : -1)
  }

  private perform(context: FutexContext, index: number): Outcome {
    const { pipe, sends } = this.cases[index]
    const at = index * VALUE_WORDS
    return sends ? pipe.put(context, this.staged, at) : pipe.take(context, this.staged.i32, at)
  }

  private finish(context: FutexContext, index: number, outcome: Outcome): true {
    const { sends, pipe } = this.cases[index]
    this.index = index
    this.closed = outcome !== PIPE_DONE
    if (!sends && !this.closed) this.value = pipe.read(context, this.staged, index * VALUE_WORDS)
    this.dropUnsent(sends && !this.closed ? index : -1)
    return true
  }

  private dropUnsent(sent: number): void {
    this.cases.forEach(({ sends, pipe }, index) => {
      if (sends && index !== sent) dropValue(this.staged, index * VALUE_WORDS, pipe.codec)
    })
  }

  private arena({ i32, arena }: FutexContext): Words {
    return { i32, f64: arena.f64 }
  }
}

function isUnsent(i32: Int32Array, waiter: number): boolean {
  const said = i32[waiter + Waiter.handover]
  return said !== TAKEN && said !== CLOSED
}
