import { describe, expect, test } from 'vitest'
import { sleep, suspend, wait, yieldNow } from '../core/blocking.ts'
import { Co } from './co.ts'
import { needResched, PREEMPTED } from '../core/coroutine.ts'
import { preemptionDepth, preemptionOff, preemptionOn, withoutPreemption } from '../core/safepoint.ts'
import { Schedule } from './schedule.ts'
import type { ScheduleOptions } from './scheduleoptions.ts'
import { VirtualTime } from './virtualtime.ts'

type Body = Generator<number, any, any>

/** A schedule on virtual time: a safepoint costs 0.01 ms, so a slice of 10 ms is 1000 of them. */
function virtual(options: ScheduleOptions = {}): { schedule: Schedule; time: VirtualTime } {
  const time = new VirtualTime()
  return { schedule: new Schedule({ platform: time, ticks: time.slices(0.01), ...options }), time }
}

function* spin(turns: number): Body {
  for (let turn = 0; turn < turns; turn++) if (needResched()) yield PREEMPTED
}

describe('the states', () => {
  test('a coroutine goes from INITED through RUNNING, READY and SUSPEND to STOP', () => {
    const { schedule } = virtual()
    const seen: string[] = []
    const watched = schedule.go(function* (): Body {
      seen.push(`body ${watched.state}`)
      yield* yieldNow()
      yield* sleep(5)
      seen.push(`body ${watched.state}`)
      return 'end'
    })
    schedule.go(function* (): Body {
      for (let i = 0; i < 3; i++) {
        seen.push(watched.state)
        yield* yieldNow()
      }
    })
    expect(watched.state).toBe('INITED')
    schedule.runSync()
    expect(seen).toEqual(['body RUNNING', 'READY', 'SUSPEND', 'SUSPEND', 'body RUNNING'])
    expect(watched.state).toBe('STOP')
  })

  test('every coroutine that has not ended is found by its id, and ids are not used twice', () => {
    const { schedule } = virtual()
    const all = Array.from({ length: 10 }, () => schedule.go(spin, 1))
    expect(new Set(all.map(co => co.id)).size).toBe(10)
    for (const co of all) expect(schedule.coroutines.get(co.id)).toBe(co)
    schedule.runSync()
    expect(schedule.coroutines.size).toBe(0)
  })

  test('a coroutine made suspended stays INITED until it is resumed', () => {
    const { schedule } = virtual()
    const ran: string[] = []
    const late = schedule.go({ suspended: true, name: 'late' }, () => void ran.push('late'))
    schedule.go(function* (): Body {
      ran.push('early')
      yield* yieldNow()
      schedule.resume(late)
    })
    schedule.runSync()
    expect(ran).toEqual(['early', 'late'])
  })
})

