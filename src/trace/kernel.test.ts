import { channel } from 'node:diagnostics_channel'
import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { metrics, trace } from '@opentelemetry/api'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import './attach.ts'
import { debugLocks } from '../sync/debug/debug.ts'
import { Mutex } from '../sync/mutex/mutex.ts'
import { DEADLOCK_CHECK_MS } from '../futex/core/sleep.ts'
import { Kernel } from '../kernel/boot/kernel.ts'
import type { ModuleView } from '../kernel/spawn/modules.ts'
import type { ControlReply } from './control.ts'
import { mark } from './mark.ts'
import { prometheusText } from './metrics.ts'
import { ControlClient, runningKernels } from './node-control.ts'
import { openTelemetry } from './opentelemetry.ts'
import { FlightRecorder, metricsOf, record, snapshotOf } from './recording.ts'
import { Summary } from './summary.ts'
import type { Arrows, TrackArgs } from './tracks.ts'

/** Keeps all calls. */
class Notes extends Summary {
  readonly said: string[] = []
  override instant(track: number, time: number, name = '', args?: TrackArgs): void {
    super.instant(track, time, name, args)
    this.said.push(args === undefined ? name : `${name} ${JSON.stringify(args)}`)
  }
}

/** A result is available before its task has left its CPU. This waits until all tasks have left. */
const settled = (): Promise<unknown> => Promise.resolve(kernel.spawn(work.nap, [5]))

let kernel: Kernel
let work: ModuleView<typeof import('../../testing/trace/fixtures/work.ts')>

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 2, slice: 5 })
  work = await kernel.import<typeof import('../../testing/trace/fixtures/work.ts')>(
    new URL('../../testing/trace/fixtures/work.ts', import.meta.url),
  )
})
afterAll(() => kernel.close())

