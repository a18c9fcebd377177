import { sleep, yieldNow } from '../../../src/coroutine/core/blocking.ts'
import {
  type Barrier,
  type Channel,
  type Event,
  futex,
  type Latch,
  type Once,
  type RwLock,
  scope,
  select,
  type SeqLock,
  type SharedQueue,
  type WaitGroup,
} from '../../../src/index.ts'
import type { SeededRandom } from '../../../src/machine/simulated/random.ts'

/**
 * The other primitives, the futexes themselves, and scopes in the lock chaos. Every wait has a time limit.
 * Reads are checked: a record of a SeqLock is whole, and one task holds a PI lock.
 */
export interface Wide {
  readonly seqlock: SeqLock
  readonly once: Once
  readonly barrier: Barrier
  readonly latch: Latch
  readonly group: WaitGroup
  readonly events: readonly Event[]
  readonly queue: SharedQueue
  readonly channel: Channel<unknown>
  readonly rwlock: RwLock
  /** See the constants below. */
  readonly words: Int32Array
  readonly small: Uint8Array
  readonly middle: Uint16Array
  readonly large: BigInt64Array
}

/** Words of `words`. */
const PLAIN = 0
const OTHER = 1
const LOCK = 2
/** Whether the lock is held, as its holder has recorded it. A holder that dies leaves its record. */
const INSIDE = 3
const CONDITION = 4

/** Adds one; also wakes at the second word if the value was above 5. */
const ADD_ONE = { op: 1, oparg: 1, cmp: 4, cmparg: 5 }

type Steps<T = void> = Generator<number, T, unknown>

const TIMED = { timeout: 10 }

function* waitSomewhere(wide: Wide, random: SeededRandom): Steps {
  const { words, small, middle, large } = wide
  switch (random.below(6)) {
    case 0:
      return void (yield* futex.wait(words, PLAIN, Atomics.load(words, PLAIN), TIMED))
    case 1:
      return void (yield* futex.wait(small, 1, 0, TIMED))
    case 2:
      return void (yield* futex.wait(middle, 1, 0, TIMED))
    case 3:
      return void (yield* futex.wait(large, 1, 0n, TIMED))
    case 4:
      return void (yield* futex.wait(words, OTHER, 0, { ...TIMED, bitset: 1 + random.below(7) }))
    default: {
      const entries = [
        { view: words, index: PLAIN, value: Atomics.load(words, PLAIN) },
        { view: small, index: 1, value: 0 },
        { view: large, index: 1, value: 0n },
      ]
      yield* futex.waitv(entries, TIMED)
    }
  }
}

function wakeSomewhere({ words, small, middle, large }: Wide, random: SeededRandom): void {
  switch (random.below(8)) {
    case 0:
      futex.wake(words, PLAIN, 1 + random.below(3))
      break
    case 1:
      futex.wake(small, 1, 2)
      break
    case 2:
      futex.wake(middle, 1, 2)
      break
    case 3:
      futex.wake(large, 1, 2)
      break
    case 4:
      futex.requeue(words, PLAIN, words, OTHER, { wake: 1, move: 2 })
      break
    case 5:
      futex.cmpRequeue(words, PLAIN, words, OTHER, Atomics.load(words, PLAIN), { wake: 0, move: 3 })
      break
    case 6:
      futex.wake(words, OTHER, 2, { bitset: 1 + random.below(7) })
      break
    default:
      futex.wakeOp(words, OTHER, words, PLAIN, ADD_ONE)
  }
}

/** A PI lock, directly on its word; the death of its holder passes it on. */
function* usePiWord({ words }: Wide, random: SeededRandom): Steps {
  if (random.below(4) === 0) {
    futex.cmpRequeuePi(words, CONDITION, words, LOCK, 0, { move: 1 })
    return
  }
  const waits = random.below(4) === 0
  const isHeld = waits
    ? (yield* futex.waitRequeuePi(words, CONDITION, 0, words, LOCK, TIMED)) === 'ok'
    : yield* futex.lockPi(words, LOCK, TIMED)
  if (!isHeld) return
  try {
    Atomics.store(words, INSIDE, 1)
    yield* yieldNow()
    if (Atomics.exchange(words, INSIDE, 0) !== 1) throw new Error('two tasks hold one PI lock')
  } finally {
    futex.unlockPi(words, LOCK)
  }
}

