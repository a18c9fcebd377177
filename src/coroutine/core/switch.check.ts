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
import { SpscRing, spscWords } from '../../arena/rings/spsc.ts'
import { check, type Setup } from '../../checker/check.ts'
import { CpuRecord, cpuRecord, reserveMachine } from '../../machine/core/cpurecord.ts'
import { momentOf, raiseExpired } from '../../machine/timekeeper/timekeeper.ts'
import { Co } from '../schedule/co.ts'
import type { Coroutine, CoroutineState } from './coroutine.ts'
import { beginWait, endWait, type Runner, type Waker } from './runner.ts'
import { needResched, preemptionDepth, swapPreemptionDepth } from './safepoint.ts'
import { type Slices, ThreadSlices } from '../schedule/slices.ts'
import { Switch } from './switch.ts'

/** Later than the end of any slice that a check begins. */
const LATE = momentOf(1000)
const SLICE_MS = 10

/** What a script does next: look at a safepoint, end, or wait as `how` has it. */
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

/** The schedule's loop at its smallest: the ring, then the ready ones, then those that wait. */
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

  /** Runs until everyone has ended. `drains`: how many switches there are between two looks at the ring. */
  run(drains = 1): void {
    for (let switches = 0; ; switches++) {
      if (switches % drains === 0 || this.ready.length === 0) this.drain()
      const co = this.ready.shift() ?? this.waiting.shift()
      if (co === undefined) return
      if (co.state === 'SUSPEND') co.state = 'READY'
      this.switching.resume(co, 0)
      this.place(co)
      assert(this.switching.runningCo === null, 'nobody runs between two switches')
      assert(preemptionDepth() === 0, 'preemption is as it was before the switch')
    }
  }

  park(): Waker {
    const co = this.switching.runningCo
    assert(co !== null && co.state === 'RUNNING', 'who parks is running')
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

  /** Where a coroutine goes that has stopped: the ring has it, or one of the queues. */
  private place(co: Co): void {
    if (co.state === 'SUSPEND') {
      this.waiting.push(co)
    } else if (co.state === 'RUNNING' && !co.inRing) {
      co.state = 'READY'
      this.ready.push(co)
    }
  }

  private drain(): void {
    for (let id = this.switching.popPreempted(); id !== 0; id = this.switching.popPreempted()) {
      const co = this.all[id - 1]
      assert(co.inRing && co.state === 'RUNNING', 'the ring holds coroutines that run, each of them once')
      assert(co.coroutine.state === 'preempted', 'the context of a coroutine in the ring is whole')
      co.inRing = false
      co.state = 'READY'
      this.ready.push(co)
    }
  }
}

/** The hook of a switch, with a safepoint on either side of it: in nobody's code. */
function surrounded<A>(fn: (arg: A) => void, self: unknown, arg: A): void {
  needResched()
  fn.call(self, arg)
  needResched()
}

export interface Parts {
  readonly makeSwitch?: (ring: SpscRing, slices: Slices) => Switch
  readonly makeSlices?: (i32: Int32Array, region: ReturnType<typeof reserveMachine>, cpu: number) => Slices
  readonly masksWaits?: boolean
}

interface World {
  readonly i32: Int32Array
  readonly region: ReturnType<typeof reserveMachine>
  readonly cpu: number
  readonly slices: Slices
  readonly loop: Loop
}

function world(parts: Parts, ringCapacity = 4): World {
  const plan = new ArenaPlan()
  const region = reserveMachine(plan, 1)
  const ringRegion = plan.reserve('ring', spscWords(ringCapacity))
  const { i32 } = Arena.create(plan)
  const cpu = cpuRecord(region, 0)
  const { makeSlices = (...args) => new ThreadSlices(...args), makeSwitch = newSwitch, masksWaits } = parts
  const slices = makeSlices(i32, region, cpu)
  const ring = new SpscRing(i32, ringRegion.start, ringCapacity)
  swapPreemptionDepth(0)
  return { i32, region, cpu, slices, loop: new Loop(makeSwitch(ring, slices), masksWaits) }
}