describe('a recording of a kernel', () => {
  it('shows the move of a started task as an arrow from one CPU to the other', async () => {
    const url = new URL('../../testing/kernel/fixtures/handmoved.ts', import.meta.url)
    const moved = await kernel.import<typeof import('../../testing/kernel/fixtures/handmoved.ts')>(url)
    const starts: number[] = []
    const ends: string[] = []
    class Arrowed extends Notes {
      override instant(track: number, time: number, name = '', args?: TrackArgs, arrows?: Arrows): void {
        super.instant(track, time, name, args)
        if (name === 'moves mover') starts.push(...(arrows?.starts ?? []))
      }
      override begin(track: number, time: number, name: string, args?: TrackArgs, arrows?: Arrows): void {
        super.begin(track, time, name, args)
        for (const end of arrows?.ends ?? []) if (starts.includes(end)) ends.push(name)
      }
    }
    const notes = new Arrowed()
    const recording = record(kernel, notes)
    const words = new Int32Array(new SharedArrayBuffer(256))
    const task = kernel.spawn(moved.forever as any, [words], { name: 'mover', affinity: [0] })
    while (Atomics.load(words, 1) === 0) await new Promise(resolve => setTimeout(resolve, 1))
    task.setAffinity([1])
    while (Atomics.load(words, 2) === 0) await new Promise(resolve => setTimeout(resolve, 1))
    task.kill()
    await task.join().catch(() => undefined)
    await settled()
    recording.stop()
    expect(notes.said.filter(said => said.startsWith('moves mover'))).toHaveLength(1)
    expect(ends).toEqual(['mover'])
    expect(metricsOf(kernel).cpus[0].moves).toBe(1)
    expect(prometheusText(metricsOf(kernel))).toContain('heddle_moves_total{cpu="0"} 1')
  })

  it('has every task that ran, its slices, and the marks', async () => {
    const notes = new Notes()
    const recording = record(kernel, notes)
    mark('from outside')
    await Promise.all([
      kernel.spawn(work.spin, [20], { name: 'first' }),
      kernel.spawn(work.spin, [20], { name: 'second' }),
      kernel.spawn(work.spin, [20], { name: 'third' }),
      kernel.spawn(work.parent, [], { name: 'the parent', affinity: [0] }),
    ])
    await settled()
    recording.stop()
    expect(recording.lost).toBe(0)
    const named = new Map(notes.tasks.map(task => [task.name, task]))
    expect([...named.keys()]).toEqual(
      expect.arrayContaining(['first', 'second', 'third', 'the parent', 'the child']),
    )
    expect(named.get('first')!.running).toBeGreaterThan(0)
    expect(named.get('the parent')!.blocked).toBeGreaterThan(0)
    expect(notes.said).toEqual(expect.arrayContaining(['from outside', 'half way {"value":0.5}']))
    expect(notes.said).toContain('spawn {"spawned by":"the parent"}')
    expect(notes.said).toContain('spawn {"spawned by":"main thread"}')
  })

  it('has the marks of this thread after another kernel was booted and closed here', async () => {
    await (await Kernel.boot({ cpus: 1, control: false })).close()
    const notes = new Notes()
    const recording = record(kernel, notes)
    mark('still here')
    recording.stop()
    expect(notes.said).toContain('still here')
  })

  it('extends a running slice to the end of the recording, without any event in between', async () => {
    const summary = new Summary()
    const recording = record(kernel, summary)
    const release = new Int32Array(new SharedArrayBuffer(8))
    const task = kernel.spawn(work.spinUntil, [release], { name: 'alone', priority: 'high' })
    await expect.poll(() => Atomics.load(release, 1)).toBe(1)
    const seen = performance.now()
    await new Promise(resolve => setTimeout(resolve, 20))
    const ranMs = performance.now() - seen
    recording.stop()
    Atomics.store(release, 0, 1)
    await task
    expect(summary.tasks.find(({ name }) => name === 'alone')!.running / 1e6).toBeGreaterThan(ranMs - 1)
  })

  it('shows which task waited for which, and which waits were inversions', async () => {
    const locks = await kernel.import<typeof import('../../testing/trace/fixtures/lockwork.ts')>(
      new URL('../../testing/trace/fixtures/lockwork.ts', import.meta.url),
    )
    const mutex = new Mutex()
    const notes = new Notes()
    const before = metricsOf(kernel).latencies.find(({ name }) => name === 'lock wait')!.count
    const recording = record(kernel, notes)
    const release = new Int32Array(new SharedArrayBuffer(4))
    const low = kernel.spawn(locks.hold, [mutex.handle, release], { name: 'low', priority: 'low' })
    await expect.poll(() => mutex.locked).toBe(true)
    const high = kernel.spawn(locks.hold, [mutex.handle, release], { name: 'high', priority: 'high' })
    await expect.poll(() => high.status.state).toBe('sleeping')
    Atomics.store(release, 0, 1)
    await Promise.all([low, high])
    await settled()
    recording.stop()
    expect(notes.waits).toContainEqual(expect.objectContaining({ waiter: 'high', for: 'low', count: 1 }))
    expect(notes.inversions[0]).toMatchObject({
      waiter: 'high',
      owner: 'low',
      waiterPriority: 96,
      ownerPriority: 160,
    })
    expect(notes.said.some(text => text.startsWith('lock contended'))).toBe(true)
    expect(metricsOf(kernel).latencies.find(({ name }) => name === 'lock wait')!.count).toBe(before + 1)
  })

  for (const protocol of ['inherit', 'handoff', 'robust'] as const) {
    it(`has the arrow from unlock to lock of a mutex that keeps its own queue: ${protocol}`, async () => {
      const locks = await kernel.import<typeof import('../../testing/trace/fixtures/lockwork.ts')>(
        new URL('../../testing/trace/fixtures/lockwork.ts', import.meta.url),
      )
      const robust = protocol === 'robust'
      const mutex = new Mutex(robust ? { robust } : { protocol })
      const arrows = { from: [] as string[], to: [] as string[] }
      const notes = new (class extends Notes {
        override instant(track: number, time: number, name = '', args?: TrackArgs, ends?: Arrows): void {
          super.instant(track, time, name, args)
          if (args?.lock === undefined) return
          for (const arrow of ends?.starts ?? []) arrows.from.push(`${args.lock} ${arrow}`)
          for (const arrow of ends?.ends ?? []) arrows.to.push(`${args.lock} ${arrow}`)
        }
      })()
      const recording = record(kernel, notes)
      const release = new Int32Array(new SharedArrayBuffer(4))
      const first = kernel.spawn(locks.hold, [mutex.handle, release], { name: 'first', affinity: [0] })
      await expect.poll(() => mutex.locked).toBe(true)
      const second = kernel.spawn(locks.hold, [mutex.handle, release], { name: 'second', affinity: [1] })
      await expect.poll(() => second.status.state).toBe('sleeping')
      Atomics.store(release, 0, 1)
      await Promise.all([first, second])
      await settled()
      recording.stop()
      expect(notes.waits).toContainEqual(expect.objectContaining({ waiter: 'second', for: 'first' }))
      expect(notes.locks).toHaveLength(1)
      expect(notes.locks[0]).toMatchObject({ contended: 1, acquired: 1 })
      expect(arrows.to).toHaveLength(1)
      expect(arrows.from).toContain(arrows.to[0])
    })
  }

  it('is the only one of its kernel, and can be started again', () => {
    const first = record(kernel, new Summary())
    expect(() => record(kernel, new Summary())).toThrow(
      'the kernel has a recording already; stop that one first',
    )
    first.stop()
    first.stop()
    record(kernel, new Summary()).stop()
  })

  it('runs as a flight recorder, and is dumped on demand', async () => {
    const recorder = new FlightRecorder(kernel)
    await kernel.spawn(work.nap, [1], { name: 'before the crash' })
    const notes = new Notes()
    recorder.dump(notes)
    expect(notes.tasks.map(({ name }) => name)).toContain('before the crash')
    await kernel.spawn(work.nap, [1], { name: 'later' })
    const again = new Notes()
    recorder.dump(again)
    expect(again.tasks.map(({ name }) => name)).toEqual(expect.arrayContaining(['before the crash', 'later']))
    recorder.stop()
  })

  it('dumps automatically after a failure, and once for failures within a second', async () => {
    const dumps: [string, Notes][] = []
    const recorder = FlightRecorder.guard(kernel, why => {
      const notes = new Notes()
      dumps.push([why, notes])
      return notes
    })
    let failures = 0
    const off = kernel.on('failure', () => failures++)
    kernel.spawn(work.fail, [], { name: 'the one that fails' })
    kernel.spawn(work.fail, [])
    await expect.poll(() => failures).toBe(2)
    recorder.stop()
    kernel.spawn(work.fail, [], { name: 'after the guard' })
    await expect.poll(() => failures).toBe(3)
    off()
    expect(dumps).toHaveLength(1)
    expect(dumps[0][0]).toBe('failure')
    expect(dumps[0][1].tasks.map(({ name }) => name)).toContain('the one that fails')
  })

  it('dumps when tasks of two CPUs wait for each other, and names them to the program', async () => {
    const its = await kernel.import<typeof import('../../testing/trace/fixtures/lockwork.ts')>(
      new URL('../../testing/trace/fixtures/lockwork.ts', import.meta.url),
    )
    const dumps: [string, Notes][] = []
    const recorder = FlightRecorder.guard(kernel, why => {
      const notes = new Notes()
      dumps.push([why, notes])
      return notes
    })
    const published: unknown[] = []
    const listen = (message: unknown): void => void published.push(message)
    channel('heddle:deadlock').subscribe(listen)
    const off = debugLocks({ onProblem: () => undefined })
    const [a, b] = [new Mutex({ name: 'a' }).handle, new Mutex({ name: 'b' }).handle]
    const met = new Int32Array(new SharedArrayBuffer(4))
    const told = new Promise<{ message: string }>(resolve => kernel.on('deadlock', resolve))
    const tasks = [
      kernel.spawn(its.crosswise, [a, b, met], { name: 'one way', affinity: [0] }),
      kernel.spawn(its.crosswise, [b, a, met], { name: 'the other way', affinity: [1] }),
    ]
    const { message } = await told
    // The watch of long waits searches for cycles too. It must not report again what debug mode has reported.
    for (let n = 0; n < 4; n++) await new Promise(resolve => setTimeout(resolve, DEADLOCK_CHECK_MS))
    channel('heddle:deadlock').unsubscribe(listen)
    // First: two tasks that wait for each other would keep the kernel from closing.
    for (const task of tasks) task.kill()
    for (const part of ["mutex 'a'", "mutex 'b'", "'one way'", "'the other way'"])
      expect(message).toContain(part)
    expect(dumps.map(([why]) => why)).toEqual(['deadlock'])
    const [, notes] = dumps[0]
    expect(notes.tasks.map(({ name }) => name)).toEqual(expect.arrayContaining(['one way', 'the other way']))
    expect(published).toEqual([{ message }])
    // One task may end normally before its kill arrives, because the other task's end released its lock.
    expect((await Promise.allSettled(tasks)).map(({ status }) => status)).toContain('rejected')
    off()
    recorder.stop()
  })

  it('dumps when async code of the booting thread would wait for itself', () => {
    const dumps: string[] = []
    const recorder = FlightRecorder.guard(kernel, why => {
      dumps.push(why)
      return new Notes()
    })
    const off = debugLocks({ onProblem: () => undefined })
    const mutex = new Mutex({ name: 'own' })
    mutex.lockSync()
    expect(() => mutex.lockSync({ timeout: 1 })).toThrow('ms have passed')
    mutex.unlock()
    off()
    recorder.stop()
    expect(dumps).toEqual(['deadlock'])
  })

  it('is refused for an object that is not a kernel', () => {
    expect(() => record({}, new Summary())).toThrow('kernel: not a kernel that was booted on this thread')
  })
})

