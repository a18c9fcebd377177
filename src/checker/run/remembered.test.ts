import { spawn } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..', '..', '..')
const folder = mkdtempSync(join(tmpdir(), 'heddle-remembered-'))
const cache = join(folder, 'cache')
const checks = join(folder, 'checks')
/** A copy of the product, so that a test can change the checker itself. */
const copy = join(folder, 'product')

beforeAll(() => {
  mkdirSync(checks)
  mkdirSync(copy)
  cpSync(join(root, 'src'), join(copy, 'src'), { recursive: true })
  cpSync(join(root, 'package.json'), join(copy, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Line {
  readonly name: string
  readonly outcome: string
  readonly remembered?: boolean
}

interface Ended {
  readonly out: string
  readonly err: string
  readonly code: number | null
}

function heddleCheck(
  args: readonly string[],
  env: Record<string, string> = {},
  interruptOn?: string,
): Promise<Ended> {
  return new Promise(resolve => {
    const child = spawn(process.execPath, [join(copy, 'src/cli/main.ts'), 'check', ...args], {
      cwd: folder,
      env: { ...process.env, HEDDLE_CACHE: cache, SETTING: 'one', ...env },
    })
    let out = ''
    let err = ''
    child.stdout.on('data', (text: Buffer) => {
      const isNews = interruptOn !== undefined && !out.includes(interruptOn)
      out += text
      if (isNews && out.includes(interruptOn)) child.kill('SIGINT')
    })
    child.stderr.on('data', (text: Buffer) => void (err += text))
    child.on('close', code => resolve({ out, err, code }))
  })
}

/** The names of the checks that were remembered, and of those that were explored. */
async function run(
  args: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<{ remembered: string[]; explored: string[] }> {
  const { out, err } = await heddleCheck([checks, '--json', ...args], env)
  const lines = out
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as Line)
  expect(lines.length, err).toBe(Object.keys(files).length)
  const named = (isRemembered: boolean): string[] =>
    lines
      .filter(({ remembered }) => (remembered === true) === isRemembered)
      .map(({ name }) => name)
      .sort()
  return { remembered: named(true), explored: named(false) }
}

const adds = (name: string, options = '{}', before = ''): string => `
  import { check } from '${copy}/src/checker/check.ts'
  ${before}
  check('${name}', ${options}, () => {
    const memory = new Int32Array(new SharedArrayBuffer(8))
    const add = () => { Atomics.add(memory, 0, 1) }
    return { threads: [add, add, () => { add(); add() }] }
  })\n`

const BOUNDED = "{ explorer: 'preemption-bounded', preemptions: 0, allowIncomplete: true }"

const files: Record<string, string> = {
  same: adds('same', '{}', "import './sameimport.ts'"),
  deep: adds('deep', '{}', "import './deepimport.ts'"),
  damaged: adds('damaged'),
  bounded: adds('bounded', BOUNDED),
  cut: adds('cut', '{ time: 100_000, executions: 2, allowIncomplete: true }'),
  setting: adds('setting', '{}', 'if (process.env.SETTING === undefined) throw new Error()'),
  reads: adds('reads', '{}', "import { existsSync } from 'node:fs'\nexistsSync('/')"),
  loads: adds('loads', '{}', "import { createRequire } from 'node:module'").replace(
    'const memory',
    "createRequire(import.meta.url)('./late.cjs'); const memory",
  ),
  fails: adds('fails').replace('threads:', "final: () => { throw new Error('wrong') }, threads:"),
}

/** The checks that are remembered when nothing has changed. The others must not be. */
const kept = ['bounded', 'damaged', 'deep', 'same', 'setting']

test('remembers an explored check until something changes that it reaches', async () => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(checks, `${name}.check.ts`), text)
  for (const name of ['same', 'deep']) {
    writeFileSync(join(checks, `${name}import.ts`), `import './${name}leaf.ts'\n`)
    writeFileSync(join(checks, `${name}leaf.ts`), 'export const leaf = 1\n')
  }
  writeFileSync(join(checks, 'late.cjs'), '')
  const all = Object.keys(files).sort()
  expect(await run(['--jobs', '2'])).toEqual({ remembered: [], explored: all })
  expect(await run()).toEqual({
    remembered: kept,
    explored: all.filter(name => !kept.includes(name)),
  })

  appendFileSync(join(checks, 'deepleaf.ts'), '// changed\n')
  damage('damaged')
  const changed = await run([], { SETTING: 'two' })
  expect(changed.remembered).toEqual(['bounded', 'same'])
  expect((await run(['--no-cache'])).remembered).toEqual([])
  expect((await run(['--turns', '15'])).remembered).toEqual([])
  appendFileSync(join(copy, 'src/checker/search/optimal.ts'), '// another checker\n')
  expect((await run()).remembered).toEqual([])
})

test('says how many results are remembered, and why a result is not', async () => {
  const { out } = await heddleCheck([join(checks, 'reads.check.ts'), join(checks, 'same.check.ts')])
  expect(out).toMatch(/✓ reads: .* is covered\n✓ same: .* is covered \(remembered\)\n/)
  expect(out).toContain('2 checks: 2 passed, 0 failed, 1 of them remembered')
  expect(out).toContain('not remembered: checks/reads.check.ts: it imports node:fs')
})

test('remembers nothing of another time zone or language, or of code that Node loads before', async () => {
  const file = join(folder, 'zone.check.ts')
  writeFileSync(file, adds('zone'))
  writeFileSync(join(folder, 'before.mjs'), '')
  const env = { TZ: 'Asia/Tokyo', LANG: 'C', LC_ALL: '' }
  const before = { ...env, NODE_OPTIONS: `--import=${join(folder, 'before.mjs')}` }
  const isRemembered: boolean[] = []
  for (const other of [env, env, { ...env, TZ: 'UTC' }, { ...env, LC_ALL: 'de_DE.UTF-8' }, before, before]) {
    const { out } = await heddleCheck([file], other)
    expect(out).toContain('✓ zone')
    isRemembered.push(out.includes('(remembered)'))
    if (other === before) expect(out).toContain('not remembered: zone.check.ts: Node loads other code before')
  }
  expect(isRemembered).toEqual([false, true, false, false, false, false])
})

test('keeps only results that were finished before Ctrl-C', async () => {
  const long = adds('long', '{ rerun: false, allowIncomplete: true }').replace(
    '[add, add, ',
    '[() => { for (let i = 0; i < 20; i++) add() }, () => { for (let i = 0; i < 20; i++) add() }, ',
  )
  const both = join(folder, 'both.check.ts')
  writeFileSync(both, adds('short') + long.replace(/import .*/, ''))
  const { out, code } = await heddleCheck([both, '--jobs', '2'], {}, '✓ short')
  expect(code).toBe(130)
  expect(out).toMatch(/◐ long: .*it was interrupted/)
  const again = await heddleCheck([both, '--time', '1'])
  expect(again.out).toMatch(/✓ short: .*\(remembered\)\n◐ long: .*it was to stop after 1 ms\n/)
})

test.each([
  'void (async () => { throw new Error() })()',
  'void (async () => { await null; await null; throw new Error() })()',
  'void Promise.reject(new Error())',
])('keeps no result of a check that leaves a promise rejected: %s', async statement => {
  const file = join(folder, 'rejects.check.ts')
  writeFileSync(file, adds('rejects').replace('threads:', `final: () => { ${statement} }, threads:`))
  for (let turn = 0; turn < 2; turn++) {
    const { out, code } = await heddleCheck([file])
    expect(code).toBeGreaterThan(0)
    expect(out).not.toContain('✓')
  }
})

/** Changes one byte in the entry of a check. */
function damage(name: string): void {
  const entries = readdirSync(cache, { recursive: true, encoding: 'utf8' }).filter(file =>
    file.endsWith('.entry'),
  )
  const file = entries.find(entry => readFileSync(join(cache, entry), 'utf8').includes(`"name":"${name}"`))!
  const bytes = readFileSync(join(cache, file))
  bytes[bytes.length - 5]! ^= 1
  writeFileSync(join(cache, file), bytes)
}
