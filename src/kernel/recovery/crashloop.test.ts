import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CrashLoopError, Kernel, TaskKilledError } from '../../index.ts'
import { failureOf, sharedWords, until } from '../../../testing/kernel/fixtures/ending.ts'
import { inUse } from '../../../testing/kernel/fixtures/inuse.ts'
import type * as Loading from '../../../testing/kernel/fixtures/diesloading.ts'
import type * as Mortal from '../../../testing/kernel/fixtures/mortalwork.ts'
import { Job } from '../spawn/job.ts'
import type { KernelEvents } from '../boot/kernelevents.ts'
import { CRASHES_MAX } from './recovery.ts'
import { DEATHS_MAX } from './restarts.ts'

/** CPUs that die repeatedly: the restarts are bounded and reported, and the kernel can be closed. */
let folder: string
let marker: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'heddle-crashloop-'))
  marker = join(folder, 'marker')
})
afterEach(() => rmSync(folder, { recursive: true }))

/** A kernel whose CPUs die while they load a module, once `break` has been called. */
async function boot(cpus: number) {
  const kernel = await Kernel.boot({ cpus, watchdog: false, grace: 50 })
  const url = new URL('../../../testing/kernel/fixtures/diesloading.ts', import.meta.url)
  url.searchParams.set('marker', marker)
  const work = await kernel.import<typeof Loading>(url)
  const errors: KernelEvents['error'][] = []
  const deaths: string[] = []
  kernel.on('error', error => errors.push(error))
  kernel.on('death', ({ cpu, reason, exitCode }) => deaths.push(`${cpu} ${reason} ${exitCode}`))
  return { kernel, work, errors, deaths, breakIt: () => writeFileSync(marker, '') }
}

test('a CPU that dies on every start is given up and reported, and the others go on', async () => {
  const { kernel, work, errors, deaths, breakIt } = await boot(2)
  await using _kernel = kernel
  breakIt()
  await failureOf(kernel.spawn(work.exits, [7], { affinity: [0] }))
  await until('it is reported', () => errors.length > 0)
  const [error] = errors as CrashLoopError[]
  expect(error).toBeInstanceOf(CrashLoopError)
  expect(error).toMatchObject({ code: 'ERR_HEDDLE_CRASH_LOOP', cpu: 0, left: 1 })
  expect(error.message).toContain('exited with code 9')
  expect(error.reasons).toEqual(new Array(DEATHS_MAX).fill('exited with code 9'))
  expect(deaths).toEqual(['0 exited 7', ...new Array<string>(DEATHS_MAX).fill('0 exited 9')])
  expect(await kernel.spawn(work.echo, [1])).toBe(1)
  expect(errors.length).toBe(1)
})

test('when no CPU is left every task fails with the reason, and so does the next spawn', async () => {
  const { kernel, work, errors, breakIt } = await boot(1)
  await using _kernel = kernel
  breakIt()
  const exiting = failureOf(kernel.spawn(work.exits, [7], { priority: 'high' }))
  const waiting = failureOf(kernel.spawn(work.echo, [1]))
  await exiting
  expect(await waiting).toBeInstanceOf(CrashLoopError)
  expect(errors).toEqual([await waiting])
  expect(() => kernel.spawn(work.echo, [1])).toThrow(CrashLoopError)
})

test('close with a deadline ends while the CPUs die on every start, and each task has an outcome', async () => {
  const { kernel, work, breakIt } = await boot(1)
  const resting = failureOf(kernel.spawn(work.rests, []))
  breakIt()
  // Ordinary tasks have no order: the one that ends the CPU must come before the one that is never started.
  void failureOf(kernel.spawn(work.exits, [7], { priority: 'high' }))
  const queued = failureOf(kernel.spawn(work.echo, [1]))
  await kernel.close({ deadline: 1 })
  expect((await resting).name).toMatch(/CpuLostError|TaskKilledError/)
  const error = await queued
  expect(error).toBeInstanceOf(TaskKilledError)
  expect(error).toMatchObject({ how: 'unstarted' })
})

test('a restartable task that kills its CPU each time is finally lost', async () => {
  const kernel = await Kernel.boot({ cpus: 2, watchdog: false })
  await using _kernel = kernel
  const work = await kernel.import<typeof Mortal>(
    new URL('../../../testing/kernel/fixtures/mortalwork.ts', import.meta.url),
  )
  let deaths = 0
  kernel.on('death', () => deaths++)
  const error = await failureOf(kernel.spawn(work.exits, [3], { restartable: true }))
  expect(error).toMatchObject({ name: 'CpuLostError', exitCode: 3 })
  expect(deaths).toBe(CRASHES_MAX)
  expect(await kernel.spawn(work.echo, [1])).toBe(1)
})

test('tasks that kill their CPU one after the other do not count as a crash loop', async () => {
  const kernel = await Kernel.boot({ cpus: 1, watchdog: false })
  await using _kernel = kernel
  const work = await kernel.import<typeof Mortal>(
    new URL('../../../testing/kernel/fixtures/mortalwork.ts', import.meta.url),
  )
  for (let n = 0; n < DEATHS_MAX + 2; n++) {
    expect(await failureOf(kernel.spawn(work.exits, [n]))).toMatchObject({ exitCode: n })
  }
  expect(await kernel.spawn(work.echo, [1])).toBe(1)
})

