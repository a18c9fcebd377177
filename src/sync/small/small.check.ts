import { assert } from '../../arena/assert.ts'
import { check, type Setup } from '../../checker/check.ts'
import { threadWaiter } from '../../futex/core/sleep.ts'
import { ArrivalWait, Barrier } from './barrier.ts'
import { AtomicInt32, CellWait } from './cells.ts'
import { BOUNDED, CheckedThreads, DIES, each, NONE } from '../../../testing/sync/checksetup.ts'
import { Event, EventWait } from './event.ts'
import { Once, OnceWait } from './once.ts'
import { SeqLock } from './seqlock.ts'
import type { SyncObject } from '../wait/object.ts'
import { Latch, ZeroWait } from './waitgroup.ts'
import type { Wait } from '../wait/waiting.ts'

type Doing = 'comes' | 'waits' | 'is late' | 'is cancelled'

/** One kind of object: how it is made, waited for, and opened for its waiters. */
interface Kind<T extends SyncObject> {
  make(view: Int32Array<SharedArrayBuffer>): T
  wait(object: T): Wait
  come(object: T): unknown
  release(object: T): unknown
  /**
   * How many waiters may have been admitted in the end; `released`: how often it was opened.
   */
  through(object: T, released: number): (count: number) => boolean
}

/**
 * Some threads wait or come, and the last thread opens; if it may die, the recovering thread opens once more.
 */
function scene<T extends SyncObject>(kind: Kind<T>, waiters: readonly Doing[], mortal = false): Setup {
  return () => {
    const count = waiters.length + 1
    const threads = new CheckedThreads(count, mortal)
    const made = each(count, () => kind.make(threads.view))
    threads.keep(made.map(({ queue }) => queue))
    const bodies = waiters.map((doing, id) => {
      if (doing === 'comes') {
        return () => {
          kind.come(made[id])
          return true
        }
      }
      const wait = kind.wait(made[id])
      return doing === 'is cancelled'
        ? threads.cancelled(id, wait)
        : threads.asleep(id, wait, doing === 'is late')
    })
    let released = 1
    return {
      threads: [...bodies, () => kind.release(made[count - 1])],
      ...(mortal && {
        recover: (dead: number) =>
          threads.recover(dead, () => {
            released++
            kind.release(made[count])
          }),
      }),
      final({ results }) {
        const through = results.slice(0, waiters.length).filter(result => result === true).length
        assert(kind.through(made[count], released)(through), `${through} were let through`)
        waiters.forEach((doing, id) => {
          if (doing === 'comes' || doing === 'waits') assert(results[id] === true, 'a waiter is admitted')
        })
      },
    }
  }
}

const latch: Kind<Latch> = {
  make(view) {
    Atomics.store(view, 0, (Atomics.load(view, 0) & 0x8000_0000) | 1)
    return Latch.at({ view })
  },
  wait: object => new ZeroWait(object),
  come: object => object.waitSync(),
  release(object) {
    if ((Atomics.load(object.i32, object.at) & 0x3fff_ffff) > 0) object.countDown()
  },
  through: object => () => object.count === 0,
}

const manual: Kind<Event> = {
  make: view => new Event({ view }),
  wait: object => new EventWait(object),
  come: object => object.waitSync(),
  release: object => object.set(),
  through: object => () => object.isSet,
}

const automatic: Kind<Event> = {
  make: view => new Event({ view, auto: true }),
  wait: object => new EventWait(object),
  come: object => object.waitSync(),
  release: object => object.set(),
  through: (object, released) => count =>
    released === 1 ? count + (object.isSet ? 1 : 0) === 1 : count + (object.isSet ? 1 : 0) <= 2,
}

const cell: Kind<AtomicInt32> = {
  make: view => AtomicInt32.at({ view }),
  wait: object => new CellWait(object, 0),
  come: object => object.waitSync(0),
  release(object) {
    object.store(1)
    object.notify()
  },
  through: object => () => object.load() === 1,
}

