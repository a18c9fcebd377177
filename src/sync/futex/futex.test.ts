import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  CMP_EQ,
  FUTEX2_NUMA,
  FUTEX2_PRIVATE,
  FUTEX2_SIZE_U16,
  FUTEX2_SIZE_U32,
  FUTEX2_SIZE_U64,
  FUTEX2_SIZE_U8,
  OP_ADD,
} from '../../futex/index.ts'
import { futex, type FutexView, Kernel } from '../../index.ts'
import type * as Tasks from '../../../testing/sync/fixtures/futextasks.ts'

let kernel: Kernel
let tasks: Awaited<ReturnType<typeof load>>

function load(): Promise<Awaited<ReturnType<typeof Kernel.prototype.import<typeof Tasks>>>> {
  return kernel.import<typeof Tasks>(new URL('../../../testing/sync/fixtures/futextasks.ts', import.meta.url))
}

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 2 })
  tasks = await load()
})

afterAll(async () => {
  await kernel.close({ abort: true })
})

const words = (count = 4): Int32Array<SharedArrayBuffer> => new Int32Array(new SharedArrayBuffer(count * 4))

/** Wakes as soon as so many wait. */
async function wakeAll(view: FutexView, index: number, count: number, options = {}): Promise<number> {
  let woken = 0
  while (woken < count) {
    woken += futex.wake(view, index, Infinity, options)
    if (woken < count) await new Promise(resolve => setTimeout(resolve, 1))
  }
  return woken
}

