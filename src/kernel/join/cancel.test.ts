import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Mutex } from '../../index.ts'
import { INTERRUPTIBLE, SLEEP_KILLED, TaskRecord, WAKE_INTERRUPTIBLE } from '../../sched/core/taskrecord.ts'
import { wakeup } from '../../sched/core/wakeup.ts'
import { failureOf, sharedWords as shared, until } from '../../../testing/kernel/fixtures/ending.ts'
import { Kernel } from '../boot/kernel.ts'
import type { ModuleView } from '../spawn/modules.ts'

type Work = typeof import('../../../testing/kernel/fixtures/work.ts')

let kernel: Kernel
let work: ModuleView<Work>

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 2, slice: 5, grace: 60_000, debug: true })
  work = await kernel.import<Work>(new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url))
})

afterAll(async () => {
  await kernel.close({ abort: true })
})

describe('a kill is thrown into the task:', () => {
  test('while it waits, and its finally runs before the result is delivered', async () => {
    const words = shared()
    const task = kernel.spawn(work.tidies, [words])
    await until('it waits', () => task.status.state === 'sleeping')
    const reason = new Error('no longer needed')
    expect(task.kill(reason)).toBe(true)
    const error = await failureOf(task)
    expect(error).toMatchObject({ name: 'TaskKilledError', code: 'ERR_HEDDLE_TASK_KILLED', how: 'thrown' })
    expect(error.cause).toBe(reason)
    expect(error.message).toBe('task tidies was killed: no longer needed')
    expect(words[0]).toBe(2)
    expect(task.status).toMatchObject({ state: 'killed', killed: true })
  })

  test('at a safepoint of a loop that never waits', async () => {
    const words = shared()
    const task = kernel.spawn(work.tidiesPlainly, [words])
    await until('it runs', () => words[0] === 1)
    task.kill('enough')
    expect((await failureOf(task)).how).toBe('thrown')
    expect(words[0]).toBe(2)
  })

  test('and other tasks of the same CPU are not affected', async () => {
    const neighbours = Array.from({ length: 5 }, () => kernel.spawn(work.naps, [30], { affinity: [0] }))
    const victims = Array.from({ length: 5 }, () => kernel.spawn(work.hog, [], { affinity: [0] }))
    await until('all have started', () => victims.every(task => task.status.cpu === 0))
    for (const victim of victims) victim.kill()
    expect(await Promise.all(neighbours)).toEqual(Array.from({ length: 5 }, () => 'slept'))
    for (const end of await Promise.allSettled(victims)) expect(end.status).toBe('rejected')
  })

  test('before it has started: it never starts', async () => {
    const hogs = [0, 1].map(cpu => kernel.spawn(work.hog, [], { affinity: [cpu], priority: 'high' }))
    const words = shared()
    const task = kernel.spawn(work.tidies, [words])
    expect(task.kill('too late')).toBe(true)
    expect(task.kill('once more')).toBe(false)
    for (const hog of hogs) hog.kill()
    expect(await failureOf(task)).toMatchObject({ name: 'TaskKilledError', how: 'unstarted' })
    expect(words[0]).toBe(0)
    await Promise.allSettled(hogs)
  })

  test('while it is stopped: it is resumed and ends', async () => {
    const task = kernel.spawn(work.naps, [1e9])
    await until('it waits', () => task.status.state === 'sleeping')
    task.stop()
    task.kill()
    expect((await failureOf(task)).how).toBe('thrown')
  })

  test('a task that catches it and returns has a result', async () => {
    const task = kernel.spawn(work.survives)
    await until('it waits', () => task.status.state === 'sleeping')
    task.kill()
    expect(await task).toBe('caught TaskKilledError')
    expect(task.status).toMatchObject({ state: 'returned', killed: true })
  })

  test('an async function receives it by its signal', async () => {
    const task = kernel.spawn(work.heedsSignal)
    await until('it waits', () => task.status.state === 'sleeping')
    task.kill('as asked')
    expect(await failureOf(task)).toMatchObject({ name: 'TaskKilledError', how: 'thrown' })
  })
})

