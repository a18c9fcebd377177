/** Checks of one name, and check files that import each other: each way to run them runs each check. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..', '..', '..')
const folder = mkdtempSync(join(tmpdir(), 'heddle-identity-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const program = (add: string): string => `() => {
  const m = new Int32Array(new SharedArrayBuffer(4))
  const add = () => { ${add} }
  return { threads: [add, add], final: () => { if (m[0] !== 2) throw new Error('lost') } }
}`
const wrong = program('Atomics.store(m, 0, Atomics.load(m, 0) + 1)')
const right = program('Atomics.add(m, 0, 1)')
/** The order that fails is the last one that a single thread explores, after a second or two. */
const late = `() => {
  const m = new Int32Array(new SharedArrayBuffer(4))
  const adds = (times: number) => () => {
    let last = 0
    for (let n = 0; n < times; n++) last = Atomics.add(m, 0, 1)
    return last
  }
  const final = ({ results }) => { if (results[2] === 5 && results[1] === 9) throw new Error('lost') }
  return { threads: [adds(4), adds(4), adds(6)], final }
}`

const files: Readonly<Record<string, string>> = {
  'wrong.check.ts': `check('one', ${wrong})`,
  'right.check.ts': `import './wrong.check.ts'\ncheck('one', ${right})`,
  'named.check.ts': `import './wrong.check.ts'\ncheck('one', { modules: ['no-such-package'] }, ${right})`,
  'declares.ts': `export const declare = (setup: any) => check('one', setup)`,
  'helped.check.ts': `import { declare } from './declares.ts'\ndeclare(${right})\ndeclare(${wrong})\ndeclare(${right})`,
  'late.check.ts': `check('one', ${right})\ncheck('one', ${late})`,
}

beforeAll(() => {
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(folder, name), `import { check } from '${root}/src/checker/check.ts'\n${text}\n`)
})

interface Line {
  readonly file: string
  readonly outcome?: string
  readonly failure?: { readonly title: string } | null
  readonly wrong?: string
}

/** The outcomes of the checks, by their files: that of a failure is its title. */
function run(names: readonly string[], ...more: readonly string[]): Promise<Record<string, string[]>> {
  return new Promise((resolve, reject) => {
    const args = [join(root, 'src/cli/main.ts'), 'check', ...names, '--json', ...more]
    const env = { ...process.env, HEDDLE_CACHE: join(folder, 'cache') }
    const child = spawn(process.execPath, args, { cwd: folder, env })
    let out = ''
    child.stdout.on('data', (text: Buffer) => void (out += text))
    child.on('error', reject)
    child.on('close', () => {
      const outcomes: Record<string, string[]> = {}
      for (const line of out.split('\n').filter(text => text.startsWith('{'))) {
        const { file, outcome, failure, wrong } = JSON.parse(line) as Line
        const text = failure === null ? outcome : failure === undefined ? wrong : failure.title
        ;(outcomes[file.replace(/^.*\//, '')] ??= []).push(String(text))
      }
      resolve(outcomes)
    })
  })
}

const LOST = 'the final assertion failed: lost'
const [RIGHT, WRONG, NAMED, HELPED] = [
  'right.check.ts',
  'wrong.check.ts',
  'named.check.ts',
  'helped.check.ts',
]

test.each([['one after the other'], ['in processes', '--jobs', '2']])(
  'checks of one name run %s, each as its own',
  async (_, ...how) => {
    const outcomes = await run([WRONG, RIGHT, NAMED, HELPED], '--no-cache', ...how)
    expect(outcomes).toMatchObject({ [WRONG]: [LOST], [RIGHT]: ['passed'], [NAMED]: ['passed'] })
    expect(outcomes[HELPED]?.sort()).toEqual(['passed', 'passed', LOST])
  },
)

test('a result is not remembered for another check of that name', async () => {
  expect(await run([WRONG, RIGHT])).toEqual({ [WRONG]: [LOST], [RIGHT]: ['passed'] })
  expect(await run([RIGHT])).toEqual({ [RIGHT]: [LOST, 'passed'] })
})

test('threads that explore together explore the right check', async () => {
  expect(await run(['late.check.ts'], '--parallel', '2', '--no-cache')).toEqual({
    'late.check.ts': ['passed', LOST],
  })
})
