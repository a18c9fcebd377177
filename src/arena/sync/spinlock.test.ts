import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../memory/arena.ts'
import { lockOrder, lockRank } from './lockorder.ts'
import { acquire, breakLock, holds, initLock, Lock, lockOwner, release, tryAcquire } from './spinlock.ts'
import { KernelThread } from './thread.ts'

function setUp(debug = true): {
  arena: Arena
  lock: (name: string) => number
  thread: (id: number) => KernelThread
} {
  const plan = new ArenaPlan()
  const { start } = plan.reserve('locks', 64)
  const arena = Arena.create(plan, { debug })
  let next = start
  return {
    arena,
    thread: id => new KernelThread(arena, id),
    lock(name) {
      const pointer = next
      next += Lock.words
      initLock(arena.i32, pointer, lockRank(name))
      return pointer
    },
  }
}

test('a lock names its owner while it is held, and no thread after', () => {
  const { arena, lock, thread } = setUp()
  const queue = lock('run queue')
  const cpu = thread(3)
  expect(lockOwner(arena.i32, queue)).toBe(-1)
  acquire(cpu, queue)
  expect(lockOwner(arena.i32, queue)).toBe(3)
  expect(holds(cpu, queue)).toBe(true)
  expect(holds(thread(4), queue)).toBe(false)
  release(cpu, queue)
  expect(lockOwner(arena.i32, queue)).toBe(-1)
})

test('a lock that is held is not taken by a try', () => {
  const { lock, thread } = setUp()
  const queue = lock('run queue')
  const [one, other] = [thread(0), thread(1)]
  expect(tryAcquire(one, queue)).toBe(true)
  expect(tryAcquire(other, queue)).toBe(false)
  release(one, queue)
  expect(tryAcquire(other, queue)).toBe(true)
})

test('a recursive acquire throws: in debug builds immediately, in others after the spin', () => {
  for (const debug of [true, false]) {
    const { lock, thread } = setUp(debug)
    const queue = lock('run queue')
    const cpu = thread(0)
    acquire(cpu, queue)
    expect(() => acquire(cpu, queue)).toThrow(/holds? (the spin lock )?already|holds already/)
    release(cpu, queue)
  }
})

test('a foreign release throws and leaves the owner its lock', () => {
  for (const debug of [true, false]) {
    const { arena, lock, thread } = setUp(debug)
    const queue = lock('run queue')
    acquire(thread(0), queue)
    expect(() => release(thread(1), queue)).toThrow(/does not hold/)
    expect(lockOwner(arena.i32, queue)).toBe(0)
  }
})

test('locks taken against the order throw, with both names and the order', () => {
  const { lock, thread } = setUp()
  const [task, pi] = [lock('lock owner'), lock('pi')]
  const cpu = thread(0)
  acquire(cpu, pi)
  expect(() => acquire(cpu, task)).toThrow(
    /took a 'lock owner' lock while holding a 'pi' lock; the order is .*lock owner, pi, run queue/,
  )
  release(cpu, pi)
  acquire(cpu, task)
  acquire(cpu, pi)
})

test('two locks of one rank: by address where the table allows it, never elsewhere', () => {
  const { lock, thread } = setUp()
  const [low, high] = [lock('run queue'), lock('run queue')]
  const [one, other] = [lock('pi'), lock('pi')]
  const cpu = thread(0)
  acquire(cpu, low)
  acquire(cpu, high)
  release(cpu, low)
  expect(() => acquire(cpu, low)).toThrow(/lock order/)
  release(cpu, high)
  acquire(cpu, one)
  expect(() => acquire(cpu, other)).toThrow(/lock order/)
})

test('the order is a table that names every class once', () => {
  expect(new Set(lockOrder.map(({ name }) => name)).size).toBe(lockOrder.length)
  expect(() => lockRank('no such lock')).toThrow(/no such lock/)
})

test('the lock of a dead thread passes to the recovering thread', () => {
  const { arena, lock, thread } = setUp()
  const heap = lock('heap')
  acquire(thread(2), heap)
  const rescuer = thread(64)
  expect(breakLock(rescuer, heap, 1)).toBe(false)
  expect(breakLock(rescuer, heap, 2)).toBe(true)
  expect(lockOwner(arena.i32, heap)).toBe(64)
  release(rescuer, heap)
  expect(lockOwner(arena.i32, heap)).toBe(-1)
  expect(breakLock(rescuer, heap, 2)).toBe(false)
})
