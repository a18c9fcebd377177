import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { PRIORITY_LEVELS, ReadyQueue } from './readyqueue.ts'
import { SleepQueue, Timer } from './sleepqueue.ts'

class Entry {
  priority: number
  readyNext: Entry | null = null
  readyPrevious: Entry | null = null
  isQueued = false
  readonly name: number

  constructor(name: number, priority: number) {
    this.name = name
    this.priority = priority
  }
}

test('the ready queue gives the first of the first level, over 100,000 operations of all kinds', () => {
  const step = fc.record({ kind: fc.constantFrom('add', 'add', 'take', 'remove'), pick: fc.nat(1e6) })
  fc.assert(
    fc.property(fc.array(step, { minLength: 900, maxLength: 1100 }), steps => {
      const queue = new ReadyQueue<Entry>()
      const levels: Entry[][] = Array.from({ length: PRIORITY_LEVELS }, () => [])
      const everyone = (): Entry[] => levels.flat()
      let names = 0
      for (const { kind, pick } of steps) {
        if (kind === 'add') {
          const entry = new Entry(names++, pick % PRIORITY_LEVELS)
          queue.add(entry)
          levels[entry.priority].push(entry)
        } else if (kind === 'take') {
          const level = levels.find(list => list.length > 0)
          expect(queue.topLevel).toBe(level?.[0].priority ?? PRIORITY_LEVELS)
          expect(queue.take()).toBe(level?.shift() ?? null)
        } else {
          const all = everyone()
          if (all.length === 0) continue
          const entry = all[pick % all.length]
          queue.remove(entry)
          levels[entry.priority].splice(levels[entry.priority].indexOf(entry), 1)
        }
        expect(queue.count).toBe(everyone().length)
      }
    }),
    { numRuns: 100 },
  )
})

test('the ready queue refuses a second add and a removal of what it does not have', () => {
  const queue = new ReadyQueue<Entry>()
  const entry = new Entry(1, 5)
  expect(() => queue.remove(entry)).toThrow('not in the ready queue')
  queue.add(entry)
  expect(() => queue.add(entry)).toThrow('already')
})

test('the sleep queue gives timers by deadline, first come first among equals, over 100,000 operations', () => {
  const step = fc.record({ kind: fc.constantFrom('add', 'add', 'expire', 'remove'), pick: fc.nat(50) })
  fc.assert(
    fc.property(fc.array(step, { minLength: 900, maxLength: 1100 }), steps => {
      const queue = new SleepQueue<number>()
      let model: Timer<number>[] = []
      let names = 0
      for (const { kind, pick } of steps) {
        if (kind === 'add') {
          const timer = new Timer(names++)
          queue.add(timer, pick)
          model.push(timer)
          model.sort((a, b) => a.due - b.due || a.owner - b.owner)
        } else if (kind === 'expire') {
          const due = model[0] !== undefined && model[0].due <= pick ? model.shift() : undefined
          expect(queue.expire(pick)).toBe(due)
        } else if (model.length > 0) {
          const timer = model[pick % model.length]
          queue.remove(timer)
          model = model.filter(other => other !== timer)
          expect(timer.isQueued).toBe(false)
        }
        expect(queue.count).toBe(model.length)
        expect(queue.next).toBe(model[0]?.due ?? Infinity)
      }
    }),
    { numRuns: 100 },
  )
})

test('the sleep queue refuses a timer twice, a foreign one, and a deadline that is not a number', () => {
  const queue = new SleepQueue<string>()
  const timer = new Timer('a')
  expect(() => queue.remove(timer)).toThrow('not on this sleep queue')
  expect(() => queue.add(timer, Number.NaN)).toThrow('a deadline is a number')
  queue.add(timer, 1)
  expect(() => queue.add(timer, 2)).toThrow('already')
})
