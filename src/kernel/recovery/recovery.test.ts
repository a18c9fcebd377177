import { describe, expect, test } from 'vitest'
import { CONTENDED_WORDS } from '../../arena/memory/arena.ts'
import { Lock } from '../../arena/sync/spinlock.ts'
import type { CpuDeath, Machine } from '../../machine/core/machine.ts'
import { RunQueue } from '../../sched/core/runqueue.ts'
import { makeKernel } from '../boot/boot.ts'
import { CpuLostError, RecoveryError } from '../join/errors.ts'
import { failureOf, sharedWords as words, until } from '../../../testing/kernel/fixtures/ending.ts'
import { inUse, leftSince } from '../../../testing/kernel/fixtures/inuse.ts'
import { Kernel } from '../boot/kernel.ts'
import type { ModuleView } from '../spawn/modules.ts'
import type { KernelOptions } from '../boot/options.ts'
import { rescuer } from './recovery.ts'

type Work = typeof import('../../../testing/kernel/fixtures/mortalwork.ts')

async function boot(options: KernelOptions = {}): Promise<{ kernel: Kernel; work: ModuleView<Work> }> {
  const kernel = await Kernel.boot({ cpus: 2, watchdog: false, ...options })
  const work = await kernel.import<Work>(
    new URL('../../../testing/kernel/fixtures/mortalwork.ts', import.meta.url),
  )
  // The tasks that loaded the module are gone.
  await until('nothing is left of the import', () => inUse(kernel).tasks === kernel.cpus)
  return { kernel, work }
}

const terminate = (kernel: Kernel, cpu: number): Promise<void> => kernel['booted'].machine.terminate(cpu)

interface Way {
  readonly reason: CpuDeath['reason']
  readonly exitCode?: number
  readonly message: RegExp
  readonly options?: KernelOptions
  readonly kill: (kernel: Kernel, work: ModuleView<Work>) => PromiseLike<unknown> | undefined
}

const onCpu0 = { affinity: [0], name: 'culprit' }

