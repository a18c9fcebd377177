import { expect, test } from 'vitest'
import { type Shape, type Subject, tryHistories } from './histories.ts'
import { linearize } from './linearizable.ts'
import type { Dice } from './simulate.ts'
import * as cells from './cellsubjects.ts'
import * as subjects from './subjects.ts'

const HISTORIES = 10_000
const shape: Shape = { tasks: 3, calls: 4, cancels: 20 }

const all: Record<string, (dice: Dice) => Subject<any>> = {
  'a mutex': subjects.mutexSubject,
  'a semaphore': subjects.semaphoreSubject,
  'a readers-writer lock': subjects.rwLockSubject,
  'a mutex with conditions': subjects.conditionSubject,
  'a barrier': subjects.barrierSubject,
  'a wait group or latch': subjects.waitGroupSubject,
  'an event': subjects.eventSubject,
  'a thing done once': subjects.onceSubject,
  'a channel': subjects.channelSubject,
  'a select over two channels': subjects.selectSubject,
  'a shared queue': subjects.sharedQueueSubject,
  'a cell': cells.cellSubject,
  'a cell of 64 bits': cells.cell64Subject,
  'a seqlock': cells.seqLockSubject,
}

/** No task ever waits at these. */
const neverWait: readonly string[] = ['a cell of 64 bits', 'a seqlock']

test.each(Object.keys(all))(
  '%s behaves as its sequential model, with waits, timeouts and cancellations',
  name => {
    // From outside, one cannot see at which channel a cancelled select was served.
    const cancels = name.includes('select') ? 0 : shape.cancels
    const found = tryHistories(HISTORIES, { ...shape, cancels }, all[name])
    expect(found.histories).toBe(HISTORIES)
    // A test of locks without a wait shows nothing.
    if (neverWait.includes(name)) return
    expect(found.waited).toBeGreaterThan(HISTORIES / 4)
    if (cancels > 0) expect(found.cancelled).toBeGreaterThan(HISTORIES / 20)
  },
)

test('a history that no order explains is found', () => {
  const register = {
    initial: 0,
    step: (
      state: number,
      { name, args, result }: { name: string; args: readonly unknown[]; result: unknown },
    ) => (name === 'write' ? (args[0] as number) : state === result ? state : undefined),
  }
  const write = { who: 0, name: 'write', args: [1], start: 0, end: 1, result: undefined }
  const read = { who: 1, name: 'read', args: [], start: 2, end: 3, result: 0 }
  expect(linearize([write, read], register)).toBeNull()
  expect(linearize([write, { ...read, start: 0.5 }], register)).toEqual([1, 0])
})
