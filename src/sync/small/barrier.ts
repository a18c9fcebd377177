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
 * A number of parties wait for one another, repeatedly. The parties that have arrived are those in the queue.
 * So a party that gives up (timeout, abort, cancellation) no longer counts as arrived, and the others wait
 * for one more.
 *
 * The state word counts the meetings in its low 31 bits.
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

  /** The one that is in this memory already. */
  static at(place: OwnPlace): Barrier {
    const { i32, at } = new BarrierPlace(place)
    return new Barrier(Atomics.load(i32, at + EXTRA), place)
  }

  /** What `console.log` and JSON show of it. */
  override toJSON(): { readonly name?: string; readonly parties: number; readonly meetings: number } {
    return { ...super.toJSON(), parties: this.parties, meetings: this.meetings }
  }

  /** How many must arrive. */
  get parties(): number {
    return Atomics.load(this.i32, this.at + EXTRA)
  }

  /** How often all parties have met. */
  get meetings(): number {
    return Atomics.load(this.i32, this.at) & ~HAS_WAITERS
  }

  /** In a task: waits for the others. True for one party: the last to arrive. */
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

/** Only to find the words in the memory of the caller. */
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

/** Marks each waiter: the parties have met if the last one counts the meeting. */
class Marking implements Decision {
  decide(i32: Int32Array, waiter: number): typeof SKIP {
    i32[waiter + Waiter.handover] = MET
    return SKIP
  }
}

export class ArrivalWait extends QueueWait {
  readonly what = 'arrive'
  last = false
  /** How often all parties had met when it arrived. */
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
    context.i32[waiter + Waiter.handover] = 0
    if (this.last) this.queue.walk(context, new Marking()) // (A)
    Atomics.store(i32, at, this.last ? (meetings + 1) & ~HAS_WAITERS : meetings | HAS_WAITERS) // (B)
    if (this.last) this.queue.walk(context, new WakeCount(Infinity)) // (C)
    return this.last
  }

  /** The last to arrive died between (B) and (C): the waiters that (A) marked have met. */
  servedByDead({ i32 }: FutexContext, [waiter]: readonly number[]): number {
    return i32[waiter + Waiter.handover] === MET && this.barrier.meetings !== this.meetings ? 0 : -1
  }
}

blockingMethods(Barrier.prototype, 'arrive')
