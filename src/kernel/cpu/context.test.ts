import { AsyncLocalStorage } from 'node:async_hooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { traceContext, travels, withTraceContext } from './context.ts'
import { request, stays } from '../../../testing/kernel/fixtures/contextwork.ts'
import { Kernel } from '../boot/kernel.ts'
import type { ModuleView } from '../spawn/modules.ts'

type Work = typeof import('../../../testing/kernel/fixtures/contextwork.ts')

const trace = {
  traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  tracestate: 'vendor=value',
}

describe.each(['threads', 'simulated'] as const)('on %s', machine => {
  let kernel: Kernel
  let work: ModuleView<Work>

  beforeAll(async () => {
    kernel = await Kernel.boot({ cpus: 2, machine })
    work = await kernel.import<Work>(
      new URL('../../../testing/kernel/fixtures/contextwork.ts', import.meta.url),
    )
  })
  afterAll(() => kernel.close())

  test('a storage that is marked follows the task, and one that is not does not', async () => {
    const value = { id: 7, tags: new Set(['a']) }
    const task = request.run(value, () => stays.run('here', () => kernel.spawn(work.plain)))
    const [seen, unmarked] = (await task) as unknown[]
    expect(seen).toEqual(value)
    if (machine === 'threads') expect(unmarked).toBeUndefined()
    expect(await kernel.spawn(work.plain)).toEqual([undefined, undefined, undefined])
  })

  test('it is there before and after every wait, whatever kind of function the task is', async () => {
    const tasks = [1, 2, 3].map(id =>
      request.run({ id }, () => [
        kernel.spawn(work.generator),
        kernel.spawn(work.compiled, [200_000]),
        kernel.spawn(work.asynchronous),
      ]),
    )
    for (const [index, [generator, compiled, asynchronous]] of tasks.entries()) {
      const id = index + 1
      expect(await generator).toEqual([id, id, id])
      expect(await compiled).toEqual([id])
      expect(await asynchronous).toEqual([id, id, undefined])
    }
  })

  test('the tasks that a task spawns get what it has at that moment', async () => {
    const seen = await request.run({ id: 1 }, () => withTraceContext(trace, () => kernel.spawn(work.parent)))
    expect(seen).toEqual([
      [{ id: 1 }, undefined, trace],
      [{ id: 99 }, undefined, trace],
    ])
  })

  test('the W3C trace context follows a task', async () => {
    await withTraceContext(trace, async () => {
      expect(traceContext()).toEqual(trace)
      expect(await kernel.spawn(work.plain)).toEqual([undefined, undefined, trace])
      expect(await kernel.spawn(work.asynchronous)).toEqual([undefined, undefined, trace.traceparent])
    })
    expect(traceContext()).toBeUndefined()
  })

  test('the active span of OpenTelemetry is the trace context where one is registered', async () => {
    const slot = Symbol.for('opentelemetry.js.api.1')
    const active = { span: trace }
    const globals = globalThis as unknown as Record<symbol, unknown>
    const before = globals[slot]
    globals[slot] = {
      context: { active: () => active, with: (_: unknown, fn: () => unknown) => fn() },
      propagation: {
        inject: (context: typeof active, carrier: object) => Object.assign(carrier, context.span),
        extract: (context: unknown) => context,
      },
    }
    try {
      const [, , seen] = (await kernel.spawn(work.plain)) as unknown[]
      expect(seen).toEqual(trace)
    } finally {
      globals[slot] = before
    }
  })

  test('a value that cannot travel is named, and nothing is left of the spawn', async () => {
    const used = kernel.active
    const buffer = new ArrayBuffer(8)
    request.run({ id: 1, tags: (() => 1) as never }, () => {
      expect(() => kernel.spawn(work.compiled, [1], { transfer: [buffer] })).toThrow(
        'context.values.get("test/request").tags: a function',
      )
    })
    expect(buffer.detached).toBe(false)
    expect(kernel.active).toBe(used)
  })
})

test('what is not a trace parent, or not a storage, is refused', () => {
  for (const traceparent of [
    '',
    '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more',
    'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  ]) {
    expect(() => withTraceContext({ traceparent }, () => 1)).toThrow('traceparent')
  }
  const later = 'cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more'
  expect(withTraceContext({ traceparent: later }, () => traceContext()?.traceparent)).toBe(later)
  expect(() => travels('x', {} as never)).toThrow('not an AsyncLocalStorage')
  expect(() => travels('test/request', new AsyncLocalStorage())).toThrow('another storage')
})
