import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import { sleep, wait, yieldNow } from './blocking.ts'
import { needResched, PREEMPTED } from './coroutine.ts'
import { Schedule } from '../schedule/schedule.ts'

type Body = Generator<number, any, any>

describe('AsyncLocalStorage', () => {
  const storage = new AsyncLocalStorage<string>()

  test('follows a coroutine through preemption, sleep, waits and yields', async () => {
    const schedule = new Schedule({ slice: 1, ticks: 'clock' })
    const seen = new Map<string, Set<string | undefined>>()
    let preemptions = 0
    const body = function* (name: string): Body {
      const own = new Set<string | undefined>()
      seen.set(name, own)
      for (let round = 0; round < 3; round++) {
        own.add(storage.getStore())
        yield* sleep(1)
        own.add(storage.getStore())
        yield* wait(new Promise(resolve => setTimeout(resolve, 1)))
        own.add(storage.getStore())
        yield* yieldNow()
        own.add(storage.getStore())
        const end = performance.now() + 3
        while (performance.now() < end) {
          if (!needResched()) continue
          preemptions++
          yield PREEMPTED
        }
        own.add(storage.getStore())
      }
    }
    for (const name of ['a', 'b', 'c']) storage.run(name, () => schedule.go(body, name))
    schedule.go(body, 'none')
    await storage.run('the loop’s own', () => schedule.run())
    expect(preemptions).toBeGreaterThan(0)
    for (const name of ['a', 'b', 'c']) expect([...seen.get(name)!]).toEqual([name])
    expect([...seen.get('none')!]).toEqual([undefined])
  })

  test('entered inside a coroutine stays with it, and with no other', async () => {
    const schedule = new Schedule()
    const seen: (string | undefined)[] = []
    const body = function* (name: string): Body {
      storage.enterWith(name)
      yield* yieldNow()
      seen.push(storage.getStore())
      yield* sleep(1)
      seen.push(storage.getStore())
    }
    const runs = ['a', 'b'].map(name => schedule.run(body, name))
    await Promise.all(runs)
    expect(seen).toEqual(['a', 'b', 'a', 'b'])
    expect(storage.getStore()).toBe(undefined)
  })

  test('of a wakeup does not leak into the woken', async () => {
    const schedule = new Schedule()
    const waiter = storage.run('waiter', () =>
      schedule.go(function* (): Body {
        yield* schedule.suspend()
        return storage.getStore()
      }),
    )
    storage.run('waker', () => schedule.go(() => schedule.resume(waiter)))
    await schedule.run()
    expect(await waiter.done).toBe('waiter')
  })

  test('is not needed: coroutines also run without a context hook', async () => {
    const { capture: _, ...platform } = new Schedule().platform
    const schedule = new Schedule({ platform })
    const run = schedule.run(function* (): Body {
      yield* sleep(1)
      return 'ran'
    })
    expect(await run).toBe('ran')
  })
})
