import { sleep, yieldNow } from '../../../src/coroutine/core/blocking.ts'
import type { Channel, Condition, Mutex, RwLock, Semaphore } from '../../../src/index.ts'
import { SeededRandom } from '../../../src/machine/simulated/random.ts'
import { join } from '../../../src/kernel/join/childtask.ts'
import { spawn } from '../../../src/kernel/cpu/current.ts'
import { type Wide, wideStep } from './widework.ts'

/**
 * The tasks of the lock chaos: each makes a few random steps on objects that all tasks share, then returns
 * its number. Every wait has a time limit, because the task that would end it may have died.
 */
export interface Shared {
  readonly mutexes: readonly Mutex[]
  readonly rwlock: RwLock
  readonly semaphore: Semaphore
  readonly channels: readonly Channel<unknown>[]
  readonly condition: Condition
  /** The mutex of `condition`. */
  readonly guard: Mutex
  readonly wide: Wide
}

export { drift, member } from './widework.ts'

type Steps<T = void> = Generator<number, T, unknown>

const WAIT_MS = 20
const STEPS = 4
const TIMED = { timeout: WAIT_MS }

const expectedNames = new Set(['TimeoutError', 'CpuLostError', 'AbortError'])
/** ESRCH: the holder of a PI lock has died, and its lock with it. A deadlock: two readers upgrade. */
const expectedCodes = new Set([
  'ERR_HEDDLE_NOT_RECOVERABLE',
  'ERR_HEDDLE_CLOSED',
  'ERR_HEDDLE_DEADLOCK',
  'ESRCH',
])

/**
 * Expected ends of a wait: a timeout, the holder has died, the lock is lost, the child's CPU died, the scope
 * was cancelled; from a scope also several of these.
 */
export function isExpected(error: unknown): boolean {
  const { name, code } = error as { name?: string; code?: string }
  if (error instanceof AggregateError) return error.errors.every(isExpected)
  return expectedNames.has(name ?? '') || expectedCodes.has(code ?? '')
}

function spin(random: SeededRandom): number {
  let sum = 0
  for (let i = random.below(2000); i > 0; i--) sum = (sum * 31 + i) | 0
  return sum
}

function* inside(random: SeededRandom): Steps {
  const what = random.below(4)
  if (what === 0) yield* yieldNow()
  else if (what === 1) yield* sleep(random.below(3))
  else spin(random)
}

function* useMutex(mutex: Mutex, random: SeededRandom): Steps {
  const token = yield* mutex.lock(TIMED)
  try {
    if (mutex.robust && mutex.ownerDied) mutex.makeConsistent()
    yield* inside(random)
  } finally {
    token.unlock()
  }
}

function* useRwLock(rwlock: RwLock, random: SeededRandom): Steps {
  const guard = random.below(3) === 0 ? yield* rwlock.lockWrite(TIMED) : yield* rwlock.lockRead(TIMED)
  try {
    yield* inside(random)
  } finally {
    guard.unlock()
  }
}

function* useSemaphore(semaphore: Semaphore, random: SeededRandom): Steps {
  const permits = yield* semaphore.acquire(1 + random.below(2), TIMED)
  try {
    yield* inside(random)
  } finally {
    permits.release()
  }
}

function* useChannel(channel: Channel<unknown>, random: SeededRandom): Steps {
  if (random.below(2) === 0) yield* channel.receive(TIMED)
  else yield* channel.send(random.below(2) === 0 ? 7 : 'x'.repeat(random.below(2000)), TIMED)
}

function* useCondition({ condition, guard }: Shared, random: SeededRandom): Steps {
  const token = yield* guard.lock(TIMED)
  try {
    if (guard.ownerDied) guard.makeConsistent()
    if (random.below(2) === 0) yield* condition.wait(token, TIMED)
    else condition.notify(1 + random.below(3))
  } finally {
    // A wait that failed may have ended without the mutex.
    if (token.locked) token.unlock()
  }
}

function* haveChild(random: SeededRandom): Steps {
  const child = spawn(childWork, [random.below(1000)])
  if (random.below(4) !== 0) yield* join(child)
}

export function* childWork(n: number): Steps<number> {
  yield* yieldNow()
  return n
}

function* step(shared: Shared, random: SeededRandom): Steps {
  const { mutexes, rwlock, semaphore, channels } = shared
  switch (random.below(11)) {
    case 0:
    case 1:
      return yield* useMutex(mutexes[random.below(mutexes.length)], random)
    case 2:
      return yield* useRwLock(rwlock, random)
    case 3:
      return yield* useSemaphore(semaphore, random)
    case 4:
      return yield* useChannel(channels[random.below(channels.length)], random)
    case 5:
      return yield* useCondition(shared, random)
    case 6:
      return yield* haveChild(random)
    case 7:
      return yield* inside(random)
    default:
      return yield* wideStep(shared.wide, random)
  }
}

export function* roam(shared: Shared, n: number, seed: number): Steps<number> {
  const random = new SeededRandom(seed)
  for (let turn = 0; turn < STEPS; turn++) {
    try {
      yield* step(shared, random)
    } catch (error) {
      if (!isExpected(error)) throw error
    }
  }
  return n
}
