import {
  Barrier,
  Channel,
  Condition,
  Event,
  Latch,
  Mutex,
  Once,
  RwLock,
  select,
  Semaphore,
  SharedQueue,
  WaitGroup,
} from '../../src/sync/index.ts'
import { SyncError } from '../../src/sync/wait/errors.ts'
import { type Call, NO_DICE, type Subject } from './histories.ts'
import type { Operation } from './linearizable.ts'
import { type Dice, pause } from './simulate.ts'

type Run = () => Generator<number, unknown, unknown>

export const call = (name: string, args: readonly unknown[], run: Run): Call => ({ name, args, run })

// oxlint-disable-next-line require-yield
export const at = (name: string, args: readonly unknown[], fn: () => unknown): Call =>
  // oxlint-disable-next-line require-yield
  call(name, args, function* () {
    return fn()
  })

const limited = (dice: Dice): { timeout?: number } => (dice.roll(4) === 0 ? { timeout: dice.roll(3) } : {})

export const refused = ({ result }: Operation): boolean => result === 'refused' || result === 'cancelled'

export const cancelled = ({ result }: Operation): boolean => result === 'cancelled'

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(what)
}

/** A lock that knows its holder; -1: free. */
export function mutexSubject(): Subject<number> {
  const mutex = new Mutex()
  return {
    model: {
      initial: -1,
      step(owner, operation) {
        if (operation.name === 'unlock') return owner === operation.who ? -1 : undefined
        if (refused(operation) || operation.result === false) return owner
        return owner === -1 ? operation.who : undefined
      },
    },
    next(dice, _who, holds) {
      if (holds['lock'] === 1) {
        holds['lock'] = 0
        return at('unlock', [], () => mutex.unlock())
      }
      if (dice === NO_DICE) return null
      if (dice.roll(4) === 0) {
        return at('tryLock', [], () => {
          const took = mutex.tryLock() !== null
          if (took) holds['lock'] = 1
          return took
        })
      }
      const options = limited(dice)
      return call('lock', [JSON.stringify(options)], function* () {
        yield* mutex.lock(options)
        holds['lock'] = 1
      })
    },
    final: () => must(!mutex.locked, 'it is free at the end'),
  }
}

/** A count that is never negative. */
export function semaphoreSubject(dice: Dice): Subject<number> {
  const permits = 1 + dice.roll(4)
  const semaphore = new Semaphore(permits)
  return {
    model: {
      initial: permits,
      step(free, operation) {
        const count = operation.args[0] as number
        if (operation.name === 'release') return free + count
        if (refused(operation) || operation.result === false) return free
        return free >= count ? free - count : undefined
      },
    },
    next(dices, _who, holds) {
      const held = holds['permits'] ?? 0
      if (held > 0) {
        const count = dices === NO_DICE ? held : 1 + dices.roll(held)
        holds['permits'] = held - count
        return at('release', [count], () => semaphore.release(count))
      }
      if (dices === NO_DICE) return null
      const count = 1 + dices.roll(permits)
      if (dices.roll(4) === 0) {
        return at('tryAcquire', [count], () => {
          const took = semaphore.tryAcquire(count) !== null
          if (took) holds['permits'] = count
          return took
        })
      }
      const options = limited(dices)
      return call('acquire', [count], function* () {
        yield* semaphore.acquire(count, options)
        holds['permits'] = count
      })
    },
    final: () => must(semaphore.available === permits, 'every permit is back'),
  }
}

