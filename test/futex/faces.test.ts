import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import { FutexError } from '../../src/futex/core/errno.ts'
import { Futexes } from '../../src/futex/core/futexes.ts'
import { initializeFutexes, reserveFutexes } from '../../src/futex/core/layout.ts'
import { FUTEX_PRIVATE_FLAG, FUTEX_WAKE } from '../../src/futex/operations/call.ts'
import { SchedTaskWaiter } from '../../src/futex/core/schedtaskwaiter.ts'
import { CMP_EQ, OP_ADD } from '../../src/futex/operations/wakeop.ts'
import { Bench } from './bench.ts'

function makeFutexes(ids: number[] = [64]): Futexes[] {
  const plan = new ArenaPlan()
  const layout = reserveFutexes(plan, { waiters: 64, buckets: 4, mappings: 8, spaces: 4 })
  const arena = Arena.create(plan, { debug: true })
  initializeFutexes(arena, layout)
  return ids.map(id => new Futexes(new KernelThread(arena, id), layout, { now: () => performance.now() }))
}

test('the typed methods return in words what the call returns in numbers', async () => {
  const [fx] = makeFutexes()
  const view = new Int32Array(new SharedArrayBuffer(16))
  fx.map(view.buffer)
  const [one, two] = [fx.word(view, 0), fx.word(view, 1)]
  expect(fx.waitSync(one, 7)).toBe('not-equal')
  expect(fx.waitSync(one, 0, { timeout: 1 })).toBe('timed-out')
  expect(await fx.waitAsync(one, 0, { timeout: 1 })).toBe('timed-out')
  const waiting = [fx.waitAsync(one, 0), fx.waitAsync(one, 0), fx.waitAsync(one, 0)]
  expect(fx.requeue(one, two, { expected: 5 })).toBe('not-equal')
  expect(fx.requeue(one, two, { wake: 1 })).toBe(3)
  expect(fx.wake(one, 0)).toBe(0)
  expect(
    fx.wakeOp(one, two, { op: OP_ADD, oparg: 1, cmp: CMP_EQ, cmparg: 0 }, { wakeSecond: Infinity }),
  ).toBe(2)
  expect(view[1]).toBe(1)
  expect(await Promise.all(waiting)).toEqual(['ok', 'ok', 'ok'])
})

test('wrong calls throw an error with a code and a remedy, and change nothing', async () => {
  const [fx] = makeFutexes()
  const view = new Int32Array(new SharedArrayBuffer(16))
  expect(() => fx.word(view, 0)).toThrow(
    expect.objectContaining({ code: 'EFAULT', syscall: 'futex', errno: -14 }),
  )
  const mapped = fx.map(view.buffer)
  expect(() => fx.word(view, 4)).toThrow(/EFAULT: index 4 is outside the view of 4 words/)
  expect(() => fx.word(view, 0.5)).toThrow(FutexError)
  const word = fx.word(view, 0)
  expect(() => fx.waitSync(word, 0, { bitset: 0 })).toThrow(/EINVAL: bitset: 0/)
  expect(() => fx.waitSync(word, 0, { timeout: Number.NaN })).toThrow(/EINVAL: timeout: NaN/)
  expect(() => fx.wake(word, Number.NaN)).toThrow(/EINVAL: count: NaN/)
  expect(() => fx.map(new ArrayBuffer(8) as never)).toThrow(/not a SharedArrayBuffer/)
  fx.unmap(mapped)
  expect(() => fx.unmap(mapped)).toThrow(/unmapped already/)
  expect(() => fx.wake(word, 1)).toThrow(/EFAULT/)
})

test('an abort ends a wait with its reason, and an earlier wake remains valid', async () => {
  const [fx] = makeFutexes()
  const view = new Int32Array(new SharedArrayBuffer(16))
  fx.map(view.buffer)
  const word = fx.word(view, 0)
  const control = new AbortController()
  const waiting = fx.waitAsync(word, 0, { signal: control.signal })
  control.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  expect(fx.wake(word, 1)).toBe(0)
  await expect(fx.waitAsync(word, 0, { signal: control.signal })).rejects.toThrow('enough')
  expect(() => fx.waitSync(word, 0, { signal: control.signal })).toThrow('enough')
  const late = new AbortController()
  const woken = fx.waitAsync(word, 0, { signal: late.signal })
  expect(fx.wake(word, 1)).toBe(1)
  late.abort()
  expect(await woken).toBe('ok')
})

