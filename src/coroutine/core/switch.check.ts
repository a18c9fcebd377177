/**
 * The six problems of the design, and suspend against the tick. Each set-up takes the parts that remedy the
 * problem, so that races.test.ts can take one out and see that the problem is found. Two threads run: the
 * schedule's, with its loop and its coroutines, and the timekeeper's, whose tick may come at any step.
 *
 * A coroutine here is a script of steps: what is checked does not care how coroutines are made. Where the
 * design has a signal that comes between any two instructions, the script and the hook around each switch ask
 * at a safepoint.
 */
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { assert } from '../../arena/assert.ts'
import { check, type Setup } from '../../checker/check.ts'
import { CpuRecord, cpuRecord, reserveMachine } from '../../machine/core/cpurecord.ts'
import { momentOf, raiseExpired } from '../../machine/timekeeper/timekeeper.ts'
import { Co } from '../schedule/co.ts'
import type { Coroutine, CoroutineState } from './coroutine.ts'
import type { Runner, Waker } from '../../thread/runner.ts'
import { beginWait, endWait } from './runner.ts'
import { needResched, preemptionDepth, swapPreemptionDepth } from './safepoint.ts'
import { type Slices, ThreadSlices } from '../schedule/slices.ts'
import { Switch } from './switch.ts'

/** Later than the end of any slice that a check begins. */
const LATE = momentOf(1000)
const SLICE_MS = 10

/** The next step of a script: poll a safepoint, end, or wait as `how` says. */
type Act = 'safepoint' | 'wait'

export class Script implements Coroutine {
  state: CoroutineState = 'ready'
  result: unknown = undefined
  preemptionDepth = 0
  private at = 0
  private waiting = false
  private readonly acts: readonly Act[]
  private readonly loop: Loop

  constructor(loop: Loop, acts: readonly Act[]) {
    this.loop = loop
    this.acts = acts
  }

  start(): boolean {
    return this.resume()
  }

  resume(): boolean {
    assert(this.state !== 'running', 'a coroutine is resumed while it runs')
    this.state = 'running'
    if (this.waiting) {
      this.waiting = false
      this.loop.endWait()
    }
    while (this.at < this.acts.length) {
      const act = this.acts[this.at++]
      if (act === 'wait') {
        this.loop.beginWait()
        this.waiting = true
        // The registration, in the middle of the suspension: code of anyone's.
        if (needResched()) return this.stop('preempted')
        return this.stop('suspended')
      }
      if (needResched()) return this.stop('preempted')
    }
    this.state = 'returned'
    return true
  }

  raise(error: unknown): boolean {
    throw error
  }

  private stop(state: 'preempted' | 'suspended'): boolean {
    this.state = state
    return false
  }
}

/** The schedule's loop at its smallest: the preempted one, then the ready ones, then those that wait. */
export class Loop implements Runner {
  readonly switching: Switch
  readonly all: Co[] = []
  readonly ready: Co[] = []
  readonly waiting: Co[] = []
  private readonly masksWaits: boolean

  constructor(switching: Switch, masksWaits = true) {
    this.switching = switching
    this.masksWaits = masksWaits
  }

  go(acts: readonly Act[]): void {
    const co = new Co(this.all.length + 1, 'script', 0, new Script(this, acts))
    co.context = { run: (fn, self, arg) => surrounded(fn, self, arg) }
    this.all.push(co)
    this.ready.push(co)
  }

  /**
   * Runs until every coroutine has ended. `takes`: how many switches there are for each poll of `preempted`.
   */
  run(takes = 1): void {
    for (let switches = 0; ; switches++) {
      if (switches % takes === 0 || this.ready.length === 0) this.takePreempted()
      const co = this.ready.shift() ?? this.waiting.shift()
      if (co === undefined) return
      if (co.state === 'SUSPEND') co.state = 'READY'
      this.switching.resume(co, 0)
      this.place(co)
      assert(this.switching.runningCo === null, 'no coroutine runs between two switches')
      assert(preemptionDepth() === 0, 'preemption is as it was before the switch')
    }
  }

  park(): Waker {
    const co = this.switching.runningCo
    assert(co !== null && co.state === 'RUNNING', 'only the running coroutine parks')
    co.state = 'SUSPEND'
    return { wake: () => {}, fail: () => {} }
  }

  unpark(): void {}
  progress(): void {}

  beginWait(): void {
    if (this.masksWaits) beginWait(this, Infinity)
    else this.park()
  }

  endWait(): void {
    if (this.masksWaits) endWait()
  }

  /** Where a coroutine goes that has stopped: it is the preempted one, or goes to one of the queues. */
  private place(co: Co): void {
    if (co.state === 'SUSPEND') {
      this.waiting.push(co)
    } else if (co.state === 'RUNNING' && this.switching.preempted !== co) {
      co.state = 'READY'
      this.ready.push(co)
    }
  }

  private takePreempted(): void {
    const co = this.switching.takePreempted()
    if (co === null) return
    assert(co.coroutine.state === 'preempted', 'the context of a preempted coroutine is whole')
    co.state = 'READY'
    this.ready.push(co)
  }
}

