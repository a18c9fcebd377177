import { Worker as NodeWorker } from 'node:worker_threads'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { CpuRecord } from '../core/cpurecord.ts'
import { startThreadTimekeeper, type ThreadTimekeeper } from './threadtimekeeper.ts'
import { armSlice } from './timekeeper.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

/** The Worker class of a page, on a Node thread. */
class PageWorker {
  readonly #thread: NodeWorker

  constructor(url: URL) {
    const code = `
      const { parentPort, workerData } = require('node:worker_threads')
      const early = []
      parentPort.on('message', data => early.push(data))
      globalThis.addEventListener = (type, listener) => {
        parentPort.removeAllListeners('message')
        for (const data of early) listener({ data })
        parentPort.on('message', data => listener({ data }))
      }
      import(workerData)`
    this.#thread = new NodeWorker(code, { eval: true, workerData: url.href })
  }

  postMessage(message: unknown): void {
    this.#thread.postMessage(message)
  }

  terminate(): void {
    void this.#thread.terminate()
  }
}

async function ticks(timekeeper: ThreadTimekeeper): Promise<void> {
  const { i32, region, cpu, shift } = timekeeper
  const turn = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 1))
  while (!timekeeper.isRunning()) await turn()
  for (let slice = 0; slice < 3; slice++) {
    Atomics.store(i32, cpu + CpuRecord.needResched, 0)
    armSlice(i32, region, cpu, performance.now() + shift + 2)
    while (Atomics.load(i32, cpu + CpuRecord.needResched) === 0) await turn()
    expect(Atomics.load(i32, cpu + CpuRecord.sliceEnd)).toBe(0)
  }
}

describe('the timekeeper of a thread that is not a CPU raises its word at the end of each slice', () => {
  test('in Node', async () => {
    const timekeeper = startThreadTimekeeper()!
    await ticks(timekeeper)
    timekeeper.close()
  })

  test('in an isolated page', async () => {
    const { hrtime } = process
    vi.stubGlobal('process', { hrtime })
    vi.stubGlobal('Worker', PageWorker)
    vi.stubGlobal('crossOriginIsolated', true)
    const timekeeper = startThreadTimekeeper()!
    vi.unstubAllGlobals()
    await ticks(timekeeper)
    timekeeper.close()
  })
})

test('up to eight timekeepers of one thread share a worker, which ends with the last of them', async () => {
  const all = Array.from({ length: 8 }, () => startThreadTimekeeper()!)
  expect(new Set(all.map(({ i32 }) => i32)).size).toBe(1)
  expect(new Set(all.map(({ cpu }) => cpu)).size).toBe(8)
  expect(startThreadTimekeeper()).toBe(undefined)
  await Promise.all(all.map(ticks))
  const again = all.pop()!
  again.close()
  const next = startThreadTimekeeper()!
  expect(next.cpu).toBe(again.cpu)
  await ticks(next)
  next.close()
  for (const timekeeper of all) timekeeper.close()
  const fresh = startThreadTimekeeper()!
  expect(fresh.i32).not.toBe(again.i32)
  await ticks(fresh)
  fresh.close()
})

test('there is no timekeeper without shared memory or without workers', () => {
  vi.stubGlobal('crossOriginIsolated', false)
  expect(startThreadTimekeeper()).toBe(undefined)
  vi.unstubAllGlobals()
  vi.stubGlobal('SharedArrayBuffer', undefined)
  expect(startThreadTimekeeper()).toBe(undefined)
  vi.unstubAllGlobals()
  vi.stubGlobal('process', undefined)
  vi.stubGlobal('Worker', undefined)
  expect(startThreadTimekeeper()).toBe(undefined)
})