function newSwitch(ring: SpscRing, slices: Slices): Switch {
  return new Switch(ring, slices, SLICE_MS, () => 0)
}

/** A program of coroutines against so many ticks. */
function program(
  scripts: readonly (readonly Act[])[],
  ticks: number,
  { ringCapacity, drains }: { ringCapacity?: number; drains?: number } = {},
): (parts?: Parts) => Setup {
  return (parts = {}) =>
    () => {
      const { i32, region, loop } = world(parts, ringCapacity)
      for (const acts of scripts) loop.go(acts)
      return {
        threads: {
          schedule: () => loop.run(drains),
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

/** Problem 6: more coroutines are preempted than the ring holds before the loop gets to it. */
export const fullRing: (parts?: Parts) => Setup = program([['safepoint'], ['safepoint'], ['safepoint']], 3, {
  ringCapacity: 2,
  drains: 3,
})

/** Suspend against the tick: a safepoint in the middle of the suspension. */
export const tickDuringSuspend: (parts?: Parts) => Setup = program([['wait'], ['safepoint']], 2)

/**
 * Problem 2: the context is written by one side while the other reads it. The ring stands between: what is
 * saved before the push is whole after the pop, and it is saved again only after the coroutine has gone on.
 */
export function contextThroughTheRing(saveFirst = true): Setup {
  return () => {
    const context = spscWords(2)
    const resumed = context + 2
    const i32 = new Int32Array(new SharedArrayBuffer((resumed + 1) * 4))
    const ring = new SpscRing(i32, 0, 2)
    const save = (round: number): void => {
      i32[context] = round
      i32[context + 1] = round
    }
    return {
      threads: {
        interrupt: () => {
          for (let round = 1; round <= 2; round++) {
            if (saveFirst) save(round)
            assert(ring.push(1), 'the loop has taken the one before')
            if (!saveFirst) save(round)
            while (Atomics.load(i32, resumed) !== round);
          }
        },
        loop: () => {
          for (let round = 1; round <= 2; round++) {
            while (ring.pop() === 0);
            assert(i32[context] === round && i32[context + 1] === round, 'the context is whole')
            Atomics.store(i32, resumed, round)
          }
        },
      },
    }
  }
}

/** What problem 4 needs of a ring. */
export interface Ring {
  push(value: number): boolean
  pop(): number
}

/** Problem 4: the ring's order. Values come out as they went in, whole, a lap later too. */
export function ringOrder(
  makeRing: (i32: Int32Array, capacity: number) => Ring = (i32, capacity) => new SpscRing(i32, 0, capacity),
): Setup {
  return () => {
    const ring = makeRing(new Int32Array(new SharedArrayBuffer(spscWords(2) * 4)), 2)
    const popped: number[] = []
    let pushed = 0
    return {
      threads: {
        interrupt: () => {
          for (let value = 1; value <= 3; value++) if (ring.push(value)) pushed++
        },
        loop: () => {
          for (let i = 0; i < 3; i++) {
            const value = ring.pop()
            if (value !== 0) popped.push(value)
          }
        },
      },
      final: () => {
        for (let value = ring.pop(); value !== 0; value = ring.pop()) popped.push(value)
        assert(popped.length === pushed, 'nothing is lost, nothing comes twice')
        for (let i = 1; i < popped.length; i++)
          assert(popped[i] > popped[i - 1], 'in the order of the pushes')
      },
    }
  }
}

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
          // A coroutine that only ever looks at its safepoint.
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
check('problem 2: the context, written and read', contextThroughTheRing())
check('problem 3: the tick inside the switch', tickInsideTheSwitch())
check('problem 4: the order of the ring', ringOrder())
check('problem 5: the tick as a coroutine ends', tickAtTheEnd())
check('problem 6: the full ring', fullRing())
check('suspend against the tick', tickDuringSuspend())
check('a late tick', lateTick())
check('every slice ends', everySliceEnds())
