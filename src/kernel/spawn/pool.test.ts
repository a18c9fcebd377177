import { MessageChannel } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { failureOf, until as untilNamed } from '../../../testing/kernel/fixtures/ending.ts'
import { Kernel } from '../boot/kernel.ts'
import type { ModuleView } from './modules.ts'
import type { KernelOptions } from '../boot/options.ts'

type Work = typeof import('../../../testing/kernel/fixtures/poolwork.ts')

const until = (condition: () => boolean): Promise<void> => untilNamed('it is so', condition)

const workUrl = new URL('../../../testing/kernel/fixtures/poolwork.ts', import.meta.url)

function words(count: number): Int32Array<SharedArrayBuffer> {
  return new Int32Array(new SharedArrayBuffer(count * 4))
}

async function booted(options: KernelOptions): Promise<{ kernel: Kernel; work: ModuleView<Work> }> {
  const kernel = await Kernel.boot(options)
  onTestFinished(() => kernel.close({ abort: true }))
  return { kernel, work: await kernel.import<Work>(workUrl) }
}

describe('a kernel whose CPUs come and go:', () => {
  test('it starts with the minimum, and grows while tasks wait, up to the maximum', async () => {
    const { kernel, work } = await booted({ cpus: { min: 1, max: 3, idle: Infinity } })
    expect(kernel.online).toBe(1)
    const word = words(1)
    // Three tasks that wait for each other, each of which keeps its CPU.
    const threads = await Promise.all([1, 2, 3].map(() => kernel.spawn(work.meet, [word, 3])))
    expect(new Set(threads).size).toBe(3)
    expect(kernel.online).toBe(3)
    const gate = words(3)
    const blocked = [1, 2, 3, 4, 5].map(() => kernel.spawn(work.block, [gate]))
    await until(() => Atomics.load(gate, 0) === 3)
    expect(kernel.online).toBe(3)
    Atomics.store(gate, 1, 1)
    Atomics.notify(gate, 1)
    await Promise.all(blocked)
    expect(Atomics.load(gate, 2)).toBe(3)
  })

  test('idle CPUs end, down to the minimum, and start again when there is work', async () => {
    const { kernel, work } = await booted({ cpus: { min: 1, max: 2, idle: 5 } })
    const [online, offline]: number[][] = [[], []]
    kernel.on('online', ({ cpu }) => online.push(cpu))
    kernel.on('offline', ({ cpu }) => offline.push(cpu))
    for (let round = 1; round <= 3; round++) {
      const word = words(1)
      await Promise.all([kernel.spawn(work.meet, [word, 2]), kernel.spawn(work.meet, [word, 2])])
      await until(() => kernel.online === 1)
    }
    expect(online.length).toBeGreaterThanOrEqual(3)
    expect(offline).toHaveLength(online.length)
    expect(await kernel.spawn(work.thread)).toBeGreaterThan(0)
  })

  test('it may have no CPU until a task is spawned', async () => {
    const kernel = await Kernel.boot({ cpus: { min: 0, max: 2, idle: 5 } })
    onTestFinished(() => kernel.close({ abort: true }))
    expect(kernel.online).toBe(0)
    const work = await kernel.import<Work>(workUrl)
    expect(await kernel.spawn(work.thread)).toBeGreaterThan(0)
    await until(() => kernel.online === 0)
    expect(await kernel.spawn(work.thread)).toBeGreaterThan(0)
  })

  test('a sleeping task keeps its CPU, and a dead CPU that is needed is replaced', async () => {
    const { kernel, work } = await booted({ cpus: { min: 0, max: 1, idle: 5 } })
    const task = kernel.spawn(work.echoes)
    await until(() => task.status.state === 'sleeping')
    for (let look = 0; look < 5; look++) await new Promise(resolve => setTimeout(resolve, 10))
    expect(kernel.online).toBe(1)
    task.post('end')
    expect(await task).toBe(0)
    const word = words(1)
    const endless = kernel.spawn(work.endless, [word])
    const behind = kernel.spawn(work.thread)
    await until(() => Atomics.load(word, 0) === 1)
    endless.kill('enough', { grace: 0 })
    expect(await failureOf(endless)).toMatchObject({ how: 'evicted' })
    expect(await behind).toBeGreaterThan(0)
  })

  test.each<[KernelOptions['cpus'], RegExp]>([
    [{ min: -1 }, /cpus\.min: -1 is not a number of CPUs; give an integer from 0 to 64/],
    [
      { min: 3, max: 2 },
      /cpus\.max: 2 is not a number of CPUs; give an integer from 3 \(because of cpus\.min\) to 64/,
    ],
    [{ max: 65 }, /cpus\.max: 65 is not/],
    [{ min: 0, max: 0 }, /cpus\.max: 0 is not a number of CPUs; give an integer from 1/],
    [{ idle: -5 }, /cpus\.idle: -5 is not a time/],
    [{ most: 4 } as object, /cpus\.most: there is no such option; give min, max and idle/],
  ])('%j is refused', async (cpus, message) => {
    await expect(Kernel.boot({ cpus })).rejects.toThrow(message)
  })

  test('a simulated machine has a fixed number of CPUs, and the error says so', async () => {
    await expect(Kernel.boot({ machine: 'simulated', cpus: { min: 1, max: 2 } })).rejects.toThrow(
      'cpus: a simulated machine has the same CPUs from its boot on; give a number, as in cpus: 2',
    )
  })
})

