import { assert } from '../../arena/assert.ts'
import { check, type Setup } from '../../checker/check.ts'
import { BOUNDED, CheckedThreads, DIES, each, NONE, ONE } from '../../../testing/sync/checksetup.ts'
import { DEMANDS, LockWait, type ParkingLock, takeWord, TID_MASK } from './parkinglock.ts'
import { Mutex } from './mutex.ts'

type Doing = 'locks' | 'tries' | 'waits' | 'is late' | 'is cancelled'

/**
 * Thread 0 holds the mutex from the start and unlocks it. The other threads lock it, or wait from the start;
 * each that gets it unlocks it. `mortal`: which thread may die; then each of the others gets the lock, or the
 * error for a dead holder.
 */
function handedOn(others: readonly Doing[], options: { mortal?: number; demands?: boolean } = {}): Setup {
  return () => {
    const count = others.length + 1
    const threads = new CheckedThreads(count, options.mortal !== undefined)
    const { view, tids, owners } = threads
    const mutexes = each(count, () => new Mutex({ view }))
    threads.keep(mutexes.map(({ queue }) => queue))
    assert(takeWord(mutexes[0], tids[0]), 'it is free at first')
    let inside = 0
    let died = false
    const enter = (id: number): void => {
      assert(inside === -1 || died, 'one at a time')
      inside = id
    }
    const leave = (id: number): void => {
      inside = -1

      mutexes[id].unlock()
    }
    const waitOf = (id: number): LockWait => {
      const wait = new LockWait('lock', mutexes[id].core as ParkingLock, tids[id], null)
      // As a waiter that has lost before: it is to be handed the lock.
      if (options.demands === true) Object.assign(wait, { losses: 4 })
      assert(((wait.bits() & DEMANDS) !== 0) === (options.demands === true), 'it demands the lock')
      return wait
    }
    const bodyOf = (doing: Doing, id: number): (() => unknown) => {
      if (doing === 'is cancelled') return threads.cancelled(id, waitOf(id))
      const sleeps =
        doing === 'waits' || doing === 'is late' ? threads.asleep(id, waitOf(id), doing === 'is late') : null
      return () => {
        try {
          if (sleeps !== null ? !sleeps() : doing === 'tries' && mutexes[id].tryLock() === null) return 'late'
          if (doing === 'locks') mutexes[id].lockSync()
        } catch (error) {
          assert(
            (error as { code?: string }).code === 'ERR_HEDDLE_NOT_RECOVERABLE',
            'it gets the error for a dead holder',
          )
          return 'refused'
        }
        enter(id)
        if (options.mortal === undefined) leave(id)
        return 'locked'
      }
    }
    const bodies = others.map((doing, at) => bodyOf(doing, at + 1))
    return {
      threads: [() => leave(0), ...bodies],
      ...(options.mortal !== undefined && {
        recover(dead: number) {
          died = true
          threads.recover(dead)
        },
      }),
      final({ results, crashed }) {
        // Beside a recovery no thread unlocks, because that would be too many orders to explore: it is done
        // now.
        if (options.mortal !== undefined && inside > 0) mutexes[inside].unlockAs(owners[inside])
        const holder = Atomics.load(view, 0) & TID_MASK
        const dead = crashed.length > 0 ? tids[crashed[0]] : 0
        assert(holder === 0 || holder === dead, 'no living thread holds it at the end')
        for (const [at, doing] of others.entries()) {
          if (crashed.includes(at + 1) || doing === 'is cancelled') continue
          const result = results[at + 1]
          assert(
            result === 'locked' ||
              (result === 'late' && (doing === 'tries' || doing === 'is late')) ||
              (result === 'refused' && holder !== 0),
            'the waiter had the lock, was late, or got the error for a dead holder',
          )
        }
      },
    }
  }
}

check('an unlock and a lock: one holder at a time, and both get it', {}, handedOn(['locks']))
check('an unlock as the time of the waiter is over', {}, handedOn(['is late']))
check('an unlock as the waiter is cancelled', {}, handedOn(['is cancelled']))
check('an unlock, a waiter and a tryLock', { rerun: false }, handedOn(['waits', 'tries']))
check(`an unlock, a waiter and a lock ${ONE}`, BOUNDED, handedOn(['waits', 'locks']))
check('an unlock and two waiters, the time of one is over', {}, handedOn(['is late', 'waits']))
check('an unlock and two waiters, the first is cancelled', {}, handedOn(['is cancelled', 'waits']))
check(
  'an unlock hands over, as the time of the waiter is over',
  {},
  handedOn(['is late', 'waits'], { demands: true }),
)

check('the unlocker dies at any step, and a waiter sleeps', DIES(0), handedOn(['waits'], { mortal: 0 }))
check(
  'the unlocker dies at any step as it hands the lock over',
  DIES(0),
  handedOn(['waits'], { mortal: 0, demands: true }),
)
check(
  `a locking thread dies at any step ${NONE}`,
  { ...DIES(1), ...BOUNDED, preemptions: 0 },
  handedOn(['locks'], { mortal: 1 }),
)
check(
  'one of two waiters dies at any step, woken or not, with the lock or without',
  DIES(1),
  handedOn(['waits', 'is late'], { mortal: 1 }),
)
check(
  'the unlocker dies at any step, and two waiters sleep',
  DIES(0),
  handedOn(['waits', 'is late'], { mortal: 0 }),
)
