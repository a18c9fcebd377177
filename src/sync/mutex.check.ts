import { assert } from '../arena/assert.ts'
import { check } from '../checker/check.ts'
import { checkedContexts, waitAndCancel } from './checksetup.ts'
import { Mutex } from './mutex.ts'
import type { FutexContext } from '../futex/context.ts'
import { recoverFutexes } from '../futex/recover.ts'

/** A lock, and what it guards: whoever is inside is alone. */
function guarded(threads: number): {
  view: Int32Array
  contexts: readonly FutexContext[]
  enter(id: number, timeout?: number): void
  cancel(id: number): void
} {
  const { view, contexts, tids } = checkedContexts(threads)
  const mutexes = Array.from({ length: threads }, () => new Mutex({ view }))
  let inside = 0
  const leave = (id: number): void => {
    inside++
    assert(inside === 1, 'one at a time')
    inside--
    mutexes[id].unlock()
  }
  return {
    view,
    contexts,
    enter(id, timeout) {
      if (timeout === undefined) mutexes[id].lockSync()
      else if (mutexes[id].lockIfAvailableSync(timeout) === null) return
      leave(id)
    },
    cancel(id) {
      if (waitAndCancel(mutexes[id].waitFor('lock', tids[id]))) leave(id)
    },
  }
}

const isFree = (view: Int32Array) => () =>
  assert((Atomics.load(view, 0) & 0x3fff_ffff) === 0, 'free at the end')

check('two threads lock a mutex: one at a time, and both get it', { time: 20_000 }, () => {
  const { view, enter } = guarded(2)
  return { threads: { one: () => enter(0), two: () => enter(1) }, final: isFree(view) }
})

check('one of two threads gives up when its time is over, at whatever moment', { time: 20_000 }, () => {
  const { view, enter } = guarded(2)
  return { threads: { one: () => enter(0), hasty: () => enter(1, 1) }, final: isFree(view) }
})

check(
  'one of two threads is cancelled while it waits: the lock is not lost with it',
  { time: 20_000 },
  () => {
    const { view, enter, cancel } = guarded(2)
    return { threads: { one: () => enter(0), cancelled: () => cancel(1) }, final: isFree(view) }
  },
)

check('three threads lock a mutex: one at a time, and all get it', { time: 20_000 }, () => {
  const { view, enter } = guarded(3)
  return {
    threads: { one: () => enter(0), two: () => enter(1), three: () => enter(2) },
    final: isFree(view),
  }
})

check('a cancelled waiter passes the wake on to the one behind it', { time: 20_000 }, () => {
  const { view, enter, cancel } = guarded(3)
  return {
    threads: { one: () => enter(0), cancelled: () => cancel(1), three: () => enter(2) },
    final: isFree(view),
  }
})

/**
 * The others must come to an end: with the lock, or, when the dead one died with the lock, with an error that says so.
 */
check(
  'a thread dies at whatever moment, waiting, woken or with the lock: the others get the lock or are told, once the death is recovered from',
  { explorer: 'pct', depth: 3, runs: 300, seed: 11, time: 15_000, crashes: { max: 1, threads: [1] } },
  () => {
    const { view, enter, contexts } = guarded(4)
    const orTold = (id: number) => () => {
      try {
        enter(id)
        return 'locked'
      } catch (error) {
        return (error as { code?: string }).code
      }
    }
    return {
      threads: { one: orTold(0), dies: orTold(1), three: orTold(2) },
      recover: dead => recoverFutexes(contexts[3], dead),
      final({ results, crashed }) {
        const told = results.filter(result => result === 'ERR_HEDDLE_NOT_RECOVERABLE')
        const holder = Atomics.load(view, 0) & 0x3fff_ffff
        assert(crashed.length > 0 || told.length === 0, 'nobody is told of a death that was none')
        assert(told.length === 0 || holder !== 0, 'who is told is told of a lock that is held')
        assert(told.length > 0 || holder === 0 || crashed.length > 0, 'free at the end')
      },
    }
  },
)