const ways: Record<string, Way> = {
  'is terminated': {
    reason: 'terminated',
    message: /\(terminated\)$/,
    kill: kernel => void terminate(kernel, 0),
  },
  'runs out of memory': {
    reason: 'out of memory',
    message: /\(out of memory: /,
    options: { resourceLimits: { maxOldGenerationSizeMb: 48 } },
    kill: (kernel, work) => kernel.spawn(work.devours, [], onCpu0),
  },
  'throws outside of a task': {
    reason: 'uncaught error',
    message: /\(uncaught error: out there\)$/,
    kill: (kernel, work) => kernel.spawn(work.throwsOutside, ['out there'], onCpu0),
  },
  'calls process.exit': {
    reason: 'exited',
    exitCode: 7,
    message: /\(exited with code 7\)$/,
    kill: (kernel, work) => kernel.spawn(work.exits, [7], onCpu0),
  },
}

describe.each(Object.entries(ways))('a CPU %s', (_, { reason, exitCode, message, options, kill }) => {
  test('its started tasks are lost, the others run, and a new CPU replaces it', async () => {
    const { kernel, work } = await boot(options)
    await using _kernel = kernel
    const before = inUse(kernel)
    const shared = words()
    const deaths: CpuDeath[] = []
    kernel.on('death', death => deaths.push(death))
    const back = new Promise(resolve => kernel.on('restart', resolve))
    const lost = kernel.spawn(work.rests, [shared], { affinity: [0], name: 'sleeper' })
    const again = kernel.spawn(work.secondTime, [shared, 'again'], { affinity: [0], restartable: true })
    const neighbour = kernel.spawn(work.rests, [shared], { affinity: [1], name: 'neighbour' })
    await until('they rest', () =>
      [lost, again, neighbour].every(({ status }) => status.state === 'sleeping'),
    )
    const culprit = kill(kernel, work)
    // Queued behind it, and not started: their CPU will never run them.
    const unstarted = Array.from({ length: 20 }, (_value, index) =>
      kernel.spawn(work.echo, [index], { affinity: [0] }),
    )
    const error = await failureOf(lost)
    expect(error).toBeInstanceOf(CpuLostError)
    expect(error).toMatchObject({ name: 'CpuLostError', task: 'sleeper', cpu: 0, was: 'asleep', reason })
    expect(error.message).toMatch(/^task sleeper was lost while it was asleep: its CPU 0 died/)
    expect(error.message).toMatch(message)
    if (exitCode !== undefined) expect(error.exitCode).toBe(exitCode)
    if (culprit !== undefined) expect(await failureOf(culprit)).toMatchObject({ task: 'culprit', reason })
    expect(await Promise.all(unstarted)).toEqual(unstarted.map((_task, index) => index))
    expect(await again).toBe('again')
    expect(await back).toEqual({ cpu: 0 })
    expect(deaths).toMatchObject([{ cpu: 0, reason }])
    expect(neighbour.status.state).toBe('sleeping')
    expect(await kernel.spawn(work.echo, [42], { affinity: [0] })).toBe(42)
    neighbour.kill()
    await neighbour.join().catch(() => undefined)
    await expect.poll(() => leftSince(kernel, before)).toEqual({})
  })
})

test('a joiner of a lost task on another CPU gets its error', async () => {
  const { kernel, work } = await boot()
  await using _kernel = kernel
  const before = inUse(kernel)
  const shared = words()
  const waiting = kernel.spawn(work.parent, [shared, 0], { affinity: [1] })
  await until('the child rests', () => Atomics.load(shared, 0) === 1)
  await until('its parent waits', () => waiting.status.state === 'sleeping')
  void terminate(kernel, 0)
  expect(await waiting).toEqual({
    name: 'CpuLostError',
    task: 'child',
    cpu: 0,
    reason: 'terminated',
    // It has said that it rests, but may not be asleep yet.
    was: expect.stringMatching(/^(asleep|running)$/),
    message: expect.stringMatching(
      /^task child was lost while it was (asleep|running): its CPU 0 died \(terminated\)$/,
    ),
  })
  await expect.poll(() => leftSince(kernel, before)).toEqual({})
})

test('a joiner gets the result although the CPU died before it could wake it', async () => {
  const { kernel, work } = await boot()
  await using _kernel = kernel
  expect(await kernel.spawn(work.joinsIt, [], { affinity: [0] })).toBe(7)
})

test('the children of a lost task go on, and their records are freed', async () => {
  const { kernel, work } = await boot()
  await using _kernel = kernel
  const before = inUse(kernel)
  const shared = words()
  const lost = kernel.spawn(work.spawner, [shared, 1], { affinity: [0] })
  await until('it rests', () => lost.status.state === 'sleeping')
  void terminate(kernel, 0)
  await failureOf(lost)
  Atomics.store(shared, 3, 1)
  await until('the child has ended', () => Atomics.load(shared, 4) === 1)
  await expect.poll(() => kernel.active).toBe(0)
  await expect.poll(() => leftSince(kernel, before)).toEqual({})
})

test('the error of a lost task says whether it was running or waiting for its turn', async () => {
  const { kernel, work } = await boot({ cpus: 1 })
  await using _kernel = kernel
  const shared = words()
  const behind = kernel.spawn(work.rests, [shared], { name: 'behind' })
  await until('it rests', () => behind.status.state === 'sleeping')
  const running = kernel.spawn(work.spins, [shared], { name: 'running' })
  await until('it spins', () => Atomics.load(shared, 2) > 0)
  behind.stop()
  void terminate(kernel, 0)
  expect(await failureOf(running)).toMatchObject({ task: 'running', was: 'running' })
  expect(await failureOf(behind)).toMatchObject({ task: 'behind', was: 'stopped' })
})

test('a kernel goes on after all its CPUs died at the same time', async () => {
  const { kernel, work } = await boot({ cpus: 3 })
  await using _kernel = kernel
  const before = inUse(kernel)
  const shared = words()
  const resting = Array.from({ length: 3 }, (_, cpu) =>
    kernel.spawn(work.rests, [shared], { affinity: [cpu] }),
  )
  await until('they rest', () => resting.every(({ status }) => status.state === 'sleeping'))
  const failures = resting.map(failureOf)
  for (let cpu = 0; cpu < 3; cpu++) void terminate(kernel, cpu)
  const echoes = Array.from({ length: 100 }, (_, index) => kernel.spawn(work.echo, [index]))
  for (const error of await Promise.all(failures)) expect(error).toBeInstanceOf(CpuLostError)
  expect(await Promise.all(echoes)).toEqual(echoes.map((_, index) => index))
  await expect.poll(() => leftSince(kernel, before)).toEqual({})
})

test('a killed restartable task does not restart', async () => {
  const { kernel, work } = await boot({ cpus: 1, grace: 1e6 })
  await using _kernel = kernel
  const shared = words()
  const spinning = kernel.spawn(work.spins, [shared], { restartable: true, name: 'spinning' })
  await until('it spins', () => Atomics.load(shared, 2) > 0)
  spinning.kill('enough')
  void terminate(kernel, 0)
  await failureOf(spinning)
  expect(Atomics.load(shared, 0)).toBe(1)
  expect(await kernel.spawn(work.echo, [1])).toBe(1)
})

test('a child that was bound to the dead CPU, and never started, is dropped once', async () => {
  const { kernel, work } = await boot()
  await using _kernel = kernel
  const before = inUse(kernel)
  const spawning = kernel.spawn(work.diesSpawning, [], { affinity: [0], name: 'spawning' })
  expect(await failureOf(spawning)).toMatchObject({ task: 'spawning', was: 'running', exitCode: 7 })
  expect(await kernel.spawn(work.echo, [1], { affinity: [0] })).toBe(1)
  await expect.poll(() => leftSince(kernel, before)).toEqual({})
})

test.each(['while the CPU is idle', 'when the kernel closes'])(
  'a promise that an ended task left rejected is reported %s, and no later task fails with it',
  async moment => {
    const { kernel, work } = await boot({ cpus: 1 })
    const deaths: CpuDeath[] = []
    kernel.on('death', death => deaths.push(death))
    expect(await kernel.spawn(work.leavesRejection, ['left behind'])).toBe(1)
    if (moment === 'while the CPU is idle') {
      await until('the death is reported', () => deaths.length > 0)
      expect(await kernel.spawn(work.echo, [2])).toBe(2)
    }
    await kernel.close()
    expect(deaths).toMatchObject([{ cpu: 0, reason: 'uncaught error', error: { message: 'left behind' } }])
  },
)

test.each(['leavesRejection', 'leavesTimer'] as const)(
  'an error that a task %s is told to the program although no task fails',
  async leaves => {
    const warnings: (Error & { code?: string })[] = []
    const hear = (warning: Error): void => void warnings.push(warning)
    process.on('warning', hear)
    const { kernel, work } = await boot({ eventLoop: 'always' })
    expect(await kernel.spawn(work[leaves], ['left behind'], { affinity: [0] })).toBe(1)
    await until('the death is told', () => warnings.length > 0)
    expect(warnings[0]).toMatchObject({ name: 'HeddleWarning', code: 'HEDDLE_CPU_DIED' })
    expect(warnings[0].message).toMatch(
      /^CPU 0 died of an error .* RangeError: left behind\n.*mortalwork\.ts/s,
    )
    await until('the CPU is back', () => kernel['booted'].machine.isGone?.(0) === false)
    // A program that listens, or whose task fails of it, needs no warning.
    const deaths: CpuDeath[] = []
    kernel.on('death', death => deaths.push(death))
    expect(await kernel.spawn(work[leaves], ['heard'], { affinity: [1] })).toBe(1)
    await until('the death is heard', () => deaths.length > 0)
    await kernel.close()
    process.off('warning', hear)
    expect(warnings).toHaveLength(1)
  },
)

test('a failed recovery is reported, its CPU is given up, and the others go on', async () => {
  const { kernel, work } = await boot()
  const errors: Error[] = []
  const told: string[] = []
  kernel.on('error', error => errors.push(error))
  kernel.on('death', ({ cpu }) => told.push(`death of ${cpu}`))
  kernel.on('restart', ({ cpu }) => told.push(`restart of ${cpu}`))
  const cause = new Error('a block has no header')
  const { codec } = kernel['booted'].view
  codec.recover = () => {
    throw cause
  }
  void terminate(kernel, 0)
  await until('it is told', () => told.length > 0)
  expect(errors).toHaveLength(1)
  expect(errors[0]).toBeInstanceOf(RecoveryError)
  expect(errors[0]).toMatchObject({ name: 'RecoveryError', code: 'ERR_HEDDLE_RECOVERY', cpu: 0, cause })
  expect(errors[0].message).toMatch(/CPU 0 .*a block has no header.*close the kernel/)
  // Some turns of the scheduler later it was not replaced, and the other CPU has done the work.
  for (let n = 0; n < 20; n++) expect(await kernel.spawn(work.echo, [n])).toBe(n)
  expect(told).toEqual(['death of 0'])
  expect(kernel.online).toBe(1)
  await kernel.close({ deadline: 1000 })
})

test('a module that is imported without any CPU is loaded by the first one that starts', async () => {
  const { kernel, work } = await boot({ cpus: 1 })
  await using _kernel = kernel
  const other = new Promise<ModuleView<Work>>(resolve => {
    kernel.on('death', () =>
      resolve(
        kernel.import<Work>(new URL('../../../testing/kernel/fixtures/mortalwork.ts?2', import.meta.url)),
      ),
    )
  })
  await failureOf(kernel.spawn(work.exits, [7]))
  expect(await kernel.spawn((await other).echo, [2])).toBe(2)
})

describe('a thread that detects deaths and waits for a living CPU that waits for a dead one', () => {
  /** CPUs 0 and 1 are alive, CPU 2 is gone; no CPU acts by itself. */
  async function still() {
    const { view, machine } = await makeKernel({ cpus: 3, watchdog: false }, () => {})
    const stuck = rescuer(view, { ...machine, cpus: 3, isGone: cpu => cpu === 2 } as Machine)
    const held = (cpu: number): number => view.s.queueOf(cpu) + RunQueue.lock
    const word = (lock: number): number => view.i32[lock + Lock.word]
    return { view, machine, stuck, held, word }
  }
  const tag = (cpu: number): number => cpu + 1

  test('breaks the lock that this CPU waits for, and no other', async () => {
    const { view, machine, stuck, held, word } = await still()
    const { i32 } = view
    i32[held(1) + Lock.word] = tag(1)
    i32[held(2) + Lock.word] = tag(2)
    i32[CONTENDED_WORDS + 1] = held(0)
    expect(stuck(1, held(1))).toBe(false)
    expect(word(held(2))).toBe(tag(2))
    i32[CONTENDED_WORDS + 1] = held(2)
    expect(stuck(1, held(1))).toBe(false)
    expect([word(held(1)), word(held(2))]).toEqual([tag(1), 0])
    await machine.close()
  })

  test('closes the dead CPU, unless it may hold the lock of a run queue itself', async () => {
    const { view, machine, stuck, held } = await still()
    const { i32, s } = view
    const online = s.queueOf(2) + RunQueue.online
    i32[online] = 1
    stuck(1, held(1))
    expect(i32[online]).toBe(1)
    stuck(1, 0)
    expect(i32[online]).toBe(0)
    await machine.close()
  })
})
