import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { Channel, Condition, Event, Kernel, Mutex, RwLock, Semaphore, WaitGroup } from '../../index.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type * as Tasks from '../../../testing/sync/fixtures/deadlinetasks.ts'

/** From a tenth of a millisecond to ten, most of them with a fraction. */
const limits: readonly number[] = Array.from({ length: 100 }, (_, at) => 0.1 + at * 0.099)

let kernel: Kernel
let tasks: Awaited<ReturnType<typeof load>>

function load(): Promise<Awaited<ReturnType<typeof Kernel.prototype.import<typeof Tasks>>>> {
  return kernel.import<typeof Tasks>(
    new URL('../../../testing/sync/fixtures/deadlinetasks.ts', import.meta.url),
  )
}

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 1 })
  tasks = await load()
})

afterAll(async () => {
  await kernel.close({ abort: true })
})

afterEach(() => {
  vi.restoreAllMocks()
})

const held = (options?: ConstructorParameters<typeof Mutex>[0]): Mutex => {
  const mutex = new Mutex(options)
  mutex.lockSync()
  return mutex
}

function sharedChannel(): Channel<number> {
  const channel = new Channel<number>()
  // From here on other threads could have it.
  void channel.handle
  return channel
}

interface Limit {
  readonly timeout?: number
  readonly until?: Date | number
}

/** Waits for what never comes. */
const promises: Record<string, () => (limit: Limit) => PromiseLike<unknown>> = {
  'a mutex':
    (mutex = held()) =>
    limit =>
      mutex.lockAsync(limit),
  'an inherit mutex':
    (mutex = held({ protocol: 'inherit' })) =>
    limit =>
      mutex.lockAsync(limit),
  'a robust mutex':
    (mutex = held({ robust: true })) =>
    limit =>
      mutex.lockAsync(limit),
  'a hand-off mutex':
    (mutex = held({ protocol: 'handoff' })) =>
    limit =>
      mutex.lockAsync(limit),
  'a semaphore':
    (semaphore = new Semaphore(0)) =>
    limit =>
      semaphore.acquireAsync(1, limit),
  'an RwLock': () => {
    const lock = new RwLock()
    lock.lockWriteSync()
    return limit => lock.lockReadAsync(limit)
  },
  'an event':
    (event = new Event()) =>
    limit =>
      event.waitAsync(limit),
  'a wait group': () => {
    const group = new WaitGroup()
    group.add(1)
    return limit => group.waitAsync(limit)
  },
  'a channel of this thread':
    (channel = new Channel()) =>
    limit =>
      channel.receiveAsync(limit),
  'a shared channel':
    (channel = sharedChannel()) =>
    limit =>
      channel.receiveAsync(limit),
  'a condition': () => {
    const condition = new Condition()
    const mutex = new Mutex()
    return async limit => {
      using token = await mutex.lockAsync()
      await condition.waitAsync(token, limit)
    }
  },
  'the join of a task': () => {
    const task = kernel.spawn(tasks.waitsUntil, [new Event(), 8.64e15])
    return ({ timeout = 0 }) => task.join({ timeout })
  },
  'a task with a time limit': () => limit =>
    kernel.spawn(tasks.waitsUntil, [new Event(), 8.64e15], limit as { timeout: number }),
}

/**
 * How many of these waits, side by side, ended before their time; and with anything but a TimeoutError or a
 * kill by the limit.
 */
async function early(
  wait: (limit: Limit) => PromiseLike<unknown>,
): Promise<{ early: number; odd: unknown[] }> {
  const odd: unknown[] = []
  let count = 0
  await Promise.all(
    limits.map(async timeout => {
      const due = performance.now() + timeout
      try {
        odd.push(await wait({ timeout }))
      } catch (thrown) {
        if (!/^(Timeout|TaskKilled)Error$/.test((thrown as Error).name)) odd.push(thrown)
      }
      if (performance.now() < due) count++
    }),
  )
  return { early: count, odd }
}