describe('what is an error, and which', () => {
  const code = (fn: () => unknown): string => {
    try {
      fn()
    } catch (error) {
      return (error as { code: string }).code
    }
    return 'none'
  }

  test('resuming a coroutine that runs, is ready, has ended, or is another schedule’s', () => {
    const { schedule } = virtual()
    const codes: string[] = []
    const ready = schedule.go(spin, 1)
    codes.push(code(() => schedule.resume(ready)))
    const self: Co<any> = schedule.go(() => void codes.push(code(() => schedule.resume(self))))
    schedule.runSync()
    codes.push(code(() => schedule.resume(ready)))
    codes.push(code(() => schedule.resume(virtual().schedule.go(spin, 1))))
    expect(codes).toEqual([
      'ERR_HEDDLE_CO_READY',
      'ERR_HEDDLE_CO_RUNNING',
      'ERR_HEDDLE_CO_STOPPED',
      'ERR_HEDDLE_CO_FOREIGN',
    ])
  })

  test('suspending outside of a coroutine, and suspending another', () => {
    const { schedule } = virtual()
    const codes: string[] = []
    codes.push(code(() => schedule.suspend()))
    codes.push(code(() => schedule.sleep(1)))
    codes.push(code(() => sleep(1)))
    codes.push(code(() => wait(Promise.resolve())))
    const other = schedule.go(spin, 1)
    schedule.go(() => void codes.push(code(() => schedule.suspend(other))))
    schedule.go(() => void codes.push(code(() => virtual().schedule.suspend())))
    schedule.runSync()
    expect(codes).toEqual([
      'ERR_HEDDLE_RUNNING_CO_NULL',
      'ERR_HEDDLE_RUNNING_CO_NULL',
      'ERR_HEDDLE_RUNNING_CO_NULL',
      'ERR_HEDDLE_RUNNING_CO_NULL',
      'ERR_HEDDLE_RUNNING_CO',
      'ERR_HEDDLE_RUNNING_CO_NULL',
    ])
  })

  test('anything after exit', async () => {
    const { schedule } = virtual()
    const co = schedule.go(spin, 1)
    schedule.exit()
    const exited = 'ERR_HEDDLE_SCHEDULE_EXITED'
    expect(code(() => schedule.go(spin, 1))).toBe(exited)
    expect(code(() => schedule.resume(co))).toBe(exited)
    expect(code(() => schedule.runSync())).toBe(exited)
    await expect(schedule.run(spin, 1)).rejects.toMatchObject({ code: exited })
  })

  test('options that mean nothing', () => {
    expect(() => new Schedule({ slice: 0 })).toThrow('slice: 0')
    expect(() => new Schedule({ slice: Number.NaN })).toThrow('slice: NaN')
    expect(() => new Schedule({ ticks: 'often' as never })).toThrow('ticks: often')
    const { schedule } = virtual()
    expect(() => schedule.go({ priority: 64 }, spin, 1)).toThrow('priority: 64')
    expect(() => schedule.go({} as never, 5 as never)).toThrow('give a function')
    expect(() => schedule.go(5 as never)).toThrow('give a function')
    const told: unknown[] = []
    schedule.go(function* (): Body {
      for (const ms of [-1, Number.NaN, 'soon']) {
        try {
          yield* sleep(ms as number)
        } catch (error) {
          told.push((error as Error).message.slice(0, 9))
        }
      }
    })
    schedule.runSync()
    expect(told).toEqual(['ms: -1 is', 'ms: NaN i', "ms: 'soon"])
  })
})

describe('suspend and resume', () => {
  test('a suspended coroutine goes on with the value that it is resumed with', () => {
    const { schedule } = virtual()
    const log: unknown[] = []
    const waiter = schedule.go(function* (): Body {
      log.push(yield* schedule.suspend())
      log.push(yield* schedule.suspend(waiter))
    })
    schedule.go(function* (): Body {
      schedule.resume(waiter, 'first')
      yield* yieldNow()
      schedule.resume(waiter, 'second')
    })
    schedule.runSync()
    expect(log).toEqual(['first', 'second'])
  })

  test('a waker ends its own wait, once, and no later one', () => {
    const { schedule } = virtual()
    const log: unknown[] = []
    const wakers: { wake(value?: unknown): void }[] = []
    schedule.go(function* (): Body {
      for (let i = 0; i < 2; i++) log.push(yield* suspend(waker => void wakers.push(waker)))
    })
    schedule.go(function* (): Body {
      wakers[0].wake('a')
      wakers[0].wake('again')
      yield* yieldNow()
      wakers[0].wake('stale')
      yield* yieldNow()
      wakers[1].wake('b')
    })
    schedule.runSync()
    expect(log).toEqual(['a', 'b'])
  })

  test('a waker may be used before the coroutine has stopped', () => {
    const { schedule } = virtual()
    const co = schedule.go(() => 0)
    const eager = schedule.go(function* (): Body {
      return yield* suspend(waker => waker.wake('at once'))
    })
    schedule.runSync()
    expect([co.coroutine.result, eager.coroutine.result]).toEqual([0, 'at once'])
  })

  test('a registration that throws leaves the coroutine running', () => {
    const { schedule } = virtual()
    const co = schedule.go(function* (): Body {
      try {
        yield* suspend(waker => {
          waker.wake('never seen')
          throw new Error('registration')
        })
      } catch (error) {
        expect(preemptionDepth()).toBe(0)
        yield* sleep(1)
        return (error as Error).message
      }
      return 'nothing thrown'
    })
    schedule.runSync()
    expect(co.coroutine.result).toBe('registration')
  })
})

