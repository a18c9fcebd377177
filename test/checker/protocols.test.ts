import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { findCheckFiles } from '../../src/checker/run/files.ts'
import { shorten } from '../../src/checker/report/paths.ts'

interface Tried {
  readonly file: string
  readonly name: string
  readonly outcome: string
  readonly complete: boolean
  readonly title?: string
}

/** The protocols that must have a check, each with the folder or file of the check. */
const protocols: Readonly<Record<string, RegExp>> = {
  arena: /^src\/arena\//,
  scheduler: /^src\/sched\/core\//,
  'deaths in the scheduler': /^src\/sched\/recovery\//,
  'ext policies': /^src\/sched\/ext\//,
  coroutine: /^src\/coroutine\//,
  futex: /^src\/futex\/operations\//,
  PI: /^src\/futex\/pi\//,
  robust: /^src\/futex\/robust\//,
  'hand-off over the mutex': /^src\/handoff\//,
  sync: /^src\/sync\//,
  payload: /^src\/payload\//,
  'leases of durable runs': /^src\/durable\//,
}

test('each check file has checks that are explored to their end, and no check that fails', async () => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['test/checker/fixtures/protocols.ts', 'src'],
    { cwd: root, maxBuffer: 1 << 24 },
  )
  const tried = stdout
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as Tried)
  expect(tried.filter(({ outcome }) => outcome === 'failed')).toEqual([])
  const explored = new Set(tried.filter(({ complete }) => complete).map(({ file }) => file))
  const files = findCheckFiles([`${root}src`]).map(file => shorten(file))
  expect(files.filter(file => !explored.has(file))).toEqual([])
  const missing = Object.entries(protocols).filter(([, path]) => ![...explored].some(file => path.test(file)))
  expect(missing).toEqual([])
})
