import { fail } from '../../arena/assert.ts'
import type { SchedClass } from './class.ts'
import { Entity } from '../core/entity.ts'
import { ClassRq, RunQueue } from '../core/runqueue.ts'

/**
 * The idle class: one entity for each CPU, at the lowest level, which is always ready. It is picked when
 * nothing else is ready, and is on no list: it cannot sleep, end, move or be queued.
 */
export const idleClass: SchedClass = {
  name: 'idle',
  enqueueTask() {
    fail('only the idle task has idle priority, and it is never enqueued')
  },
  dequeueTask() {
    fail('the idle task cannot sleep')
  },
  selectTaskRq(s, se) {
    return s.i32[se + Entity.cpu]
  },
  pickNextTask(s, rq) {
    const { i32 } = s
    return i32[i32[rq + ClassRq.queue] + RunQueue.idle]
  },
  putPrevTask() {
    // It is on no queue.
  },
  setNextTask() {
    // As above.
  },
  taskTick() {
    // Idle has no slice.
  },
  taskFork() {
    fail('a new task cannot be an idle task')
  },
  taskDead() {
    fail('the idle task cannot end')
  },
  yieldTask() {
    // It yields to anything, always.
  },
}
