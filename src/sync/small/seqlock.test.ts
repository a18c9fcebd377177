import { afterAll, beforeAll, expect, test } from 'vitest'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { Kernel, SeqLock } from '../../index.ts'
import { until } from '../../../testing/kernel/fixtures/ending.ts'
import type * as Tasks from '../../../testing/sync/fixtures/seqtasks.ts'

let kernel: Kernel
let tasks: Awaited<ReturnType<typeof load>>

function load(): Promise<Awaited<ReturnType<typeof Kernel.prototype.import<typeof Tasks>>>> {
  return kernel.import<typeof Tasks>(new URL('../../../testing/sync/fixtures/seqtasks.ts', import.meta.url))
}

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 2, watchdog: false })
  tasks = await load()
})

afterAll(() => kernel.close({ abort: true }))

/** As seqlock.ts draws them. */
const WRITER = 1
const NEXT = 2
const ARRIVALS = 4

/** A record that another writer, which is alive, is in the middle of. */
function busyRecord(): { record: SeqLock; end: () => void } {
  const record = new SeqLock({ fields: 1 })
  const { i32, at } = record
  const futexes = currentFutexes()
  const owner = futexes.makeOwner()
  Atomics.store(i32, at + WRITER, owner.tid)
  return {
    record,
    end() {
      Atomics.store(i32, at + WRITER, 0)
      futexes.closeOwner(owner)
    },
  }
}

test('a later writer does not pass a waiting one, although the record is free', async () => {
  for (let round = 0; round < 20; round++) {
    const { record, end } = busyRecord()
    const waiting = kernel.spawn(tasks.writes, [record, 1])
    await until('it is next', () => Atomics.load(record.i32, record.at + NEXT) !== 0)
    // No thread wakes it: the waiting writer checks by itself, after a while.
    end()
    record.write([2])
    expect(record.read()[0]).toBe(2)
    await waiting
    expect(record.read()[0]).toBe(2)
  }
})

test('of two waiting writers the one that came first writes first', async () => {
  for (let round = 0; round < 20; round++) {
    const { record, end } = busyRecord()
    const next = record.at + NEXT
    const first = kernel.spawn(tasks.writes, [record, 1], { affinity: [0] })
    await until('the first is next', () => Atomics.load(record.i32, next) !== 0)
    const tid = Atomics.load(record.i32, next)
    const second = kernel.spawn(tasks.writes, [record, 2], { affinity: [1] })
    await until('the second has come', () => Atomics.load(record.i32, record.at + ARRIVALS) === 2)
    // The second does not replace a writer that has waited longer.
    expect(Atomics.load(record.i32, next)).toBe(tid)
    end()
    await Promise.all([first, second])
    expect(record.read()[0]).toBe(2)
  }
})

test('writers that write all the time all make progress', async () => {
  const record = new SeqLock({ fields: 2 })
  const writers = [0, 1].map(cpu => kernel.spawn(tasks.writesMuch, [record, cpu, 300], { affinity: [cpu] }))
  for (let time = 0; time < 300; time++) record.write([9, 9])
  expect(await Promise.all(writers)).toEqual([300, 300])
  const [a, b] = Array.from(record.read())
  expect(a).toBe(b)
  expect([record.i32[record.at + WRITER], record.i32[record.at + NEXT]]).toEqual([0, 0])
})

test.each([0, 1])(
  'an argument that throws as it is read for copy %i leaves the old or the new record, and the lock free',
  copies => {
    const record = new SeqLock({ fields: 3 })
    record.write([1, 2, 3])
    let reads = 0
    const throwing = {
      length: 3,
      0: 4,
      get 1(): number {
        if (reads++ === copies) throw new Error('no more')
        return 5
      },
      2: 6,
    }
    expect(() => record.write(throwing)).toThrow('no more')
    expect([...(record.read() as Int32Array)]).toEqual(copies === 0 ? [1, 2, 3] : [4, 5, 6])
    for (const next of [
      [7, 8, 9],
      [10, 11, 12],
    ]) {
      record.write(next)
      expect([...(record.read() as Int32Array)]).toEqual(next)
    }
  },
)

test('a writer whose TID was left in the lock writes again', () => {
  const record = new SeqLock({ fields: 1 })
  record.write([1])
  // What a write leaves whose stack was full at each step.
  Atomics.store(record.i32, record.at + WRITER, currentFutexes().self.tid)
  record.write([2])
  expect([...(record.read() as Int32Array)]).toEqual([2])
  expect(Atomics.load(record.i32, record.at + WRITER)).toBe(0)
})
