import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { KernelThread } from '../../arena/sync/thread.ts'
import { EBUSY, EDEADLK, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, EPERM, ETIMEDOUT } from '../core/errno.ts'
import { Futexes } from '../core/futexes.ts'
import { initializeFutexes, reserveFutexes } from '../core/layout.ts'
import { type MutexKind, PI, PLAIN, ROBUST, ROBUST_PI, tryLockWord, unlockWord, WordMutex } from './mutex.ts'
import { FUTEX_WAITERS } from '../core/owner.ts'

const kinds: [name: string, kind: MutexKind][] = [
  ['plain', PLAIN],
  ['robust', ROBUST],
  ['pi', PI],
  ['robust and pi', ROBUST_PI],
]

function futexes(): { fx: Futexes; view: Int32Array<SharedArrayBuffer> } {
  const plan = new ArenaPlan()
  const layout = reserveFutexes(plan, { waiters: 64, buckets: 4, mappings: 8, spaces: 4 })
  const arena = Arena.create(plan, { debug: true })
  initializeFutexes(arena, layout)
  const fx = new Futexes(new KernelThread(arena, 64), layout, { now: () => performance.now() })
  const view = new Int32Array(new SharedArrayBuffer(1024))
  fx.map(view.buffer)
  return { fx, view }
}

for (const [name, kind] of kinds) {
  test(`a ${name} mutex: free is 0, held is the TID of its owner`, () => {
    const { fx, view } = futexes()
    const mutex = new WordMutex(fx, fx.word(view, 8), kind)
    const { self } = fx
    expect(mutex.tryLock(self)).toBe(0)
    expect(view[8]).toBe(self.tid)
    expect(mutex.tryLock(fx.makeOwner())).toBe(-EBUSY)
    expect(mutex.unlock(fx.makeOwner())).toBe(-EPERM)
    expect(mutex.unlock(self)).toBe(0)
    expect(view[8]).toBe(0)
    expect(mutex.unlock(self)).toBe(-EPERM)
    expect(mutex.lockSync(self)).toBe(0)
    expect(mutex.lockSync(self)).toBe(-EDEADLK)
    expect(mutex.unlock(self)).toBe(0)
  })

  test(`a ${name} mutex: the waiters get it one by one, and a timeout returns ETIMEDOUT`, async () => {
    const { fx, view } = futexes()
    const mutex = new WordMutex(fx, fx.word(view, 8), kind)
    expect(mutex.lockSync(fx.self)).toBe(0)
    expect(await mutex.lockAsync(fx.makeOwner(), 1)).toBe(-ETIMEDOUT)
    const order: number[] = []
    const flows = Array.from({ length: 5 }, async (_, id) => {
      const owner = fx.makeOwner()
      expect(await mutex.lockAsync(owner)).toBe(0)
      order.push(id)
      await Promise.resolve()
      expect(mutex.unlock(owner)).toBe(0)
      fx.closeOwner(owner)
    })
    await new Promise(resolve => setImmediate(resolve))
    expect(mutex.unlock(fx.self)).toBe(0)
    await Promise.all(flows)
    expect(order).toEqual([0, 1, 2, 3, 4])
    expect(fx.context.layout.waiters.count(fx.context.i32)).toBe(0)
    expect(mutex.tryLock(fx.self)).toBe(0)
  })

  test(`a ${name} mutex: an abort ends the wait with its reason, and leaves nothing behind`, async () => {
    const { fx, view } = futexes()
    const mutex = new WordMutex(fx, fx.word(view, 8), kind)
    mutex.lockSync(fx.self)
    const abort = new AbortController()
    const owner = fx.makeOwner()
    const waiting = mutex.lockAsync(owner, Infinity, abort.signal)
    abort.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    const other = mutex.lockAsync(owner)
    expect(mutex.unlock(fx.self)).toBe(0)
    expect(await other).toBe(0)
    expect(fx.context.layout.waiters.count(fx.context.i32)).toBe(0)
  })
}

for (const [name, kind] of kinds.filter(([, each]) => (each & ROBUST) !== 0)) {
  test(`a ${name} mutex whose owner ends: EOWNERDEAD, then consistent again, or not recoverable`, async () => {
    const { fx, view } = futexes()
    const mutex = new WordMutex(fx, fx.word(view, 8), kind)
    const first = fx.makeOwner()
    expect(mutex.lockSync(first)).toBe(0)
    const second = fx.makeOwner()
    const third = fx.makeOwner()
    const waiting = mutex.lockAsync(second)
    const waitingToo = mutex.lockAsync(third)
    expect(mutex.makeConsistent(first)).toBe(-EINVAL)
    fx.closeOwner(first)
    expect(await waiting).toBe(-EOWNERDEAD)
    expect(mutex.makeConsistent(third)).toBe(-EINVAL)
    expect(mutex.makeConsistent(second)).toBe(0)
    expect(mutex.makeConsistent(second)).toBe(-EINVAL)
    expect(mutex.unlock(second)).toBe(0)
    expect(await waitingToo).toBe(0)
    fx.closeOwner(third)
    expect(mutex.tryLock(second)).toBe(-EOWNERDEAD)
    const fourth = fx.makeOwner()
    const refused = mutex.lockAsync(fourth)
    expect(mutex.unlock(second)).toBe(0)
    expect(await refused).toBe(-ENOTRECOVERABLE)
    expect(mutex.tryLock(fourth)).toBe(-ENOTRECOVERABLE)
    expect(mutex.lockSync(fx.self)).toBe(-ENOTRECOVERABLE)
    expect(view[8] & ~FUTEX_WAITERS).toBe(0)
  })

  test(`${name} mutexes in two buffers are on one list, and unlock in any order`, () => {
    const { fx, view } = futexes()
    const other = new Int32Array(new SharedArrayBuffer(256))
    fx.map(other.buffer)
    const owner = fx.makeOwner()
    const mutexes = [view, other, view, other, view].map(
      (words, at) => new WordMutex(fx, fx.word(words, 8 * at), kind),
    )
    for (const mutex of mutexes) expect(mutex.tryLock(owner)).toBe(0)
    for (const at of [2, 0, 4]) expect(mutexes[at].unlock(owner)).toBe(0)
    expect(mutexes[2].tryLock(owner)).toBe(0)
    fx.closeOwner(owner)
    const next = fx.makeOwner()
    expect(mutexes.map(mutex => mutex.tryLock(next))).toEqual([0, -EOWNERDEAD, -EOWNERDEAD, -EOWNERDEAD, 0])
  })
}

test('the bare fast path is one compare-exchange each way', () => {
  const words = new Int32Array(new SharedArrayBuffer(8))
  expect(tryLockWord(words, 1, 7)).toBe(true)
  expect(tryLockWord(words, 1, 8)).toBe(false)
  expect(unlockWord(words, 1, 8)).toBe(false)
  expect(unlockWord(words, 1, 7)).toBe(true)
  expect(words[1]).toBe(0)
})

test('a robust mutex needs its words to fit, from an even one on', () => {
  const { fx, view } = futexes()
  expect(() => new WordMutex(fx, fx.word(view, 9), ROBUST)).toThrow(/from an even one on; word 9 of 256/)
  expect(() => new WordMutex(fx, fx.word(view, 252), ROBUST_PI)).toThrow(/takes 6 words/)
})
