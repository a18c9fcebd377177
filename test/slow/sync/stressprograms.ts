import { sleep } from '../../../src/coroutine/core/blocking.ts'
import { Schedule } from '../../../src/coroutine/schedule/schedule.ts'
import {
  AtomicInt32,
  Barrier,
  Channel,
  Condition,
  Event,
  Latch,
  Mutex,
  Once,
  RwLock,
  select,
  selectAsync,
  selectSync,
  Semaphore,
  SeqLock,
  SharedQueue,
  type SyncHandle,
} from '../../../src/sync/index.ts'

/** The user of the object: a thread that blocks, promises, or a coroutine beside an event loop. */
export type Kind = 'thread' | 'promise' | 'coroutine'

export interface Order {
  readonly program: ProgramName
  readonly kind: Kind
  readonly handles: readonly SyncHandle[]
  readonly words: Int32Array<SharedArrayBuffer>
  readonly turns: number
  readonly who: number
}

/** A verb in its three forms; the kind of user chooses one. */
type Verb<T> = (kind: Kind) => T | Promise<T> | Generator<number, T, unknown>

/** Runs a program that is written once: each `yield` is a verb, in the form of its kind. */
export async function perform(order: Order): Promise<unknown> {
  const { kind } = order
  const steps = programs[order.program](order)
  if (kind === 'coroutine') {
    const schedule = new Schedule()
    try {
      return await schedule.run(function* () {
        let sent: unknown
        for (;;) {
          const step = steps.next(sent as never)
          if (step.done) return step.value
          sent = yield* (step.value as Verb<unknown>)('coroutine') as Generator<number, unknown, unknown>
        }
      })
    } finally {
      schedule.exit()
    }
  }
  let sent: unknown
  for (;;) {
    const step = steps.next(sent as never)
    if (step.done) return step.value
    const done = (step.value as Verb<unknown>)(kind)
    sent = kind === 'promise' ? await done : done
  }
}

export type ProgramName =
  | 'mutex'
  | 'semaphore'
  | 'rwlock'
  | 'condition'
  | 'barrier'
  | 'small'
  | 'channel'
  | 'select'
  | 'queue'
  | 'cell'
  | 'seqlock'

type Program = (order: Order) => Generator<Verb<any>, unknown, any>

const rest: Verb<void> = kind =>
  kind === 'thread'
    ? undefined
    : kind === 'promise'
      ? new Promise(resolve => setImmediate(resolve))
      : (sleep(0) as Generator<number, void, unknown>)

function by<T>(task: () => unknown, sync: () => T, promise: () => Promise<T>): Verb<T> {
  return kind => {
    if (kind === 'thread') return sync()
    return kind === 'promise' ? promise() : (task() as Generator<number, T, unknown>)
  }
}