describe('futexes on shared memory, without setup:', () => {
  test('tasks of two CPUs, compiled and not, and promises wait at one word', async () => {
    const view = words()
    const waiting = [
      kernel.spawn(tasks.waitsInTask, [view, 2, 0], { affinity: [0] }),
      kernel.spawn(tasks.waitsPlainly, [view, 2, 0], { affinity: [1] }),
      futex.waitAsync(view, 2, 0),
    ]
    expect(await wakeAll(view, 2, 3)).toBe(3)
    expect(await Promise.all(waiting)).toEqual(['ok', 'ok', 'ok'])
    expect(futex.wake(view, 2)).toBe(0)
  })

  test('a thread blocks, and a task wakes it', async () => {
    const view = words()
    const waker = kernel.spawn(tasks.wakes, [view, 1, 1])
    expect(futex.waitSync(view, 1, 0)).toBe('ok')
    expect(await waker).toBe(1)
  })

  test('a word that has another value is not waited at, and a time limit ends the wait', async () => {
    const view = words()
    view[0] = 7
    expect(futex.waitSync(view, 0, 0)).toBe('not-equal')
    expect(await futex.waitAsync(view, 0, 0)).toBe('not-equal')
    expect(await kernel.spawn(tasks.waitsInTask, [view, 0, 0])).toBe('not-equal')
    expect(futex.waitSync(view, 0, 7, { timeout: 2 })).toBe('timed-out')
    expect(await futex.waitAsync(view, 0, 7, { until: Date.now() + 2 })).toBe('timed-out')
    expect(await kernel.spawn(tasks.waitsInTask, [view, 0, 7, { timeout: 2 }])).toBe('timed-out')
    await expect(futex.waitAsync(view, 0, 7, { signal: AbortSignal.abort('no') })).rejects.toBe('no')
    const abort = new AbortController()
    const waiting = futex.waitAsync(view, 0, 7, { signal: abort.signal })
    abort.abort('enough')
    await expect(waiting).rejects.toBe('enough')
    expect(futex.wake(view, 0)).toBe(0)
  })

  test.each([
    ['8 bits', () => new Uint8Array(new SharedArrayBuffer(8), 1), 200],
    ['8 bits, signed', () => new Int8Array(new SharedArrayBuffer(8), 1), -5],
    ['16 bits', () => new Int16Array(new SharedArrayBuffer(8), 2), -300],
    ['32 bits', () => new Uint32Array(new SharedArrayBuffer(8), 4), 0x8000_0001],
    ['64 bits', () => new BigInt64Array(new SharedArrayBuffer(32), 8), -(2n ** 40n)],
    ['64 bits, unsigned', () => new BigUint64Array(new SharedArrayBuffer(32), 8), 2n ** 63n],
  ] as [string, () => FutexView, number | bigint][])('words of %s', async (_, make, value) => {
    const view = make()
    view[0] = value as never
    const other = (typeof value === 'bigint' ? 1n : 1) as number
    expect(await futex.waitAsync(view, 0, other)).toBe('not-equal')
    const waiting = [
      futex.waitAsync(view, 0, value),
      kernel.spawn(tasks.waitsInTask, [view as Int32Array, 0, value]),
    ]
    expect(await wakeAll(view, 0, 2)).toBe(2)
    expect(await Promise.all(waiting)).toEqual(['ok', 'ok'])
  })

  test('bitsets choose the waiters to wake', async () => {
    const view = words()
    const [odd, even] = [1, 2].map(bitset => futex.waitAsync(view, 0, 0, { bitset, timeout: 60_000 }))
    expect(futex.wake(view, 0, Infinity, { bitset: 2 })).toBe(1)
    expect(await even).toBe('ok')
    expect(futex.wake(view, 0, Infinity, { bitset: 4 })).toBe(0)
    expect(futex.wake(view, 0)).toBe(1)
    expect(await odd).toBe('ok')
  })

  test('waiters are moved from one word to another, and to one of another buffer', async () => {
    const [from, to] = [words(), words()]
    const waiting = [1, 2, 3].map(() => futex.waitAsync(from, 0, 0))
    expect(futex.cmpRequeue(from, 0, to, 3, 9)).toBe('not-equal')
    expect(futex.cmpRequeue(from, 0, to, 3, 0, { wake: 1, move: 1 })).toBe(2)
    expect(futex.wake(to, 3, 5)).toBe(1)
    expect(futex.requeue(from, 0, from, 1, { wake: 0 })).toBe(1)
    expect(futex.wake(from, 1)).toBe(1)
    expect(await Promise.all(waiting)).toEqual(['ok', 'ok', 'ok'])
  })

  test('wakeOp changes one word and wakes at both', async () => {
    const view = words()
    view[1] = 3
    const waiting = [futex.waitAsync(view, 0, 0), futex.waitAsync(view, 1, 3)]
    const change = { op: OP_ADD, oparg: 5, cmp: CMP_EQ, cmparg: 3 }
    expect(futex.wakeOp(view, 0, view, 1, change)).toBe(2)
    expect(view[1]).toBe(8)
    expect(await Promise.all(waiting)).toEqual(['ok', 'ok'])
  })

  test('waitv gives the word that was woken', async () => {
    const [one, two] = [words(), new BigInt64Array(new SharedArrayBuffer(16))]
    const entries = [
      { view: one, index: 1, value: 0 },
      { view: two, index: 1, value: 0n },
    ]
    const task = kernel.spawn(tasks.waitsAtSeveral, [entries])
    const promise = futex.waitvAsync(entries)
    expect(await wakeAll(two, 1, 2)).toBe(2)
    expect([await task, await promise]).toEqual([1, 1])
    expect(futex.waitvSync([entries[0], { view: one, index: 0, value: 3 }])).toBe('not-equal')
    expect(futex.waitvSync(entries, { timeout: 1 })).toBe('timed-out')
    expect(futex.wake(one, 1)).toBe(0)
  })

  test('a word is a lock that tasks, this thread and async code take in turn', async () => {
    const view = words()
    const running = [
      kernel.spawn(tasks.addsUnderPi, [view, 100], { affinity: [0] }),
      kernel.spawn(tasks.addsUnderPi, [view, 100], { affinity: [1] }),
      kernel.spawn(tasks.addsPlainly, [view, 100]),
    ]
    for (let time = 0; time < 50; time++) {
      const owner = await futex.lockPiAsync(view, 0)
      const seen = view[1]
      await Promise.resolve()
      view[1] = seen + 1
      futex.unlockPi(view, 0, owner!)
      futex.lockPiSync(view, 0)
      view[1]++
      futex.unlockPi(view, 0)
    }
    await Promise.all(running)
    expect([view[0], view[1]]).toEqual([0, 400])
    expect(futex.tryLockPi(view, 0)).toBe(true)
    expect(await futex.lockPiAsync(view, 0, { timeout: 1 })).toBeNull()
    expect(() => futex.lockPiSync(view, 0)).toThrow(/EDEADLK/)
    futex.unlockPi(view, 0)
    expect(() => futex.unlockPi(view, 0)).toThrow(/EPERM/)
  })

  test('a private word and a shared one at one address do not meet, and vectors mix them', async () => {
    const view = words()
    const flags = FUTEX2_SIZE_U32 | FUTEX2_PRIVATE
    const waiting = [futex.waitAsync(view, 0, 0, { flags }), futex.waitAsync(view, 0, 0)]
    const task = kernel.spawn(tasks.waitsInTask, [view, 0, 0, { flags }])
    expect(futex.wake(view, 0, Infinity, { flags: FUTEX2_SIZE_U32 })).toBe(1)
    expect(await waiting[1]).toBe('ok')
    expect(await wakeAll(view, 0, 2, { flags })).toBe(2)
    expect([await waiting[0], await task]).toEqual(['ok', 'ok'])
    const vector = futex.waitvAsync([
      { view, index: 1, value: 0, flags: FUTEX2_SIZE_U32 },
      { view, index: 1, value: 0, flags },
    ])
    expect(futex.wake(view, 1, 1, { flags })).toBe(1)
    expect(await vector).toBe(1)
    expect(futex.wake(view, 1)).toBe(0)
  })

  test.each([
    ['8 bits', Uint8Array, FUTEX2_SIZE_U8, 7],
    ['16 bits', Uint16Array, FUTEX2_SIZE_U16, 7],
    ['32 bits', Int32Array, FUTEX2_SIZE_U32, 7],
    ['64 bits', BigInt64Array, FUTEX2_SIZE_U64, 7n],
  ] as const)('futex_requeue moves waiters at words of %s, with flags', async (_, View, size, value) => {
    const view: FutexView = new (View as typeof Int32Array)(new SharedArrayBuffer(32))
    view[0] = value as never
    for (const flags of [undefined, size, size | FUTEX2_PRIVATE]) {
      const waiting = [1, 2, 3].map(() => futex.waitAsync(view, 0, value, { flags }))
      const to = { view, index: 2, flags }
      const zero = (typeof value === 'bigint' ? 0n : 0) as number
      expect(futex.requeuev([{ view, index: 0, value: zero, flags }, to])).toBe('not-equal')
      expect(futex.requeuev([{ view, index: 0, value, flags }, to], { wake: 1, move: 1 })).toBe(2)
      expect(futex.wake(view, 2, Infinity, { flags })).toBe(1)
      expect(futex.wake(view, 0, Infinity, { flags })).toBe(1)
      expect(await Promise.all(waiting)).toEqual(['ok', 'ok', 'ok'])
    }
  })

  test('a condition hands its lock to tasks, compiled and not, a thread and async code in turn', async () => {
    const view = words()
    const running = [
      kernel.spawn(tasks.waitsForLock, [view], { affinity: [0] }),
      kernel.spawn(tasks.waitsForLock, [view], { affinity: [1] }),
      kernel.spawn(tasks.waitsForLockPlainly, [view]),
      futex.waitRequeuePiAsync(view, 0, 0, view, 1).then(owner => {
        if (typeof owner === 'string') return owner
        view[2]++
        futex.unlockPi(view, 1, owner)
        return 'ok'
      }),
    ]
    let moved = 0
    while (moved < 4) {
      // Not with the thread blocked: one of the waiters is async code of this thread.
      const owner = await futex.lockPiAsync(view, 1)
      moved += futex.cmpRequeuePi(view, 0, view, 1, 0) as number
      futex.unlockPi(view, 1, owner!)
      await new Promise(resolve => setTimeout(resolve, 1))
    }
    expect(await Promise.all(running)).toEqual(['ok', 'ok', 'ok', 'ok'])
    // This thread waits, and a task signals.
    const signaller = kernel.spawn(tasks.signals, [view, 1])
    expect(futex.waitRequeuePiSync(view, 0, 0, view, 1)).toBe('ok')
    expect(() => futex.tryLockPi(view, 1)).toThrow(/EDEADLK/)
    view[2]++
    futex.unlockPi(view, 1)
    expect(await signaller).toBe(1)
    expect([...view]).toEqual([0, 0, 5, 0])
  })

  test('a condition with another value, out of time or aborted leaves the lock alone', async () => {
    const view = words()
    expect(futex.cmpRequeuePi(view, 0, view, 1, 0)).toBe(0)
    expect(futex.cmpRequeuePi(view, 0, view, 1, 3)).toBe('not-equal')
    expect(futex.waitRequeuePiSync(view, 0, 3, view, 1)).toBe('not-equal')
    expect(await futex.waitRequeuePiAsync(view, 0, 3, view, 1)).toBe('not-equal')
    expect(futex.waitRequeuePiSync(view, 0, 0, view, 1, { timeout: 1 })).toBe('timed-out')
    expect(await futex.waitRequeuePiAsync(view, 0, 0, view, 1, { timeout: 1 })).toBe('timed-out')
    expect(await kernel.spawn(tasks.waitsForLock, [view, { timeout: 1 }])).toBe('timed-out')
    const abort = new AbortController()
    const waiting = futex.waitRequeuePiAsync(view, 0, 0, view, 1, { signal: abort.signal })
    abort.abort('enough')
    await expect(waiting).rejects.toBe('enough')
    // One that waits without a lock cannot be moved to one.
    const plain = futex.waitAsync(view, 0, 0)
    expect(() => futex.cmpRequeuePi(view, 0, view, 1, 0)).toThrow(/EINVAL/)
    expect(futex.wake(view, 0)).toBe(1)
    expect(await plain).toBe('ok')
    expect([...view]).toEqual([0, 0, 0, 0])
  })

  test('an owner of async code holds the lock until it unlocks it', async () => {
    const view = words()
    const waiting = [1, 2].map(() => futex.waitRequeuePiAsync(view, 0, 0, view, 1))
    expect(futex.cmpRequeuePi(view, 0, view, 1, 0)).toBe(2)
    const first = await waiting[0]
    expect(futex.tryLockPi(view, 1)).toBe(false)
    futex.unlockPi(view, 1, first as never)
    const second = await waiting[1]
    futex.unlockPi(view, 1, second as never)
    expect(futex.tryLockPi(view, 1)).toBe(true)
    futex.unlockPi(view, 1)
  })

  const code = (call: () => unknown): unknown => {
    try {
      return call()
    } catch (error) {
      return (error as { code?: string }).code
    }
  }

  test.each([
    ['a NUMA node', FUTEX2_SIZE_U32 | FUTEX2_NUMA],
    ['an unknown bit', FUTEX2_SIZE_U32 | 16],
    ['a bit above all', 2 ** 40 + FUTEX2_SIZE_U32],
    ['another size', FUTEX2_SIZE_U16],
    ['a fraction', 2.5],
    ['a negative number', -126],
  ])('flags that name %s are refused by every call that takes flags', async (_, flags) => {
    const view = words()
    const waiting = futex.waitAsync(view, 0, 0)
    const change = { op: OP_ADD, oparg: 5, cmp: CMP_EQ, cmparg: 3 }
    const entry = { view, index: 0, value: 0, flags }
    expect(code(() => futex.waitSync(view, 0, 0, { flags }))).toBe('EINVAL')
    expect(code(() => futex.wake(view, 0, 1, { flags }))).toBe('EINVAL')
    expect(code(() => futex.requeue(view, 0, view, 1, { flags }))).toBe('EINVAL')
    expect(code(() => futex.cmpRequeue(view, 0, view, 1, 0, { flags }))).toBe('EINVAL')
    expect(code(() => futex.requeuev([entry, { view, index: 1, flags }]))).toBe('EINVAL')
    expect(code(() => futex.waitvSync([entry]))).toBe('EINVAL')
    expect(code(() => futex.waitvSync([{ view, index: 0, value: 0 }], { flags }))).toBe('EINVAL')
    expect(code(() => futex.wakeOp(view, 0, view, 1, change, { flags }))).toBe('EINVAL')
    await expect(futex.waitAsync(view, 0, 0, { flags })).rejects.toThrow(`${flags}`)
    expect([...view]).toEqual([0, 0, 0, 0])
    expect(futex.wake(view, 0, 9)).toBe(1)
    expect(await waiting).toBe('ok')
  })

  const bytes = new SharedArrayBuffer(8)
  test.each([
    ['floats of 32 bits', new Float32Array(bytes)],
    ['floats of 64 bits', new Float64Array(bytes)],
    ['a DataView', new DataView(bytes)],
  ])('a word of %s is refused', (_, floats) => {
    const view = floats as never
    expect(code(() => futex.wake(view, 0))).toBe('EINVAL')
    expect(code(() => futex.waitSync(view, 0, 0, { timeout: 1 }))).toBe('EINVAL')
    expect(code(() => futex.tryLockPi(view, 0))).toBe('EINVAL')
  })

  test('the words of a buffer that grows grow with it', async () => {
    const buffer = new SharedArrayBuffer(8, { maxByteLength: 64 })
    const view = new Int32Array(buffer)
    expect(futex.wake(view, 0)).toBe(0)
    expect(code(() => futex.wake(view, 9))).toBe('EFAULT')
    buffer.grow(64)
    const waiting = [futex.waitAsync(view, 9, 0), kernel.spawn(tasks.waitsInTask, [view, 9, 0])]
    expect(await wakeAll(view, 9, 2)).toBe(2)
    expect(await Promise.all(waiting)).toEqual(['ok', 'ok'])
    expect(futex.lockPiSync(view, 15)).toBe(true)
    futex.unlockPi(view, 15)
  })

  test('words beyond 2 GiB of a buffer are waited for, up to number 2^31', async () => {
    const buffer = new SharedArrayBuffer(2 ** 31 + 64)
    const [view, whole] = [new Int32Array(buffer, 2 ** 31), new Int32Array(buffer)]
    expect(futex.waitSync(view, 3, 1)).toBe('not-equal')
    const waiting = futex.waitAsync(view, 3, 0)
    expect(futex.wake(whole, 3)).toBe(0)
    expect(futex.wake(whole, 2 ** 29 + 3)).toBe(1)
    expect(await waiting).toBe('ok')
    // A futex has no number for these: a wake would find no waiter.
    const bytes = new Uint8Array(buffer)
    expect(code(() => futex.waitSync(bytes, 2 ** 31, 0, { timeout: 1 }))).toBe('EFAULT')
    expect(code(() => futex.wake(bytes, 2 ** 31))).toBe('EFAULT')
    expect(futex.wake(bytes, 2 ** 31 - 1)).toBe(0)
  })

  test('wakeOp wakes none where its limit is 0', async () => {
    const view = words()
    const waiting = [futex.waitAsync(view, 0, 0), futex.waitAsync(view, 1, 0)]
    const change = { op: OP_ADD, oparg: 0, cmp: CMP_EQ, cmparg: 0 }
    expect(futex.wakeOp(view, 0, view, 1, change, { wake: 0, wakeSecond: 0 })).toBe(0)
    expect(futex.wakeOp(view, 0, view, 1, change, { wake: 0 })).toBe(1)
    expect(await waiting[1]).toBe('ok')
    expect(futex.wakeOp(view, 0, view, 1, change, { wake: Infinity, wakeSecond: 0 })).toBe(1)
    expect(await waiting[0]).toBe('ok')
  })

  test('a value that is no owner unlocks nothing', () => {
    const view = words()
    futex.lockPiSync(view, 0)
    for (const wrong of [null, {}, view[0]]) {
      expect(code(() => futex.unlockPi(view, 0, wrong as never))).toBe('EINVAL')
      expect(() => futex.tryLockPi(view, 0)).toThrow(/EDEADLK/)
    }
    futex.unlockPi(view, 0)
    expect(view[0]).toBe(0)
  })

  test('an option that does not exist is refused by every call', () => {
    const view = words()
    const wrong = { bitsett: 1 } as never
    const change = { op: OP_ADD, oparg: 1, cmp: CMP_EQ, cmparg: 0 }
    expect(() => futex.wake(view, 0, 1, wrong)).toThrow('bitset')
    expect(() => futex.requeue(view, 0, view, 1, wrong)).toThrow('wake, move, flags')
    expect(() => futex.cmpRequeue(view, 0, view, 1, 0, wrong)).toThrow('wake, move, flags')
    expect(() =>
      futex.requeuev(
        [
          { view, index: 0, value: 0 },
          { view, index: 1 },
        ],
        wrong,
      ),
    ).toThrow('wake')
    expect(() => futex.wakeOp(view, 0, view, 1, change, wrong)).toThrow('wakeSecond')
    expect(() => futex.cmpRequeuePi(view, 0, view, 1, 0, wrong)).toThrow('move')
    // A lock has no bitset and no flags.
    for (const option of [{ bitset: 1 }, { flags: FUTEX2_SIZE_U32 | FUTEX2_PRIVATE }] as never[]) {
      expect(() => futex.lockPiSync(view, 0, option)).toThrow('timeout, until, signal')
      expect(() => futex.waitRequeuePiSync(view, 0, 0, view, 1, option)).toThrow('timeout, until, signal')
    }
    expect([...view]).toEqual([0, 0, 0, 0])
  })

  test('an option that does not exist is refused by every wait', () => {
    const view = words()
    const mistaken = { timout: 1 } as never
    expect(() => futex.waitSync(view, 0, 0, mistaken)).toThrow('timeout')
    expect(() => futex.waitvSync([{ view, index: 0, value: 0 }], mistaken)).toThrow('timeout')
    expect(() => futex.lockPiSync(view, 0, mistaken)).toThrow('timeout')
    expect(view[0]).toBe(0)
    expect(futex.wake(view, 0, 9)).toBe(0)
  })

  test.each([
    { op: 16, oparg: 0, cmp: 0, cmparg: 0 },
    { op: 0, oparg: 0x1000, cmp: 0, cmparg: 0 },
    { op: 0, oparg: -0x801, cmp: 0, cmparg: 0 },
    { op: 0, oparg: 0, cmp: -1, cmparg: 0 },
    { op: 0, oparg: 0, cmp: 0, cmparg: 0.5 },
  ])('a change of wakeOp that does not fit is refused, and the word stays: %o', change => {
    const view = words()
    view[1] = 7
    expect(code(() => futex.wakeOp(view, 0, view, 1, change))).toBe('EINVAL')
    expect(view[1]).toBe(7)
  })

  test('errors have the codes of Linux', () => {
    const view = words()
    expect(code(() => futex.wake(new Int32Array(4), 0))).toBe('EFAULT')
    expect(code(() => futex.wake(view, 4))).toBe('EFAULT')
    expect(code(() => futex.wake(view, 0.5))).toBe('EFAULT')
    expect(code(() => futex.wake(view, 0, -1))).toBe('EINVAL')
    expect(code(() => futex.waitSync(view, 0, 0, { bitset: 0 }))).toBe('EINVAL')
    for (const bitset of [2 ** 32 + 1, -(2 ** 31) - 1, 1.5, Number.NaN, '1' as never]) {
      expect(code(() => futex.waitSync(view, 0, 0, { bitset, timeout: 1 }))).toBe('EINVAL')
      expect(code(() => futex.wake(view, 0, 1, { bitset }))).toBe('EINVAL')
    }
    expect(code(() => futex.waitSync(view, 0, 0, { timeout: Number.NaN }))).toBe('EINVAL')
    expect(code(() => futex.waitSync(view, 0, 0, { timeout: -1 }))).toBe('EINVAL')
    expect(code(() => futex.waitSync(view, 0, 0, { until: -1 }))).toBe('EINVAL')
    expect(code(() => futex.waitSync(view, 0, 0, { timeout: 1, until: new Date() }))).toBe('EINVAL')
    expect(code(() => futex.lockPiSync(view, 0, { timeout: -1 }))).toBe('EINVAL')
    expect(code(() => futex.waitSync(view, 0, 0n))).toBe('EINVAL')
    expect(code(() => futex.waitvSync([]))).toBe('EINVAL')
    expect(code(() => futex.waitvSync([null as never]))).toBe('EFAULT')
    expect(code(() => futex.waitSync(view, 0, 0, { signal: {} as never }))).toBe('EINVAL')
    expect(code(() => futex.lockPiSync(view, 0, { signal: 1 as never }))).toBe('EINVAL')
    expect(() => futex.waitSync(view, 0, 0, { until: new Date(Number.NaN) })).toThrow('until: Invalid Date')
    expect(() => futex.waitSync(view, 0, 0, { until: '5' as never })).toThrow('until: 5 is not a time')
    expect(code(() => futex.wakeOp(view, 0, view, 1, undefined as never))).toBe('EINVAL')
    expect(code(() => futex.idOf(new ArrayBuffer(4) as never))).toBe('EFAULT')
    expect(code(() => futex.idOf(undefined as never))).toBe('EFAULT')
    expect(code(() => futex.lockPiSync(new Int16Array(new SharedArrayBuffer(4)) as never, 0))).toBe('EINVAL')
    expect(code(() => futex.unlockPi(view, 0))).toBe('EPERM')
    expect(code(() => futex.waitSync(new Uint8Array(new SharedArrayBuffer(4)), 0, 256))).toBe('EINVAL')
    expect(code(() => futex.waitSync(view, 0, 0.5))).toBe('EINVAL')
    expect(code(() => futex.waitSync(new BigInt64Array(new SharedArrayBuffer(8)), 0, 2n ** 64n))).toBe(
      'EINVAL',
    )
    expect(code(() => futex.requeue(view, 0, view, 1, { wake: -1 }))).toBe('EINVAL')
    expect(code(() => futex.waitRequeuePiSync(view, 0, 0, view, 0))).toBe('EINVAL')
    expect(code(() => futex.waitRequeuePiSync(view, 0, 0, view, 9))).toBe('EFAULT')
    expect(code(() => futex.cmpRequeuePi(view, 0, view, 0, 0))).toBe('EINVAL')
    expect(code(() => futex.cmpRequeuePi(view, 0, view, 1, 0, { move: -1 }))).toBe('EINVAL')
    const entry = { view, index: 0, value: 0 }
    expect(code(() => futex.requeuev([entry] as never))).toBe('EINVAL')
    expect(code(() => futex.requeuev([entry, { ...entry, flags: FUTEX2_SIZE_U32 }]))).toBe('EINVAL')
    const byte = { view: new Uint8Array(new SharedArrayBuffer(4)), index: 0 }
    expect(() => futex.requeuev([entry, byte])).toThrow('view: words of 32 and 8 bits')
  })
})

test('threads without a kernel meet by the id of the buffer', async () => {
  const program = `
    const { parentPort, workerData, Worker, isMainThread } = require('node:worker_threads')
    import(workerData.index).then(async ({ futex }) => {
      const { view, id } = workerData
      if (id === undefined) {
        const own = new Int32Array(new SharedArrayBuffer(8))
        const other = new Worker(workerData.program, { eval: true, workerData: { ...workerData, view: own, id: futex.idOf(own.buffer) } })
        const ended = new Promise(resolve => other.once('message', resolve))
        const slept = futex.waitSync(own, 1, 0)
        parentPort.postMessage([slept, await ended])
      } else {
        futex.join(view.buffer, id)
        while (futex.wake(view, 1) === 0) await new Promise(resolve => setTimeout(resolve, 1))
        parentPort.postMessage('woke')
      }
    })`
  const index = new URL('../../index.ts', import.meta.url).href
  const worker = new Worker(program, { eval: true, workerData: { program, index } })
  expect(await new Promise(resolve => worker.once('message', resolve))).toEqual(['ok', 'woke'])
  await worker.terminate()
})