describe('the options of each CPU:', () => {
  test('workerData, env, argv and execArgv', async () => {
    const { kernel, work } = await booted({
      cpus: 1,
      workerData: { limit: 3, when: new Date(0) },
      env: { ONLY: 'this' },
      argv: ['one', 'two'],
      execArgv: ['--no-warnings'],
    })
    const data = { limit: 3, when: new Date(0) }
    expect(await kernel.spawn(work.given)).toEqual({
      data,
      node: data,
      env: { ONLY: 'this' },
      argv: ['one', 'two'],
      execArgv: ['--no-warnings'],
    })
  })

  test('a replaced CPU has them too', async () => {
    const { kernel, work } = await booted({ cpus: 1, workerData: 'mine' })
    const word = words(1)
    const endless = kernel.spawn(work.endless, [word])
    await until(() => Atomics.load(word, 0) === 1)
    endless.kill(undefined, { grace: 0 })
    await failureOf(endless)
    expect(await kernel.spawn(work.given)).toMatchObject({ data: 'mine' })
  })

  test("with eventLoop: 'always' timers of an ended task go on while its CPU has no task", async () => {
    const { kernel, work } = await booted({ cpus: 1, eventLoop: 'always' })
    const word = words(1)
    await kernel.spawn(work.leavesTimer, [word])
    await until(() => Atomics.load(word, 0) === 1)
  })

  test.each<[KernelOptions, RegExp]>([
    [{ env: 'PATH=/' as never }, /env: 'PATH=\/' is not an environment/],
    [{ argv: 'a b' as never }, /argv: 'a b' is not a list/],
    [{ execArgv: '--expose-gc' as never }, /execArgv: '--expose-gc' is not a list/],
    [
      { resourceLimits: 5 as never },
      /resourceLimits: 5 is not an object with options; give \{ maxOldGenerationSizeMb/,
    ],
    [{ eventLoop: 'sometimes' as never }, /eventLoop: 'sometimes' is not known/],
    [{ trackUnmanagedFds: 1 as never }, /trackUnmanagedFds: 1 is not a boolean/],
    [{ tasksPerCpu: 0 }, /tasksPerCpu: 0 is not a number of tasks/],
  ])('%j is refused', async (options, message) => {
    await expect(Kernel.boot(options)).rejects.toThrow(message)
  })
})

describe('messages and transferred objects:', () => {
  let kernel: Kernel
  let work: ModuleView<Work>

  beforeAll(async () => {
    kernel = await Kernel.boot({ cpus: 2 })
    work = await kernel.import<Work>(workUrl)
  })

  afterAll(() => kernel.close({ abort: true }))

  test('a task and its spawner exchange messages in order', async () => {
    const task = kernel.spawn(work.echoes)
    const heard: unknown[] = []
    task.on('message', value => heard.push(value))
    for (let round = 0; round < 50; round++) expect(task.post(String(round))).toBe(true)
    await until(() => heard.length === 50)
    expect(heard).toEqual(Array.from({ length: 50 }, (_, round) => `${round}!`))
    task.post('end')
    expect(await task).toBe(50)
    expect(task.post('late')).toBe(false)
  })

  test('messages sent before the task began wait for it, unchanged', async () => {
    const gate = words(3)
    const blocked = [0, 1].map(cpu => kernel.spawn(work.block, [gate], { affinity: [cpu] }))
    await until(() => Atomics.load(gate, 0) === 2)
    const task = kernel.spawn(work.echoes)
    const heard: unknown[] = []
    task.on('message', value => heard.push(value))
    task.post('first')
    task.post('second')
    task.post('end')
    expect(task.status.state).toBe('queued')
    Atomics.store(gate, 1, 1)
    Atomics.notify(gate, 1)
    await Promise.all(blocked)
    expect(await task).toBe(2)
    expect(heard).toEqual(['first!', 'second!'])
  })

  test('the messages of a task arrive before its end', async () => {
    for (let turn = 0; turn < 100; turn++) {
      const task = kernel.spawn(work.tells, [3])
      const heard: unknown[] = []
      task.on('message', value => heard.push(value))
      expect(await task).toBe(3)
      expect(heard).toEqual([0, 1, 2])
    }
  })

  test('a wait for a message has limits like any other', async () => {
    expect(await failureOf(kernel.spawn(work.times))).toMatchObject({ name: 'TimeoutError' })
  })

  test('a message that cannot be copied is an error where it was sent', async () => {
    const task = kernel.spawn(work.echoes)
    expect(() => task.post(() => undefined)).toThrow(/could not be cloned/)
    task.post('end')
    expect(await task).toBe(0)
    expect(String(await failureOf(kernel.spawn(work.tellsFunction)))).toMatch(/could not be cloned/)
  })

  test('a transferred port works in the task, and is detached here', async () => {
    const { port1, port2 } = new MessageChannel()
    const task = kernel.spawn(work.asks, [port2], { transfer: [port2] })
    port1.postMessage('hello')
    expect(await task).toBe('hello')
    expect(() => kernel.spawn(work.asks, [port2], { transfer: [port2] })).toThrow()
    port1.close()
    // Nothing of the failed spawn is left: the kernel goes on.
    expect(await kernel.spawn(work.thread)).toBeGreaterThan(0)
  })

  test('a port that is not transferred is refused, with the path to it', () => {
    const { port1 } = new MessageChannel()
    expect(() => kernel.spawn(work.asks, [{ deep: port1 }] as never)).toThrow(/args\[0\]\.deep/)
    port1.close()
  })

  test('many ports go to as many tasks', async () => {
    const channels = Array.from({ length: 20 }, () => new MessageChannel())
    const tasks = channels.map(({ port2 }) => kernel.spawn(work.asks, [port2], { transfer: [port2] }))
    channels.forEach(({ port1 }, index) => port1.postMessage(index))
    expect(await Promise.all(tasks)).toEqual(channels.map((_, index) => index))
    for (const { port1 } of channels) port1.close()
  })

  test('a task transfers a port with its result', async () => {
    const always = await booted({ cpus: 1, eventLoop: 'always' })
    const port = await always.kernel.spawn(always.work.opens)
    const answer = new Promise(resolve => port.once('message', resolve))
    port.postMessage('hello')
    expect(await answer).toBe('hello from the task')
    port.close()
  })

  test('a task transfers a buffer with its result, and no longer has it', async () => {
    const one = await booted({ cpus: 1 })
    const buffer = await one.kernel.spawn(one.work.gives, [64])
    expect(buffer.byteLength).toBe(64)
    expect(await one.kernel.spawn(one.work.left)).toBe(0)
  })

  test('a large result moves without the arena, which has no room for it; its views stay views of one buffer', async () => {
    const bytes = 4 * 1024 * 1024
    const one = await booted({ cpus: 1, heap: 1024 * 1024 })
    const { pixels, ends, note } = await one.kernel.spawn(one.work.givesViews, [bytes])
    expect([pixels.length, pixels[0], pixels[bytes - 1], ends.getUint8(0), note]).toEqual([
      bytes,
      7,
      9,
      9,
      'both',
    ])
    expect(ends.buffer).toBe(pixels.buffer)
    expect(await one.kernel.spawn(one.work.left)).toBe(0)
  })

  test('a large result with a part that a message would change goes through the arena', async () => {
    const one = await booted({ cpus: 1 })
    const { pixels, error } = await one.kernel.spawn(one.work.givesViews, [1024 * 1024, 'too far'])
    expect([pixels[0], error]).toEqual([7, new RangeError('too far')])
    expect(await one.kernel.spawn(one.work.left)).toBe(0)
    const small = await booted({ cpus: 1, heap: 1024 * 1024 })
    const failure = await failureOf(small.kernel.spawn(small.work.givesViews, [4 * 1024 * 1024, 'too far']))
    expect(failure).toMatchObject({ name: 'ArenaFullError' })
  })

  const large = (bytes: number): { pixels: Uint8Array<ArrayBuffer>; ends: DataView } => {
    const pixels = new Uint8Array(bytes)
    pixels[0] = 7
    pixels[bytes - 1] = 9
    return { pixels, ends: new DataView(pixels.buffer, bytes - 1) }
  }

  test('large arguments move without the arena, which has no room for them, where only one CPU can start the task', async () => {
    const bytes = 4 * 1024 * 1024
    const one = await booted({ cpus: 1, heap: 1024 * 1024 })
    const views = large(bytes)
    const task = one.kernel.spawn(one.work.takesViews, [views], { transfer: [views.pixels.buffer] })
    expect(views.pixels.length).toBe(0)
    expect(await task).toEqual([bytes, 7, 9, true])
    const two = await booted({ cpus: 2, heap: 1024 * 1024 })
    for (const cpu of [0, 1]) {
      const again = large(bytes)
      const options = { transfer: [again.pixels.buffer], affinity: [cpu] }
      const pinned = two.kernel.spawn(two.work.takesViews, [again], options)
      expect(pinned.setAffinity([1 - cpu])).toBe(false)
      expect(await pinned).toEqual([bytes, 7, 9, true])
    }
    const unknown = large(bytes)
    expect(() =>
      two.kernel.spawn(two.work.takesViews, [unknown], { transfer: [unknown.pixels.buffer] }),
    ).toThrow(/payload heap is full/)
    expect(unknown.pixels.length).toBe(bytes)
  })

  test('large arguments that a message would refuse, or that are needed again, go through the arena', async () => {
    const bytes = 1024 * 1024
    const one = await booted({ cpus: 1 })
    const seen = large(bytes)
    const task = one.kernel.spawn(one.work.takesViews, [new Proxy(seen, {})], {
      transfer: [seen.pixels.buffer],
    })
    expect(await task).toEqual([bytes, 7, 9, true])
    expect(seen.pixels.length).toBe(0)
    const kept = large(bytes)
    const again = { transfer: [kept.pixels.buffer], restartable: true }
    expect(await one.kernel.spawn(one.work.takesViews, [kept], again)).toEqual([bytes, 7, 9, true])
    const twice = large(bytes)
    const { buffer } = twice.pixels
    expect(() => one.kernel.spawn(one.work.takesViews, [twice], { transfer: [buffer, buffer] })).toThrow(
      /listed twice/,
    )
    expect(twice.pixels.length).toBe(bytes)
  })

  test('a task whose ports were lost with its CPU ends with an error that says so', async () => {
    const one = await booted({ cpus: 1 })
    const word = words(1)
    const endless = one.kernel.spawn(one.work.endless, [word])
    await until(() => Atomics.load(word, 0) === 1)
    const { port1, port2 } = new MessageChannel()
    const task = one.kernel.spawn(one.work.asks, [port2], { transfer: [port2] })
    endless.kill(undefined, { grace: 0 })
    await failureOf(endless)
    expect(String(await failureOf(task))).toMatch(/CPU 0 died, and the objects that were transferred/)
    port1.close()
  })

  test('messages of code on a CPU to its parent are events of the kernel', async () => {
    const heard = new Promise(resolve => {
      const undo = kernel.on('message', ({ message }) => {
        undo()
        resolve(message)
      })
    })
    await kernel.spawn(work.shouts, [{ some: 'message' }])
    expect(await heard).toEqual({ some: 'message' })
  })
})

describe('a limit of started tasks for each CPU:', () => {
  test('no CPU starts more, and all run, by priority', async () => {
    const { kernel, work } = await booted({ cpus: 2, tasksPerCpu: 2 })
    const running = words(2)
    const most = await Promise.all(Array.from({ length: 40 }, () => kernel.spawn(work.naps, [running])))
    expect(Math.max(...most)).toBe(2)
    const one = await booted({ cpus: 1, tasksPerCpu: 1 })
    const gate = words(3)
    const order: string[] = []
    const first = one.kernel.spawn(one.work.block, [gate])
    const low = one.kernel.spawn(one.work.thread, [], { priority: 'low' })
    const high = one.kernel.spawn(one.work.thread, [], { priority: 'high' })
    const all = [low.then(() => order.push('low')), high.then(() => order.push('high'))]
    await until(() => Atomics.load(gate, 0) === 1)
    Atomics.store(gate, 1, 1)
    Atomics.notify(gate, 1)
    await Promise.all([first, ...all])
    expect(order).toEqual(['high', 'low'])
  })

  test('a waiting task can be killed, and so can all of them', async () => {
    const { kernel, work } = await booted({ cpus: 1, tasksPerCpu: 1, grace: 10 })
    const word = words(1)
    const endless = kernel.spawn(work.endless, [word])
    const waiting = [1, 2, 3].map(() => kernel.spawn(work.thread))
    await until(() => Atomics.load(word, 0) === 1)
    waiting[0].kill('not you')
    endless.kill('enough', { grace: 0 })
    expect(await failureOf(waiting[0])).toMatchObject({ how: 'unstarted' })
    expect(await failureOf(endless)).toMatchObject({ how: 'evicted' })
    expect(await Promise.all(waiting.slice(1))).toHaveLength(2)
    const last = [1, 2, 3].map(() => failureOf(kernel.spawn(work.endless, [word])))
    await kernel.close({ abort: true })
    expect(await Promise.all(last)).toHaveLength(3)
  })
})

test('the summary counts ended tasks, in one line', async () => {
  const { kernel, work } = await booted({ cpus: 1 })
  await kernel.spawn(work.thread)
  await failureOf(kernel.spawn(work.fails))
  const { summary } = kernel
  expect(summary).toMatchObject({ completed: 2, failed: 1, active: 0, online: 1, cpus: 1 })
  expect(summary.utilization).toBeGreaterThan(0)
  expect(summary.utilization).toBeLessThanOrEqual(1)
  expect(String(summary)).toMatch(
    /^2 tasks completed \(1 failed\), 0 active, 1 CPUs, [\d.]+% used in [\d.]+ s$/,
  )
})

test('waiting tasks start by rank and age on the CPUs that they may use, however many wait', async () => {
  const { kernel, work } = await booted({ cpus: 2, tasksPerCpu: 1 })
  const gates = [words(3), words(3)]
  const blocked = gates.map((gate, cpu) => kernel.spawn(work.block, [gate], { affinity: [cpu] }))
  await until(() => gates.every(gate => Atomics.load(gate, 0) === 1))
  const order: string[] = []
  const spawn = (name: string, affinity: number[] | undefined, priority: 'low' | 'normal'): Promise<number> =>
    kernel.spawn(work.thread, [], { priority, affinity }).then(() => order.push(name))
  const elsewhere = Array.from({ length: 1000 }, () => spawn('other', [1], 'normal'))
  const here = [spawn('low', [0], 'low'), spawn('any', undefined, 'normal'), spawn('mine', [0], 'normal')]
  const open = (gate: Int32Array): void => {
    Atomics.store(gate, 1, 1)
    Atomics.notify(gate, 1)
  }
  open(gates[0])
  await Promise.all(here)
  expect(order).toEqual(['any', 'mine', 'low'])
  open(gates[1])
  await Promise.all([...blocked, ...elsewhere])
  expect(order.length).toBe(1003)
})
