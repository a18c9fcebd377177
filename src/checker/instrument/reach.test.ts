import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { check, CheckError, type Program } from '../check.ts'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'
import type { Reach } from '../../../testing/checker/programs/reach.ts'

const folder = mkdtempSync(join(tmpdir(), 'heddle-reach-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const source = new URL('../../../testing/checker/programs/reach.ts', import.meta.url)

/** The programs in a form in which the compiler knows the type of the view. */
function typedSource(): URL {
  const type = 'Int32Array<SharedArrayBuffer>'
  const text = readFileSync(source, 'utf8').replace(/(?<=, )(?:v =>|\(v, )/g, found =>
    found.startsWith('(') ? `(v: ${type}, ` : `(v: ${type}) =>`,
  )
  expect(text.split(type).length).toBeGreaterThan(100)
  const file = join(folder, 'typedreach.ts')
  writeFileSync(file, text)
  return pathToFileURL(file)
}

/** The outcomes of the reader while the other thread writes both words, one after the other. */
function seen(reach: Reach, others: Others): string[] {
  const found = new Set<string>()
  check(`${reach.clause}: ${reach.way}`, { races: false }, (): Program => {
    const buffer = new SharedArrayBuffer(8)
    const words = new Int32Array(buffer)
    const data = new DataView(buffer)
    const read = reach.does.startsWith('reads')
    return {
      threads: [others.way(reach, words, buffer, data), read ? others.writer(words) : others.reader(words)],
      final: ({ results }) => void found.add(String(results[read ? 0 : 1])),
    }
  })
  return [...found].sort()
}

type Others = Awaited<ReturnType<typeof loadOthers>>
function loadOthers() {
  return loadInstrumented<typeof import('../../../testing/checker/programs/reachothers.ts')>(
    new URL('../../../testing/checker/programs/reachothers.ts', import.meta.url),
  )
}

const expected: Record<Reach['does'], string> = {
  reads: '00,01,10,11',
  writes: '00,01,10,11',
  'reads one': '0,1',
  'writes one': '00,10',
  refused: 'nothing: it is refused',
}

describe('code that reaches shared memory', () => {
  test.each([
    ['', () => source],
    [' through a view whose type is written down', typedSource],
  ])('takes a step for each element, or is refused with its place%s', async (_, url) => {
    const { ways } = await loadInstrumented<{ ways: readonly Reach[] }>(url())
    const others = await loadOthers()
    const wrong: string[] = []
    for (const reach of ways) {
      const name = `${reach.clause}: ${reach.way}`
      try {
        const outcomes = seen(reach, others).join()
        if (outcomes !== expected[reach.does]) wrong.push(`${name} saw ${outcomes}`)
      } catch (error) {
        const fits =
          error instanceof CheckError && reach.does === 'refused' && /reach\.ts:\d+:\d+/.test(error.message)
        if (!fits) wrong.push(`${name} came to: ${(error as Error).message.slice(0, 300)}`)
      }
    }
    expect(wrong).toEqual([])
    expect(ways.length).toBeGreaterThan(100)
  })
})
