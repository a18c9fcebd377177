import { createSecretKey } from 'node:crypto'
import { BlockList } from 'node:net'
import { createHistogram } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'
import { afterEach, expect, test } from 'vitest'
import { ArenaFullError } from '../arena/memory/arena.ts'
import { payloadArena } from '../../testing/payload/setup.ts'
import { registerTravelling } from './travelling.ts'
import { UntravelableError } from './untravelable.ts'

const { arena, heap, codecs, threads } = payloadArena({ bytes: 4 << 20, threads: 2 })
const [sender, receiver] = codecs

function travel<T>(value: T, transfer?: readonly ArrayBuffer[]): T {
  const word = sender.encode(value, 'value', transfer)
  try {
    return receiver.decode(word) as T
  } finally {
    receiver.free(word)
  }
}

afterEach(() => {
  expect(heap.usedBlocks()).toBe(0)
  heap.verify(threads[0])
})

test('small values need no block', () => {
  for (const value of [0, 1, -1, 2 ** 27 - 1, -(2 ** 27), null, true, false, '', undefined]) {
    const word = sender.encode(value, 'value')
    expect(word).toBeLessThanOrEqual(0)
    expect(word).toBe(word | 0)
    expect(receiver.decode(word)).toBe(value)
    receiver.free(word)
  }
  for (const list of [
    [],
    [0],
    [-5],
    [2 ** 27 - 1],
    [3, 4],
    [-8192, 8191],
    [0, -1],
    [524_287, 127],
    [-524_288, -128],
    [100, 8000],
  ]) {
    const word = sender.encodeList(list, 'args')
    expect(word).toBeLessThan(0)
    expect(receiver.decode(word)).toEqual(list)
  }
  expect(heap.usedBlocks()).toBe(0)
})

test('a value just too large for a word, or a negative zero, gets a block and arrives', () => {
  for (const list of [
    [2 ** 27],
    [-(2 ** 27) - 1],
    [-0],
    [0.5],
    [8192, 128],
    [524_288, 0],
    [1, 2, 3],
    [''],
    [null],
    [2 ** 31],
  ]) {
    const word = sender.encodeList(list, 'args')
    expect(word).toBeGreaterThan(0)
    expect(receiver.decode(word)).toEqual(list)
    receiver.free(word)
  }
})

test('the error for a value that cannot travel names its path, and nothing is left behind', () => {
  const cases: [unknown[], string][] = [
    [[{ options: { onDone() {} } }], 'args[0].options.onDone: a function'],
    [[1, [Symbol('s')]], 'args[1][0]: a symbol'],
    [[{ 'on done': new WeakMap() }], 'args[0]["on done"]: a WeakMap'],
    [[new Map([['a', { later: Promise.resolve() }]])], 'args[0].get("a").later: a Promise'],
    [[new Map([[{ f() {} }, 1]])], 'args[0].keys()[0].f: a function'],
    [[new Map([[1, () => 1]])], 'args[0].values()[0]: a function'],
    [[new Set([1, new WeakSet()])], 'args[0].values()[1]: a WeakSet'],
    [[new Error('e', { cause: { deep: () => 1 } })], 'args[0].cause.deep: a function'],
    [[(function* () {})()], 'args[0]: a Generator'],
    [[new Map().keys()], 'args[0]: a Map Iterator'],
    [[new WeakRef({})], 'args[0]: a WeakRef'],
    [[Object(Symbol())], 'args[0]: a Symbol'],
    [[new Intl.NumberFormat()], 'args[0]: an Intl.NumberFormat'],
    [[{ length: new AbortController().signal }], 'args[0].length: an AbortSignal'],
    [[Date], 'args[0]: a function'],
    [[Array.from({ length: 5000 }, (_, i) => (i === 4999 ? () => 1 : { i }))], 'args[0][4999]: a function'],
  ]
  for (const [args, message] of cases) {
    expect(() => sender.encodeList(args, 'args')).toThrow(TypeError)
    expect(() => sender.encodeList(args, 'args')).toThrow(message)
    expect(heap.usedBlocks()).toBe(0)
    // The codec still works.
    expect(travel({ a: [1, { b: 2 }] })).toEqual({ a: [1, { b: 2 }] })
  }
})

test('an error of a getter passes through, and the codec still works', () => {
  const value = {
    a: { b: [1, 2] },
    get fails(): never {
      throw new RangeError('mine')
    },
  }
  expect(() => sender.encode(value, 'value')).toThrow(new RangeError('mine'))
  expect(travel([value.a, value.a])).toEqual([{ b: [1, 2] }, { b: [1, 2] }])
})

