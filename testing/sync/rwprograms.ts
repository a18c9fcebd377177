import { assert } from '../../src/arena/assert.ts'
import type { Setup } from '../../src/checker/check.ts'
import { CheckedThreads, each } from './checksetup.ts'
import { LOSSES } from '../../src/sync/mutex/parkinglock.ts'
import { OBJECT_WORDS } from '../../src/sync/wait/objectwords.ts'
import { RwLock } from '../../src/sync/rwlock/rwlock.ts'
import { readersOf, ReadWait, UpgradeWait, WRITER, WriteWait } from '../../src/sync/rwlock/rwwaits.ts'
import type { Wait } from '../../src/sync/wait/waiting.ts'

type Wants = 'read' | 'write' | 'upgrade'
type Doing = 'comes to' | 'waits to' | 'is late to' | 'is cancelled as it waits to'

export interface Scene {
  /** How thread 0 holds the lock at first; it unlocks. A thread that upgrades reads, too. */
  readonly held: 'read' | 'write'
  readonly others: readonly [Doing, Wants][]
  readonly mortal?: number
  /** The waiters have lost so often that they are handed the lock; else they are woken to compete for it. */
  readonly demanding?: boolean
  /** The wait of the writers. */
  readonly Write?: typeof WriteWait
}

/** A thread holds the lock and unlocks, as others come, wait, are late or are cancelled. */
export function scene({ held, others, mortal, demanding = false, Write = WriteWait }: Scene): Setup {
  return () => {
    const count = others.length + 1
    const threads = new CheckedThreads(count, mortal !== undefined)
    const { view, tids } = threads
    // One object is here, and what follows it is its own.
    view.fill(0, OBJECT_WORDS, RwLock.words)
    const locks = each(count, () => new RwLock({ view }))
    threads.keep(locks.map(({ queue }) => queue))
    const upgraders = others.filter(([, wants]) => wants === 'upgrade').length
    Atomics.store(view, 0, held === 'write' ? WRITER | tids[0] : 1 + upgraders)
    let readers = (held === 'read' ? 1 : 0) + upgraders
    let writers = held === 'write' ? 1 : 0
    let died = false
    const waitOf = (id: number, wants: Wants): Wait => {
      if (wants === 'upgrade') return new UpgradeWait(locks[id], tids[id])
      const wait = wants === 'read' ? new ReadWait(locks[id]) : new Write(locks[id], tids[id])
      return demanding ? Object.assign(wait, { losses: LOSSES }) : wait
    }
    const enter = (wants: Wants): void => {
      if (wants === 'upgrade') readers--
      if (wants === 'read') readers++
      else writers++
      // A thread that died inside is still counted.
      assert(died || writers === 0 || (writers === 1 && readers === 0), 'readers, or one writer alone')
    }
    const leave = (id: number, wants: Wants): void => {
      if (wants === 'read') readers--
      else writers--
      if (wants === 'read') locks[id].unlockRead()
      else locks[id].unlockWriteAs(tids[id])
    }
    const inside: [number, Wants][] = []
    const bodies = others.map(([doing, wants], at) => {
      const id = at + 1
      const wait = waitOf(id, wants)
      if (doing === 'is cancelled as it waits to') {
        const cancelled = threads.cancelled(id, wait)
        return () => {
          cancelled()
          if (wants === 'upgrade') leave(id, 'read')
        }
      }
      const sleeps = doing === 'comes to' ? null : threads.asleep(id, wait, doing === 'is late to')
      return () => {
        try {
          if (sleeps === null && wants === 'read') locks[id].lockReadSync()
          else if (sleeps === null) locks[id].lockWriteSync()
          else if (!sleeps()) {
            if (wants === 'upgrade') leave(id, 'read')
            return 'late'
          }
        } catch (error) {
          assert(
            (error as { code?: string }).code === 'ERR_HEDDLE_NOT_RECOVERABLE',
            'it gets the error for a dead writer',
          )
          return 'refused'
        }
        enter(wants)
        if (mortal === undefined) leave(id, wants)
        else inside.push([id, wants])
        return 'in'
      }
    })
    return {
      threads: [() => leave(0, held), ...bodies],
      ...(mortal !== undefined && {
        recover(dead: number) {
          died = true
          threads.recover(dead, () => {
            // A reader has no name: who knows that it died lets go in its place.
            const reads = dead === 0 && held === 'read' && readersOf(Atomics.load(view, 0)) > 0
            if (reads) locks[count].unlockRead()
          })
        },
      }),
      final({ results, crashed }) {
        // Beside a recovery no thread unlocks, because that would be too many orders to explore: it is done
        // now.
        for (const [id, wants] of inside) if (!crashed.includes(id)) leave(id, wants)
        const state = Atomics.load(view, 0)
        const dead = crashed.length > 0
        assert(dead || (state & ~0x8000_0000) === 0, 'free at the end')
        const readersDied = crashed.filter(id => (id === 0 ? held : others[id - 1][1]) !== 'write').length
        assert(readersOf(state) <= readersDied, 'no thread reads but one that died')
        for (const [at, [doing]] of others.entries()) {
          const result = results[at + 1]
          const had = result === 'in' || (result === 'late' && doing === 'is late to')
          const refused = result === 'refused' && (state & WRITER) !== 0
          assert(
            had || refused || crashed.includes(at + 1) || doing === 'is cancelled as it waits to',
            'it was admitted, was late, or got the error for a dead writer',
          )
        }
      },
    }
  }
}