/** Readers, and the writer or -1. */
export function rwLockSubject(): Subject<{ readers: number; writer: number }> {
  const lock = new RwLock()
  return {
    model: {
      initial: { readers: 0, writer: -1 },
      step(state, operation) {
        const { readers, writer } = state
        const { who, name } = operation
        if (refused(operation) || operation.result === false) return state
        switch (name) {
          case 'lockRead':
            return writer === -1 ? { readers: readers + 1, writer } : undefined
          case 'lockWrite':
            return writer === -1 && readers === 0 ? { readers, writer: who } : undefined
          case 'unlockRead':
            return readers > 0 ? { readers: readers - 1, writer } : undefined
          case 'unlockWrite':
            return writer === who ? { readers, writer: -1 } : undefined
          case 'upgrade':
            return readers === 1 && writer === -1 ? { readers: 0, writer: who } : undefined
          default:
            return writer === who ? { readers: 1, writer: -1 } : undefined
        }
      },
    },
    next(dice, _who, holds) {
      if (holds['as'] === 2) {
        const downgrades = dice !== NO_DICE && dice.roll(2) === 0
        holds['as'] = downgrades ? 1 : 0
        return downgrades
          ? at('downgrade', [], () => void lock.downgrade())
          : at('unlockWrite', [], () => lock.unlockWrite())
      }
      if (holds['as'] === 1) {
        if (dice !== NO_DICE && dice.roll(3) === 0) {
          const options = limited(dice)
          return call('upgrade', [], function* () {
            try {
              yield* lock.upgrade(options)
            } catch (error) {
              if (error instanceof SyncError && error.code === 'ERR_HEDDLE_DEADLOCK') return false
              throw error
            }
            holds['as'] = 2
            return true
          })
        }
        holds['as'] = 0
        return at('unlockRead', [], () => lock.unlockRead())
      }
      if (dice === NO_DICE) return null
      const options = limited(dice)
      const writes = dice.roll(2) === 0
      return call(writes ? 'lockWrite' : 'lockRead', [], function* () {
        if (writes) yield* lock.lockWrite(options)
        else yield* lock.lockRead(options)
        holds['as'] = writes ? 2 : 1
      })
    },
    final: () => must(lock.readers === 0 && !lock.isWriting, 'it is free at the end'),
  }
}

/** A bounded buffer of numbers, built in the usual way from a mutex and two conditions. */
export function conditionSubject(dice: Dice): Subject<number[]> {
  const capacity = 1 + dice.roll(2)
  const mutex = new Mutex()
  const [notFull, notEmpty] = [new Condition(), new Condition()]
  const buffer: number[] = []
  let made = 0
  const notify = (condition: Condition): void => void condition.notify(dice.roll(3) === 0 ? Infinity : 1)
  return {
    model: {
      initial: [],
      step(queue, operation) {
        if (refused(operation)) return queue
        if (operation.name === 'put')
          return queue.length < capacity ? [...queue, operation.args[0] as number] : undefined
        return queue[0] === operation.result ? queue.slice(1) : undefined
      },
    },
    next(dices) {
      if (dices === NO_DICE) return null
      // Every wait ends: a history may have more takers than values.
      const timeout = 1 + dices.roll(3)
      if (dices.roll(2) === 0) {
        const value = ++made
        return call('put', [value], function* () {
          using token = yield* mutex.lock()
          while (buffer.length === capacity) yield* notFull.wait(token, { timeout })
          if (dices.roll(3) === 0) yield* quietly(pause())
          buffer.push(value)
          notify(notEmpty)
        })
      }
      return call('take', [], function* () {
        using token = yield* mutex.lock()
        while (buffer.length === 0) yield* notEmpty.wait(token, { timeout })
        const value = buffer.shift()
        notify(notFull)
        return value
      })
    },
    final: () => must(!mutex.locked, 'the mutex is free at the end'),
  }
}

/**
 * A pause inside a section that must run as a whole: a cancellation that arrives there is delayed until its
 * end.
 */
function* quietly(pausing: Generator<number, void, unknown>): Generator<number, void, unknown> {
  try {
    yield* pausing
  } catch {
    // The next wait is the last.
  }
}

