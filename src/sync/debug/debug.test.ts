import { afterEach, expect, test } from 'vitest'
import { Schedule } from '../../coroutine/index.ts'
import { sleep } from '../../coroutine/core/blocking.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { Kernel } from '../../kernel/boot/kernel.ts'
import type * as Stranger from '../../../testing/sync/fixtures/stranger.ts'
import { Condition, debugLocks, type LockReport, locks, Mutex, RwLock } from '../index.ts'
import { LockTable } from './locktable.ts'
import { observer } from './observer.ts'

let off: (() => void) | null = null
const reports: LockReport[] = []

/** The signal ends the waits of the circle, once it has been reported. */
function debug(throws = false): AbortSignal {
  const reported = new AbortController()
  reports.length = 0
  const onProblem = (report: LockReport): void => {
    reports.push(report)
    queueMicrotask(() => reported.abort())
  }
  off = debugLocks({ onProblem, throws })
  return reported.signal
}

afterEach(() => {
  off?.()
  off = null
})

test('two tasks that lock two mutexes crosswise are reported, with names and both stacks, when the cycle is complete', async () => {
  const signal = debug()
  const [accounts, audit] = [new Mutex({ name: 'accounts' }), new Mutex({ name: 'audit' })]
  const schedule = new Schedule()
  function* transfer(first: Mutex, second: Mutex): Generator<number, void, unknown> {
    using _first = yield* first.lock()
    yield* sleep(1)
    using _second = yield* second.lock({ signal })
  }
  const ends = await Promise.allSettled([
    schedule.run({ name: 'payer' }, transfer, accounts, audit),
    schedule.run({ name: 'auditor' }, transfer, audit, accounts),
  ])
  schedule.exit()
  expect(ends.some(({ status }) => status === 'rejected')).toBe(true)
  expect(reports).toHaveLength(1)
  const [{ problem, message }] = reports
  expect(problem).toBe('deadlock')
  for (const part of ["mutex 'accounts'", "mutex 'audit'", "'payer'", "'auditor'"])
    expect(message).toContain(part)
  // Where each waits, and where each took what the other waits for.
  expect(message.match(/debug\.test/g)?.length).toBeGreaterThanOrEqual(4)
})

test('with throws, a wait that would complete a cycle throws', async () => {
  debug(true)
  const [a, b] = [new Mutex({ name: 'a' }), new Mutex({ name: 'b' })]
  const schedule = new Schedule()
  function* crosswise(first: Mutex, second: Mutex): Generator<number, string, unknown> {
    using _first = yield* first.lock()
    yield* sleep(1)
    try {
      using _second = yield* second.lock()
      return 'both'
    } catch (error) {
      return (error as { code: string }).code
    }
  }
  const ends = await Promise.all([schedule.run(crosswise, a, b), schedule.run(crosswise, b, a)])
  schedule.exit()
  expect(ends.sort()).toEqual(['ERR_HEDDLE_DEADLOCK', 'both'])
})

test('a task that waits for a lock that it holds itself is the smallest cycle', async () => {
  debug()
  const mutex = new Mutex({ name: 'own' })
  mutex.lockSync()
  expect(() => mutex.lockSync({ timeout: 1 })).toThrow(/ms have passed/)
  expect(reports.map(({ problem }) => problem)).toEqual(['deadlock'])
  mutex.unlock()
})

test('a cycle through a readers-writer lock is found', async () => {
  const signal = debug()
  const lock = new RwLock({ name: 'table' })
  const mutex = new Mutex({ name: 'row' })
  const schedule = new Schedule()
  const ends = await Promise.allSettled([
    schedule.run(function* () {
      using _read = yield* lock.lockRead()
      yield* sleep(1)
      using _row = yield* mutex.lock({ signal })
    }),
    schedule.run(function* () {
      using _row = yield* mutex.lock()
      yield* sleep(1)
      using _write = yield* lock.lockWrite({ signal })
    }),
  ])
  schedule.exit()
  expect(ends.map(({ status }) => status)).toContain('rejected')
  expect(reports).toHaveLength(1)
  expect(reports[0].message).toContain("rwlock 'table'")
})

