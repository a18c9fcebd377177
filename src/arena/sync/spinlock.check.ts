import { check } from '../../checker/check.ts'
import { Arena, ArenaPlan } from '../memory/arena.ts'
import { assert } from '../assert.ts'
import { lockRank } from './lockorder.ts'
import {
  acquire,
  breakLock,
  initLock,
  Lock,
  nudgeContended,
  release,
  rescueBehind,
  tryAcquire,
} from './spinlock.ts'
import { KernelThread } from './thread.ts'

/** A lock, a word that names the thread inside, and a counter that only the lock guards. */
function lockedMemory(threads: number, spins: number) {
  const plan = new ArenaPlan()
  const lock = plan.reserve('lock', Lock.words).start
  const inside = plan.reserve('inside', 1).start
  const counter = plan.reserve('counter', 1).start
  const arena = Arena.create(plan)
  const { i32 } = arena
  initLock(i32, lock, lockRank('unranked'))
  const kernel = Array.from({ length: threads }, (_, id) => new KernelThread(arena, id, true, spins))
  const enter = (id: number): void => {
    acquire(kernel[id], lock)
    assert(i32[inside] === 0, 'no other thread is inside, dead or alive')
    i32[inside] = 1
    i32[counter]++
    i32[inside] = 0
    release(kernel[id], lock)
  }
  /** What recovery does for a dead thread, by the last of the threads. */
  const recover = (dead: number): void => {
    const recovery = kernel[threads - 1]
    nudgeContended(i32, dead)
    if (!breakLock(recovery, lock, dead)) return
    i32[inside] = 0
    release(recovery, lock)
  }
  /** So many survivors have been inside, and the lock is free. */
  const allWereInside = (survivors: number): void => {
    assert(i32[counter] >= survivors, 'every survivor was inside')
    assert((i32[lock + Lock.word] & 0xff) === 0, 'no thread holds the lock')
  }
  return { i32, lock, inside, counter, kernel, enter, recover, allWereInside }
}

for (const spins of [0, 1]) {
  const threads = spins === 0 ? 3 : 2
  check(`the spin lock excludes and loses no wakeup, ${threads} threads, ${spins} spins`, {}, () => {
    const { i32, lock, counter, kernel, enter } = lockedMemory(threads, spins)
    return {
      threads: kernel.map(
        ({ id }) =>
          () =>
            enter(id),
      ),
      final: () => {
        assert(i32[counter] === threads, 'every thread was inside once')
        assert(i32[lock + Lock.word] === 0, 'the lock is free again')
      },
    }
  })
}

check('a try for the spin lock never waits and never lets two in', {}, () => {
  const { i32, lock, inside, kernel } = lockedMemory(3, 0)
  const attempt = (id: number): boolean => {
    if (!tryAcquire(kernel[id], lock)) return false
    assert(i32[inside] === 0, 'no other thread is inside')
    i32[inside] = 1
    i32[inside] = 0
    release(kernel[id], lock)
    return true
  }
  return {
    threads: [() => attempt(0), () => attempt(1), () => attempt(2)],
    final: ({ results }) => assert(results.includes(true), 'someone got the lock'),
  }
})

check(
  'a spin lock whose owner dies at any step is broken, repaired and goes on',
  { crashes: { max: 1, threads: [0] } },
  () => {
    const { enter, recover, allWereInside } = lockedMemory(3, 0)
    return {
      threads: { mortal: () => enter(0), survivor: () => enter(1) },
      recover,
      final: ({ crashed }) => allWereInside(2 - crashed.length),
    }
  },
)

check(
  'a waiter that dies after its wakeup leaves no thread asleep at a free spin lock',
  { crashes: { max: 1, threads: [0] } },
  () => {
    const { enter, recover, allWereInside } = lockedMemory(4, 0)
    return {
      threads: { mortal: () => enter(0), holder: () => enter(1), survivor: () => enter(2) },
      recover,
      final: ({ crashed }) => allWereInside(3 - crashed.length),
    }
  },
)

check(
  'a thread that sees deaths waits for a thread that waits for a dead one, and breaks that lock',
  { crashes: { max: 1, threads: [2] } },
  () => {
    const plan = new ArenaPlan()
    const [outer, inner] = ['outer', 'inner'].map(name => plan.reserve(name, Lock.words).start)
    const gone = plan.reserve('gone', 1).start
    const done = plan.reserve('done', 1).start
    const arena = Arena.create(plan)
    const { i32 } = arena
    for (const lock of [outer, inner]) initLock(i32, lock, lockRank('unranked'))
    const kernel = Array.from({ length: 4 }, (_, id) => new KernelThread(arena, id, true, 0))
    const [sees, between, mortal, later] = kernel
    const isGone = (id: number): boolean => Atomics.load(i32, gone) === id
    const mend = (by: KernelThread, dead: number, lock: number): void => {
      if (breakLock(by, lock, dead)) release(by, lock)
    }
    sees.rescuer = {
      repairDead(owner, lock) {
        rescueBehind(i32, owner, lock, isGone, (dead, behind) => mend(sees, dead, behind))
        return false
      },
    }
    return {
      threads: {
        sees() {
          acquire(sees, outer)
          release(sees, outer)
          Atomics.store(i32, done, 1)
          Atomics.notify(i32, done)
        },
        between() {
          acquire(between, outer)
          acquire(between, inner)
          release(between, inner)
          release(between, outer)
        },
        mortal() {
          acquire(mortal, inner)
          release(mortal, inner)
        },
      },
      // The death is reported when `sees` is back in its event loop.
      recover(dead: number) {
        Atomics.store(i32, gone, dead)
        Atomics.wait(i32, done, 0)
        nudgeContended(i32, dead)
        mend(later, dead, inner)
      },
      final: () => assert((i32[outer] & 0xff) === 0 && (i32[inner] & 0xff) === 0, 'no thread holds a lock'),
    }
  },
)

check(
  'a thread that may not block sees the death of the holder, and breaks its lock',
  { crashes: { max: 1, threads: [1] } },
  () => {
    const plan = new ArenaPlan()
    const lock = plan.reserve('lock', Lock.words).start
    const gone = plan.reserve('gone', 1).start
    const done = plan.reserve('done', 1).start
    const inside = plan.reserve('inside', 1).start
    const arena = Arena.create(plan)
    const { i32 } = arena
    initLock(i32, lock, lockRank('unranked'))
    const page = new KernelThread(arena, 0, false, 0)
    const mortal = new KernelThread(arena, 1, true, 0)
    const later = new KernelThread(arena, 2, true, 0)
    const mend = (by: KernelThread, dead: number): void => {
      if (breakLock(by, lock, dead)) release(by, lock)
    }
    page.rescuer = {
      repairDead(owner) {
        if (Atomics.load(i32, gone) === owner) mend(page, owner)
        return false
      },
    }
    return {
      threads: {
        page() {
          acquire(page, lock)
          assert(i32[inside]++ === 0, 'alone')
          i32[inside]--
          release(page, lock)
          Atomics.store(i32, done, 1)
          Atomics.notify(i32, done)
        },
        mortal() {
          acquire(mortal, lock)
          release(mortal, lock)
        },
      },
      // The death watcher: the death is written, and reported only when the page is back in its event loop.
      recover(dead: number) {
        Atomics.store(i32, gone, dead)
        Atomics.wait(i32, done, 0)
        mend(later, dead)
      },
      final: () => assert((i32[lock] & 0xff) === 0, 'no thread holds the lock'),
    }
  },
)
