import { assert } from '../../arena/assert.ts'
import { check, type Setup } from '../../checker/check.ts'
import { CheckedThreads, DIES, each } from '../../../testing/sync/checksetup.ts'
import { OBJECT_WORDS } from '../wait/objectwords.ts'
import { PermitWait, Semaphore } from './semaphore.ts'

type Doing = 'asks' | 'waits' | 'is late' | 'is cancelled'

interface Scene {
  /** How many permits there are at first. */
  readonly permits?: number
  /** What each thread does, in the order of arrival, and how many permits it wants. */
  readonly wants: readonly [Doing, number][]
  /** How many permits the last thread releases. */
  readonly gives: number
  /**
   * Which thread may die. If it is the releasing thread, the recovering thread releases as many: no waiter
   * waits for permits that died with a thread.
   */
  readonly mortal?: number
}

function scene({ permits = 0, wants, gives, mortal }: Scene): Setup {
  return () => {
    const count = wants.length + 1
    const owes = mortal === count - 1
    const threads = new CheckedThreads(count, mortal !== undefined)
    const { view } = threads
    // One object is here, and what follows it is its own.
    view.fill(0, OBJECT_WORDS, Semaphore.words)
    const made = each(count, () => Semaphore.at({ view }))
    threads.keep(made.map(({ queue }) => queue))
    Atomics.store(view, 0, permits)
    const bodies = wants.map(([doing, wanted], id) => {
      const wait = new PermitWait(made[id], wanted)
      if (doing === 'is cancelled') return threads.cancelled(id, wait)
      if (doing !== 'asks') return threads.asleep(id, wait, doing === 'is late')
      return () => made[id].acquireSync(wanted) !== null
    })
    return {
      threads: [...bodies, () => made[count - 1].release(gives)],
      ...(mortal !== undefined && {
        recover: (dead: number) => threads.recover(dead, owes ? () => made[count].release(gives) : undefined),
      }),
      final({ results, crashed }) {
        const taken = wants.map(([, wanted], id) => (results[id] === true ? wanted : 0))
        const out = taken.reduce((sum, each) => sum + each, 0)
        const left = made[count].available
        const dead = crashed.length > 0
        assert(out + left <= permits + gives * (dead && owes ? 2 : 1), 'no permit comes from nowhere')
        if (!dead) assert(out + left === permits + gives, 'and none is lost')
        for (const [id, [doing]] of wants.entries()) {
          if (doing === 'asks' || doing === 'waits') {
            assert(crashed.includes(id) || results[id] === true, 'a waiter is served')
          }
        }
      },
    }
  }
}

check('a release as another thread acquires', {}, scene({ wants: [['asks', 1]], gives: 1 }))
check('a release as the time of the waiter is over', {}, scene({ wants: [['is late', 1]], gives: 1 }))
check('a release as the waiter is cancelled', {}, scene({ wants: [['is cancelled', 1]], gives: 1 }))
check(
  'the first waiter wants more permits than there are: the next is served when its time is over',
  {},
  scene({
    wants: [
      ['is late', 2],
      ['waits', 1],
    ],
    gives: 1,
  }),
)
check(
  'the first waiter wants more permits than there are: the next is served when it is cancelled',
  {},
  scene({
    wants: [
      ['is cancelled', 2],
      ['waits', 1],
    ],
    gives: 1,
  }),
)
check(
  'a large request and a small one behind it',
  {},
  scene({
    wants: [
      ['waits', 2],
      ['waits', 1],
    ],
    gives: 3,
  }),
)
check(
  'a thread waits, another acquires, and there are permits for both',
  {},
  scene({
    wants: [
      ['waits', 2],
      ['asks', 1],
    ],
    gives: 3,
  }),
)

check(
  'the releasing thread dies at any step: each permit is granted once',
  DIES(1),
  scene({ permits: 1, wants: [['waits', 2]], gives: 1, mortal: 1 }),
)
check(
  'the thread that releases to two waiters dies at any step',
  DIES(2),
  scene({
    wants: [
      ['waits', 1],
      ['waits', 1],
    ],
    gives: 2,
    mortal: 2,
  }),
)
check(
  'the first waiter dies at any step, with its permits or without',
  DIES(0),
  scene({
    wants: [
      ['waits', 1],
      ['waits', 1],
    ],
    gives: 2,
    mortal: 0,
  }),
)