describe('preemption', () => {
  test('hogs share the thread in turns: N of them within 5 % of each other at any time', () => {
    for (const hogs of [2, 3, 7, 20]) {
      const { schedule, time } = virtual()
      const work = Array.from({ length: hogs }, () => 0)
      const end = 10 * hogs * 50
      const uneven: number[][] = []
      for (let hog = 0; hog < hogs; hog++) {
        schedule.go(function* (): Body {
          while (time.now() < end) {
            work[hog]++
            if (needResched()) yield PREEMPTED
          }
        })
      }
      schedule.go({ priority: 'high' }, function* (): Body {
        for (;;) {
          yield* sleep(10 * hogs * 25)
          if (time.now() >= end) return
          uneven.push([...work])
        }
      })
      schedule.runSync()
      for (const counts of [...uneven, work]) {
        const mean = counts.reduce((sum, count) => sum + count, 0) / hogs
        for (const count of counts) expect(Math.abs(count / mean - 1)).toBeLessThan(0.05)
      }
      expect(uneven.length).toBeGreaterThan(0)
    }
  })

  test('a slice is 1 ms unless the options give another', () => {
    for (const slice of [undefined, 2, 50]) {
      const { schedule, time } = virtual(slice === undefined ? {} : { slice })
      const begun: number[] = []
      for (let hog = 0; hog < 2; hog++) {
        schedule.go(function* (): Body {
          for (let i = 0; i < 5; i++) {
            begun.push(time.now())
            while (!needResched());
            yield PREEMPTED
          }
        })
      }
      schedule.runSync()
      const gaps = begun.slice(1).map((at, i) => at - begun[i])
      for (const gap of gaps) expect(gap).toBeCloseTo(slice ?? 1, 1)
    }
  })

  test('higher priorities run before lower ones, and equal ones in turns', () => {
    const { schedule } = virtual()
    const order: string[] = []
    const worker = function* (name: string): Body {
      for (let i = 0; i < 2; i++) {
        order.push(name)
        yield* spin(1500)
      }
    }
    schedule.go({ priority: 'low' }, worker, 'low')
    schedule.go({ priority: 3 }, worker, 'three')
    schedule.go(worker, 'a')
    schedule.go(worker, 'b')
    schedule.go({ priority: 'high' }, worker, 'high')
    schedule.runSync()
    expect(order).toEqual(['three', 'three', 'high', 'high', 'a', 'b', 'a', 'b', 'low', 'low'])
  })

  test('a woken coroutine of higher priority takes over at the next safepoint, not at the slice’s end', () => {
    const { schedule } = virtual()
    const log: string[] = []
    const urgent = schedule.go({ priority: 'high' }, function* (): Body {
      yield* schedule.suspend()
      log.push('urgent')
    })
    schedule.go(function* (): Body {
      yield* spin(10)
      schedule.resume(urgent)
      log.push('woke it')
      for (let i = 0; i < 3; i++) {
        if (needResched()) yield PREEMPTED
        log.push(`turn ${i}`)
      }
    })
    schedule.runSync()
    expect(log).toEqual(['woke it', 'urgent', 'turn 0', 'turn 1', 'turn 2'])
  })

  test('a change of priority counts immediately', () => {
    const { schedule } = virtual()
    const order: string[] = []
    const a = schedule.go(() => void order.push('a'))
    const b = schedule.go(() => void order.push('b'))
    schedule.setPriority(b, 'high')
    schedule.setPriority(a, 'low')
    schedule.runSync()
    expect(order).toEqual(['b', 'a'])
  })

  test('while it is off nothing preempts, at any depth, and the tick is not lost', () => {
    const { schedule } = virtual()
    const log: string[] = []
    schedule.go(function* (): Body {
      preemptionOff()
      preemptionOff()
      for (let i = 0; i < 5000; i++) if (needResched()) log.push('preempted while off')
      preemptionOn()
      for (let i = 0; i < 5000; i++) if (needResched()) log.push('preempted while still off')
      preemptionOn()
      log.push('on')
      yield* spin(2000)
      log.push('end')
    })
    schedule.go(() => void log.push('other'))
    schedule.runSync()
    expect(log).toEqual(['on', 'other', 'end'])
    expect(() => preemptionOn()).toThrow('without a preemptionOff')
  })

  test('how deep it is off belongs to the coroutine, also across a wait, an error and the end', () => {
    const { schedule } = virtual({ onError: () => {} })
    const depths: number[] = []
    schedule.go(function* (): Body {
      preemptionOff()
      yield* sleep(1)
      depths.push(preemptionDepth())
      preemptionOn()
      depths.push(preemptionDepth())
    })
    schedule.go(function* (): Body {
      depths.push(preemptionDepth())
      yield* yieldNow()
      depths.push(preemptionDepth())
      preemptionOff()
      throw new Error('with preemption off')
    })
    schedule.runSync()
    expect(depths).toEqual([0, 0, 1, 0])
    expect(preemptionDepth()).toBe(0)
    expect(() =>
      withoutPreemption(() => {
        throw new Error('inside')
      }),
    ).toThrow('inside')
    expect(preemptionDepth()).toBe(0)
  })

  test('a coroutine that cannot be resumed leaves preemption and the safepoints as they were', () => {
    const { schedule } = virtual()
    const co = schedule.go(spin, 1)
    Object.assign(co.coroutine, {
      start: () => {
        throw new Error('a broken coroutine')
      },
    })
    expect(() => schedule.runSync()).toThrow('a broken coroutine')
    expect(preemptionDepth()).toBe(0)
    expect(schedule.runningCo).toBe(null)
    expect(needResched()).toBe(false)
  })
})

