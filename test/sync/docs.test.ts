import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const folder = mkdtempSync(join(import.meta.dirname, 'docs-'))
const examplesOf = (page: string): string[] =>
  [...readFileSync(join(root, page), 'utf8').matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code)
const examples = [...examplesOf('docs/sync.md'), ...examplesOf('docs/futex.md')]

afterAll(() => rmSync(folder, { recursive: true }))

describe('the examples of docs/sync.md and docs/futex.md run, and print the output in their comments', () => {
  test.each(examples.map((code, index) => [index, code] as const))('example %i', (index, code) => {
    const file = join(folder, `example-${index}.ts`)
    const local = code
      .replaceAll("from 'heddle/futex'", `from '${join(root, 'src/futex/index.ts')}'`)
      .replaceAll("from 'heddle/structs'", `from '${join(root, 'src/sync/small/structs.ts')}'`)
      .replaceAll("from 'heddle'", `from '${join(root, 'src/index.ts')}'`)
    writeFileSync(file, local)
    const printed = execFileSync(process.execPath, [file], { encoding: 'utf8' })
    const said = [...code.matchAll(/\/\/ → (.*?)(?= \/\/ →|$)/gm)].map(([, text]) => text.trim())
    expect(printed.trim().split('\n').filter(Boolean)).toEqual(said)
  })

  test('there is one for each primitive', () => {
    const all = examples.join('\n')
    for (const name of [
      'Mutex',
      'Condition',
      'Semaphore',
      'RwLock',
      'Barrier',
      'Latch',
      'WaitGroup',
      'Once',
      'Event',
      'Channel',
      'selectAsync',
      'SharedQueue',
      'AtomicInt32',
      'SeqLock',
      'UnlockToken',
      'debugLocks',
      'futex',
    ]) {
      expect(all).toContain(name)
    }
  })
})
