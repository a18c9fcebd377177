import { ListNode } from '../../arena/trees/list.ts'
import { breakLock, nudgeLock, release } from '../../arena/sync/spinlock.ts'
import { Entity } from '../core/entity.ts'
import { endIfLast, tellCpus } from './eject.ts'
import {
  DispatchQueue,
  EJECTED,
  ExtRecord,
  ExtRq,
  isStateOf,
  LOADING,
  NONE,
  ownState,
  stateIn,
} from './extlayout.ts'
import { EXT_MAJOR_PRIORITY } from '../core/priority.ts'
import { classRq } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'

/**
 * Repairs the ext class after the death of a thread. Dispatch queues first: a queue is rebuilt from
 * `extQueue` of the entities, which changes under the queue's lock alone. Then the run queues (rebuild.ts):
 * their entities leave the dispatch queues and are passed to the policy again (`reset` in ext.ts).
 */
export function repairExt(s: Scheduler, dead: number): void {
  const { i32, ext, thread } = s
  for (let number = 0; number < ext.plan.queueCount; number++) {
    const queue = ext.queueAt(number)
    const lock = queue + DispatchQueue.lock
    if (!breakLock(thread, lock, dead)) {
      nudgeLock(i32, lock)
      continue
    }
    rebuildDispatchQueue(s, queue)
    release(thread, lock)
  }
  const { record } = ext
  if (dead < s.cpus) {
    i32[classRq(s.queueOf(dead), EXT_MAJOR_PRIORITY) + ExtRq.asks] = 0
    Atomics.and(i32, record + ExtRecord.enabled + (dead >> 5), ~(1 << (dead & 31)))
  }
  const word = Atomics.load(i32, record + ExtRecord.state)
  if (isStateOf(word, dead)) endState(s, word)
  endIfLast(s)
}

/**
 * The dead thread was loading, reporting or draining: afterwards no policy is loaded, or another thread
 * drains. Several threads may find that: the first takes over the state, so that the others do not clear the
 * data of a policy that is loaded later.
 */
function endState(s: Scheduler, word: number): void {
  const { i32, thread } = s
  const { record } = s.ext
  const at = record + ExtRecord.state
  const state = stateIn(word)
  if (Atomics.compareExchange(i32, at, word, ownState(state, thread)) !== word) return
  Atomics.store(i32, record + ExtRecord.takes, 0)
  Atomics.store(i32, at, state === LOADING ? NONE : EJECTED)
  tellCpus(s)
}

function rebuildDispatchQueue(s: Scheduler, queue: number): void {
  const { i32, f64, ext, entities } = s
  const found: number[] = []
  for (let se = entities.after(i32, 0); se !== 0; se = entities.after(i32, se)) {
    if (i32[se + Entity.extQueue] === queue) found.push(se)
  }
  found.sort((a, b) => f64[(a + Entity.execStart) >> 1] - f64[(b + Entity.execStart) >> 1])
  ext.queues.reset(queue)
  for (const se of found) {
    for (let field = 0; field < ListNode.words; field++) i32[se + Entity.links + field] = 0
    ext.queues.insert(queue, se, false)
  }
}
