import { assert } from '../../arena/assert.ts'
import { check, type Setup } from '../../checker/check.ts'
import { CheckedThreads, DIES, each } from '../../../testing/sync/checksetup.ts'
import { RecordWait, SharedQueue } from './sharedqueue.ts'

type Doing =
  | 'pushes'
  | 'pops'
  | 'tries to push'
  | 'tries to pop'
  | 'waits to'
  | 'is late to'
  | 'is cancelled as it waits to'

const AT = 64

interface Scene {
  /** A queue of one record: full at first, or empty. The waiters push or pop accordingly. */
  readonly full: boolean
  readonly does: readonly Doing[]
  readonly mortal?: number
  /** What the recovering thread does once more for the dead one. */
  readonly owes?: boolean
}

function scene({ full, does, mortal, owes = false }: Scene): Setup {
  return () => {
    const count = does.length
    const threads = new CheckedThreads(count, mortal !== undefined)
    const { view } = threads
    view[AT + 1] = 9
    view[AT + 2] = 77
    const queues = each(count, () => new SharedQueue({ view, index: AT, capacity: 1 }))
    threads.keep(
      queues.map(queue => queue.queueOf(true)),
      queues.map(queue => queue.queueOf(false)),
    )
    if (full) queues[count].tryPush(10)
    const pushed: number[] = full ? [10] : []
    const popped: number[] = []
    const push = (id: number): boolean => {
      const done = queues[id].tryPushFrom([id])
      if (done) pushed.push(id)
      return done
    }
    const pop = (id: number): boolean => {
      const record: number[] = []
      const done = queues[id].tryPopInto(record)
      if (done) popped.push(record[0])
      return done
    }
    const bodies = does.map((doing, id) => {
      const record: number[] = full ? [id] : []
      const settle = (done: boolean): boolean => {
        if (done && full) pushed.push(id)
        if (done && !full) popped.push(record[0])
        return done
      }
      switch (doing) {
        case 'pushes':
          return () => {
            queues[id].pushSync([id])
            return pushed.push(id) > 0
          }
        case 'pops':
          return () => {
            queues[id].popSync(record)
            return popped.push(record[0]) > 0
          }
        case 'tries to push':
          return () => push(id)
        case 'tries to pop':
          return () => pop(id)
        case 'is cancelled as it waits to':
          return threads.cancelled(id, new RecordWait(queues[id], full, record))
        default: {
          const sleeps = threads.asleep(id, new RecordWait(queues[id], full, record), doing === 'is late to')
          return () => settle(sleeps())
        }
      }
    })
    return {
      threads: bodies,
      ...(mortal !== undefined && {
        recover: (dead: number) =>
          threads.recover(dead, () => void (owes && (full ? pop(count) : push(count)))),
      }),
      final({ results, crashed }) {
        while (pop(count));
        assert(new Set(popped).size === popped.length, 'no record is popped twice')
        const dead = crashed.length > 0
        for (const record of popped) assert(dead || pushed.includes(record), 'what is popped was pushed')
        const lost = pushed.filter(record => !popped.includes(record)).length
        assert(
          lost <= crashed.length,
          'each pushed record is popped or in the queue, or died with the thread that popped it',
        )
        does.forEach((doing, id) => {
          if (doing === 'waits to') assert(results[id] === true || crashed.includes(id), 'a waiter is served')
        })
      },
    }
  }
}

check('a push and a pop', {}, scene({ full: false, does: ['pushes', 'pops'] }))
check(
  'a record arrives as the time of the waiter is over',
  {},
  scene({ full: false, does: ['is late to', 'tries to push'] }),
)
check(
  'a record arrives as the waiter is cancelled',
  {},
  scene({ full: false, does: ['is cancelled as it waits to', 'tries to push'] }),
)
check(
  'a slot becomes free as the time of the waiter is over',
  {},
  scene({ full: true, does: ['is late to', 'tries to pop'] }),
)
check(
  'two threads wait for a record, and the first is cancelled',
  {},
  scene({ full: false, does: ['is cancelled as it waits to', 'waits to', 'tries to push'] }),
)
check(
  'a thread waits for a slot, and another takes it first',
  {},
  scene({ full: true, does: ['is late to', 'tries to push', 'tries to pop'] }),
)
check(
  'the pushing thread dies at any step, and another waits for the record',
  DIES(1),
  scene({ full: false, does: ['waits to', 'tries to push'], mortal: 1, owes: true }),
)
check(
  'the popping thread dies at any step, and another waits for a slot',
  DIES(1),
  scene({ full: true, does: ['waits to', 'tries to pop'], mortal: 1, owes: true }),
)
check(
  'the pushing thread dies at any step, with the lock or without, as another pops',
  DIES(0),
  scene({ full: false, does: ['tries to push', 'tries to pop'], mortal: 0 }),
)
check(
  'the pushing thread dies at any step as another pushes and a third pops',
  DIES(0),
  scene({ full: false, does: ['tries to push', 'tries to push', 'tries to pop'], mortal: 0 }),
)