describe('no wait ends before its time:', () => {
  test.each(Object.keys(promises))('the promise of %s', async what => {
    const wait = promises[what]()
    const found = await early(wait)
    expect(found.early).toBe(0)
    expect(found.odd).toEqual([])
  })

  test.each(['none', 'inherit'] as const)('a thread at a mutex of protocol %s', async protocol => {
    const mutex = new Mutex({ protocol })
    using _ = await mutex.lockAsync()
    let count = 0
    for (const timeout of limits.slice(0, 40)) {
      const due = performance.now() + timeout
      expect(mutex.lockIfAvailableSync(timeout)).toBeNull()
      if (performance.now() < due) count++
    }
    expect(count).toBe(0)
  })

  test('a task that sleeps, waits for a lock, waits for an event', async () => {
    const few = limits.slice(0, 30)
    expect(await kernel.spawn(tasks.earlyWaits, [few, held(), new Event()])).toBe(0)
  })

  test('a time longer than the maximum of a timer is not over immediately', async () => {
    const event = new Event()
    const outcome = event.waitAsync({ timeout: 1e12 })
    const joined = kernel.spawn(tasks.waitsUntil, [event, 8.64e15], { timeout: 1e12 })
    const received = new Channel().receiveAsync({ timeout: 1e12, signal: AbortSignal.timeout(30) })
    await expect(received).rejects.toThrow(/abort|timeout/i)
    event.set()
    await outcome
    expect(await joined).toBe(false)
  })
})

/** The wall clock, set by so many milliseconds. */
function setClock(ms: number): void {
  const real = Date.now
  vi.spyOn(Date, 'now').mockImplementation(() => real.call(Date) + ms)
}

const HOUR = 3_600_000

describe('a moment of the wall clock ends a wait', () => {
  const waits = Object.keys(promises).filter(what => !what.includes('task'))

  test.each(waits)('at %s, and not before', async what => {
    const until = new Date(Date.now() + 30)
    await expect(promises[what]()({ until })).rejects.toThrow(/has passed/)
    expect(Date.now()).toBeGreaterThanOrEqual(until.getTime())
  })

  test.each(waits)('at %s though it was far away, when the clock is set forward', async what => {
    const waiting = promises[what]()({ until: Date.now() + HOUR })
    setClock(2 * HOUR)
    await expect(waiting).rejects.toThrow(/has passed/)
  })

  test.each(waits)('at %s only when it has come, though the clock is set back meanwhile', async what => {
    const until = Date.now() + 20
    const waiting = promises[what]()({ until })
    let over = false
    const settled = Promise.resolve(waiting).then(
      () => (over = true),
      () => (over = true),
    )
    setClock(-HOUR)
    await new Promise(resolve => setTimeout(resolve, 150))
    expect(over).toBe(false)
    vi.restoreAllMocks()
    await settled
  })

  test('on a thread and in a task', async () => {
    const until = Date.now() + 20
    expect(() => held().lockSync({ until })).toThrow(/has passed/)
    const inherit = new Mutex({ protocol: 'inherit' })
    using _ = await inherit.lockAsync()
    expect(() => inherit.lockSync({ until: Date.now() + 20 })).toThrow(/has passed/)
    expect(() => new Channel().receiveSync({ until: Date.now() + 20 })).toThrow(/has passed/)
    expect(Date.now()).toBeGreaterThanOrEqual(until)
    expect(await kernel.spawn(tasks.waitsUntil, [new Event(), Date.now() + 20])).toBe(true)
  })

  test.each([
    [{ until: new Date('never') }, /is not a moment/],
    [{ until: -1 }, /-1 is not a moment/],
    [{ until: 'tomorrow' }, /tomorrow is not a moment/],
    [{ until: 1, timeout: 1 }, /a timeout or an end, not both/],
  ])('and %o is refused', async (limit, message) => {
    await expect(new Event().waitAsync(limit as never)).rejects.toThrow(message)
  })
})

test('a raw futex call with FUTEX_CLOCK_REALTIME follows the clock as well', async () => {
  const { FUTEX_CLOCK_REALTIME, FUTEX_WAIT_BITSET } = await import('../../futex/index.ts')
  const futexes = currentFutexes()
  const view = new Int32Array(new SharedArrayBuffer(4))
  futexes.map(view.buffer)
  const far = { sec: Math.ceil((Date.now() + HOUR) / 1000), nsec: 0 }
  const op = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME
  const waiting = futexes.futexAsync({ view, index: 0 }, op, 0, far, null, -1)
  setClock(2 * HOUR)
  expect(await waiting).toBe(-110)
})
