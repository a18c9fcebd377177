import { assert } from '../../arena/assert.ts'
import { check, type Setup } from '../../checker/check.ts'
import { BOUNDED, CheckedThreads, DIES, each, ONE } from '../../../testing/sync/checksetup.ts'
import { Condition } from './condition.ts'
import { takeWord, TID_MASK } from '../mutex/parkinglock.ts'
import { Mutex } from '../mutex/mutex.ts'
import type { Steps } from '../../../testing/sync/notifyprograms.ts'

type Doing = 'comes' | 'waits' | 'is late' | 'is cancelled'

const READY = 100

interface Scene {
  readonly waiters: readonly Doing[]
  /** How many the last thread notifies, and whether it holds the mutex as it does. */
  readonly notifies: number
  readonly holds?: boolean
  readonly mortal?: number
}

function scene({ waiters, notifies, holds = false, mortal }: Scene): Setup {
  return () => {
    const count = waiters.length + 1
    const threads = new CheckedThreads(count, mortal !== undefined)
    const { view, tids, owners } = threads
    const mutexes = each(count, () => new Mutex({ view }))
    const conditions = each(count, () => new Condition({ view, index: 4 }))
    const steps = conditions.map(condition => condition as unknown as Steps)
    threads.keep(
      mutexes.map(({ queue }) => queue),
      steps.map(({ waiting }) => waiting),
      steps.map(({ notified }) => notified),
    )
    // Each thread knows the mutex, as one that has waited with it before does.
    conditions.forEach((condition, id) => Object.assign(condition, { mutex: mutexes[id] }))
    let inside = -1
    const hold = (id: number): void => {
      assert(inside === -1 && mutexes[id].isHeldBy(tids[id]), 'a wait ends with the mutex held')
      inside = id
    }
    const letGo = (id: number): void => {
      inside = -1
      mutexes[id].unlockAs(owners[id])
    }
    const bodies = waiters.map((doing, id) => {
      if (doing === 'comes') {
        return () => {
          const token = mutexes[id].lockSync()
          while (Atomics.load(view, READY) === 0) conditions[id].waitSync(token)
          hold(id)
          letGo(id)
          return true
        }
      }
      assert(takeWord(mutexes[id], tids[id]), 'the mutex is free')
      const held = { mutex: mutexes[id], owner: owners[id], depth: 0 }
      const wait = steps[id].begin(held)
      const goOn = (): void => {
        mutexes[id].reacquireSync(owners[id])
        steps[id].ended(held)
        hold(id)
        letGo(id)
      }
      if (doing === 'is cancelled') {
        const cancelled = threads.cancelled(id, wait)
        return () => {
          cancelled()
          wait.passOn()
          goOn()
        }
      }
      const sleeps = threads.asleep(id, wait, doing === 'is late', { after: goOn })
      return () => sleeps() || wait.notified
    })
    const last = count - 1
    if (holds) assert(takeWord(mutexes[last], tids[last]), 'the mutex is free')
    return {
      threads: [
        ...bodies,
        () => {
          if (waiters.includes('comes')) {
            const token = mutexes[last].lockSync()
            Atomics.store(view, READY, 1)
            token.unlock()
          }
          const told = conditions[last].notify(notifies)
          if (holds) mutexes[last].unlockAs(owners[last])
          return told
        },
      ],
      ...(mortal !== undefined && { recover: (dead: number) => threads.recover(dead) }),
      final({ results, crashed }) {
        const holder = Atomics.load(view, 0) & TID_MASK
        assert(
          holder === 0 || (crashed.length > 0 && holder === tids[crashed[0]]),
          'the mutex is free at the end',
        )
        const told = results.slice(0, -1).filter(result => result === true).length
        const asleep = waiters.filter(doing => doing !== 'comes').length
        if (crashed.length === 0 && asleep === waiters.length && !waiters.includes('is cancelled')) {
          assert(told === results[last], 'as many were told as the notifier says')
        }
      },
    }
  }
}

check(
  'a condition that is notified between the unlock and the sleep is not missed',
  {},
  scene({ waiters: ['comes'], notifies: Infinity }),
)
check(
  'a notify as the time of the waiter is over: the waiter is notified, or not counted',
  {},
  scene({ waiters: ['is late'], notifies: 1 }),
)
check('a notify as the waiter is cancelled', {}, scene({ waiters: ['is cancelled'], notifies: 1 }))
check('a notify while the mutex is held', {}, scene({ waiters: ['waits'], notifies: 1, holds: true }))
check(
  'a notify while the mutex is held, as the time of the waiter is over: it is moved, or has left',
  {},
  scene({ waiters: ['is late'], notifies: 1, holds: true }),
)
check(
  'a notify of two waiters: one after the other has the mutex',
  { rerun: false },
  scene({ waiters: ['waits', 'waits'], notifies: Infinity }),
)
check(
  `a notify of two waiters by the holder of the mutex: both move to its queue ${ONE}`,
  BOUNDED,
  scene({ waiters: ['waits', 'is late'], notifies: Infinity, holds: true }),
)
check(
  `the notified waiter is cancelled: another is notified ${ONE}`,
  BOUNDED,
  scene({ waiters: ['is cancelled', 'waits'], notifies: 1 }),
)
check(
  'the notifier dies at any step: the waiter checks again',
  DIES(1),
  scene({ waiters: ['waits'], notifies: 1, mortal: 1 }),
)
check(
  'the notifier of two waiters dies at any step',
  DIES(2),
  scene({ waiters: ['waits', 'waits'], notifies: Infinity, mortal: 2 }),
)