for (const [name, kind] of [
  ['latch', latch],
  ['event', manual],
  ['automatic event', automatic],
  ['cell', cell],
] as [string, Kind<SyncObject>][]) {
  check(`${name}: it opens as a thread comes`, {}, scene(kind, ['comes']))
  check(`${name}: it opens as the time of a waiter is over`, {}, scene(kind, ['is late']))
  check(`${name}: it opens as a waiter is cancelled`, {}, scene(kind, ['is cancelled']))
  check(
    `${name}: a waiter is cancelled, and the time of another is over`,
    {},
    scene(kind, ['is cancelled', 'is late']),
  )
  check(`${name}: the thread that opens it dies at any step`, DIES(1), scene(kind, ['waits'], true))
}
for (const [name, kind] of [
  ['latch', latch],
  ['event', manual],
  ['cell', cell],
] as [string, Kind<SyncObject>][]) {
  check(`${name}: a thread waits, and another comes`, {}, scene(kind, ['waits', 'comes']))
  check(
    `${name}: the thread that opens it for two dies at any step`,
    DIES(2),
    scene(kind, ['waits', 'waits'], true),
  )
}
check(
  'automatic event: the first waiter is cancelled, and the next is admitted',
  {},
  scene(automatic, ['is cancelled', 'waits']),
)
check(
  `automatic event: the thread that opens it for the first of two dies at any step ${NONE}`,
  { ...DIES(2), ...BOUNDED, preemptions: 0 },
  scene(automatic, ['waits', 'is late'], true),
)

/** Thread 0 is doing it from the start, and does it, throws, or dies; the others wait, or come. */
function once(others: readonly Doing[], ends: 'done' | 'thrown' | 'dead'): Setup {
  return () => {
    const count = others.length + 1
    const threads = new CheckedThreads(count, ends === 'dead')
    const { view, tids } = threads
    const made = each(count, () => new Once({ view }))
    threads.keep(made.map(({ queue }) => queue))
    Atomics.store(view, 0, tids[0])
    let done = 0
    let died = false
    const settle = (id: number, ok: boolean): void =>
      (made[id] as unknown as { finish(ok: boolean): void }).finish(ok)
    const finish = (id: number): void => {
      done++
      settle(id, true)
    }
    // Two waiters that check again beside a recovery are too many orders to explore: they check after it, one
    // after the other.
    const over = new Int32Array(new SharedArrayBuffer(16))
    const waits = ends === 'dead' && others.length > 1
    const end = (turn: number): void => {
      Atomics.store(over, turn, 1)
      Atomics.notify(over, turn)
    }
    const bodies = others.map((doing, at) => {
      const id = at + 1
      const wait = new OnceWait(made[id], tids[id])
      if (doing === 'comes') {
        return () => {
          const mine = made[id].runSync(() => done++)
          assert(done === 1 || died, 'it is done when the call returns')
          return mine
        }
      }
      if (doing === 'is cancelled') return threads.cancelled(id, wait)
      const sleeps = threads.asleep(id, wait, doing === 'is late')
      return () => {
        if (waits) Atomics.wait(over, at, 0)
        if (!sleeps()) return 'late'
        if (wait.mine) finish(id)
        if (waits) end(id)
        assert(done === 1 || died, 'it is done when the call returns')
        return wait.mine
      }
    })
    return {
      threads: [
        () => {
          if (ends === 'thrown') settle(0, false)
          else finish(0)
          if (waits) end(0)
        },
        ...bodies,
      ],
      ...(ends === 'dead' && {
        recover(dead: number) {
          died = true
          threads.recover(dead)
          if (waits) end(0)
        },
      }),
      final({ results, crashed }) {
        const doers = results.slice(1).filter(result => result === true).length
        if (crashed.length === 0)
          assert(doers === (ends === 'thrown' ? done : 0), 'it is done by one of them')
        assert(done <= 1 || crashed.length > 0, 'and once')
        const waiting = others.some(doing => doing === 'waits' || doing === 'comes')
        assert(!waiting || made[count].done, 'a waiter sees it done')
      },
    }
  }
}

check('once: it is done as another comes', {}, once(['comes'], 'done'))
check('once: it is done as the time of another is over', {}, once(['is late'], 'done'))
check('once: it is done as another is cancelled', {}, once(['is cancelled'], 'done'))
check('once: the function throws, and another thread waits', {}, once(['waits'], 'thrown'))
check(
  'once: the function throws, and the time of the first of two waiters is over',
  {},
  once(['is late', 'waits'], 'thrown'),
)
check(
  'once: the function throws, and the first of two waiters is cancelled',
  {},
  once(['is cancelled', 'waits'], 'thrown'),
)
check(
  'once: the running thread dies at any step, and another runs its function',
  DIES(0),
  once(['waits'], 'dead'),
)
check('once: the running thread dies at any step, and two wait', DIES(0), once(['waits', 'waits'], 'dead'))

