import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as heddle from '../../index.ts'
import { Kernel } from '../../index.ts'
import type { ModuleView } from '../../kernel/spawn/modules.ts'

type Work = typeof import('../../../testing/kernel/fixtures/work.ts')

/**
 * A program prints an object, or answers a request with it, where it meant the object's result or its value.
 * The own fields of each lead to the memory of the kernel: megabytes, or an error about a part that no user
 * knows.
 */
let kernel: Kernel
let work: ModuleView<Work>

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 1 })
  work = await kernel.import<Work>(new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url))
})

afterAll(() => kernel.close({ abort: true }))

describe('what console.log and JSON show:', () => {
  test('of a task, before and after its end', async () => {
    const task = kernel.spawn(work.hog)
    expect(inspect(task)).toMatch(/^Task \{ id: \d+, name: 'hog', state: '(queued|running)' \}$/)
    expect(inspect({ deep: [[task]] }, { depth: 1 })).toBe('{ deep: [ [Array] ] }')
    expect(inspect([task], { depth: 0 })).toBe('[ [Task] ]')
    expect(`${task}`).toBe('[object Task]')
    task.kill()
    await task.catch(() => undefined)
    expect(JSON.parse(JSON.stringify({ task }))).toEqual({
      task: { id: task.id, name: 'hog', state: 'killed' },
    })
  })

  test('of a child in a task', async () => {
    const [shown, json] = await kernel.spawn(work.showsChild)
    expect(shown).toMatch(/^Task \{ id: \d+, name: 'add', state: '\w+' \}$/)
    expect(json).toMatch(/^\{"id":\d+,"name":"add","state":"returned"\}$/)
  })

  test('of a function of an imported module, and of the module', () => {
    const { href } = new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url)
    expect(JSON.parse(JSON.stringify(work.add))).toEqual({ name: 'add', module: href })
    expect(inspect(work.add, { breakLength: 1000 })).toBe(`Spawnable { name: 'add', module: '${href}' }`)
    expect(Object.keys(JSON.parse(JSON.stringify(work)))).toContain('crunch')
    expect(inspect(work)).toContain('crunch: Spawnable {')
    expect(() => (work as { crnch?: unknown }).crnch).toThrow(
      /exports no function crnch; it exports .*crunch/,
    )
  })

  test('of a kernel that runs, and of one that is closed', async () => {
    const other = await Kernel.boot({ cpus: 1 })
    expect(inspect(other)).toBe('Kernel { cpus: 1, online: 1, active: 0 }')
    await other.close()
    expect(JSON.stringify(other)).toMatch(/^\{"cpus":1,"online":\d,"active":0\}$/)
  })

  const objects = {
    Mutex: [new heddle.Mutex({ name: 'm' }), { name: 'm', locked: false }],
    Condition: [new heddle.Condition({ name: 'c' }), { name: 'c' }],
    Semaphore: [new heddle.Semaphore(3), { available: 3 }],
    RwLock: [new heddle.RwLock(), { readers: 0, isWriting: false }],
    Barrier: [new heddle.Barrier(2), { parties: 2, meetings: 0 }],
    WaitGroup: [new heddle.WaitGroup(), { count: 0 }],
    Latch: [new heddle.Latch(2), { count: 2 }],
    Once: [new heddle.Once(), { done: false }],
    Event: [new heddle.Event(), { isSet: false }],
    Channel: [new heddle.Channel(4), { capacity: 4, length: 0, closed: false }],
    SharedQueue: [new heddle.SharedQueue({ capacity: 4 }), { capacity: 4, length: 0 }],
    SeqLock: [new heddle.SeqLock({ fields: 2 }), { fields: 2 }],
    AtomicInt32: [new heddle.AtomicInt32(7), { value: 7 }],
    AtomicBigInt64: [new heddle.AtomicBigInt64(), { value: '0' }],
    AtomicFloat64: [new heddle.AtomicFloat64(), { value: 0 }],
  } as const

  test.each(Object.entries(objects))('of a %s', (name, [object, fields]) => {
    expect(JSON.parse(JSON.stringify(object))).toEqual(fields)
    expect(inspect(object)).toBe(`${name} ${inspect(fields)}`)
  })

  test('of each class whose objects a task can get', () => {
    const travels = Object.entries(heddle)
      .filter(
        ([, made]) => typeof made === 'function' && Symbol.for('heddle.travels') in (made.prototype ?? {}),
      )
      .map(([name]) => name)
    expect(Object.keys(objects).toSorted()).toEqual(travels.toSorted())
  })
})

test('what a task cannot get is refused under its own name', async () => {
  const task = kernel.spawn(work.add, [1, 2])
  const refused = {
    'a Task cannot travel to another thread; await it, and send the result': task,
    'a Spawnable cannot travel to another thread; let the task import its module': work.add,
    'a Kernel cannot travel to another thread; a task spawns by spawn()': kernel,
    'an AbortSignal cannot travel to another thread; give the signal to the spawn': AbortSignal.abort(),
    'a URL cannot travel to another thread; send its href': new URL('file:///work.ts'),
  }
  for (const [says, value] of Object.entries(refused)) {
    expect(() => kernel.spawn(work.echo, [{ deep: [value] }])).toThrow(`args[0].deep[0]: ${says}`)
  }
  expect(() => kernel.spawn(work.echo, [work])).toThrow(/^args\[0\]\.\w+: a Spawnable cannot travel/)
  await expect(kernel.spawn(work.returnsChild).join()).rejects.toThrow(/: a Task cannot travel .* await it/)
  await task
})