/** A count, and the tasks that wait until it is 0. */
export function waitGroupSubject(dice: Dice): Subject<number> {
  const start = dice.roll(3)
  const latch = dice.roll(2) === 0
  const group = latch ? new Latch(start) : new WaitGroup(start)
  let left = start
  return {
    model: {
      initial: start,
      step(count, operation) {
        if (operation.name === 'add') return count + 1
        if (operation.name === 'done') return count > 0 ? count - 1 : undefined
        return refused(operation) || count === 0 ? count : undefined
      },
    },
    next(dices) {
      if (dices === NO_DICE) {
        if (left === 0) return null
        left--
        return at('done', [], () => (group instanceof Latch ? group.countDown() : group.done()))
      }
      const what = dices.roll(3)
      if (what === 0 && group instanceof WaitGroup) {
        left++
        return at('add', [], () => group.add(1))
      }
      if (what === 1 && left > 0) {
        left--
        return at('done', [], () => (group instanceof Latch ? group.countDown() : group.done()))
      }
      const timeout = dices.roll(3)
      return call('wait', [], () => group.wait({ timeout }))
    },
    final: () => must(group.count === 0, 'the count is 0 at the end'),
  }
}

export function eventSubject(dice: Dice): Subject<{ set: boolean; lent: number }> {
  const auto = dice.roll(2) === 0
  const event = new Event({ auto })
  return {
    givesBack: true,
    model: {
      initial: { set: false, lent: 0 },
      step({ set, lent }, operation) {
        if (operation.name === 'giveBack') return lent > 0 ? { set: true, lent: lent - 1 } : { set, lent }
        if (operation.name === 'set') return { set: true, lent }
        if (operation.name === 'reset') return { set: false, lent }
        if (refused(operation)) return { set, lent }
        return set ? { set: !auto, lent } : undefined
      },
      also: ({ set, lent }, operation) =>
        auto && set && operation.name === 'wait' && cancelled(operation)
          ? { set: false, lent: lent + 1 }
          : undefined,
    },
    next(dices) {
      if (dices === NO_DICE) return null
      const what = dices.roll(5)
      if (what < 2) return at('set', [], () => event.set())
      if (what === 2) return at('reset', [], () => event.reset())
      const timeout = dices.roll(4)
      return call('wait', [], () => event.wait({ timeout }))
    },
  }
}

export function onceSubject(): Subject<string> {
  const once = new Once()
  let runs = 0
  return {
    model: {
      initial: 'not done',
      step(state, operation) {
        if (refused(operation) || operation.result === 'threw') return state
        if (operation.result === true) return state === 'not done' ? 'done' : undefined
        return state === 'done' ? state : undefined
      },
    },
    next(dice) {
      if (dice === NO_DICE) return null
      const options = limited(dice)
      const throws = dice.roll(4) === 0
      return call('run', [throws], function* () {
        try {
          return yield* once.run(function* () {
            yield* pause()
            if (throws) throw new RangeError('not this time')
            runs++
          }, options)
        } catch (error) {
          if (error instanceof RangeError) return 'threw'
          throw error
        }
      })
    },
    final: () => must(runs <= 1, 'it was done at most once'),
  }
}

/** A queue of this many numbers; without capacity, a send ends only with its receive. */
export function channelSubject(dice: Dice): Subject<{ queue: number[]; lent: number[] }> {
  const latest = dice.roll(5) === 0
  const capacity = latest ? 1 : dice.roll(3)
  const channel = new Channel<number>({ capacity, latest })
  channel.share()
  let sent = 0
  // A rendezvous is a send with the receive directly after it.
  const room = Math.max(1, capacity)
  const sendTo = (
    value: number,
    queue: number[],
    lent: number[],
  ): { queue: number[]; lent: number[] } | undefined => {
    if (latest) return { queue: [value], lent }
    return queue.length < room ? { queue: [...queue, value], lent } : undefined
  }
  return {
    givesBack: true,
    model: {
      initial: { queue: [], lent: [] },
      step({ queue, lent }, operation) {
        if (operation.name === 'giveBack') {
          if (lent.length === 0) return { queue, lent }
          const back = latest && queue.length > 0 ? queue : [lent[0], ...queue]
          return { queue: back, lent: lent.slice(1) }
        }
        if (refused(operation)) return { queue, lent }
        const value = operation.args[0] as number
        if (operation.name === 'send') return sendTo(value, queue, lent)
        if (operation.result === null) return { queue, lent }
        return queue[0] === operation.result ? { queue: queue.slice(1), lent } : undefined
      },
      // The throw came after the value had been received or passed to the receiver.
      also({ queue, lent }, operation) {
        if (!cancelled(operation) || operation.name === 'giveBack') return undefined
        if (operation.name === 'send') return sendTo(operation.args[0] as number, queue, lent)
        return queue.length > 0 ? { queue: queue.slice(1), lent: [...lent, queue[0]] } : undefined
      },
    },
    next(dices) {
      if (dices === NO_DICE) return null
      const timeout = dices.roll(4)
      const what = dices.roll(5)
      if (what < 2) {
        const value = ++sent
        return call('send', [value], () => channel.send(value, { timeout }))
      }
      if (what === 2) return at('tryReceive', [], () => channel.tryReceive()?.value ?? null)
      return call('receive', [], () => channel.receive({ timeout }))
    },
  }
}