describe('metrics', () => {
  it('count the hold time of a lock with a waiter, from the wait on', async () => {
    const holds = (): number => metricsOf(kernel).latencies.find(({ name }) => name === 'lock hold')!.count
    const before = holds()
    const mutex = new Mutex()
    const first = await mutex.lockAsync()
    const waits = mutex.lockAsync()
    first.unlock()
    ;(await waits).unlock()
    // No task waited for this lock, and its owner did not wait for it.
    const quick = await mutex.lockAsync()
    const waitsToo = mutex.lockAsync()
    quick.unlock()
    expect(holds()).toBe(before)
    const held = await waitsToo
    const last = mutex.lockAsync()
    held.unlock()
    expect(holds()).toBe(before + 1)
    ;(await last).unlock()
  })

  it('count the switches and the busy time of the CPUs', async () => {
    const before = metricsOf(kernel)
    await kernel.spawn(work.nap, [2])
    await kernel.spawn(work.spin, [5])
    const after = metricsOf(kernel)
    const sum = (of: typeof after, key: 'switches' | 'busyTime'): number =>
      of.cpus.reduce((total, cpu) => total + cpu[key], 0)
    expect(sum(after, 'switches')).toBeGreaterThan(sum(before, 'switches'))
    expect(sum(after, 'busyTime')).toBeGreaterThan(sum(before, 'busyTime'))
    const started = after.latencies.find(({ name }) => name === 'spawn to start')!
    expect(started.count).toBeGreaterThan(0)
    expect(started.p50).toBeLessThanOrEqual(started.p99)
  })

  it('are Prometheus text: every sample described, buckets that only rise, and end in the count', () => {
    const text = prometheusText(metricsOf(kernel))
    const described = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name))
    for (const [, name] of text.matchAll(/^([a-z_]+)(?:\{|\s)/gm)) {
      expect(
        [...described].some(type => name === type || name.replace(/_(bucket|sum|count)$/, '') === type),
      ).toBe(true)
    }
    for (const line of text.trimEnd().split('\n')) {
      expect(line).toMatch(/^(#.*|[a-z_]+(\{[a-z]+="[^"]+"\})? [\d.e+-]+)$/)
    }
    const buckets = [...text.matchAll(/^heddle_spawn_to_start_seconds_bucket\{le="(.+)"\} (\d+)$/gm)]
    const counts = buckets.map(([, , count]) => Number(count))
    expect(counts.toSorted((a, b) => a - b)).toEqual(counts)
    expect(buckets.at(-1)![1]).toBe('+Inf')
    expect(text).toContain(`heddle_spawn_to_start_seconds_count ${counts.at(-1)}`)
  })

  it('are on the diagnostics channels, and a subscriber changes nothing', async () => {
    const heard: unknown[] = []
    const onFailure = (about: unknown): void => void heard.push(about)
    channel('heddle:failure').subscribe(onFailure)
    const told = new Promise(resolve => kernel.on('failure', resolve))
    kernel.spawn(work.fail, [])
    await told
    channel('heddle:failure').unsubscribe(onFailure)
    expect(heard).toHaveLength(1)
    expect(heard[0]).toMatchObject({ error: expect.objectContaining({ message: 'on purpose' }) })
  })
})

describe('OpenTelemetry', () => {
  it('gets a span for each task, linked to its spawner', async () => {
    interface Made {
      name: string
      options: { links?: { context: { spanId: string } }[] }
      id: string
      attributes: Record<string, unknown>
      ended: boolean
    }
    const spans: Made[] = []
    const startSpan = (name: string, options: Made['options']): unknown => {
      const span: Made = { name, options, id: String(spans.length), attributes: {}, ended: false }
      spans.push(span)
      return {
        spanContext: () => ({ traceId: 't', spanId: span.id, traceFlags: 1 }),
        setAttribute: (key: string, value: unknown) => (span.attributes[key] = value),
        setAttributes: (all: object) => Object.assign(span.attributes, all),
        setStatus: () => undefined,
        addEvent: () => undefined,
        end: () => (span.ended = true),
      }
    }
    const tracerProvider = { getTracer: () => ({ startSpan }) } as never
    const telemetry = openTelemetry(kernel, { tracerProvider })
    await kernel.spawn(work.parent, [], { name: 'spanned' })
    await settled()
    telemetry.stop()
    const parent = spans.find(({ name }) => name === 'spanned')!
    const child = spans.find(({ name }) => name === 'the child')!
    expect(child.options.links?.[0].context.spanId).toBe(parent.id)
    expect(child.attributes['heddle.task.spawner']).toBe('spanned')
    expect(parent.attributes['heddle.task.switches']).toBeGreaterThanOrEqual(1)
    expect(spans.every(({ ended }) => ended)).toBe(true)
  })

  it('takes the providers of the API package', () => {
    const [tracerProvider, meterProvider] = [trace.getTracerProvider(), metrics.getMeterProvider()]
    expect(() => openTelemetry(kernel, { tracerProvider, meterProvider }).stop()).not.toThrow()
  })

  it('gets metrics on request', () => {
    const instruments = new Map<string, (result: object) => void>()
    const create = (name: string): object => ({ addCallback: (read: any) => instruments.set(name, read) })
    const meter = { createObservableGauge: create, createObservableCounter: create }
    openTelemetry(kernel, { meterProvider: { getMeter: () => meter } as never })
    const observed: [number, object][] = []
    instruments.get('heddle.switches')!({
      observe: (value: number, of: object) => observed.push([value, of]),
    })
    expect(observed).toHaveLength(2)
    expect(observed[0][1]).toEqual({ 'heddle.cpu': 0 })
    expect([...instruments.keys()]).toEqual(expect.arrayContaining(['heddle.cpu.time', 'heddle.latency']))
  })

  it('gets an error that names the missing provider', () => {
    expect(() => openTelemetry(kernel, {})).toThrow('give a tracerProvider, a meterProvider, or both')
  })
})

describe('the control socket', () => {
  async function client(): Promise<ControlClient> {
    const found = runningKernels().findLast(({ pid }) => pid === process.pid)
    return await ControlClient.connect(found!.path)
  }
  const snapshotIn = (reply: ControlReply) => (reply.ok && 'snapshot' in reply ? reply.snapshot : undefined)!

  it('is in a folder that only its user can enter, and is removed with the kernel', async () => {
    const other = await Kernel.boot({ cpus: 1 })
    await expect.poll(() => runningKernels().filter(({ pid }) => pid === process.pid).length).toBe(2)
    const { path } = runningKernels().findLast(({ pid }) => pid === process.pid)!
    expect(statSync(dirname(path)).mode & 0o077).toBe(0)
    expect(statSync(path).mode & 0o077).toBe(0)
    await other.close()
    expect(existsSync(path)).toBe(false)
  })

  it('does not exist for a kernel with control: false', async () => {
    const own = (): number => runningKernels().filter(({ pid }) => pid === process.pid).length
    const before = own()
    const quiet = await Kernel.boot({ cpus: 1, control: false })
    await kernel.spawn(work.nap, [1])
    expect(own()).toBe(before)
    await quiet.close()
  })

  it('shows the tasks, and stops, continues, reprioritises and kills one', async () => {
    const asks = await client()
    const task = kernel.spawn(work.nap, [60_000], { name: 'sleeper' })
    const look = async () =>
      snapshotIn(await asks.ask({ op: 'snapshot' })).tasks.find(({ id }) => id === task.id)
    await expect.poll(async () => (await look())?.state).toBe('sleeping')
    expect(await look()).toMatchObject({ name: 'sleeper', priority: 128 })
    expect(await asks.ask({ op: 'priority', task: task.id, priority: 'high' })).toEqual({
      ok: true,
      done: true,
    })
    expect((await look())!.priority).toBe(96)
    expect(await asks.ask({ op: 'stop', task: task.id })).toEqual({ ok: true, done: true })
    expect((await look())!.state).toBe('stopped')
    expect(await asks.ask({ op: 'continue', task: task.id })).toEqual({ ok: true, done: true })
    expect(await asks.ask({ op: 'kill', task: task.id })).toEqual({ ok: true, done: true })
    await expect(task).rejects.toThrow('killed')
    expect(await asks.ask({ op: 'kill', task: task.id })).toEqual({ ok: true, done: false })
    asks.close()
  })

  it('answers invalid requests with an error', async () => {
    const asks = await client()
    expect(await asks.ask({ op: 'dance' } as never)).toEqual({
      ok: false,
      error: 'op: "dance" is not a request',
    })
    expect(await asks.ask(null as never)).toMatchObject({ ok: false })
    expect(await asks.ask({ op: 'priority', task: 1, priority: 'top' as never })).toMatchObject({ ok: false })
    expect(snapshotOf(kernel).cpus).toHaveLength(2)
    asks.close()
  })
})
