import { AtomicBigInt64, AtomicFloat64, AtomicInt32, SeqLock } from '../../src/sync/index.ts'
import { NO_DICE, type Subject } from './histories.ts'
import type { Dice } from './simulate.ts'
import { at, call, cancelled, refused } from './subjects.ts'

/** The value, and how many notified waiters have not returned from their wait yet. */
export function cellSubject(): Subject<{ value: number; notified: number }> {
  const cell = new AtomicInt32()
  return {
    model: {
      initial: { value: 0, notified: 0 },
      step({ value, notified }, operation) {
        const { name, args, result } = operation
        const [first, second] = args as number[]
        if (refused(operation)) return { value, notified }
        switch (name) {
          case 'notify':
            return (result as number) <= first
              ? { value, notified: notified + (result as number) }
              : undefined
          case 'wait':
            if (result === false) return value !== first ? { value, notified } : undefined
            return notified > 0 ? { value, notified: notified - 1 } : undefined
          case 'load':
            return result === value ? { value, notified } : undefined
          case 'store':
            return { value: first, notified }
          case 'update':
            return result === value * 2 + 1 ? { value: result, notified } : undefined
          case 'compareExchange':
            if (result !== value) return undefined
            return { value: value === first ? second : value, notified }
          default:
            return result === value ? { value: name === 'add' ? value + first : first, notified } : undefined
        }
      },
      // It had been notified, and there was no other waiter to pass the notification to.
      also: ({ value, notified }, operation) =>
        operation.name === 'wait' && cancelled(operation) && notified > 0
          ? { value, notified: notified - 1 }
          : undefined,
    },
    next(dice) {
      if (dice === NO_DICE) return null
      const value = dice.roll(3)
      switch (dice.roll(9)) {
        case 0:
          return at('load', [], () => cell.load())
        case 1:
          return at('store', [value], () => cell.store(value))
        case 2:
          return at('add', [value], () => cell.add(value))
        case 3:
          return at('exchange', [value], () => cell.exchange(value))
        case 4:
          return at('update', [], () => cell.update(seen => seen * 2 + 1))
        case 5: {
          const expected = dice.roll(3)
          return at('compareExchange', [expected, value], () => cell.compareExchange(expected, value))
        }
        case 6:
          return at('notify', [1 + value], () => cell.notify(1 + value))
        default: {
          const timeout = dice.roll(4)
          return call('wait', [value], () => cell.wait(value, { timeout }))
        }
      }
    },
  }
}

/** Both kinds of 64-bit cells, which have the same calls. */
export function cell64Subject(dice: Dice): Subject<number> {
  const float = new AtomicFloat64()
  const integer = new AtomicBigInt64()
  const isFloat = dice.roll(2) === 0
  const add = (by: number): number => (isFloat ? float.add(by) : Number(integer.add(BigInt(by))))
  const exchange = (to: number): number =>
    isFloat ? float.exchange(to) : Number(integer.exchange(BigInt(to)))
  const compareExchange = (expected: number, to: number): number =>
    isFloat
      ? float.compareExchange(expected, to)
      : Number(integer.compareExchange(BigInt(expected), BigInt(to)))
  return {
    model: {
      initial: 0,
      step(value, { name, args, result }) {
        const [first, second] = args as number[]
        if (name === 'store') return first
        if (result !== value) return undefined
        if (name === 'load') return value
        if (name === 'compareExchange') return value === first ? second : value
        return name === 'add' ? value + first : first
      },
    },
    next(dices) {
      if (dices === NO_DICE) return null
      const value = dices.roll(4)
      switch (dices.roll(5)) {
        case 0:
          return at('load', [], () => (isFloat ? float.load() : Number(integer.load())))
        case 1:
          return at('store', [value], () => (isFloat ? float.store(value) : integer.store(BigInt(value))))
        case 2:
          return at('add', [value], () => add(value))
        case 3:
          return at('exchange', [value], () => exchange(value))
        default: {
          const expected = dices.roll(4)
          return at('compareExchange', [expected, value], () => compareExchange(expected, value))
        }
      }
    },
  }
}

/** A record that is written and read as a whole. */
export function seqLockSubject(dice: Dice): Subject<number> {
  const fields = 1 + dice.roll(4)
  const lock = new SeqLock({ fields })
  let written = 0
  return {
    model: {
      initial: 0,
      step: (value, { name, args, result }) =>
        name === 'write' ? (args[0] as number) : result === value ? value : undefined,
    },
    next(dices) {
      if (dices === NO_DICE) return null
      if (dices.roll(2) === 0) {
        const value = ++written
        return at('write', [value], () => lock.write(Array.from({ length: fields }, () => value)))
      }
      return at('read', [], () => {
        const record = Array.from(lock.read())
        return record.every(word => word === record[0]) ? record[0] : 'torn'
      })
    },
  }
}
