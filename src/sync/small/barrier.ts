import type { Blocking } from '../../coroutine/core/blocking.ts'
import { facesOpen, toRun } from '../../coroutine/core/faces.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { type Decision, SKIP } from '../../futex/core/decision.ts'
import { Waiter } from '../../futex/core/records.ts'
import { checkCount } from '../wait/errors.ts'
import { asPromise, inTask, type ObjectOptions, onThread, optionsOf, SyncObject } from '../wait/object.ts'
import { refuseInTask, refuseOutsideTask } from '../wait/caller.ts'
import { EXTRA, type OwnPlace, OBJECT_WORDS, type SyncHandle, HAS_WAITERS } from '../wait/objectwords.ts'
import { blockingMethods, checkWait, QueueWait, type WaitOptions } from '../wait/waiting.ts'
import { WakeCount } from '../wait/wakecount.ts'

/**
 * Where a number of parties wait for one another, again and again. Who has arrived is who is in the queue, so
 * one that gives up (timeout, abort, cancellation) has not arrived, at that very moment, and the others go on
 * waiting for one more.
 *
 * The state word counts how often all have met, in its low 31 bits.
 */
export class Barrier extends SyncObject {
  static readonly words: number = OBJECT_WORDS

  constructor(parties: number, options: ObjectOptions = {}) {
    checkCount('new Barrier(parties)', parties, 1)
    super('Barrier', Barrier.words, options)
    Atomics.store(this.i32, this.at + EXTRA, parties)
  }

  static from(handle: SyncHandle): Barrier {
    return Barrier.at(optionsOf('Barrier', handle))
  }

  /** The one that is at a place already. */
  static at(place: OwnPlace): Barrier {
    const { i32, at } = new BarrierPlace(place)
    return new Barrier(Atomics.load(i32, at + EXTRA), place)
  }

  /** How many must come. */
  get parties(): number {
    return Atomics.load(this.i32, this.at + EXTRA)
  }

  /** How often all have met. */
  get meetings(): number {
    return Atomics.load(this.i32, this.at) & ~HAS_WAITERS
  }

  /** In a task: waits for the others. True for one of them: the last to come. */
  arrive(options?: WaitOptions): Blocking<boolean> {
    if (!facesOpen()) refuseOutsideTask('arrive')
    checkWait(options)
    return toRun('arrive', this.meetInTask(options)) as Blocking<boolean>
  }

  arriveSync(options?: WaitOptions): boolean {
    refuseInTask('arrive')
    checkWait(options)
    const wait = new ArrivalWait(this)
    onThread(wait, options)
    return wait.last
  }

  async arriveAsync(options?: WaitOptions): Promise<boolean> {
    checkWait(options)
    const wait = new ArrivalWait(this)
    await asPromise(wait, options)
    return wait.last
  }

  private *meetInTask(options: WaitOptions | undefined): Generator<number, boolean, unknown> {
    const wait = new ArrivalWait(this)
    yield* inTask(wait, options)
    return wait.last
  }
}

/** Only to find the words of a place. */
class BarrierPlace extends SyncObject {
  constructor(place: OwnPlace) {
    super('Barrier', OBJECT_WORDS, place)
  }
}

class Counting implements Decision {
  count = 0

  decide(): typeof SKIP {
    this.count++
    return SKIP
  }
}

const MET = 1

/** Says to each that they meet now, if the last to come gets as far as to count it. */
class Marking implements Decision {
  decide(i32: Int32Array, waiter: number): typeof SKIP {
    i32[waiter + Waiter.value] = MET
    return SKIP
  }
}

export class ArrivalWait extends QueueWait {
  readonly what = 'arrive'
  last = false
  /** How often all had met when it came. */
  private meetings = 0
  private readonly barrier: Barrier

  constructor(barrier: Barrier) {
    super(barrier.queue)
    this.barrier = barrier
  }

  admit(context: FutexContext, waiter: number): boolean {
    const { i32, at } = this.barrier
    this.barrier.refuseDisposed(this.what)
    const arrived = new Counting()
    this.queue.walk(context, arrived)
    const meetings = Atomics.load(i32, at) & ~HAS_WAITERS
    this.last = arrived.count + 1 >= this.barrier.parties
    this.meetings = meetings
    context.i32[waiter + Waiter.value] = 0
    if (this.last) this.queue.walk(context, new Marking()) // (A)
    Atomics.store(i32, at, this.last ? (meetings + 1) & ~HAS_WAITERS : meetings | HAS_WAITERS) // (B)
    if (this.last) this.queue.walk(context, new WakeCount(Infinity)) // (C)
    return this.last
  }

  /** The last to come died between (B) and (C): those that (A) had reached have met. */
  servedByDead({ i32 }: FutexContext, [waiter]: readonly number[]): number {
    return i32[waiter + Waiter.value] === MET && this.barrier.meetings !== this.meetings ? 0 : -1
  }
}

blockingMethods(Barrier.prototype, 'arrive')
