import { spawnSync } from 'node:child_process'
import {
  type Barrier,
  type Channel,
  type Condition,
  type Event,
  futex,
  join,
  type Latch,
  type Mutex,
  type Once,
  receive,
  type RwLock,
  type Semaphore,
  type SharedQueue,
  sleep,
  sleepOn,
  spawn,
  wait,
  yieldNow,
} from '../../src/index.ts'

/** Tasks that do not end by themselves, each for another reason. `words[0]` counts those that have begun. */

type Steps<T = void> = Generator<unknown, T, any>

const begin = (words: Int32Array): void => void Atomics.add(words, 0, 1)

export function plainLoop(words: Int32Array): void {
  begin(words)
  for (;;);
}

export async function microtasks(words: Int32Array): Promise<void> {
  begin(words)
  const settled = Promise.resolve()
  for (;;) await settled
}

export function atomicsWait(words: Int32Array): void {
  begin(words)
  Atomics.wait(words, 7, 0)
}

export function regularExpression(words: Int32Array): boolean {
  begin(words)
  return /^(a+)+$/.test(`${'a'.repeat(64)}b`)
}

/** A call of the operating system: it returns only when the child process ends. */
export function nativeCall(words: Int32Array, file: string): void {
  begin(words)
  spawnSync('sh', ['-c', `while [ ! -e '${file}' ]; do sleep 0.05; done`])
}

/** Catches every kill. */
export function* ignoresKills(words: Int32Array): Steps {
  begin(words)
  for (;;) {
    try {
      for (;;) yield* yieldNow()
    } catch {
      // Continues.
    }
  }
}

/** Never ends, because its `finally` does not. */
export function* endlessFinally(words: Int32Array): Steps {
  begin(words)
  try {
    yield* sleep(1e9)
  } finally {
    for (;;) yield* yieldNow()
  }
}

export function* rests(words: Int32Array): Steps {
  begin(words)
  yield* sleep(1e9)
}

export function exits(): void {
  process.exit(5)
}

/** Each task has two children of the same kind. */
export function* multiplies(words: Int32Array): Steps {
  begin(words)
  for (;;) {
    try {
      spawn(multiplies, [words])
    } catch {
      // No room for another child now.
    }
    yield* yieldNow()
  }
}

/** Keeps a message port open, and listens. */
export function* listens(words: Int32Array, port: { on(event: string, listener: () => void): void }): Steps {
  port.on('message', () => undefined)
  setInterval(() => undefined, 1)
  begin(words)
  yield* wait(new Promise(() => undefined))
}

/** Locks one lock, then the other. */
export function* locksBoth(words: Int32Array, first: Mutex, second: Mutex): Steps {
  yield* first.lock()
  begin(words)
  while (Atomics.load(words, 0) < 2) yield* yieldNow()
  yield* second.lock()
}

/** Waits of every kind, without an event that ends them. The booting thread holds the locks. */
export interface Waits {
  readonly mutexes: readonly Mutex[]
  readonly rwlock: RwLock
  readonly semaphore: Semaphore
  readonly channel: Channel<number>
  readonly condition: Condition
  readonly guard: Mutex
  readonly barrier: Barrier
  readonly latch: Latch
  readonly event: Event
  readonly once: Once
  readonly queue: SharedQueue
}

const ways: ((words: Int32Array, waits: Waits) => Steps<unknown>)[] = [
  (_, { mutexes }) => mutexes[0].lock() as never,
  (_, { mutexes }) => mutexes[1].lock() as never,
  (_, { mutexes }) => mutexes[2].lock() as never,
  (_, { mutexes }) => mutexes[3].lock() as never,
  (_, { rwlock }) => rwlock.lockRead() as never,
  (_, { rwlock }) => rwlock.lockWrite() as never,
  (_, { semaphore }) => semaphore.acquire(1) as never,
  (_, { channel }) => channel.receive() as never,
  function* (_, { condition, guard }) {
    yield* condition.wait(yield* guard.lock())
  },
  (_, { barrier }) => barrier.arrive() as never,
  (_, { latch }) => latch.wait() as never,
  (_, { event }) => event.wait() as never,
  (_, { once }) => once.run(() => undefined) as never,
  (_, { queue }) => queue.pop() as never,
  words => futex.wait(words, 6, 0) as never,
  words => futex.waitv([{ view: words, index: 6, value: 0 }]) as never,
  words => futex.lockPi(words, 5) as never,
  () => sleep(1e9) as never,
  () => sleepOn(77) as never,
  () => receive() as never,
  () => wait(new Promise(() => undefined)) as never,
  function* (words) {
    yield* join(spawn(rests, [words]))
  },
]

export const waysToWait: number = ways.length

export function* waits(words: Int32Array, way: number, all: Waits): Steps {
  begin(words)
  yield* ways[way](words, all)
}
