import { afterAll, beforeAll, expect, test } from 'vitest'
import { inUse, leftSince } from '../../../testing/kernel/fixtures/inuse.ts'
import { hostile } from '../../../testing/kernel/fixtures/hostilework.ts'
import { until } from '../../../testing/kernel/fixtures/ending.ts'
import { Kernel } from '../boot/kernel.ts'
import type { ModuleView } from '../spawn/modules.ts'

type Work = typeof import('../../../testing/kernel/fixtures/hostilework.ts')

/**
 * A value that a task throws or returns belongs to the program, and may throw whenever it is read. That ends
 * the task alone: an error outside of the task would end its CPU, with all that had started there.
 */

let kernel: Kernel
let work: ModuleView<Work>
const deaths: unknown[] = []

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 1, control: false })
  kernel.on('death', death => void deaths.push(death))
  work = await kernel.import<Work>(
    new URL('../../../testing/kernel/fixtures/hostilework.ts', import.meta.url),
  )
})

afterAll(async () => {
  await kernel.close({ abort: true })
})

/** How `await` ends for these values. */
const ends: Readonly<Record<string, unknown>> = {
  thenable: 7,
  'thenable of a thenable': 7,
  'thenable that calls back late': 7,
  'thenable that calls back twice and throws': 7,
  'promise with a then of its own': 7,
}

const forms = [
  'plainly',
  'inGenerator',
  'inCompiled',
  'inAsync',
  'inMarkedAsync',
  'inChild',
  'inWait',
] as const

test.each(forms)('a value that throws when it is read ends its task, and no CPU: %s', async form => {
  const before = inUse(kernel)
  for (const kind of Object.keys(hostile)) {
    const ended = await kernel.spawn(work[form], [kind]).then(
      value => value,
      (error: unknown) => (error as Error).name,
    )
    // An async function that returns a promise calls its `then`; an `await` does not.
    const isCalled = kind === 'promise with a then of its own' && form.endsWith('Async')
    if (kind in ends && !isCalled) expect([kind, ended]).toEqual([kind, ends[kind]])
    else expect([kind, ended]).toEqual([kind, expect.stringMatching(/^(?:Type)?Error$/)])
  }
  expect(deaths).toEqual([])
  await until('nothing is left', () => Object.keys(leftSince(kernel, before)).length === 0)
})
