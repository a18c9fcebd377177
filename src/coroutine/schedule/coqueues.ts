import { assert } from '../../arena/assert.ts'
import { timeoutError } from '../core/blocking.ts'
import type { Co } from './co.ts'
import { exitedError } from '../core/refusal.ts'
import { ReadyQueue } from './readyqueue.ts'
import type { Waker } from '../../thread/runner.ts'
import { TIMED_OUT } from '../core/runner.ts'
import { SleepQueue, Timer } from './sleepqueue.ts'
import type { Switch } from '../core/switch.ts'

const noWaker: Waker = { wake: () => {}, fail: () => {} }

/**
 * The queues of a schedule, and the moves between them. A coroutine that has not ended is in exactly one of:
 * the ready queue; running, or preempted since; waiting, perhaps with a deadline in the sleep queue. All of
 * this runs on the schedule's thread, between coroutines or called by one. The moves are those of co.ts.
 */
export class CoQueues {
  /** Every coroutine that has not ended, by id. */
  readonly all: Map<number, Co<any>> = new Map()
  readonly ready: ReadyQueue<Co<any>> = new ReadyQueue()
  readonly sleepers: SleepQueue<Co<any>> = new SleepQueue()
  /** No coroutine may begin to wait any more. */
  isClosed = false
  readonly #switch: Switch
  readonly #onReady: () => void

  /** `onReady` is called for each coroutine that becomes ready. */
  constructor(switching: Switch, onReady: () => void) {
    this.#switch = switching
    this.#onReady = onReady
  }

  makeReady(co: Co<any>): void {
    if (co.state !== 'INITED') co.state = 'READY'
    this.ready.add(co)
    this.#preemptFor(co)
    this.#onReady()
  }

  setPriority(co: Co<any>, level: number): void {
    if (!co.isQueued) {
      co.priority = level
      return
    }
    this.ready.remove(co)
    co.priority = level
    this.ready.add(co)
    this.#preemptFor(co)
  }

  /**
   * The design's `checkNextCo`: makes ready the preempted coroutine and the sleepers that are due, then takes
   * the first ready one.
   */
  checkNextCo(now: number): Co<any> | null {
    const preempted = this.#switch.takePreempted()
    if (preempted !== null) this.makeReady(preempted)
    for (let timer = this.sleepers.expire(now); timer; timer = this.sleepers.expire(now)) {
      const co = timer.owner
      if (timer === co.limit) {
        this.cancel(co, timeoutError(`run of ${co.name}`, co.limitMs))
      } else {
        co.sent = TIMED_OUT
        this.wake(co)
      }
    }
    return this.ready.take()
  }

  /** The running coroutine begins to wait, for `ms` at most. See `Runner.park`. */
  park(ms: number): Waker {
    const co = this.#switch.runningCo
    assert(co !== null, 'a coroutine that parks is running')
    if (this.isClosed) throw exitedError('wait')
    assert(co.state === 'RUNNING' && this.#switch.preempted === null, 'a coroutine that parks is running')
    co.state = 'SUSPEND'
    const wait = ++co.waits
    if (co.raising) {
      // Cancelled while it ran: the error is thrown where it would have waited.
      this.wake(co)
      return noWaker
    }
    if (ms !== Infinity) {
      co.sleeping ??= new Timer(co)
      this.sleepers.add(co.sleeping, this.#switch.now() + ms)
    }
    return {
      wake: value => {
        if (co.waits !== wait || co.state !== 'SUSPEND') return
        co.sent = value
        this.wake(co)
      },
      fail: error => {
        if (co.waits === wait && co.state === 'SUSPEND') this.raise(co, error)
      },
    }
  }

  /** The running coroutine does not wait. */
  unpark(): void {
    const co = this.#switch.runningCo
    assert(co !== null && (co.state === 'SUSPEND' || co.state === 'READY'), 'only a parked coroutine unparks')
    co.waits++
    if (co.isQueued) this.ready.remove(co)
    if (co.sleeping?.isQueued) this.sleepers.remove(co.sleeping)
    co.state = 'RUNNING'
    if (co.raising && co.sent === co.cancelledWith) return
    co.raising = false
    co.sent = undefined
  }

  /** Ends the wait of a coroutine. */
  wake(co: Co<any>): void {
    assert(co.state === 'SUSPEND' || co.state === 'INITED', 'only a coroutine that waits is woken')
    co.waits++
    if (co.sleeping?.isQueued) this.sleepers.remove(co.sleeping)
    this.makeReady(co)
  }

  /** The coroutine continues with this error next; its wait ends. */
  raise(co: Co<any>, error: unknown): void {
    co.sent = error
    co.raising = true
    if (co.state === 'SUSPEND' || (co.state === 'INITED' && !co.isQueued)) this.wake(co)
  }

  /** The same from outside, for a reason that is not the coroutine's own. */
  cancel(co: Co<any>, reason: unknown): void {
    co.cancelledWith = reason
    this.raise(co, reason)
  }

  /** Removes a coroutine that has ended, or that will not run any more. */
  remove(co: Co<any>): void {
    if (co.isQueued) this.ready.remove(co)
    if (co.sleeping?.isQueued) this.sleepers.remove(co.sleeping)
    if (co.limit?.isQueued) this.sleepers.remove(co.limit)
    co.state = 'STOP'
    if (this.#switch.preempted === co) this.#switch.preempted = null
    this.all.delete(co.id)
  }

  /** A coroutine that outranks the running one need not wait for the end of the slice. */
  #preemptFor(co: Co<any>): void {
    const running = this.#switch.runningCo
    if (running === null || running === co || co.priority >= running.priority) return
    this.#switch.preemptWanted = true
    this.#switch.slices.ask()
  }
}
