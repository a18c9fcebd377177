import { assert } from '../../src/arena/assert.ts'
import type { Setup } from '../../src/checker/check.ts'
import { CheckedThreads, each } from './checksetup.ts'
import { Holders } from '../../src/sync/wait/holders.ts'

/** Where the shares are counted, and where their names are. */
const COUNT = 0
const NAMES = 200

type Step = (count: Int32Array, holders: Holders, tid: number) => void

/** (A) (B), then (C) (D). */
const takes: Step = (view, holders, tid) => {
  Atomics.add(view, COUNT, 1)
  holders.add(tid, 1)
}
const gives: Step = (view, holders, tid) => {
  holders.remove(tid, 1)
  Atomics.sub(view, COUNT, 1)
}

/** Broken: its name before its share. */
export const namesFirst: Step = (view, holders, tid) => {
  holders.add(tid, 1)
  Atomics.add(view, COUNT, 1)
}

/** Broken: its share before its name. */
export const nameLast: Step = (view, holders, tid) => {
  Atomics.sub(view, COUNT, 1)
  holders.remove(tid, 1)
}

/**
 * Two hold a share each and give it back; one of them dies at any step, and what it had is given back beside
 * the other.
 */
export function dyingHolder(take: Step = takes, give: Step = gives): Setup {
  return () => {
    const threads = new CheckedThreads(2, true)
    const { view, tids, contexts } = threads
    const holders = each(2, () => new Holders(view, NAMES))
    let held = 0
    const hold = (id: number) => (): void => {
      take(view, holders[id], tids[id])
      if (id === 1) held = 1
      assert(Atomics.load(view, COUNT) >= 1, 'what a living one holds is counted')
      if (id === 1) held = 0
      give(view, holders[id], tids[id])
    }
    const giveBack = (): void => {
      const dead = holders[2].takeDead(contexts[2])
      const count = Atomics.sub(view, COUNT, dead) - dead
      assert(count >= held, 'no more is given back than the dead held')
    }
    return {
      threads: [hold(0), hold(1)],
      recover: (dead: number) => threads.recover(dead, giveBack),
      final({ crashed }) {
        const left = Atomics.load(view, COUNT)
        assert(
          left === 0 || (crashed.length > 0 && left === 1),
          'all is given back, but for a share without a name',
        )
      },
    }
  }
}
