import { assert } from '../../src/arena/assert.ts'
import type { Setup } from '../../src/checker/check.ts'
import { CheckedThreads, each } from './checksetup.ts'
import { Condition, type Held } from '../../src/sync/condition/condition.ts'
import { takeWord } from '../../src/sync/mutex/parkinglock.ts'
import { Mutex } from '../../src/sync/mutex/mutex.ts'
import type { notify } from '../../src/sync/condition/notify.ts'
import type { Wait } from '../../src/sync/wait/waiting.ts'

/** What a condition does on its way to sleep and after it: a check has it asleep from the start. */
export interface Steps {
  begin(held: Held): Wait & { notified: boolean; passOn(): void }
  ended(held: Held): void
  waiting: Mutex['queue']
  notified: Mutex['queue']
}

/**
 * Two wait at a condition, and the time of the first may be over. A thread that does not know their mutex
 * notifies both: they have the mutex one after the other. `dies`: that thread may, instead of the time of the
 * first being over.
 */
export function notifyByStranger(notifies: typeof notify, dies = false): Setup {
  return () => {
    const threads = new CheckedThreads(3, dies)
    const { view, tids, owners, contexts } = threads
    const mutexes = each(3, () => new Mutex({ view }))
    const conditions = each(3, () => new Condition({ view, index: 4 }))
    const steps = conditions.map(condition => condition as unknown as Steps)
    threads.keep(
      mutexes.map(({ queue }) => queue),
      steps.map(({ waiting }) => waiting),
      steps.map(({ notified }) => notified),
    )
    const waits = (id: number, isLate: boolean): (() => void) => {
      assert(takeWord(mutexes[id], tids[id]), 'the mutex is free')
      const held = { mutex: mutexes[id], owner: owners[id], depth: 0 }
      const after = (): void => {
        mutexes[id].reacquireSync(owners[id])
        steps[id].ended(held)
        assert(mutexes[id].isHeldBy(tids[id]), 'a wait ends with the mutex held')
        mutexes[id].unlockAs(owners[id])
      }
      const sleeps = threads.asleep(id, steps[id].begin(held), isLate, { after })
      return () => void sleeps()
    }
    return {
      threads: {
        late: waits(0, !dies),
        patient: waits(1, false),
        notifier: () => void notifies(contexts[2], conditions[2], steps[2], null, Infinity),
      },
      ...(dies && { recover: (dead: number) => threads.recover(dead) }),
    }
  }
}
