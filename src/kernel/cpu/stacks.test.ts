import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type * as stackwork from '../../../testing/kernel/fixtures/stackwork.ts'
import { Kernel } from '../boot/kernel.ts'
import type { ModuleView } from '../spawn/modules.ts'

describe('the stack of an error that is thrown after a preemption', () => {
  let kernel: Kernel
  let work: ModuleView<typeof stackwork>
  const words = (): Int32Array => new Int32Array(new SharedArrayBuffer(8))

  beforeAll(async () => {
    kernel = await Kernel.boot({ cpus: 1 })
    work = await kernel.import<typeof stackwork>(url)
  })
  afterAll(() => kernel.close())

  const url = new URL('../../../testing/kernel/fixtures/stackwork.ts', import.meta.url)
  const lines = readFileSync(url, 'utf8').split('\n')
  const at = (name: string, text: string): string =>
    `${name} ${lines.findIndex(line => line.includes(text)) + 1}`
  const inner = at('inner', "throw new Error('deep down')")
  const middle = at('middle', 'sum += inner(')

  /** Function and line, innermost first. */
  function frames(stack: string): string[] {
    const shown = stack.split('\n').filter(line => /^\s+at /.test(line))
    return shown.map(line => {
      const [, name, row] = /at (\S+) \(.*stackwork\.ts:(\d+):\d+\)$/.exec(line) ?? []
      return name === undefined ? line.trim().replace(/^at /, '') : `${name} ${row}`
    })
  }

  test('shows every caller with its line, and nothing of the machinery', async () => {
    const shared = words()
    const task = kernel.spawn(work.outer, [shared], { name: 'report' })
    const other = kernel.spawn(work.release, [shared])
    const error = (await task.then(undefined, (thrown: unknown) => thrown)) as Error
    await other
    const [first, second, third, fourth, fifth] = frames(error.stack!)
    expect([first, second, third]).toEqual([inner, middle, at('outer', 'return middle(')])
    expect(fourth).toMatch(/^task report #\d+$/)
    // Where it was spawned.
    expect(fifth).toContain('stacks.test.ts')
    expect(error.stack).not.toMatch(/frames\.ts|kernelcpu\.ts|coroutine\.ts|cpurunner\.ts/)
  })

  test('shows the callers above the one that catches it', async () => {
    const shared = words()
    const task = kernel.spawn(work.aroundCatches, [shared])
    const other = kernel.spawn(work.release, [shared])
    const stack = await task
    await other
    expect(frames(stack)).toEqual([
      inner,
      middle,
      at('catches', 'String(middle('),
      at('aroundCatches', '= catches('),
    ])
  })

  test('ends with the task where nothing was preempted', async () => {
    const error = (await kernel.spawn(work.plainly).then(undefined, (thrown: unknown) => thrown)) as Error
    expect(frames(error.stack!)[0]).toBe(at('plainly', "'in one go'"))
    expect(frames(error.stack!)[1]).toMatch(/^task plainly #\d+$/)
  })
})
