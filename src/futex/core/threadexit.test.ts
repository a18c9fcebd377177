import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { KernelThread } from '../../arena/sync/thread.ts'
import { type PreparedWait, prepareWordWait } from '../operations/call.ts'
import { EOWNERDEAD, ESRCH } from './errno.ts'
import { Futexes } from './futexes.ts'
import { initializeFutexes, reserveFutexes } from './layout.ts'
import { PI, PLAIN, ROBUST_PI, WordMutex } from '../robust/mutex.ts'
import { FUTEX_TID_MASK, type LockOwner } from './owner.ts'
import { lockPi } from '../pi/pi.ts'
import { promiseWaiter } from './sleep.ts'
import { MATCH_ANY } from '../operations/waitwake.ts'

/** Two threads' worth of futexes over one arena: the second one leaves. */
function pair(): { stays: Futexes; leaves: Futexes; view: Int32Array<SharedArrayBuffer> } {
  const plan = new ArenaPlan()
  const sizes = { waiters: 16, buckets: 4, mappings: 4, spaces: 2 }
  const layout = reserveFutexes(plan, sizes)
  const arena = Arena.create(plan, { debug: true })
  initializeFutexes(arena, layout)
  const now = (): number => performance.now()
  const stays = new Futexes(new KernelThread(arena, 64), layout, { now })
  const view = new Int32Array(new SharedArrayBuffer(256))
  const mapped = stays.map(view.buffer)
  const leaves = new Futexes(new KernelThread(arena, 65), reserveFutexes(new ArenaPlan(), sizes), {
    now,
    space: stays.space.handle,
  })
  leaves.space.adopt(view.buffer, stays.space.findBuffer(mapped.buffer)?.handles as never)
  return { stays, leaves, view }
}

const comes = (fx: Futexes, owner: LockOwner, view: Int32Array<SharedArrayBuffer>): PreparedWait =>
  lockPi(fx.context, promiseWaiter(undefined, owner), fx.word(view, 0), true, Infinity, false) as PreparedWait

test('a lock goes to the next waiter, not to a promise of a thread that has ended', async () => {
  const { stays, leaves, view } = pair()
  const mutex = new WordMutex(stays, stays.word(view, 0), PI)
  expect(mutex.lockSync(stays.self)).toBe(0)
  comes(leaves, leaves.makeOwner(), view)
  const next = stays.makeOwner()
  const waiting = mutex.lockAsync(next)
  leaves.leave()
  expect(mutex.unlock(stays.self)).toBe(0)
  expect(await waiting).toBe(0)
  expect(view[0] & FUTEX_TID_MASK).toBe(next.tid)
})

test('a wake is not spent on a promise of a thread that has ended', () => {
  const { stays, leaves, view } = pair()
  const who = promiseWaiter()
  prepareWordWait(leaves.context, who, leaves.word(view, 0), true, 0, Infinity, MATCH_ANY)
  leaves.leave()
  expect(stays.wake(stays.word(view, 0), 1, { shared: true })).toBe(0)
  expect(stays.context.layout.waiters.count(stays.context.i32)).toBe(0)
})

test('what the async flows of a thread hold passes on when it ends', async () => {
  const { stays, leaves, view } = pair()
  for (const [kind, at, told] of [
    [ROBUST_PI, 0, -EOWNERDEAD],
    [PLAIN, 16, -ESRCH],
  ] as const) {
    const held = new WordMutex(leaves, leaves.word(view, at), kind)
    expect(held.lockSync(leaves.makeOwner())).toBe(0)
    const waiting = new WordMutex(stays, stays.word(view, at), kind).lockAsync(stays.makeOwner())
    leaves.leave()
    expect(await waiting).toBe(told)
  }
})

test('an owner that waits is not closed', async () => {
  const { stays, view } = pair()
  const mutex = new WordMutex(stays, stays.word(view, 0), PI)
  mutex.lockSync(stays.self)
  const owner = stays.makeOwner()
  const waiting = mutex.lockAsync(owner)
  expect(() => stays.closeOwner(owner)).toThrow(/still waits for a lock; abort the wait/)
  mutex.unlock(stays.self)
  expect(await waiting).toBe(0)
  stays.closeOwner(owner)
})