test('the error for a payload that does not fit names the option to change, and nothing is left behind', () => {
  const large = new ArrayBuffer(8 << 20)
  expect(() => sender.encode({ large }, 'value', [large])).toThrow(ArenaFullError)
  expect(large.byteLength).toBe(8 << 20)
  expect(heap.usedBlocks()).toBe(0)
})

test('errors arrive as their built-in class, with stack, cause and other properties', () => {
  class QuotaError extends RangeError {
    override name = 'QuotaError'
    code = 'E_QUOTA'
    details = { used: 3 }
    callback = () => 1
  }
  const error = new QuotaError('too much', { cause: new TypeError('inner') })
  const arrived = travel(error)
  expect(arrived).toBeInstanceOf(RangeError)
  expect(Object.getPrototypeOf(arrived)).toBe(RangeError.prototype)
  expect(arrived).toMatchObject({
    name: 'QuotaError',
    message: 'too much',
    code: 'E_QUOTA',
    details: { used: 3 },
  })
  expect(arrived.stack).toBe(error.stack)
  expect(arrived.cause).toBeInstanceOf(TypeError)
  expect((arrived.cause as Error).stack).toBe((error.cause as Error).stack)
  expect('callback' in arrived).toBe(false)
  expect(Object.keys(arrived)).toEqual(['code', 'details'])

  const system = Object.assign(new Error('ENOENT: no such file'), {
    errno: -2,
    syscall: 'open',
    code: 'ENOENT',
  })
  expect(travel(system)).toMatchObject({ errno: -2, syscall: 'open', code: 'ENOENT' })
})

test('an AggregateError arrives with its errors, and a DOMException with its name and code', () => {
  const inner = new TypeError('one')
  const aggregate = travel(new AggregateError([inner, 'two'], 'both', { cause: inner }))
  expect(aggregate).toBeInstanceOf(AggregateError)
  expect(aggregate.errors).toHaveLength(2)
  expect(aggregate.errors[0]).toBe(aggregate.cause)
  expect(aggregate.errors[1]).toBe('two')

  const aborted = new DOMException('stopped', 'AbortError')
  const arrived = travel(aborted)
  expect(arrived).toBeInstanceOf(DOMException)
  expect(arrived).toMatchObject({ name: 'AbortError', message: 'stopped', code: 20 })
  expect(arrived.stack).toBe(aborted.stack)
})

test('a value that a task throws always arrives, as a description if it cannot travel', () => {
  const fail = (thrown: unknown): Error => {
    const word = sender.encodeFailure(thrown)
    const arrived = receiver.decode(word) as Error
    receiver.free(word)
    return arrived
  }
  const error = new RangeError('r', { cause: () => 1 })
  const arrived = fail(error)
  expect(arrived).toBeInstanceOf(RangeError)
  expect(arrived.stack).toBe(error.stack)
  expect(arrived.cause).toContain('error.cause: a function')
  expect(fail(() => 1).message).toContain('the task threw a function')
  expect(fail('text')).toBe('text')
})

test('each part of a thrown error arrives that can, whatever its other parts are', () => {
  const fail = (thrown: unknown): any => {
    const word = sender.encodeFailure(thrown)
    const arrived = receiver.decode(word)
    receiver.free(word)
    return arrived
  }
  const throws = (): never => {
    throw new Error('mine')
  }
  const withCode = fail(
    Object.assign(new TypeError('m', { cause: { request() {} } }), { code: 'E', on() {} }),
  )
  expect(withCode).toBeInstanceOf(TypeError)
  expect(withCode).toMatchObject({ message: 'm', code: 'E' })
  expect(withCode.cause).toContain('error.cause.request: a function')

  const [one, three] = [new RangeError('one'), new Error('three')]
  const all = fail(new AggregateError([one, () => 2, three, one], 'all'))
  expect(all).toBeInstanceOf(AggregateError)
  expect(all.errors).toEqual([one, expect.stringContaining('error.errors[1]: a function'), three, one])
  expect(all.errors[3]).toBe(all.errors[0])

  for (const key of ['name', 'stack', 'cause', 'extra']) {
    const error = Object.assign(new SyntaxError('m'), { code: 'E' })
    Object.defineProperty(error, key, { get: throws, enumerable: key === 'extra' })
    const arrived = fail(error)
    expect(arrived, key).toBeInstanceOf(SyntaxError)
    expect(arrived, key).toMatchObject({ message: 'm', code: 'E' })
    expect(arrived.cause, key).toBe(
      key === 'cause' ? '(error.cause: it cannot be read: Error: mine)' : undefined,
    )
  }
  expect(
    fail(Object.defineProperty(new EvalError(), 'message', { value: { toString: throws } })),
  ).toBeInstanceOf(EvalError)
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  expect(fail(proxy)).toBeInstanceOf(TypeError)
  expect(fail({ status: 5, on() {} }).message).toContain('error.on: a function')
})

