/** Each problem of the design: found when its remedy is taken out, and gone with it. */
import { describe, expect, test } from 'vitest'
import type { Region } from '../../arena/memory/arena.ts'
import { LINE_WORDS } from '../../arena/memory/record.ts'
import type { SpscRing } from '../../arena/rings/spsc.ts'
import { check, type CheckResult, found, type Setup } from '../../checker/check.ts'
import { CpuRecord } from '../../machine/core/cpurecord.ts'
import { armSlice } from '../../machine/timekeeper/timekeeper.ts'
import type { Co } from './co.ts'
import { preemptionDepth, swapPreemptionDepth } from '../core/safepoint.ts'
import { type Slices, ThreadSlices } from './slices.ts'
import { Switch } from '../core/switch.ts'
import {
  contextThroughTheRing,
  everySliceEnds,
  fullRing,
  lateTick,
  ringOrder,
  tickAtTheEnd,
  tickBeforeTheSwitch,
  tickDuringSuspend,
  tickInsideTheSwitch,
} from '../core/switch.check.ts'

function passes(setup: Setup): CheckResult {
  const result = check('sound', {}, setup)
  expect(result.complete).toBe(true)
  expect(result.executions + result.redundant).toBeGreaterThan(1)
  return result
}

const make =
  (Broken: typeof Switch) =>
  (ring: SpscRing, slices: Slices): Switch =>
    new Broken(ring, slices, 10, () => 0)

describe('problem 1: the tick comes when runningCo is set and the coroutine does not run yet', () => {
  class Unmasked extends Switch {
    protected override mask(): number {
      return preemptionDepth()
    }
  }

  test('without preemption off before it, a coroutine runs that the ring has', () => {
    expect(found(tickBeforeTheSwitch({ makeSwitch: make(Unmasked) }))).toMatch(
      /told to stop at a safepoint must yield there|the ring holds coroutines that run/,
    )
  })

  test('with it, every interleaving is sound', () => void passes(tickBeforeTheSwitch()))
})

describe('problem 2: the context is written by one side while the other reads it', () => {
  test('pushed before it is saved, it is read in pieces', () => {
    expect(found(contextThroughTheRing(false))).toMatch(/race|the context is whole/)
  })

  test('saved before it is pushed, the ring orders it', () => void passes(contextThroughTheRing()))
})

describe('problem 3: the tick comes inside the switch', () => {
  class OpenOnTheWayBack extends Switch {
    protected override remask(co: Co<any>): void {
      co.coroutine.preemptionDepth = swapPreemptionDepth(0)
    }
  }

  test('without preemption off on the way back, the ring has a coroutine that waits', () => {
    expect(found(tickInsideTheSwitch({ makeSwitch: make(OpenOnTheWayBack) }))).toMatch(
      /the ring holds coroutines that run|on no queue/,
    )
  })

  test('with it, every interleaving is sound', () => void passes(tickInsideTheSwitch()))
})

describe('problem 4: the order of the ring', () => {
  /** Announces a value before it is there. */
  class PublishesFirst {
    private readonly i32: Int32Array
    private readonly capacity: number

    constructor(i32: Int32Array, capacity: number) {
      this.i32 = i32
      this.capacity = capacity
    }

    push(value: number): boolean {
      const head = this.i32[0]
      const next = (head + 1) % this.capacity
      if (next === Atomics.load(this.i32, LINE_WORDS)) return false
      Atomics.store(this.i32, 0, next)
      this.i32[2 * LINE_WORDS + head] = value
      return true
    }

    pop(): number {
      const tail = this.i32[LINE_WORDS]
      if (tail === Atomics.load(this.i32, 0)) return 0
      const value = this.i32[2 * LINE_WORDS + tail]
      Atomics.store(this.i32, LINE_WORDS, (tail + 1) % this.capacity)
      return value
    }
  }

  test('published before it is written, a value is lost or torn', () => {
    expect(found(ringOrder((i32, capacity) => new PublishesFirst(i32, capacity)))).toMatch(/race|lost/)
  })

  test('written before it is published, every interleaving is sound', () => void passes(ringOrder()))
})