test('a kill leaves a library like an exception; with preemption off it arrives after the call', async () => {
  const library = await kernel.import<typeof import('../../../testing/kernel/fixtures/shieldwork.ts')>(
    new URL('../../../testing/kernel/fixtures/shieldwork.ts', import.meta.url),
  )
  const stateAfter = async (shielded: boolean): Promise<number> => {
    const words = shared()
    const task = kernel.spawn(library.calls, [words, shielded], { affinity: [0] })
    await until('it is in the library', () => Atomics.load(words, 0) === 1)
    task.kill()
    if (shielded) Atomics.store(words, 1, 1)
    expect((await failureOf(task)).how).toBe('thrown')
    return await kernel.spawn(library.state, [], { affinity: [0] })
  }
  expect(await stateAfter(true)).toBe(0)
  expect(await stateAfter(false)).toBe(1)
})

describe('a spawn’s own limits kill:', () => {
  test('its time limit', async () => {
    const error = await failureOf(kernel.spawn(work.naps, [1e9], { timeout: 10, name: 'slow' }))
    expect(error.name).toBe('TimeoutError')
    expect(error.message).toBe('task slow: 10 ms have passed')
  })

  test('its signal, with the same reason object', async () => {
    const controller = new AbortController()
    const task = kernel.spawn(work.hog, [], { signal: controller.signal })
    await until('it runs', () => task.status.cpu !== null)
    const reason = new TypeError('changed my mind')
    controller.abort(reason)
    expect(await failureOf(task)).toBe(reason)
  })

  test('a signal that was aborted before', async () => {
    const task = kernel.spawn(work.hog, [], { signal: AbortSignal.abort('at once') })
    await expect(task.join()).rejects.toBe('at once')
  })

  test('a signal that was aborted before: the function never runs, however fast a CPU is', async () => {
    const reason = new Error('too late')
    const signal = AbortSignal.abort(reason)
    const words = shared()
    for (const options of [{}, { priority: 'realtime' }, { affinity: [1] }] as const) {
      const tasks = Array.from({ length: 50 }, () =>
        kernel.spawn(work.bumps, [words], { signal, ...options }),
      )
      for (const task of tasks) expect(await failureOf(task)).toBe(reason)
      for (const { status } of tasks)
        expect(status).toMatchObject({ state: 'killed', starts: 0, killed: true })
    }
    for (const detached of [false, true]) await kernel.spawn(work.spawnsAborted, [words, 20, detached])
    expect(words[0]).toBe(0)
    await kernel.spawn(work.bumps, [words], { signal: new AbortController().signal })
    expect(words[0]).toBe(1)
  })

  test('a signal that was aborted before, of a task that would wait for room on a CPU', async () => {
    const full = await Kernel.boot({ cpus: 1, tasksPerCpu: 1 })
    const { hog } = await full.import<Work>(
      new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url),
    )
    const endless = full.spawn(hog)
    await expect(full.spawn(hog, [], { signal: AbortSignal.abort('too late') }).join()).rejects.toBe(
      'too late',
    )
    expect(endless.kill()).toBe(true)
    await full.close({ abort: true })
  })
})

describe('back-pressure:', () => {
  test('as many tasks as the queue holds, then an error, then room again', async () => {
    await using small = await Kernel.boot({ cpus: 1, queue: 4, tasks: 16 })
    const { naps } = await small.import<Work>(
      new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url),
    )
    const tasks = Array.from({ length: 4 }, () => small.spawn(naps, [5]))
    expect(() => small.spawn(naps, [5])).toThrow(/4 tasks have not ended yet.*await kernel.ready.*`queue`/)
    await small.ready
    expect(await small.spawn(naps, [1])).toBe('slept')
    await Promise.all(tasks)
  })
})

describe('closing:', () => {
  test('drains: running tasks end by themselves, later spawns are refused', async () => {
    const closing = await Kernel.boot({ cpus: 1 })
    const { naps } = await closing.import<Work>(
      new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url),
    )
    const task = closing.spawn(naps, [20])
    const closed = closing.close()
    expect(() => closing.spawn(naps, [1])).toThrow(/the kernel is closed, or closing/)
    await closed
    expect(await task).toBe('slept')
    await closing.close()
  })

  test('aborts: running tasks are killed with the reason, and their finally runs', async () => {
    const closing = await Kernel.boot({ cpus: 1 })
    const { tidies } = await closing.import<Work>(
      new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url),
    )
    const words = shared()
    const task = closing.spawn(tidies, [words])
    await until('it waits', () => task.status.state === 'sleeping')
    await closing.close({ abort: 'going home' })
    expect((await failureOf(task)).message).toBe(
      'task tidies was killed because its kernel closed: going home',
    )
    expect(words[0]).toBe(2)
  })

  test('drains until a deadline, then aborts', async () => {
    const closing = await Kernel.boot({ cpus: 1 })
    const { hog } = await closing.import<Work>(
      new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url),
    )
    const task = closing.spawn(hog)
    await closing.close({ drain: true, deadline: 20 })
    expect((await failureOf(task)).how).toBe('thrown')
  })
})

