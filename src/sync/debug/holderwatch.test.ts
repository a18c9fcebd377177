import { afterEach, expect, test, vi } from 'vitest'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { HolderWatch, type WatchedLock } from './holderwatch.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

function lockHeldBy(first: number): { lock: WatchedLock; handTo(tid: number): void } {
  let holder = first
  const lock = {
    kind: 'mutex',
    name: 'mine',
    holder: () => holder,
    isHeldBy: (tid: number) => holder === tid,
    objectId: () => 1,
  }
  return {
    lock,
    handTo: tid => {
      holder = tid
    },
  }
}

function warnings(): string[] {
  const said: string[] = []
  vi.spyOn(process, 'emitWarning').mockImplementation((message: unknown) => void said.push(String(message)))
  return said
}

test('a waiter that the lock was handed to, and that has not run since, does not wait for itself', () => {
  const said = warnings()
  const futexes = currentFutexes()
  const { tid } = futexes.self
  const { lock, handTo } = lockHeldBy(tid + 1)
  const wait = HolderWatch.of(tid, lock)
  wait.checkDeadlock(futexes.context)
  handTo(tid)
  for (let n = 0; n < 3; n++) wait.checkDeadlock(futexes.context)
  wait.end(futexes.context)
  expect(said).toEqual([])
})

test('a waiter that held the lock before waits for itself, and that is reported once', () => {
  const said = warnings()
  const futexes = currentFutexes()
  const { tid } = futexes.self
  const wait = HolderWatch.of(tid, lockHeldBy(tid).lock)
  for (let n = 0; n < 3; n++) wait.checkDeadlock(futexes.context)
  wait.end(futexes.context)
  expect(said).toHaveLength(1)
  expect(said[0]).toMatch(/^deadlock: [^]*waits for mutex 'mine'/)
})