const Suppressed = (globalThis as { SuppressedError?: new (...of: unknown[]) => Error }).SuppressedError

test.skipIf(Suppressed === undefined)('a SuppressedError arrives with both errors', () => {
  const made = new Suppressed!(new RangeError('later'), new TypeError('earlier'), 'both')
  const arrived = travel(made) as Error & { error: Error; suppressed: Error }
  expect(arrived).toBeInstanceOf(Suppressed)
  expect(Object.keys(arrived)).toEqual([])
  expect(arrived.message).toBe('both')
  expect(arrived.error).toBeInstanceOf(RangeError)
  expect(arrived.suppressed).toBeInstanceOf(TypeError)
  expect(() => travel(new Suppressed!(() => 1, 2))).toThrow('value.error: a function')
})

test('a DOMException arrives with its cause and its own properties', () => {
  const error = Object.assign(new DOMException('m', 'AbortError'), { path: '/a' })
  Object.defineProperty(error, 'cause', { value: new RangeError('why') })
  const arrived = travel(error)
  expect(arrived).toBeInstanceOf(DOMException)
  expect(arrived).toMatchObject({ name: 'AbortError', message: 'm', code: 20, path: '/a' })
  expect(arrived.cause).toBeInstanceOf(RangeError)
  expect(Object.keys(arrived)).toEqual(['path'])
})

test('an object that only a message to one thread can copy is refused, not emptied', () => {
  const key = createSecretKey(new Uint8Array(8))
  for (const value of [key, new BlockList(), createHistogram(), new Blob(['a']), new File(['a'], 'f')]) {
    expect(() => sender.encode({ value }, 'args')).toThrow(
      /args.value: .* cannot travel .*task.post\(value\)/,
    )
  }
  const memory = new WebAssembly.Memory({ initial: 1 })
  expect(() => sender.encode(memory, 'args')).toThrow('args: a WebAssembly.Memory cannot travel')
})

test('a view of a detached buffer, or beyond the end of one, is refused with its path', () => {
  const resizable = (): ArrayBuffer => new ArrayBuffer(16, { maxByteLength: 32 })
  const Views: (new (
    buffer: ArrayBuffer,
    offset?: number,
    length?: number,
  ) => ArrayBufferView<ArrayBuffer>)[] = [Uint8Array, Float64Array, DataView]
  for (const View of Views) {
    const detached = new View(new ArrayBuffer(16))
    structuredClone(detached.buffer, { transfer: [detached.buffer] })
    expect(() => sender.encode({ detached }, 'value')).toThrow(
      'value.detached: a view of a detached ArrayBuffer',
    )
    for (const beyond of [new View(resizable(), 8, 1), new View(resizable(), 8)]) {
      beyond.buffer.resize(4)
      expect(() => sender.encode({ beyond }, 'value')).toThrow('value.beyond: a view beyond the end')
      beyond.buffer.resize(32)
      expect(travel(beyond)).toEqual(beyond)
    }
  }
})

test('a list of numbers whose getter changes is refused, not sent as other numbers', () => {
  for (const [first, others] of [
    [1, [2, 3]],
    [0.5, [2.5, 3]],
  ] as const) {
    const list: number[] = [first, ...others]
    let reads = 0
    Object.defineProperty(list, 1, { enumerable: true, get: () => (reads++ === 0 ? first : 'text') })
    expect(() => sender.encode(list, 'value')).toThrow('a getter of a list of numbers')
  }
})

test('a value too deep for the stack is refused with its name, and the codec still works', () => {
  const nested = (make: (inner: unknown) => unknown): unknown => {
    let value: unknown = 1
    for (let depth = 0; depth < 100_000; depth++) value = make(value)
    return value
  }
  const makes: ((inner: unknown) => unknown)[] = [
    next => ({ next }),
    next => [next],
    next => new Map([[1, next]]),
    next => new Set([next]),
    cause => new Error('e', { cause }),
  ]
  for (const make of makes) {
    const value = nested(make)
    expect(() => sender.encode(value, 'args')).toThrow('args: a value that is nested too deeply')
    expect(() => sender.encode(value, 'args')).toThrow(UntravelableError)
    const word = sender.encodeFailure(value)
    expect(receiver.decode(word)).toBeInstanceOf(Error)
    receiver.free(word)
    expect(travel({ a: [1] })).toEqual({ a: [1] })
  }
})

