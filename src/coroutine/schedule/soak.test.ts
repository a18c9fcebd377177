/** Random programs on virtual time: every coroutine is always in exactly one queue or state, and ends. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { sleep, suspend, wait, yieldNow } from '../core/blocking.ts'
import type { Co } from './co.ts'
import { needResched, PREEMPTED } from '../core/coroutine.ts'
import { preemptionDepth, preemptionOff, preemptionOn } from '../core/safepoint.ts'
import { Schedule } from './schedule.ts'
import { VirtualTime } from './virtualtime.ts'

type Body = Generator<number, any, any>

type Act =
  | { kind: 'spin'; turns: number }
  | { kind: 'masked'; turns: number }
  | { kind: 'sleep'; ms: number }
  | { kind: 'yield' }
  | { kind: 'wait'; fails: boolean }
  | { kind: 'suspend'; timeout: number }
  | { kind: 'resume'; whom: number }
  | { kind: 'cancel'; whom: number }
  | { kind: 'priority'; whom: number; level: number }
  | { kind: 'go'; acts: Act[] }
  | { kind: 'throw' }

const whom = fc.nat(7)
const simple: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ kind: fc.constant('spin' as const), turns: fc.integer({ min: 1, max: 300 }) }),
  fc.record({ kind: fc.constant('masked' as const), turns: fc.integer({ min: 1, max: 200 }) }),
  fc.record({ kind: fc.constant('sleep' as const), ms: fc.integer({ min: 0, max: 50 }) }),
  fc.constant<Act>({ kind: 'yield' }),
  fc.record({ kind: fc.constant('wait' as const), fails: fc.boolean() }),
  fc.record({ kind: fc.constant('suspend' as const), timeout: fc.integer({ min: 1, max: 100 }) }),
  fc.record({ kind: fc.constant('resume' as const), whom }),
  fc.record({ kind: fc.constant('cancel' as const), whom }),
  fc.record({ kind: fc.constant('priority' as const), whom, level: fc.integer({ min: 0, max: 63 }) }),
  fc.constant<Act>({ kind: 'throw' }),
)
const acts = fc.array(
  fc.oneof(
    { arbitrary: simple, weight: 9 },
    {
      arbitrary: fc.record({ kind: fc.constant('go' as const), acts: fc.array(simple, { maxLength: 5 }) }),
      weight: 1,
    },
  ),
  { maxLength: 12 },
)

class Soak {
  readonly time: VirtualTime = new VirtualTime()
  readonly schedule: Schedule
  readonly all: Co<any>[] = []
  readonly early: number[] = []
  begun = 0
  ended = 0

  constructor() {
    const { time } = this
    const platform = {
      now: () => {
        this.checkPlaces()
        return time.now()
      },
      turn: time.turn,
      setTimer: (callback: () => void, ms: number) => time.setTimer(callback, ms),
      clearTimer: (timer: unknown) => time.clearTimer(timer),
      timerGrain: 0,
    }
    this.schedule = new Schedule({ platform, ticks: time.slices(0.1), onError: () => {} })
  }

  go(list: Act[]): void {
    this.all.push(this.schedule.go(() => this.run(list)))
    this.begun++
  }

  *run(list: Act[]): Body {
    try {
      for (const act of list) yield* this.act(act)
    } finally {
      this.ended++
    }
  }

  *act(act: Act): Body {
    const { schedule, time, all } = this
    const other = 'whom' in act ? all[act.whom % all.length] : undefined
    switch (act.kind) {
      case 'spin':
        for (let turn = 0; turn < act.turns; turn++) if (needResched()) yield PREEMPTED
        return
      case 'masked':
        preemptionOff()
        for (let turn = 0; turn < act.turns; turn++) {
          if (needResched()) throw new Error('preempted while preemption is off')
        }
        preemptionOn()
        return
      case 'sleep': {
        const due = time.now() + act.ms
        const { switches } = schedule.statistics
        const resumed = this.resumed
        yield* sleep(act.ms)
        if (time.now() < due && this.resumed === resumed) this.early.push(switches)
        return
      }
      case 'yield':
        yield* yieldNow()
        return
      case 'wait':
        try {
          yield* wait(act.fails ? Promise.reject(new Error('failed')) : Promise.resolve(1))
        } catch (error) {
          if ((error as Error).message !== 'failed') throw error
        }
        return
      case 'suspend':
        try {
          yield* suspend(undefined, { timeout: act.timeout })
        } catch (error) {
          if ((error as Error).name !== 'TimeoutError') throw error
        }
        return
      case 'resume':
        if (other?.state === 'SUSPEND') {
          this.resumed++
          schedule.resume(other, 'resumed')
        }
        return
      case 'cancel':
        if (other !== undefined) schedule.cancel(other, new Error('cancelled'))
        return
      case 'priority':
        if (other !== undefined && other.state !== 'STOP') schedule.setPriority(other, act.level)
        return
      case 'go':
        this.go(act.acts)
        return
      case 'throw':
        throw new Error('thrown')
    }
  }

  resumed = 0

  /** Each coroutine is in one place, and the queues hold as many as say that they are there. */
  checkPlaces(): void {
    if (this.schedule === undefined) return
    const { coroutines, runningCo, statistics } = this.schedule
    let ready = 0
    for (const co of coroutines.values()) {
      const places =
        Number(co.isQueued) + Number(co === runningCo) + Number(co.state === 'SUSPEND' && co !== runningCo)
      // Between its stop and its queue a coroutine is the loop's own: it has just given way, or ended.
      const inHand = places === 0 && (co.state === 'RUNNING' || co.state === 'STOP') && runningCo === null
      if (places !== 1 && !inHand && !(co === runningCo && co.isQueued)) {
        throw new Error(`${co.name} #${co.id} is ${co.state} and in ${places} places`)
      }
      if (co.isQueued) ready++
    }
    if (ready !== statistics.ready)
      throw new Error(`${ready} are ready, and the queue has ${statistics.ready}`)
  }
}

test('random programs end, whatever their coroutines do to each other', async () => {
  let switches = 0
  await fc.assert(
    fc.asyncProperty(fc.array(acts, { minLength: 1, maxLength: 8 }), async programs => {
      const soak = new Soak()
      for (const program of programs) soak.go(program)
      await soak.schedule.run()
      for (const co of soak.all) expect(co.state).toBe('STOP')
      expect(soak.early).toEqual([])
      expect(soak.schedule.statistics).toMatchObject({ coroutines: 0, ready: 0, sleeping: 0 })
      expect(preemptionDepth()).toBe(0)
      // Those that were cancelled before they began have nothing to end.
      expect(soak.ended).toBeLessThanOrEqual(soak.begun)
      switches += soak.schedule.statistics.switches
    }),
    { numRuns: 1500 },
  )
  expect(switches).toBeGreaterThan(10_000)
})