/** Threads arrive at a barrier; the last of them during the check. */
function meeting(parties: number, others: readonly Doing[], mortal = false): Setup {
  return () => {
    const count = others.length + 1
    const threads = new CheckedThreads(count, mortal)
    const mayLeave = others.includes('is late') || others.includes('is cancelled')
    const made = each(count, () => new Barrier(parties, { view: threads.view }))
    threads.keep(made.map(({ queue }) => queue))
    const arrive = (id: number) => () => {
      try {
        made[id].arriveSync(mayLeave ? { timeout: 1 } : undefined)
        return true
      } catch {
        return false
      }
    }
    const bodies = others.map((doing, id) => {
      if (doing === 'comes') return arrive(id)
      const wait = new ArrivalWait(made[id])
      return doing === 'is cancelled'
        ? threads.cancelled(id, wait)
        : threads.asleep(id, wait, doing === 'is late', { inTurn: false })
    })
    return {
      threads: [...bodies, arrive(count - 1)],
      ...(mortal && {
        recover: (dead: number) =>
          threads.recover(dead, () => {
            // For the dead thread, if it had not arrived. It is queued before the others check again.
            if ((Atomics.load(threads.view, 0) & 0x7fff_ffff) !== 0) return
            new ArrivalWait(made[count]).begin(threads.contexts[count], threadWaiter())
          }),
      }),
      final({ results, crashed }) {
        const met = results.slice(0, count).filter(result => result === true).length
        // A cancelled party may have met the others at that moment.
        const missing = made[count].meetings * parties - met
        if (crashed.length === 0)
          assert(
            missing === 0 || (missing === 1 && others.includes('is cancelled')),
            'as many as the barrier takes have met',
          )
        else assert(made[count].meetings === 1 && met === parties - 1, 'the others have met')
      },
    }
  }
}

check('barrier: two meet', {}, meeting(2, ['comes']))
check('barrier: the time of the first is over as the second comes', {}, meeting(2, ['is late']))
check('barrier: the first of three is late, and the others meet', {}, meeting(2, ['is late', 'comes']))
check('barrier: the first is cancelled as the second comes', {}, meeting(2, ['is cancelled']))
check(
  'barrier: the first of three is cancelled, and the others meet',
  {},
  meeting(2, ['is cancelled', 'comes']),
)
check('barrier: three meet', {}, meeting(3, ['waits', 'comes']))
check('barrier: the last to come dies at any step', DIES(1), meeting(2, ['waits'], true))
check(
  `barrier: the last of three to come dies at any step ${NONE}`,
  { ...DIES(2), ...BOUNDED, preemptions: 0 },
  meeting(3, ['waits', 'waits'], true),
)

/** Two words that are written together. */
function sequence(writers: number, mortal = false): Setup {
  return () => {
    const threads = new CheckedThreads(writers + 1, mortal)
    const made = each(writers + 1, () => new SeqLock({ view: threads.view, index: 64, fields: 2 }))
    const writes = Array.from({ length: writers }, (_, id) => () => made[id].write([id + 1, id + 1]))
    return {
      threads: [
        ...writes,
        () => {
          const seen = made[writers].read([0, 0] as never)
          assert(seen[0] === seen[1], 'the record is whole')
        },
      ],
      ...(mortal && { recover: (dead: number) => threads.recover(dead) }),
      final({ crashed }) {
        const seen = made[writers + 1].read()
        assert(seen[0] === seen[1], 'the record is whole')
        assert(seen[0] !== 0 || crashed.length === writers, 'and it is the one that was written')
      },
    }
  }
}

check('seqlock: a writer and a reader', {}, sequence(1))
check('seqlock: two writers and a reader', {}, sequence(2))
check('seqlock: a reader never waits for a writer that died', DIES(0), sequence(1, true))
check(
  `seqlock: a writer replaces one that died ${NONE}`,
  { ...DIES(0), ...BOUNDED, preemptions: 0 },
  sequence(2, true),
)