describe('problem 5: a coroutine ends as the tick arrives', () => {
  /** Neither of the two remedies: preemption stays on, and runningCo still names the one that ended. */
  class NamesTheDead extends Switch {
    protected override remask(co: Co<any>): void {
      co.coroutine.preemptionDepth = swapPreemptionDepth(0)
    }

    protected override ended(co: Co<any>): void {
      co.state = 'STOP'
    }
  }

  /** The design's own remedy alone. */
  class ForgetsTheDead extends Switch {
    protected override remask(co: Co<any>): void {
      co.coroutine.preemptionDepth = swapPreemptionDepth(0)
    }
  }

  test('with runningCo left as it is, the ring gets a coroutine that has ended', () => {
    expect(found(tickAtTheEnd({ makeSwitch: make(NamesTheDead) }))).toMatch(
      'the ring holds coroutines that run',
    )
  })

  test('clearing runningCo is enough, as the design says', () =>
    void passes(tickAtTheEnd({ makeSwitch: make(ForgetsTheDead) })))

  test('with both, every interleaving is sound', () => void passes(tickAtTheEnd()))
})

describe('problem 6: more are preempted than the ring holds', () => {
  class IgnoresFull extends Switch {
    override pushPreempted(co: Co<any>): boolean {
      super.pushPreempted(co)
      return true
    }
  }

  test('preempted all the same, a coroutine is lost', () => {
    expect(found(fullRing({ makeSwitch: make(IgnoresFull) }))).toMatch('every coroutine has run to its end')
  })

  test('not preempted, it runs on, and nobody is lost', () => void passes(fullRing()))
})

describe('suspend against the tick', () => {
  test('with preemption on, the ring has a coroutine that waits', () => {
    expect(found(tickDuringSuspend({ masksWaits: false }))).toMatch(
      /the ring holds coroutines that run|must yield there|on no queue/,
    )
  })

  test('with it off until the coroutine goes on, every interleaving is sound', () =>
    void passes(tickDuringSuspend()))
})

describe('the tick itself', () => {
  const variant =
    (Broken: typeof ThreadSlices) =>
    (i32: Int32Array, region: Region, cpu: number): Slices =>
      new Broken(i32, region, cpu)

  /** Takes any tick for its own. */
  class Credulous extends ThreadSlices {
    override isOver(): boolean {
      super.isOver()
      return true
    }
  }

  /** (D) before (C). */
  class LooksFirst extends ThreadSlices {
    override isOver(): boolean {
      const over = Atomics.load(this.view, this.index - CpuRecord.needResched + CpuRecord.sliceEnd) === 0
      Atomics.store(this.view, this.index, 0)
      return over
    }
  }

  test('for an earlier slice, taken for its own, ends one that has just begun', () => {
    expect(found(lateTick({ makeSlices: variant(Credulous) }))).toMatch('has just begun is not over')
    passes(lateTick())
  })

  test('lowered after the look, is lost, and the coroutine never stops', () => {
    expect(found(everySliceEnds({ makeSlices: variant(LooksFirst) }))).toMatch(/livelock|stuck/)
    passes(everySliceEnds())
  })

  test('lowered after the slice is armed, is lost, and the coroutine never stops', () => {
    class ArmsFirst extends ThreadSlices {
      readonly #region: Region

      constructor(i32: Int32Array, region: Region, cpu: number) {
        super(i32, region, cpu)
        this.#region = region
      }

      override begin(_now: number, end: number): void {
        armSlice(this.view, this.#region, this.index - CpuRecord.needResched, end)
        Atomics.store(this.view, this.index, 0)
      }
    }
    expect(found(everySliceEnds({ makeSlices: variant(ArmsFirst) }))).toMatch(/livelock|stuck/)
  })
})
