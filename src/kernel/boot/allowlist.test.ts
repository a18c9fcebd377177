import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EXT_PRIORITY } from '../../sched/core/priority.ts'
import { Kernel } from './kernel.ts'
import type { ModuleView } from '../spawn/modules.ts'
import type { LoadedPolicy, PolicyOptions } from './policy.ts'

type Work = typeof import('../../../testing/kernel/fixtures/allowwork.ts')
type Other = typeof import('../../../testing/kernel/fixtures/mapwork.ts')

const workUrl = new URL('../../../testing/kernel/fixtures/allowwork.ts', import.meta.url)
const otherUrl = new URL('../../../testing/kernel/fixtures/mapwork.ts', import.meta.url)

let kernel: Kernel
let work: ModuleView<Work>
let other: ModuleView<Other>

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 2 })
  work = await kernel.import<Work>(workUrl)
  other = await kernel.import<Other>(otherUrl)
})

afterAll(async () => {
  await kernel.close({ abort: true })
})

async function under(options: PolicyOptions, body: (policy: LoadedPolicy) => unknown): Promise<void> {
  const policy = await kernel.loadPolicy('fifo', options)
  try {
    await body(policy)
  } finally {
    await policy.unload()
  }
}

const isListed = ({ status }: { readonly status: { readonly priority: unknown } }): boolean =>
  status.priority === EXT_PRIORITY

describe('the allowlist of a policy', () => {
  test('has the tasks given to `allow`, and loses those given to `disallow`', () =>
    under({ tasks: 'listed' }, policy => {
      const [one, two] = [kernel.spawn(work.sleeps), kernel.spawn(work.sleeps)]
      expect(policy.allow(one)).toBe(true)
      expect([one, two].map(isListed)).toEqual([true, false])
      expect(policy.disallow(one)).toBe(true)
      expect(isListed(one)).toBe(false)
      one.kill()
      two.kill()
    }))

  test.each([1, 7, -1, 1e9, Number.NaN, '1', null, undefined, {}, 2 ** 31])(
    'refuses %s instead of a task, and leaves the arena unchanged',
    async value => {
      await under({ tasks: 'listed' }, policy => {
        for (const call of ['allow', 'disallow'] as const) {
          expect(() => policy[call](value as never)).toThrow(/not a task; give the result of spawn/)
        }
      })
      expect(await kernel.spawn(other.double, [4])).toBe(8)
    },
  )

  test('refuses a task of another kernel, and ignores an ended task', async () => {
    await using second = await Kernel.boot({ cpus: 1, machine: 'simulated' })
    const elsewhere = await second.import<Work>(workUrl)
    const foreign = second.spawn(elsewhere.sleeps)
    const ended = kernel.spawn(other.double, [1])
    await ended
    await under({ tasks: 'listed' }, policy => {
      expect(() => policy.allow(foreign)).toThrow(/belongs to another kernel/)
      expect(policy.allow(ended)).toBe(false)
    })
    foreign.kill()
  })

  test('has tasks by name: existing and new ones', async () => {
    const before = kernel.spawn(work.sleeps, [], { name: 'render 1' })
    await under({ tasks: { names: ['render *', /^paint\b/gi] } }, () => {
      const after = ['render 2', 'prerender 2', 'Paint it', 'Paint it'].map(name =>
        kernel.spawn(work.sleeps, [], { name }),
      )
      expect([before, ...after].map(isListed)).toEqual([true, true, false, true, true])
      for (const task of after) task.kill()
    })
    expect(isListed(before)).toBe(false)
    before.kill()
  })

  test('has tasks by the module of their function', () =>
    under({ tasks: { modules: [workUrl] } }, () => {
      const [mine, its] = [kernel.spawn(work.sleeps), kernel.spawn(other.forever)]
      expect([mine, its].map(isListed)).toEqual([true, false])
      mine.kill()
      its.kill()
    }))

  test('has the children of tasks, which start on other threads', async () => {
    await under({ tasks: { names: ['render*'] } }, async () => {
      expect(await kernel.spawn(work.hasChildren)).toEqual(['normal', EXT_PRIORITY, EXT_PRIORITY])
    })
    // Another list on the same CPUs.
    await under({ tasks: { modules: [workUrl] } }, async () => {
      expect(await kernel.spawn(work.hasChildren)).toEqual([EXT_PRIORITY, EXT_PRIORITY, 'normal'])
    })
  })

  test.each([
    [{}, /the allowlist is empty/],
    [{ names: 'render' }, /tasks.names: 'render' is not a list/],
    [{ names: [7] }, /7 is not a name/],
    [{ modules: ['work.ts'] }, /give new URL/],
    [{ names: ['x'.repeat(5000)] }, /does not fit/],
    ['some', /'some' is not an allowlist/],
  ])('refuses list %#', async (tasks, message) => {
    await expect(kernel.loadPolicy('fifo', { tasks: tasks as never })).rejects.toThrow(message)
    // No policy is left behind.
    await under({}, policy => expect(policy.isActive).toBe(true))
  })
})
