import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { Ticket } from '../../../testing/kernel/fixtures/payloadwork.ts'
import { Kernel } from '../boot/kernel.ts'
import type { ModuleView } from '../spawn/modules.ts'
import type { KernelView } from '../boot/view.ts'

type Work = typeof import('../../../testing/kernel/fixtures/payloadwork.ts')

let kernel: Kernel
let work: ModuleView<Work>
let blocks: number

const usedBlocks = (): number =>
  (kernel as unknown as { booted: { view: KernelView } }).booted.view.heap.usedBlocks()

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 2 })
  work = await kernel.import<Work>(
    new URL('../../../testing/kernel/fixtures/payloadwork.ts', import.meta.url),
  )
  blocks = usedBlocks()
})
afterEach(async () => {
  await expect.poll(usedBlocks).toBe(blocks)
})
afterAll(() => kernel.close())

test('any value can be thrown; `undefined` arrives as an error that says so', async () => {
  for (const value of [null, 0, '', { a: 1 }])
    await expect(kernel.spawn(work.throws, [value])).rejects.toEqual(value)
  await expect(kernel.spawn(work.throws, [undefined])).rejects.toThrow('the task threw undefined')
})

test('a value sent to a CPU comes back equal', async () => {
  const value: Record<string, unknown> = {
    map: new Map<unknown, unknown>([['k', new Set([1, 2n ** 80n])]]),
    date: new Date(5),
    regexp: /x/giu,
    bytes: new Uint8Array([1, 2, 3]),
    floats: new Float64Array([0.5, -0]),
    holes: [1, , undefined, null], // oxlint-disable-line no-sparse-arrays
    text: 'ü\ud800',
    error: new TypeError('t', { cause: 1 }),
  }
  value.self = value
  const arrived = (await kernel.spawn(work.echo, [value])) as typeof value
  expect(arrived).toEqual(structuredClone(value))
  expect(arrived.self).toBe(arrived)
})

test('an argument that cannot travel fails at the spawn, a result at the await, with its path', async () => {
  const spawn = (): unknown => kernel.spawn(work.echo, [{ options: { onDone: () => 1 } }])
  expect(spawn).toThrow(TypeError)
  expect(spawn).toThrow('args[0].options.onDone: a function')
  const task = kernel.spawn(work.givesFunction)
  await expect(task).rejects.toThrow(TypeError)
  await expect(task).rejects.toThrow('result.list[1].callback: a function')
})

test('errors arrive with their class and all properties', async () => {
  const error = await kernel.spawn(work.throwsAll).catch((thrown: unknown) => thrown as AggregateError)
  expect(error).toBeInstanceOf(AggregateError)
  const { errors, cause, stack } = error as AggregateError
  expect(errors[0]).toBeInstanceOf(TypeError)
  expect(errors[1]).toBe(cause)
  expect(cause).toMatchObject({ name: 'RangeError', message: 'inner', code: 'E_INNER' })
  expect(stack).toContain('payloadwork.ts')
  expect(stack).toContain('payloads.test.ts')
  await expect(kernel.spawn(work.throwsFunction)).rejects.toThrow('threw a function')
})

test('a buffer in transfer is detached here, and arrives whole', async () => {
  const bytes = new Uint8Array([1, 2, 3])
  const task = kernel.spawn(work.sum, [bytes], { transfer: [bytes.buffer] })
  expect(bytes.buffer.detached).toBe(true)
  expect(await task).toBe(6)
})

test('objects of a registered class travel, both ways', async () => {
  const ticket = await kernel.spawn(work.next, [new Ticket(4)])
  expect(ticket).toBeInstanceOf(Ticket)
  expect(ticket.number).toBe(5)
})

test('a megabyte goes through, again and again', async () => {
  const bytes = new Uint8Array(1 << 20).fill(1)
  for (let round = 0; round < 20; round++) expect(await kernel.spawn(work.sum, [bytes])).toBe(1 << 20)
})