export const programs: Record<ProgramName, Program> = {
  *mutex({ handles, words, turns }) {
    const mutex = Mutex.from(handles[0])
    for (let turn = 0; turn < turns; turn++) {
      const limited = turn % 7 === 3 ? { timeout: 1 } : undefined
      const token = yield by(
        () => mutex.lockIfAvailable(limited?.timeout ?? 60_000),
        () => mutex.lockIfAvailableSync(limited?.timeout ?? 60_000),
        () => mutex.lockIfAvailableAsync(limited?.timeout ?? 60_000),
      )
      if (token === null) {
        turn--
        continue
      }
      const seen = words[0]
      if (turn % 16 === 0) yield rest
      words[0] = seen + 1
      token.unlock()
    }
  },

  *semaphore({ handles, words, turns }) {
    const semaphore = Semaphore.from(handles[0])
    let worst = 0
    for (let turn = 0; turn < turns; turn++) {
      const weight = 1 + (turn % 3)
      yield by(
        () => semaphore.acquire(weight),
        () => semaphore.acquireSync(weight),
        () => semaphore.acquireAsync(weight),
      )
      worst = Math.max(worst, Atomics.add(words, 0, weight) + weight)
      if (turn % 16 === 0) yield rest
      Atomics.sub(words, 0, weight)
      semaphore.release(weight)
    }
    return worst
  },

  *rwlock({ handles, words, turns, who }) {
    const lock = RwLock.from(handles[0])
    let torn = 0
    for (let turn = 0; turn < turns; turn++) {
      if ((turn + who) % 3 === 0) {
        const guard = yield by(
          () => lock.lockWrite(),
          () => lock.lockWriteSync(),
          () => lock.lockWriteAsync(),
        )
        words[0]++
        if (turn % 16 === 0) yield rest
        words[1]++
        guard.unlock()
      } else {
        yield by(
          () => lock.lockRead(),
          () => lock.lockReadSync(),
          () => lock.lockReadAsync(),
        )
        if (words[0] !== words[1]) torn++
        lock.unlockRead()
      }
    }
    return torn
  },

  /** Passes a turn: each participant waits at the condition until the word is its own number. */
  *condition({ handles, words, turns, who }) {
    const mutex = Mutex.from(handles[0])
    const condition = Condition.from(handles[1])
    for (let turn = 0; turn < turns; turn++) {
      const token = yield by(
        () => mutex.lock(),
        () => mutex.lockSync(),
        () => mutex.lockAsync(),
      )
      while (words[0] % words[1] !== who) {
        yield by(
          () => condition.wait(token),
          () => condition.waitSync(token),
          () => condition.waitAsync(token),
        )
      }
      words[0]++
      condition.notify()
      token.unlock()
    }
  },

  *barrier({ handles, words, turns }) {
    const barrier = Barrier.from(handles[0])
    let early = 0
    for (let turn = 0; turn < turns; turn++) {
      Atomics.add(words, turn, 1)
      yield by(
        () => barrier.arrive(),
        () => barrier.arriveSync(),
        () => barrier.arriveAsync(),
      )
      if (Atomics.load(words, turn) !== barrier.parties) early++
    }
    return early
  },

  *small({ handles, words }) {
    const once = Once.from(handles[0])
    const latch = Latch.from(handles[1])
    const event = Event.from(handles[2])
    yield by(
      () => once.run(() => void Atomics.add(words, 0, 1)),
      () => once.runSync(() => void Atomics.add(words, 0, 1)),
      () => once.runAsync(() => void Atomics.add(words, 0, 1)),
    )
    latch.countDown()
    yield by(
      () => latch.wait(),
      () => latch.waitSync(),
      () => latch.waitAsync(),
    )
    // An automatic event wakes one participant at a time.
    yield by(
      () => event.wait(),
      () => event.waitSync(),
      () => event.waitAsync(),
    )
    Atomics.add(words, 1, 1)
    event.set()
    return Atomics.load(words, 0)
  },

  /** Half of them send, and the others receive. */
  *channel({ handles, turns, who }) {
    const channel = Channel.from<unknown>(handles[0])
    let sum = 0
    for (let turn = 0; turn < turns; turn++) {
      if (who % 2 === 0) {
        const value = turn % 3 === 0 ? { n: turn } : turn
        yield by(
          () => channel.send(value),
          () => channel.sendSync(value),
          () => channel.sendAsync(value),
        )
      } else {
        const value = yield by(
          () => channel.receive(),
          () => channel.receiveSync(),
          () => channel.receiveAsync(),
        )
        sum += typeof value === 'number' ? value : value.n
      }
    }
    return sum
  },

  /** The same through two channels, using the one that is ready. */
  *select({ handles, turns, who }) {
    const channels = handles.map(handle => Channel.from<number>(handle))
    let sum = 0
    for (let turn = 0; turn < turns; turn++) {
      const cases = channels.map(channel =>
        who % 2 === 0 ? { send: channel, value: turn } : { receive: channel },
      )
      const { value } = yield by(
        () => select(cases),
        () => selectSync(cases),
        () => selectAsync(cases),
      )
      if (who % 2 !== 0) sum += value
    }
    return sum
  },

  /** Passes a turn: each participant waits at the cell until its value is its own number. */
  *cell({ handles, words, turns, who }) {
    const cell = AtomicInt32.from(handles[0])
    for (let turn = 0; turn < turns; turn++) {
      for (let seen = cell.load(); seen % words[0] !== who; seen = cell.load()) {
        yield by(
          () => cell.wait(seen),
          () => cell.waitSync(seen),
          () => cell.waitAsync(seen),
        )
      }
      cell.add(1)
      cell.notify()
    }
  },

  /** Half of them write records of one number, the others read them. */
  *seqlock({ handles, turns, who }) {
    const lock = SeqLock.from(handles[0])
    let torn = 0
    for (let turn = 0; turn < turns; turn++) {
      const value = turn * 16 + who
      if (who % 2 === 0) lock.write([value, value, value])
      else torn += new Set(Array.from(lock.read())).size - 1
      if (turn % 16 === 0) yield rest
    }
    return torn
  },

  *queue({ handles, turns, who }) {
    const queue = SharedQueue.from(handles[0])
    let sum = 0
    for (let turn = 0; turn < turns; turn++) {
      if (who % 2 === 0) {
        yield by(
          () => queue.push([turn, -turn]),
          () => queue.pushSync([turn, -turn]),
          () => queue.pushAsync([turn, -turn]),
        )
      } else {
        const record = yield by(
          () => queue.pop(),
          () => queue.popSync(),
          () => queue.popAsync(),
        )
        if (record[0] !== -record[1]) throw new Error('a torn record')
        sum += record[0]
      }
    }
    return sum
  },
}
