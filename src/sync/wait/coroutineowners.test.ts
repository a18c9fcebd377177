import { expect, test } from 'vitest'
import { Schedule } from '../../coroutine/schedule/schedule.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { findOwner } from '../../futex/core/owner.ts'
import { Mutex } from '../mutex/mutex.ts'

const owners = (): number => {
  const { i32, layout } = currentFutexes().context
  return layout.owners.count(i32)
}

/** Each locks and unlocks, and ends. All of it within one turn of the event loop. */
function runMany(schedule: Schedule, count: number): void {
  const mutex = new Mutex()
  for (let done = 0; done < count; done += 500) {
    for (let one = 0; one < 500; one++) {
      schedule.go(function* () {
        const token = yield* mutex.lock()
        token.unlock()
      })
    }
    schedule.runSync()
  }
}

test('coroutines that have ended return their owner records, whether or not the engine collects any', () => {
  const schedule = new Schedule()
  const before = owners()
  runMany(schedule, 20_000)
  expect(owners() - before).toBeLessThan(10_000)
  schedule.exit()
})

test('a coroutine that was cancelled in its wait keeps its owner until the wait has ended', async () => {
  const schedule = new Schedule()
  const [free, mutex] = [new Mutex(), new Mutex({ robust: true })]
  const held = await mutex.lockAsync()
  let tid = 0
  const co = schedule.go(function* () {
    const token = yield* free.lock()
    tid = free.holder()
    token.unlock()
    yield* mutex.lock()
  })
  co.done.catch(() => undefined)
  expect(() => schedule.runSync()).toThrow('cannot arrive')
  schedule.cancel(co)
  schedule.runSync()
  expect(co.state).toBe('STOP')
  const { context } = currentFutexes()
  runMany(schedule, 20_000)
  expect(findOwner(context, tid)).not.toBe(0)
  for (let turn = 0; turn < 3; turn++) await new Promise(resolve => setImmediate(resolve))
  runMany(schedule, 20_000)
  expect(findOwner(context, tid)).toBe(0)
  held.unlock()
  ;(await mutex.lockAsync()).unlock()
  expect(mutex.ownerDied).toBe(false)
  schedule.exit()
})
