/** Each problem of the design: found when its remedy is taken out, and gone with it. */
import { describe, expect, test } from 'vitest'
import type { Region } from '../../arena/memory/arena.ts'
import { check, type CheckResult, found, type Setup } from '../../checker/check.ts'
import { CpuRecord } from '../../machine/core/cpurecord.ts'
import { armSlice } from '../../machine/timekeeper/timekeeper.ts'
import type { Co } from './co.ts'
import { preemptionDepth, swapPreemptionDepth } from '../core/safepoint.ts'
import { type Slices, ThreadSlices } from './slices.ts'
import { Switch } from '../core/switch.ts'
import {
  everySliceEnds,
  lateTick,
  preemptedInTurn,
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
  (slices: Slices): Switch =>
    new Broken(slices, 10, () => 0)

describe('problem 1: the tick comes when runningCo is set and the coroutine does not run yet', () => {
  class Unmasked extends Switch {
    protected override mask(): number {
      return preemptionDepth()
    }
  }

  test('without preemption off before it, a coroutine that does not run is preempted', () => {
    expect(found(tickBeforeTheSwitch({ makeSwitch: make(Unmasked) }))).toMatch(
      /told to stop at a safepoint must yield there|only a coroutine that runs is preempted/,
    )
  })

  test('with it, every interleaving is sound', () => void passes(tickBeforeTheSwitch()))
})

describe('problem 3: the tick comes inside the switch', () => {
  class OpenOnTheWayBack extends Switch {
    protected override remask(co: Co<any>): void {
      co.coroutine.preemptionDepth = swapPreemptionDepth(0)
    }
  }

  test('without preemption off on the way back, a coroutine that waits is preempted', () => {
    expect(found(tickInsideTheSwitch({ makeSwitch: make(OpenOnTheWayBack) }))).toMatch(
      /only a coroutine that runs is preempted|on no queue/,
    )
  })

  test('with it, every interleaving is sound', () => void passes(tickInsideTheSwitch()))
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

  test('with runningCo left as it is, a coroutine that has ended is preempted', () => {
    expect(found(tickAtTheEnd({ makeSwitch: make(NamesTheDead) }))).toMatch(
      'only a coroutine that runs is preempted',
    )
  })

  test('clearing runningCo is enough, as the design says', () =>
    void passes(tickAtTheEnd({ makeSwitch: make(ForgetsTheDead) })))

  test('with both, every interleaving is sound', () => void passes(tickAtTheEnd()))
})

describe('problem 6: one coroutine is preempted after another', () => {
  test('by a loop that resumes before it takes the preempted one, a coroutine would be lost', () => {
    expect(found(preemptedInTurn({ takes: 3 }))).toMatch('before it resumes another')
  })

  test('taken before the next switch, no coroutine is lost', () => void passes(preemptedInTurn()))
})

describe('suspend against the tick', () => {
  test('with preemption on, a coroutine that waits is preempted', () => {
    expect(found(tickDuringSuspend({ masksWaits: false }))).toMatch(
      /only a coroutine that runs is preempted|must yield there|on no queue/,
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