test('a killed task that waits for its turn does not lose its CPU', async () => {
  const kernel = await Kernel.boot({ cpus: 1, watchdog: false, grace: 100 })
  await using _kernel = kernel
  const work = await kernel.import<typeof Mortal>(
    new URL('../../../testing/kernel/fixtures/mortalwork.ts', import.meta.url),
  )
  let deaths = 0
  kernel.on('death', () => deaths++)
  const shared = sharedWords()
  const idle = kernel.spawn(work.turnsUntil, [shared, 0, 1], { priority: 'idle' })
  await until('it has begun', () => Atomics.load(shared, 0) === 1)
  const busy = kernel.spawn(work.turnsUntil, [shared, 2, 3])
  await until('the other has begun', () => Atomics.load(shared, 2) === 1)
  idle.kill('enough')
  // Several grace periods: each poll of the monitor finds it queued.
  for (let n = 0; n < 40; n++) await new Promise(resolve => setTimeout(resolve, 10))
  expect(deaths).toBe(0)
  expect(idle.status.state).toBe('queued')
  Atomics.store(shared, 3, 1)
  await busy
  expect(await failureOf(idle)).toMatchObject({ name: 'TaskKilledError', how: 'thrown' })
  expect(deaths).toBe(0)
})

test('a job that a dying CPU was about to begin does not end the next CPU of that number', async () => {
  const kernel = await Kernel.boot({ cpus: 2, watchdog: false, grace: 50 })
  await using _kernel = kernel
  const work = await kernel.import<typeof Mortal>(
    new URL('../../../testing/kernel/fixtures/mortalwork.ts', import.meta.url),
  )
  const { view, machine } = kernel['booted']
  const deaths: number[] = []
  const shared = sharedWords()
  kernel.on('death', ({ cpu }) => deaths.push(cpu))
  const busy = kernel.spawn(work.turnsUntil, [shared, 0, 1], { affinity: [1] })
  await until('it has begun', () => Atomics.load(shared, 0) === 1)
  const queued = kernel.spawn(work.echo, [1], { affinity: [1], priority: 'idle' })
  // The state that a CPU leaves which dies between the two steps of `begin`: its number is in the job, and
  // the task is not bound.
  const { job } = queued as unknown as { job: number }
  Atomics.store(view.i32, job + Job.cpu, 0 + 1)
  const back = new Promise(resolve => kernel.on('restart', resolve))
  void machine.terminate(0)
  await back
  queued.kill('enough')
  for (let n = 0; n < 40; n++) await new Promise(resolve => setTimeout(resolve, 10))
  const cpu = Atomics.load(view.i32, job + Job.cpu)
  Atomics.store(shared, 1, 1)
  await busy
  expect({ cpu, deaths }).toEqual({ cpu: 0, deaths: [0] })
  expect(await failureOf(queued)).toMatchObject({ how: 'unstarted' })
})

test.each([
  ['before', false],
  ['after', true],
] as const)(
  'a CPU that dies while it ends a task killed before its start, %s job and task separate, takes that task along',
  async (_, after) => {
    const kernel = await Kernel.boot({ cpus: 1, watchdog: false, grace: 1e6 })
    await using _kernel = kernel
    const work = await kernel.import<typeof Mortal>(
      new URL('../../../testing/kernel/fixtures/mortalwork.ts', import.meta.url),
    )
    const before = inUse(kernel)
    const deaths: string[] = []
    kernel.on('death', ({ reason, exitCode }) => deaths.push(`${reason} ${exitCode}`))
    const shared = sharedWords()
    const busy = kernel.spawn(work.diesEndingKilled, [shared, after], { restartable: true })
    await until('it has begun', () => Atomics.load(shared, 0) === 1)
    const queued = kernel.spawn(work.echo, [1], { priority: 'idle' })
    queued.kill('enough')
    Atomics.store(shared, 1, 1)
    expect(await failureOf(queued)).toMatchObject({ name: 'TaskKilledError', how: 'unstarted' })
    await busy
    expect(await kernel.spawn(work.echo, [2])).toBe(2)
    expect(deaths).toEqual(['exited 5'])
    // Not more than before: the record of the task that imported the module may be freed by now.
    const more = (): [string, number][] =>
      Object.entries(inUse(kernel)).filter(([what, n]) => n > before[what]!)
    await expect.poll(more).toEqual([])
  },
)

test('close with a deadline ends although a CPU died with a kernel lock, and this thread learns of it late', async () => {
  const kernel = await Kernel.boot({ cpus: 2, watchdog: false, grace: 50 })
  const work = await kernel.import<typeof Mortal>(
    new URL('../../../testing/kernel/fixtures/mortalwork.ts', import.meta.url),
  )
  const shared = sharedWords()
  const held = failureOf(kernel.spawn(work.diesWithRunQueue, [shared], { affinity: [0] }))
  const queued = Array.from({ length: 20 }, (_, n) =>
    failureOf(kernel.spawn(work.rests, [shared], { affinity: [n % 2] })),
  )
  // Only now: a spawn after the CPU has the lock would wait for that lock, on this thread.
  Atomics.store(shared, 5, 1)
  Atomics.notify(shared, 5)
  await until('it has the lock', () => Atomics.load(shared, 7) === 1)
  const closing = kernel.close({ deadline: 1 })
  void kernel['booted'].machine.terminate(0)
  // Delays the event loop.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
  await closing
  for (const error of [await held, ...(await Promise.all(queued))])
    expect(error.name).toMatch(/CpuLostError|TaskKilledError/)
})