test('an abort ends the wait of a task too', () => {
  const bench = new Bench('task')
  const control = new AbortController()
  let caught: unknown
  bench.sim.fork(function* (context) {
    const task = new SchedTaskWaiter(context, () => bench.fx.context)
    try {
      yield* bench.fx.wait(task, bench.fx.word(bench.view, 0), 0, { signal: control.signal })
    } catch (error) {
      caught = error
    }
    return 0
  })
  bench.sim.run()
  control.abort('enough')
  bench.sim.run()
  expect(caught).toBe('enough')
})

test('two address spaces share the shared futexes of one buffer, and not its private ones', async () => {
  const [one, two] = makeFutexes([64, 65])
  const buffer = new SharedArrayBuffer(16)
  const mine = one.map(buffer)
  const theirs = two.map(buffer, mine.handles.backing)
  const shared = one.waitAsync(one.word(mine.i32, 0), 0, { shared: true })
  const priv = one.waitAsync(one.word(mine.i32, 0), 0)
  const place = { view: theirs.i32, index: 0 }
  expect(two.futexSync(place, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 10)).toBe(0)
  expect(two.futexSync(place, FUTEX_WAKE, 10)).toBe(1)
  expect(await shared).toBe('ok')
  // The buffer is still mapped in the other space.
  two.unmap(theirs)
  expect(one.wake(one.word(mine.i32, 0), 10)).toBe(1)
  expect(await priv).toBe('ok')
  one.unmap(mine)
  expect(() => two.map(buffer, mine.handles.backing)).toThrow(/its last mapping was unmapped/)
})

test('a handle that a thread remembers may be stale, and a stale handle is detected', async () => {
  const [fx] = makeFutexes()
  const view = new Int32Array(new SharedArrayBuffer(64))
  fx.map(view.buffer)
  const words = Array.from({ length: 8 }, (_, index) => fx.word(view, index))
  // The few slots are reused quickly: a word has a different futex a moment later.
  for (let round = 0; round < 50; round++) {
    const [here, there] = [words[round % 8], words[(round + 3) % 8]]
    const waiting = fx.waitAsync(here, 0)
    expect(fx.wake(there, 10)).toBe(0)
    expect(fx.wake(here, 10)).toBe(1)
    expect(await waiting).toBe('ok')
  }
})

test('a waiting promise keeps the process alive until it is woken or times out', () => {
  const program = `
    import { Arena, ArenaPlan } from '${new URL('../../src/arena/memory/arena.ts', import.meta.url).href}'
    import { KernelThread } from '${new URL('../../src/arena/sync/thread.ts', import.meta.url).href}'
    import { Futexes } from '${new URL('../../src/futex/core/futexes.ts', import.meta.url).href}'
    import { initializeFutexes, reserveFutexes } from '${new URL('../../src/futex/core/layout.ts', import.meta.url).href}'
    const plan = new ArenaPlan()
    const layout = reserveFutexes(plan, { waiters: 8 })
    const arena = Arena.create(plan)
    initializeFutexes(arena, layout)
    const fx = new Futexes(new KernelThread(arena, 64), layout, { now: () => performance.now() })
    const view = new Int32Array(new SharedArrayBuffer(4))
    fx.map(view.buffer)
    console.log(await fx.waitAsync(fx.word(view, 0), 0, { timeout: 30 }))
  `
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  })
  expect({ stdout: stdout.trim(), status }).toEqual({ stdout: 'timed-out', status: 0 })
})

test('the error of a full table names the option to raise, and no waiter is left', () => {
  const plan = new ArenaPlan()
  const layout = reserveFutexes(plan, { waiters: 2, buckets: 1, mappings: 1, spaces: 1 })
  const arena = Arena.create(plan)
  initializeFutexes(arena, layout)
  const fx = new Futexes(new KernelThread(arena, 64), layout, { now: () => performance.now() })
  const view = new Int32Array(new SharedArrayBuffer(16))
  fx.map(view.buffer)
  const word = fx.word(view, 0)
  void fx.waitAsync(word, 0)
  void fx.waitAsync(word, 0)
  expect(() => fx.waitSync(word, 0)).toThrow(/waiters is full \(2 slots\); raise the option `waiters`/)
  expect(() => fx.map(new SharedArrayBuffer(4))).toThrow(/raise the option `mappings`/)
  expect(fx.wake(word, 10)).toBe(2)
  expect(() => reserveFutexes(new ArenaPlan(), { buckets: 3 })).toThrow(/buckets: 3/)
})