describe('a task that does not end within the grace period', () => {
  test('loses its CPU, also if its record belonged to another killed task shortly before', async () => {
    // Polls are far apart, and the test makes the first.
    await using strict = await Kernel.boot({ cpus: 1, grace: 1000, watchdog: false })
    const { stubborn, tidies } = await strict.import<Work>(
      new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url),
    )
    const [first, second] = [shared(), shared()]
    const tidy = strict.spawn(tidies, [first])
    await until('the first runs', () => Atomics.load(first, 0) === 1)
    const { job } = tidy
    tidy.kill()
    strict['monitor'].poll()
    await failureOf(tidy)
    const task = strict.spawn(stubborn, [second])
    expect(task.job).toBe(job)
    await until('the second runs', () => Atomics.load(second, 0) === 1)
    task.kill()
    strict['monitor'].poll()
    expect(await failureOf(task)).toMatchObject({ how: 'evicted' })
  })

  test('loses its CPU: it says so, other tasks of that CPU are lost, those of other CPUs go on, and a new CPU starts', async () => {
    await using strict = await Kernel.boot({ cpus: 2, grace: 30, watchdog: false })
    const its = await strict.import<Work>(
      new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url),
    )
    const back = new Promise<{ cpu: number }>(resolve => strict.on('restart', resolve))
    const words = shared()
    const task = strict.spawn(its.stubborn, [words], { affinity: [0] })
    const neighbour = strict.spawn(its.naps, [1e9], { affinity: [0], name: 'neighbour' })
    const other = strict.spawn(its.naps, [1e9], { affinity: [1] })
    await until('all wait', () => [task, neighbour, other].every(({ status }) => status.state === 'sleeping'))
    task.kill('really')
    expect(await failureOf(task)).toMatchObject({
      name: 'TaskKilledError',
      how: 'evicted',
      message: 'task stubborn was killed, did not end within the grace period, and lost its CPU: really',
    })
    expect(words[1]).toBe(1)
    expect(task.status.state).toBe('evicted')
    expect(await failureOf(neighbour)).toMatchObject({ name: 'CpuLostError', task: 'neighbour', cpu: 0 })
    expect(neighbour.status.state).toBe('lost')
    expect(await back).toEqual({ cpu: 0 })
    const { state } = other.status
    other.kill()
    expect(state).toBe('sleeping')
    expect(await strict.spawn(its.where, [], { affinity: [0] })).toBe(0)
    await other.join().catch(() => undefined)
  })
})

describe('the watchdog', () => {
  test('reports a task without safepoints', async () => {
    await using watched = await Kernel.boot({ cpus: 1, watchdog: { limit: 30 } })
    const its = await watched.import<Work>(
      new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url),
    )
    const told: unknown[] = []
    watched.on('stuck', report => told.push(report))
    const task = watched.spawn(its.stuck, [400], { name: 'long' })
    expect(await task).toBe('unstuck')
    expect(told).toEqual([
      expect.objectContaining({ name: 'long', id: task.id, cpu: 0, where: 'task', evicted: false }),
    ])
    // The inspector pauses it to read its stack.
    expect((told[0] as { stack: string }).stack).toMatch(/^ {4}at stuck \(.*fixtures\/work\.ts:\d+:\d+\)$/)
  })

  test('takes its CPU away, on request', async () => {
    await using watched = await Kernel.boot({ cpus: 1, watchdog: { limit: 30, evict: true } })
    const its = await watched.import<Work>(
      new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url),
    )
    const task = watched.spawn(its.stuck, [60_000], { name: 'endless' })
    expect(await failureOf(task)).toMatchObject({
      how: 'evicted',
      message: 'task endless ran on without a safepoint, and lost its CPU',
    })
    expect(await watched.spawn(its.add, [1, 2])).toBe(3)
  })

  test('takes its CPU away the next time, if the CPU answered while its stack was read', async () => {
    await using watched = await Kernel.boot({ cpus: 1, watchdog: { limit: 30, evict: true } })
    const its = await watched.import<typeof import('../../../testing/kernel/fixtures/mortalwork.ts')>(
      new URL('../../../testing/kernel/fixtures/mortalwork.ts', import.meta.url),
    )
    const words = shared()
    const evicted: boolean[] = []
    watched.on('stuck', report => evicted.push(report.evicted))
    const { machine } = watched['booted']
    machine.stackOf = async () => {
      Atomics.store(words, 0, 1)
      await until('it has let others in', () => Atomics.load(words, 1) === 1)
      return null
    }
    expect(await failureOf(watched.spawn(its.stuckTwice, [words]))).toMatchObject({ how: 'evicted' })
    expect(evicted).toEqual([false, true])
  })
})