/** The hook of a switch, with a safepoint on either side of it: in nobody's code. */
function surrounded<A>(fn: (arg: A) => void, self: unknown, arg: A): void {
  needResched()
  fn.call(self, arg)
  needResched()
}

export interface Parts {
  readonly makeSwitch?: (slices: Slices) => Switch
  readonly makeSlices?: (i32: Int32Array, region: ReturnType<typeof reserveMachine>, cpu: number) => Slices
  readonly masksWaits?: boolean
  readonly takes?: number
}

interface World {
  readonly i32: Int32Array
  readonly region: ReturnType<typeof reserveMachine>
  readonly cpu: number
  readonly slices: Slices
  readonly loop: Loop
}

function world(parts: Parts): World {
  const plan = new ArenaPlan()
  const region = reserveMachine(plan, 1)
  const { i32 } = Arena.create(plan)
  const cpu = cpuRecord(region, 0)
  const { makeSlices = (...args) => new ThreadSlices(...args), makeSwitch = newSwitch, masksWaits } = parts
  const slices = makeSlices(i32, region, cpu)
  swapPreemptionDepth(0)
  // A trace of each stop would read the clock.
  Error.stackTraceLimit = 0
  return { i32, region, cpu, slices, loop: new Loop(makeSwitch(slices), masksWaits) }
}

function newSwitch(slices: Slices): Switch {
  return new Switch(slices, SLICE_MS, () => 0)
}

/** A program of coroutines against so many ticks. */
function program(scripts: readonly (readonly Act[])[], ticks: number): (parts?: Parts) => Setup {
  return (parts = {}) =>
    () => {
      const { i32, region, loop } = world(parts)
      for (const acts of scripts) loop.go(acts)
      return {
        threads: {
          schedule: () => loop.run(parts.takes),
          timekeeper: () => {
            for (let tick = 0; tick < ticks; tick++) raiseExpired(i32, region, LATE)
          },
        },
        final: () => {
          for (const co of loop.all) assert(co.state === 'STOP', 'every coroutine has run to its end')
        },
      }
    }
}

/** Problem 1: the tick comes after runningCo is set, before the coroutine runs. */
export const tickBeforeTheSwitch: (parts?: Parts) => Setup = program([['safepoint'], []], 2)

/** Problem 3: the tick comes while the switch back is under way, the coroutine waiting already. */
export const tickInsideTheSwitch: (parts?: Parts) => Setup = program([['wait', 'safepoint']], 2)

/** Problem 5: the tick comes as the coroutine ends. */
export const tickAtTheEnd: (parts?: Parts) => Setup = program([[], []], 2)

/** Problem 6: one coroutine after the other is preempted. */
export const preemptedInTurn: (parts?: Parts) => Setup = program(
  [['safepoint'], ['safepoint'], ['safepoint']],
  3,
)

/** Suspend against the tick: a safepoint in the middle of the suspension. */
export const tickDuringSuspend: (parts?: Parts) => Setup = program([['wait'], ['safepoint']], 2)

/** A tick that comes too late ends no other slice. */
export function lateTick(parts: Parts = {}): Setup {
  return () => {
    const { i32, region, slices } = world(parts)
    let ended = 0
    return {
      threads: {
        schedule: () => {
          slices.begin(0, SLICE_MS)
          slices.begin(500, 500 + SLICE_MS)
          for (let i = 0; i < 2; i++) {
            if (Atomics.load(slices.view, slices.index) !== 0 && slices.isOver()) ended++
          }
        },
        // It is 500: the first slice is over, the second has just begun.
        timekeeper: () => void raiseExpired(i32, region, momentOf(500)),
      },
      final: () => assert(ended === 0, 'the slice that has just begun is not over'),
    }
  }
}

/** The tick of a slice is never lost, whatever late one comes just before it. */
export function everySliceEnds(parts: Parts = {}): Setup {
  return () => {
    const { i32, region, cpu, slices } = world(parts)
    return {
      threads: {
        schedule: () => {
          slices.begin(0, SLICE_MS)
          slices.begin(0, SLICE_MS)
          // A coroutine that only polls its safepoint.
          for (;;) if (Atomics.load(slices.view, slices.index) !== 0 && slices.isOver()) break
          Atomics.store(i32, cpu + CpuRecord.stopRequested, 1)
        },
        timekeeper: () => {
          while (Atomics.load(i32, cpu + CpuRecord.stopRequested) === 0) raiseExpired(i32, region, LATE)
        },
      },
    }
  }
}

check('problem 1: the tick before the switch', tickBeforeTheSwitch())
check('problem 3: the tick inside the switch', tickInsideTheSwitch())
check('problem 5: the tick as a coroutine ends', tickAtTheEnd())
check('problem 6: one preempted coroutine after the other', preemptedInTurn())
check('suspend against the tick', tickDuringSuspend())
check('a late tick', lateTick())
check('every slice ends', everySliceEnds())