test('a buffer in transfer is detached only after the payload is written', () => {
  const buffer = new Uint8Array([1, 2, 3]).buffer
  const kept = new Uint8Array([4]).buffer
  const arrived = travel({ view: new Uint8Array(buffer), kept }, [buffer])
  expect(buffer.detached).toBe(true)
  expect(kept.detached).toBe(false)
  expect([...arrived.view]).toEqual([1, 2, 3])

  const safe = new ArrayBuffer(8)
  expect(() => sender.encode([safe, () => 1], 'value', [safe])).toThrow('value[1]: a function')
  expect(safe.detached).toBe(false)
  expect(() => sender.encode([safe], 'value', [safe, safe])).toThrow('transfer[1]: the same ArrayBuffer')
  expect(() => sender.encode([safe], 'value', [buffer])).toThrow('transfer[0]: the ArrayBuffer is detached')
  expect(() => sender.encode([], 'value', [new SharedArrayBuffer(8) as never])).toThrow(
    'transfer[0]: not an ArrayBuffer',
  )
  expect(() => sender.encode(buffer, 'value')).toThrow('value: a detached ArrayBuffer')
  expect(safe.detached).toBe(false)
})

test('objects of a registered class and of its subclasses travel by their plain value', () => {
  class Cell {
    readonly at: number
    constructor(at: number) {
      this.at = at
    }
    read = () => this.at
  }
  class SpecialCell extends Cell {}
  registerTravelling(
    'test/Cell',
    Cell,
    cell => ({ at: cell.at }),
    plain => new Cell(plain.at),
  )
  const cell = new Cell(7)
  const arrived = travel({ cell, again: cell, special: new SpecialCell(8) })
  expect(arrived.cell).toBeInstanceOf(Cell)
  expect(arrived.cell.read()).toBe(7)
  expect(arrived.again).toBe(arrived.cell)
  expect(arrived.special.read()).toBe(8)
  expect(() =>
    registerTravelling(
      'test/Cell',
      SpecialCell,
      () => 0,
      () => new SpecialCell(0),
    ),
  ).toThrow('test/Cell')
})

test('an object of another copy of heddle is refused, and the error says that there are two', () => {
  class Mutex {
    readonly at = 0
  }
  class Lock extends Mutex {}
  Object.defineProperty(Mutex.prototype, Symbol.for('heddle.travels'), { value: 'heddle.Mutex' })
  for (const foreign of [new Mutex(), new Lock()])
    expect(() => sender.encode([{ lock: foreign }], 'args')).toThrow(
      /args\[0\]\.lock: a Mutex of another copy of heddle cannot travel.*npm ls heddle/,
    )
})

test('shared buffers travel by reference: to other threads, in views, and always as the same object', async () => {
  const shared = new SharedArrayBuffer(64)
  const word = sender.encode([shared, { shared }, new Int32Array(shared, 8, 2)], 'value')
  const again = sender.decode(word) as [SharedArrayBuffer, { shared: SharedArrayBuffer }, Int32Array]
  sender.free(word)
  expect(again[0]).toBe(shared)
  expect(again[1].shared).toBe(shared)
  expect(again[2].buffer).toBe(shared)
  expect(again[2].byteOffset).toBe(8)
  expect(again[2].length).toBe(2)

  const early = sender.encode({ view: new Int32Array(shared, 8, 2), shared, arena: arena.i32 }, 'value')
  const worker = new Worker(new URL('../../testing/payload/fixtures/receiver.ts', import.meta.url), {
    workerData: { buffer: arena.buffer, bytes: 4 << 20, early },
  })
  const next = (): Promise<unknown> => new Promise(resolve => worker.once('message', resolve))
  // The worker joined after the buffer was published, so it has to request it. It receives later ones without
  // a turn of its event loop.
  expect(await next()).toEqual({ same: true, offset: 8, length: 2, arena: true })
  expect(new Int32Array(shared)[2]).toBe(41)
  const fresh = new SharedArrayBuffer(16)
  const late = sender.encode([fresh, shared], 'value')
  worker.postMessage(late)
  expect(await next()).toEqual({ bytes: 16, knownAgain: true })
  expect(new Int32Array(fresh)[0]).toBe(43)
  await worker.terminate()
  for (const codec of codecs) codec.published.close()
  sender.free(early)
  sender.free(late)
})
