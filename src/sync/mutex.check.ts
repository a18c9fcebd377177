import { assert } from '../arena/assert.ts'
import { check } from '../checker/check.ts'
import { checkedThreads, waitAndCancel } from './checksetup.ts'
import { Mutex } from './mutex.ts'

/** A lock, and what it guards: whoever is inside is alone. */
function guarded(threads: number): {
  view: Int32Array
  enter(id: number, timeout?: number): void
  cancel(id: number): void
} {
  const view = checkedThreads(threads)
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
    enter(id, timeout) {
      if (timeout === undefined) mutexes[id].lockSync()
      else if (mutexes[id].lockIfAvailableSync(timeout) === null) return
      leave(id)
    },
    cancel(id) {
      if (waitAndCancel(mutexes[id].waitFor('lock', id + 1))) leave(id)
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
