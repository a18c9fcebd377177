import { expect, test } from 'vitest'
import { type Co, Schedule } from '../../coroutine/index.ts'
import { Condition, Mutex, type UnlockToken } from '../index.ts'

const soon = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 5))

/**
 * Coroutines that wait at a condition, with a mutex that waits at a futex, and so are woken one after the
 * other; and the mutex, held by the caller.
 */
async function waiters(names: readonly string[]): Promise<{
  schedule: Schedule
  condition: Condition
  token: UnlockToken
  ended: string[]
  running: readonly Co<void>[]
  all: Promise<void>
}> {
  const schedule = new Schedule({ onError: () => undefined })
  const mutex = new Mutex({ robust: true })
  const condition = new Condition()
  const ended: string[] = []
  let come = 0
  const running = names.map(name =>
    schedule.go(function* (): Generator<number, void, unknown> {
      using token = yield* mutex.lock()
      come++
      yield* condition.wait(token)
      ended.push(name)
    }),
  )
  const all = schedule.run()
  await expect.poll(() => come).toBe(names.length)
  return { schedule, condition, token: await mutex.lockAsync(), ended, running, all }
}

test('a waiter that is cancelled as it locks the mutex again does not hold up the others that were notified', async () => {
  const { schedule, condition, token, ended, running, all } = await waiters(['first', 'second', 'third'])
  expect(condition.notify()).toBe(3)
  await soon()
  schedule.cancel(running[0])
  await soon()
  token.unlock()
  await all
  expect(ended).toEqual(['second', 'third'])
  schedule.exit()
})

test('a waiter that is cancelled as it locks the mutex again passes its notification on', async () => {
  const { schedule, condition, token, ended, running, all } = await waiters(['first', 'second'])
  expect(condition.notify(1)).toBe(1)
  await soon()
  schedule.cancel(running[0])
  await soon()
  token.unlock()
  await all
  expect(ended).toEqual(['second'])
  schedule.exit()
})