describe('a task whose CPU dies', () => {
  test.each([
    ['exit', 'exited', 'exited with code 3'],
    ['throw', 'uncaught error', 'uncaught error: outside of a task'],
    ['memory', 'out of memory', 'out of memory'],
  ] as const)('by %s: fails with the reason, or starts again', async (how, reason, words) => {
    await using mortal = await Kernel.boot({ cpus: 1, resourceLimits: { maxOldGenerationSizeMb: 48 } })
    const its = await mortal.import<Work>(
      new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url),
    )
    const lost = await failureOf(mortal.spawn(its.diesOnce, [shared(), how], { name: 'mortal' }))
    expect(lost).toMatchObject({
      name: 'CpuLostError',
      code: 'ERR_HEDDLE_CPU_LOST',
      task: 'mortal',
      cpu: 0,
      reason,
    })
    expect(lost.message).toContain(words)
    expect(lost.stack).toMatch(/at task mortal #\d+\n.*cancel\.test\.ts/)
    const task = mortal.spawn(its.diesOnce, [shared(), how], { restartable: true })
    let restarts = 0
    task.on('restart', () => restarts++)
    expect(await task).toBe('finished')
    expect(task.status).toMatchObject({ state: 'returned', starts: 2 })
    expect(restarts).toBe(1)
  })

  test('does not affect tasks of its CPU that had not started: they run elsewhere', async () => {
    await using mortal = await Kernel.boot({ cpus: 1 })
    const its = await mortal.import<Work>(
      new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url),
    )
    const dies = mortal.spawn(its.exitsProcess, [1], { priority: 'high' })
    const others = Array.from({ length: 20 }, (_, n) => mortal.spawn(its.add, [n, 1], { priority: 'low' }))
    expect((await failureOf(dies)).name).toBe('CpuLostError')
    expect(await Promise.all(others)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1))
  })
})

test.each([
  ['plain', {}],
  ['robust', { robust: true }],
  ['inheriting', { protocol: 'inherit' }],
] as const)(
  'a late wakeup of a kill does not end the wait for a %s mutex in its finally',
  async (_, options) => {
    const words = shared()
    const mutex = new Mutex(options)
    mutex.lockSync()
    const task = kernel.spawn(work.locksAtTheEnd, [words, mutex])
    await until('it rests', () => Atomics.load(words, 0) === 1)
    task.kill('enough')
    await until('it waits', () => Atomics.load(words, 1) === 1)
    const { view } = kernel.internals
    // As (B) of taskwaiter.ts, but late; repeated, because the task may be awake at that moment.
    const wakes = (): boolean => {
      let woke = false
      view.withTask(task.job, record => {
        if (Atomics.load(view.i32, record + TaskRecord.state) === INTERRUPTIBLE)
          woke = wakeup(view.s, record, WAKE_INTERRUPTIBLE, SLEEP_KILLED)
      })
      return woke
    }
    for (let n = 0; n < 3; n++) await until('it has been woken', wakes)
    expect(Atomics.load(words, 2)).toBe(0)
    mutex.unlock()
    expect(await failureOf(task)).toMatchObject({ name: 'TaskKilledError', how: 'thrown' })
    expect(Atomics.load(words, 2)).toBe(1)
  },
)
