import { once } from 'node:events'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { sleep, wait } from '../core/blocking.ts'
import { needResched, PREEMPTED } from '../core/coroutine.ts'
import { LoopKeeper } from './loopkeeper.ts'
import { Schedule } from './schedule.ts'
import { VirtualTime } from './virtualtime.ts'

type Body = Generator<number, any, any>

const ticks = ['clock', 'thread', 'auto'] as const

/** Never waits and never yields: it has only safepoints. */
function* hog(work: { turns: number }, until: () => boolean = () => false): Body {
  while (!until()) {
    work.turns++
    if (work.turns % 64 === 0 && needResched()) yield PREEMPTED
  }
}

function request(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ port, agent: false }, response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', chunk => (text += chunk))
      response.on('end', () => resolve(text))
    }).on('error', reject)
  })
}

describe.each(ticks)('ticks: %s', kind => {
  test('an HTTP server answers on the thread that a coroutine never gives up', async () => {
    await using schedule = new Schedule({ ticks: kind, slice: 2 })
    const work = { turns: 0 }
    const server = createServer((_, response) => response.end(String(work.turns))).listen(0)
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const controller = new AbortController()
    const computing = schedule.run({ signal: controller.signal }, hog, work)
    const answers: number[] = []
    for (let i = 0; i < 20; i++) {
      const { turns } = work
      while (work.turns === turns) await new Promise(resolve => setImmediate(resolve))
      answers.push(Number(await request(port)))
    }
    controller.abort(new Error('enough'))
    await expect(computing).rejects.toThrow('enough')
    server.close()
    // Each was given by a handler that ran while the coroutine was in the middle of its work.
    for (let i = 1; i < answers.length; i++) expect(answers[i]).toBeGreaterThan(answers[i - 1])
  })

  test('timers, immediates, ticks and promises all come through between slices', async () => {
    await using schedule = new Schedule({ ticks: kind, slice: 1 })
    const work = { turns: 0 }
    const seen = { timeout: 0, interval: 0, immediate: 0, tick: 0, promise: 0 }
    const again = (): void => {
      seen.immediate++
      setImmediate(again).unref()
    }
    setImmediate(again)
    setTimeout(() => {
      seen.timeout++
      process.nextTick(() => seen.tick++)
      void Promise.resolve().then(() => seen.promise++)
    }, 1)
    const interval = setInterval(() => seen.interval++, 1)
    await schedule.run(hog, work, () => seen.interval >= 5 && seen.immediate >= 5 && seen.promise > 0)
    clearInterval(interval)
    expect(seen).toMatchObject({ timeout: 1, tick: 1, promise: 1 })
  })
})

test('coroutines that wait for I/O and coroutines that compute go on side by side', async () => {
  await using schedule = new Schedule({ slice: 1 })
  const server = createServer((request, response) => response.end(`hello ${request.url}`)).listen(0)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const work = { turns: 0 }
  let done = 0
  const fetchers = Array.from({ length: 5 }, (_, i) =>
    schedule.run(function* (): Body {
      yield* sleep(1)
      const response = (yield* wait(fetch(`http://localhost:${port}/${i}`))) as Response
      const text = (yield* wait(response.text())) as string
      done++
      return text
    }),
  )
  await schedule.run(hog, work, () => done === 5)
  expect(await Promise.all(fetchers)).toEqual(['/0', '/1', '/2', '/3', '/4'].map(path => `hello ${path}`))
  server.close()
})

describe('a turn of the event loop', () => {
  const quiet = (events: number[]) => {
    let turns = 0
    let time = 0
    return {
      now: () => time,
      delivered: () => events[Math.min(turns, events.length - 1)],
      turn: () => {
        turns++
        time += 0.01
        return Promise.resolve()
      },
      setTimer: () => 0,
      clearTimer: () => {},
    }
  }

  test('is one round when nothing is pending, and more while something comes', async () => {
    const idle = new LoopKeeper(quiet([5]), 10)
    await idle.turn()
    expect(idle.turns).toBe(1)
    const busy = new LoopKeeper(quiet([1, 2, 3, 3]), 10)
    await busy.turn()
    expect(busy.turns).toBe(3)
  })

  test('ends after a slice, however much there is', async () => {
    const flooded = new LoopKeeper(quiet(Array.from({ length: 100_000 }, (_, i) => i)), 10)
    await flooded.turn()
    expect(flooded.turns).toBeGreaterThan(990)
    expect(flooded.turns).toBeLessThan(1010)
  })

  test('is made once a slice, not once a switch, and not at all while coroutines rest', async () => {
    const time = new VirtualTime()
    const schedule = new Schedule({ slice: 10, platform: time, ticks: time.slices(0.01) })
    for (let i = 0; i < 100; i++) {
      schedule.go(function* (): Body {
        for (let turn = 0; turn < 10; turn++) yield PREEMPTED
        yield* sleep(1000)
      })
    }
    await schedule.run()
    expect(schedule.statistics).toMatchObject({ switches: 1200, turns: 0 })
    const until = time.now() + 200
    schedule.go(hog, { turns: 0 }, () => time.now() >= until)
    await schedule.run()
    expect(schedule.statistics.turns).toBeGreaterThanOrEqual(19)
    expect(schedule.statistics.turns).toBeLessThanOrEqual(21)
  })
})
