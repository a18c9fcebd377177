import { assert } from '../arena/assert.ts'
import { check } from '../checker/check.ts'
import { Barrier } from './barrier.ts'
import { checkedThreads } from './checksetup.ts'
import { Event } from './event.ts'
import { Once } from './once.ts'
import { SeqLock } from './seqlock.ts'
import { Latch } from './waitgroup.ts'

check('a latch opens for who waits before, at and after the last count', { time: 20_000 }, () => {
  const view = checkedThreads(2)
  const [one, two] = [Latch.at({ view }), Latch.at({ view })]
  Atomics.store(view, 0, 1)
  return { threads: { waiter: () => one.waitSync(), last: () => two.countDown() } }
})

check(
  'an automatic event lets one through for each set, and one whose time is over takes none',
  { time: 20_000 },
  () => {
    const view = checkedThreads(2)
    const [one, two] = [new Event({ view, auto: true }), new Event({ view, auto: true })]
    return {
      threads: {
        waiter() {
          try {
            one.waitSync({ timeout: 1 })
            return true
          } catch {
            return false
          }
        },
        setter: () => two.set(),
      },
      final: ({ results }) => assert((results[0] === true) !== two.isSet, 'taken, or still there'),
    }
  },
)

check('a thing done once is done by one of two, and the other waits for it', { time: 20_000 }, () => {
  const view = checkedThreads(2)
  const made = [new Once({ view }), new Once({ view })]
  let done = 0
  const run = (id: number) => () => {
    const mine = made[id].runSync(() => {
      done++
    })
    assert(done === 1, 'it is done when the call returns')
    return mine
  }
  return {
    threads: { one: run(0), two: run(1) },
    final: ({ results }) => assert(results.filter(Boolean).length === 1, 'one of them did it'),
  }
})

check('two meet at a barrier, and one of them is told that it was the last', { time: 20_000 }, () => {
  const view = checkedThreads(2)
  const made = [new Barrier(2, { view }), new Barrier(2, { view })]
  return {
    threads: { one: () => made[0].arriveSync(), two: () => made[1].arriveSync() },
    final: ({ results }) => assert(results.filter(Boolean).length === 1, 'one of them was the last'),
  }
})

check(
  'a reader of a seqlock sees one whole record or the other, and never waits for a writer that died',
  { crashes: { max: 1, threads: [0] } },
  () => {
    const view = new Int32Array(new SharedArrayBuffer(64))
    const made = [new SeqLock({ view, fields: 2 }), new SeqLock({ view, fields: 2 })]
    return {
      threads: {
        writer: () => made[0].write([1, 1]),
        reader() {
          const seen = made[1].read([0, 0] as never)
          assert(seen[0] === seen[1], 'the record is whole')
        },
      },
    }
  },
)