test('a lock whose holder has ended is reported, once', async () => {
  debug()
  const mutex = new Mutex({ name: 'forgotten' })
  const schedule = new Schedule()
  await schedule.run({ name: 'sloppy' }, function* () {
    yield* mutex.lock()
  })
  await expect(mutex.lockAsync({ timeout: 5 })).rejects.toMatchObject({ name: 'TimeoutError' })
  await expect(mutex.lockAsync({ timeout: 5 })).rejects.toMatchObject({ name: 'TimeoutError' })
  schedule.exit()
  expect(reports.map(({ problem }) => problem)).toEqual(['held by one that ended'])
  expect(reports[0].message).toContain("'forgotten'")
  expect(reports[0].message).toContain("'sloppy'")
  expect(locks().find(({ name }) => name === 'forgotten')?.holders[0].ended).toBe(true)
})

test('locks() lists holders and waiters', async () => {
  expect(() => locks()).toThrow(/debugLocks/)
  debug()
  const mutex = new Mutex({ name: 'listed' })
  const token = mutex.lockSync()
  const waiting = mutex.lockAsync()
  const [listed] = locks().filter(({ name }) => name === 'listed')
  expect(listed).toMatchObject({ kind: 'mutex', name: 'listed' })
  expect(listed.holders.map(({ who }) => who)).toEqual([expect.stringContaining('thread')])
  expect(listed.waiters.map(({ who }) => who)).toEqual([expect.stringContaining('async code')])
  expect(listed.holders[0].stack).toContain('debug.test')
  token.unlock()
  ;(await waiting).unlock()
  expect(locks().filter(({ name }) => name === 'listed')).toEqual([])
})

test('a lock that waits at a futex is recorded, with all its holders and waiters', async () => {
  debug()
  const mutex = new Mutex({ name: 'listed', robust: true })
  const listed = (): string[] => {
    const [found] = locks().filter(({ name }) => name === 'listed')
    return [
      ...found.holders.map(({ who }) => `${who} holds`),
      ...found.waiters.map(({ who }) => `${who} waits`),
    ]
  }
  const token = mutex.tryLock()
  const waiting = mutex.lockAsync()
  expect(listed()).toEqual([
    expect.stringMatching(/^thread.* holds$/),
    expect.stringMatching(/^async code.* waits$/),
  ])
  expect(() => mutex.lockSync({ timeout: 1 })).toThrow(/wait for itself/)
  expect(reports.map(({ problem }) => problem)).toEqual(['deadlock'])
  token?.unlock()
  ;(await waiting).unlock()
  expect(locks().filter(({ name }) => name === 'listed')).toEqual([])
})

test('a waiter at a condition does not hold its mutex meanwhile, and holds it as often as before afterwards', async () => {
  debug()
  const mutex = new Mutex({ name: 'given up', type: 'recursive' })
  const condition = new Condition()
  const holders = (): number => locks().find(({ name }) => name === 'given up')?.holders.length ?? 0
  const schedule = new Schedule()
  const waiting = schedule.run(function* () {
    using _outer = yield* mutex.lock()
    using inner = yield* mutex.lock()
    yield* condition.wait(inner)
    return holders()
  })
  await expect.poll(() => condition.notify(0) === 0 && condition.i32[condition.at] < 0).toBe(true)
  expect(holders()).toBe(0)
  condition.notify()
  expect(await waiting).toBe(2)
  expect(holders()).toBe(0)
  schedule.exit()
})

test('a CPU whose modules load nothing of this library records the locks of its tasks too', async () => {
  await using kernel = await Kernel.boot({ cpus: 1 })
  const tasks = await kernel.import<typeof Stranger>(
    new URL('../../../testing/sync/fixtures/stranger.ts', import.meta.url),
  )
  debug()
  const mutex = new Mutex({ name: 'sent' })
  const words = new Int32Array(new SharedArrayBuffer(8))
  const holding = kernel.spawn(tasks.holdUntilTold, [mutex, words], { name: 'stranger' })
  await expect.poll(() => Atomics.load(words, 0)).toBe(1)
  const [{ holders }] = locks().filter(({ name }) => name === 'sent')
  Atomics.store(words, 1, 1)
  await holding
  expect(holders.map(({ who }) => who)).toEqual([expect.stringContaining("task 'stranger'")])
})

test('locks that were held when debug mode was turned off are not listed when it is turned on again', () => {
  debug()
  const mutex = new Mutex({ name: 'long ago' })
  mutex.lockSync()
  off?.()
  mutex.unlock()
  debug()
  expect(locks()).toEqual([])
})

test('a thread that joined leaves at its next lock once debug mode is turned off', () => {
  const { context } = currentFutexes()
  const table = new LockTable(context)
  table.turnOn()
  const mutex = new Mutex()
  expect(observer).not.toBeNull()
  table.turnOff()
  mutex.lockSync().unlock()
  expect(observer).toBeNull()
})