describe('a schedule inside a coroutine of another', () => {
  test('has ticks of its own, and gives the outer one its own back', () => {
    const outer = virtual({ slice: 10 })
    const inner = virtual({ slice: 10 })
    const log: string[] = []
    const nesting = outer.schedule.go(function* (): Body {
      inner.schedule.go(spin, 5000)
      inner.schedule.go(() => void log.push('inner'))
      inner.schedule.runSync()
      log.push('nested')
      yield* spin(5000)
      log.push('outer end')
    })
    outer.schedule.go(() => void log.push('outer other'))
    outer.schedule.runSync()
    expect(log).toEqual(['inner', 'nested', 'outer other', 'outer end'])
    expect(nesting.preemptions).toBe(4)
  })
})

describe('sleep', () => {
  test('ends early when the sleeper is resumed, and its deadline is forgotten', () => {
    const { schedule, time } = virtual()
    const woken: number[] = []
    const sleeper = schedule.go(function* (): Body {
      yield* sleep(100)
      woken.push(Math.round(time.now()))
      yield* sleep(200)
      woken.push(Math.round(time.now()))
    })
    schedule.go(function* (): Body {
      yield* sleep(10)
      schedule.resume(sleeper)
    })
    schedule.runSync()
    expect(woken).toEqual([10, 210])
  })

  test('ten thousand coroutines asleep at once wake in the order of their deadlines', () => {
    const { schedule, time } = virtual()
    const woken: [due: number, order: number][] = []
    const late: number[] = []
    for (let i = 0; i < 10_000; i++) {
      const ms = (i * 7919) % 5003
      schedule.go(function* (): Body {
        const due = time.now() + ms
        yield* sleep(ms)
        woken.push([ms, i])
        if (time.now() < due) late.push(i)
      })
    }
    schedule.go(function* (): Body {
      yield* sleep(0)
      expect(schedule.statistics.sleeping).toBeGreaterThan(9_990)
    })
    schedule.runSync()
    expect(woken).toHaveLength(10_000)
    expect(woken).toEqual(woken.toSorted(([a, i], [b, j]) => a - b || i - j))
    expect(late).toEqual([])
  })

  test('a sleeper is cancelled by its signal, and then sleeps no more', () => {
    const { schedule, time } = virtual()
    const controller = new AbortController()
    const co = schedule.go(function* (): Body {
      try {
        yield* sleep(1e6, { signal: controller.signal })
      } catch (error) {
        return [(error as Error).message, time.now()]
      }
      return 'slept'
    })
    schedule.go(function* (): Body {
      yield* sleep(5)
      controller.abort(new Error('wake up'))
    })
    schedule.runSync()
    expect(co.coroutine.result).toEqual(['wake up', 5])
    expect(schedule.statistics.sleeping).toBe(0)
  })
})