function useSeqLock({ seqlock }: Wide, random: SeededRandom): void {
  if (random.below(2) === 0) {
    seqlock.write(new Int32Array(seqlock.fields).fill(random.below(1000)))
    return
  }
  const record = seqlock.read()
  for (let field = 1; field < record.length; field++)
    if (record[field] !== record[0]) throw new Error('a record of a SeqLock is torn')
}

function* useCounts({ once, barrier, latch, group, events }: Wide, random: SeededRandom): Steps {
  const event = events[random.below(events.length)]
  switch (random.below(8)) {
    case 0:
      return void (yield* once.run(() => sleep(random.below(3)), TIMED))
    case 1:
    case 2:
      return void (yield* barrier.arrive(TIMED))
    case 3:
      return yield* latch.wait(TIMED)
    case 4:
      if (latch.count > 0) latch.countDown()
      return
    case 5:
      group.add()
      yield* yieldNow()
      return group.done()
    case 6:
      return yield* group.wait(TIMED)
    default:
      if (random.below(2) === 0) return yield* event.wait(TIMED)
      event.set()
      if (random.below(2) === 0) event.reset()
  }
}

function* useQueues({ queue, channel, rwlock }: Wide, random: SeededRandom): Steps {
  switch (random.below(4)) {
    case 0:
      return yield* queue.push([random.below(100)], TIMED)
    case 1:
      return void (yield* queue.pop([], TIMED))
    case 2: {
      const send = { send: channel, value: 'z'.repeat(random.below(500)) }
      return void (yield* select([{ receive: channel }, send, { timeout: 5 }]))
    }
    default: {
      const reading = yield* rwlock.lockRead(TIMED)
      try {
        const writing = yield* rwlock.upgrade(TIMED)
        try {
          yield* yieldNow()
        } finally {
          writing.downgrade()
        }
      } finally {
        reading.unlock()
      }
    }
  }
}

/** A scope whose members die or are cancelled with it. */
function* useScope(random: SeededRandom): Steps {
  yield* scope(function* (members) {
    for (let n = 0; n < 2; n++) members.spawn(member, [random.below(4)])
    if (random.below(3) === 0) members.cancel()
    yield* yieldNow()
  })
}

export function* member(ms: number): Steps<number> {
  yield* sleep(ms)
  return ms
}

export function* wideStep(wide: Wide, random: SeededRandom): Steps {
  switch (random.below(7)) {
    case 0:
      return yield* waitSomewhere(wide, random)
    case 1:
      return wakeSomewhere(wide, random)
    case 2:
      return yield* usePiWord(wide, random)
    case 3:
      return useSeqLock(wide, random)
    case 4:
      return yield* useCounts(wide, random)
    case 5:
      return yield* useQueues(wide, random)
    default:
      return yield* useScope(random)
  }
}

/** An async task: the event loop of its CPU runs the code after its awaits. */
export async function drift(wide: Wide, n: number, seed: number): Promise<number> {
  const { words, seqlock } = wide
  for (let turn = 0; turn < 3; turn++) {
    await new Promise(resolve => setTimeout(resolve, (seed >>> turn) & 3))
    await futex.waitAsync(words, PLAIN, Atomics.load(words, PLAIN), { timeout: 3 })
    seqlock.write(new Int32Array(seqlock.fields).fill(n))
    const owner = await futex.lockPiAsync(words, LOCK, { timeout: 5 }).catch(lockLost)
    if (owner !== null) futex.unlockPi(words, LOCK, owner)
    futex.wake(words, PLAIN, 1)
  }
  return n
}

/** The holder of the lock has died, and its lock with it, as on Linux. */
function lockLost(error: { readonly code?: string }): null {
  if (error.code !== 'ESRCH') throw error
  return null
}