/** Two channels, and tasks that send or receive at the first one that is ready. */
export function selectSubject(dice: Dice): Subject<number[][]> {
  const capacities = [dice.roll(2), dice.roll(3)]
  const channels = capacities.map(capacity => new Channel<number>(capacity))
  channels.forEach(channel => channel.share())
  let sent = 0
  return {
    model: {
      initial: [[], []],
      step(queues, operation) {
        if (refused(operation)) return queues
        const { index, value } = operation.result as { index: number; value: number }
        if (index > 1) return queues
        const sends = (operation.args[0] as string[])[index] === 'send'
        const queue = queues[index]
        const next = queues.slice()
        if (sends) {
          if (queue.length >= Math.max(1, capacities[index])) return undefined
          next[index] = [...queue, (operation.args[1] as number[])[index]]
        } else {
          if (queue[0] !== value) return undefined
          next[index] = queue.slice(1)
        }
        return next
      },
    },
    next(dices) {
      if (dices === NO_DICE) return null
      const timeout = dices.roll(4)
      const sides = channels.map(() => dices.pick(['send', 'receive']))
      const values = channels.map(() => ++sent)
      const cases = channels.map((channel, index) =>
        sides[index] === 'send' ? { send: channel, value: values[index] } : { receive: channel },
      )
      return call('select', [sides, values], function* () {
        const { index, value } = yield* select([...cases, { timeout }])
        return { index, value }
      })
    },
  }
}

export function sharedQueueSubject(dice: Dice): Subject<number[]> {
  const capacity = 1 + dice.roll(2)
  const queue = new SharedQueue({ capacity, fields: 2 })
  let pushed = 0
  return {
    model: {
      initial: [],
      step(values, operation) {
        if (refused(operation)) return values
        if (operation.name === 'push')
          return values.length < capacity ? [...values, operation.args[0] as number] : undefined
        return values[0] === operation.result ? values.slice(1) : undefined
      },
    },
    next(dices) {
      if (dices === NO_DICE) return null
      const timeout = dices.roll(4)
      if (dices.roll(2) === 0) {
        const value = ++pushed
        return call('push', [value], () => queue.push([value, -value], { timeout }))
      }
      return call('pop', [], function* () {
        const record = yield* queue.pop([], { timeout })
        must(record[0] === -record[1], 'a record is whole')
        return record[0]
      })
    },
  }
}

/** Barrier phases: the number of arrivals in each, by the model's count, and the result of each arrival. */
export function barrierSubject(dice: Dice): Subject<{ arrived: number }> {
  const parties = 1 + dice.roll(3)
  const barrier = new Barrier(parties)
  return {
    model: {
      initial: { arrived: 0 },
      step({ arrived }, operation) {
        if (refused(operation)) return { arrived }
        const last = arrived + 1 === parties
        if (operation.result !== last) return undefined
        return { arrived: last ? 0 : arrived + 1 }
      },
      // It had met the others before the throw.
      also: ({ arrived }, operation) =>
        cancelled(operation) ? { arrived: arrived + 1 === parties ? 0 : arrived + 1 } : undefined,
    },
    next(dices) {
      if (dices === NO_DICE) return null
      const timeout = dices.roll(4)
      return call('arrive', [], () => barrier.arrive({ timeout }))
    },
  }
}
