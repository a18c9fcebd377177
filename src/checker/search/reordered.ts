/**
 * Threads may share more than memory: a variable or an object of the set-up. Such accesses are not steps, so
 * no order of them is explored:
 *
 *     thread 0                          thread 1
 *     --------                          --------
 *     store(m, 0)                       store(m, 1)         (the stores do not conflict: one order is enough)
 *     ready = true                      if (ready) …        (but here the order counts)
 *
 * So an execution runs again in another order of the same trace: backwards, so that events which are not
 * ordered by happens-before change places, or with the threads in turns. Each thread must do the same as
 * before, and the end must be the same.
 */
import type { HappensBefore } from './happensbefore.ts'
import type { Machine } from '../machine/machine.ts'
import { COMPARE_EXCHANGE } from '../machine/operations.ts'
import { pending } from '../machine/pending.ts'
import type { Setup } from '../machine/program.ts'

/**
 * The events of the execution in another order of the same trace. `backwards`: always the latest that is
 * possible next; else the threads take turns.
 */
export function reordered({ log, threads }: Machine, happens: HappensBefore, backwards: boolean): Int32Array {
  const { length } = log
  const order = new Int32Array(length)
  const events: number[][] = Array.from({ length: threads }, () => [])
  for (let at = 0; at < length; at++) events[log.thread[at]].push(at)
  const taken = new Int32Array(threads)
  let last = threads
  for (let n = 0; n < length; n++) {
    let next = -1
    for (let i = 1; i <= threads; i++) {
      const t = (last + i) % threads
      const at = events[t][taken[t]]
      if (!(at > next) || !isNext(happens.rows, at * threads, taken, t)) continue
      next = at
      if (!backwards) break
    }
    order[n] = next
    last = log.thread[next]
    taken[last]++
  }
  return order
}

/** Whether every event that happens before this one, the next of `thread`, is taken. */
function isNext(rows: Int32Array, row: number, taken: Int32Array, thread: number): boolean {
  for (let t = 0; t < taken.length; t++) if (t !== thread && rows[row + t] > taken[t]) return false
  return true
}

/**
 * Runs the events of `first` in this order on another machine. Returns the position in `first` of an event
 * that is not the same there; the length if the threads do not end as they did; -1 when all is the same.
 */
export function runReordered(first: Machine, second: Machine, order: Int32Array, setup: Setup): number {
  const { log } = first
  second.begin(setup)
  for (const at of order) {
    const thread = log.thread[at]
    const same =
      ((second.enabled >>> thread) & 1) !== 0 &&
      pending.kind[thread] === log.kind[at] &&
      pending.site[thread] === log.site[at] &&
      (log.kind[at] > COMPARE_EXCHANGE || pending.index[thread] === log.index[at])
    if (!same) return at
    second.step(thread)
    const here = second.log.length - 1
    if (second.log.flags[here] !== log.flags[at] || !Object.is(second.log.wrote[here], log.wrote[at]))
      return at
  }
  for (let t = 0; t < first.threads; t++) if (second.status[t] !== first.status[t]) return log.length
  return -1
}