describe('exit', () => {
  test('throws into every coroutine where it waits, so that it releases what it holds', async () => {
    const { schedule } = virtual()
    const log: string[] = []
    const holding = (name: string, inner: () => Generator<number, unknown, unknown>) =>
      function* (): Body {
        try {
          yield* inner()
        } catch (error) {
          log.push(`${name}: ${(error as { code: string }).code}`)
          throw error
        } finally {
          log.push(`${name}: let go`)
        }
      }
    schedule.go(holding('sleeper', () => sleep(1e9)))
    schedule.go(holding('waiter', () => schedule.suspend()))
    schedule.go(holding('hog', () => spin(1e9)))
    schedule.go(function* (): Body {
      yield* sleep(25)
      schedule.exit()
    })
    const never = schedule.go({ suspended: true }, () => void log.push('never'))
    await schedule.run()
    expect(log.toSorted()).toEqual([
      'hog: ERR_HEDDLE_SCHEDULE_EXITED',
      'hog: let go',
      'sleeper: ERR_HEDDLE_SCHEDULE_EXITED',
      'sleeper: let go',
      'waiter: ERR_HEDDLE_SCHEDULE_EXITED',
      'waiter: let go',
    ])
    expect(never.state).toBe('STOP')
    expect(schedule.coroutines.size).toBe(0)
  })

  test('a suspend after exit throws; a coroutine that ignores that is dropped after the grace', async () => {
    const { schedule, time } = virtual()
    let refused = 0
    const stubborn = schedule.run(function* (): Body {
      for (;;) {
        try {
          yield* sleep(1)
        } catch {
          refused++
          yield* spin(100)
        }
      }
    })
    schedule.go(function* (): Body {
      yield* sleep(3)
      schedule.exit({ grace: 50 })
    })
    await expect(stubborn).rejects.toMatchObject({ code: 'ERR_HEDDLE_SCHEDULE_EXITED' })
    expect(refused).toBeGreaterThan(1)
    expect(time.now()).toBeLessThan(100)
  })

  test('loop runs on with nothing to do until exit', async () => {
    const schedule = new Schedule()
    const loop = schedule.loop()
    const log: string[] = []
    await new Promise(resolve => setTimeout(resolve, 5))
    await schedule.run(() => void log.push('ran'))
    void loop.then(() => log.push('loop over'))
    await new Promise(resolve => setTimeout(resolve, 5))
    expect(log).toEqual(['ran'])
    schedule.exit()
    await loop
    expect(log).toEqual(['ran', 'loop over'])
  })
})
