import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { FileCoverage } from '../checker/report/coverage.ts'
import { heddleChecker } from '../checker/run/vite.ts'

const root = join(import.meta.dirname, '..', '..')
const folder = mkdtempSync(join(tmpdir(), 'heddle-coverage-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

// Every form that coverage counts. The tests below cite its line numbers.
const box = `export class Box {
  words = new Int32Array(new SharedArrayBuffer(8))
  put(value: number): boolean {
    if (Atomics.load(this.words, 0) === 1) return false
    this.words[1] = value
    Atomics.store(this.words, 0, 1)
    return true
  }
  take(): number | undefined {
    if (Atomics.load(this.words, 0) === 0) {
      return undefined
    } else {
      const value = this.words[1]!
      try {
        if (value === 5) Atomics.store(this.words, 0, 0)
      } catch {
        return 0
      }
      return value < 0 ? -value : value
    }
  }
  isBusy(): boolean {
    const full = Atomics.load(this.words, 0) === 1 || this.words[1]! > 5
    switch (Number(full)) {
      case 0: {
        return false
      }
      default:
        return true
    }
  }
  drain = (): number => this.take() ?? 0
}
`
const checks = `import { check } from '${root}/src/checker/check.ts'
import { Box } from './box.ts'
const setup = () => {
  const box = new Box()
  return { threads: { putter: () => box.put(5), taker: () => box.take() ?? 'empty' } }
}
`
writeFileSync(join(folder, 'box.ts'), box)
const checkFile = join(folder, 'box.check.ts')
writeFileSync(checkFile, `${checks}check('box', {}, setup)\n`)
const missing = join(folder, 'missing.check.ts')
writeFileSync(missing, `${checks}check('missing', { expectOutcomes: [[true, 5], [false, 5]] }, setup)\n`)

function heddleCheck(...args: string[]): { out: string; code: number | null } {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    [join(root, 'src/cli/main.ts'), 'check', ...args],
    {
      cwd: folder,
      encoding: 'utf8',
    },
  )
  return { out: stdout + stderr, code: status }
}

const unreached = [
  'box.ts: 10 of 16 lines, 5 of 13 branches',
  'lines not reached: 17, 23-32',
  'branch not taken: `if` at box.ts:4:44',
  'branch not taken: `else` at box.ts:15:9',
  'branch not taken: `catch` at box.ts:16:15',
  'branch not taken: the first value of ?: at box.ts:19:26',
  'branch not taken: the right side of || at box.ts:23:55',
  'branch not taken: `case` at box.ts:25:15',
  'branch not taken: `default` at box.ts:29:9',
  'branch not taken: the right side of ?? at box.ts:32:40',
]

test('--coverage prints the lines and branches that no execution reached, and the outcomes that were reached', () => {
  const { out, code } = heddleCheck('box.check.ts', '--coverage-file', 'box.info', '--parallel', '2')
  expect(out.split('\n').map(line => line.trim())).toEqual(expect.arrayContaining(unreached))
  expect(out).toMatch(/\[true, "empty"\] +1 execution/)
  expect(out).toMatch(/\[true, 5\] +1 execution/)
  expect(out).toContain('2 executions')
  expect(code).toBe(0)
  const lcov = readFileSync(join(folder, 'box.info'), 'utf8')
  expect(lcov).toContain(`SF:${join(folder, 'box.ts')}`)
  expect(lcov).toMatch(/^DA:17,0$/m)
  expect(lcov).toMatch(/^DA:5,[1-9]\d*$/m)
  expect(lcov).toMatch(/^BRDA:32,0,\d+,0$/m)
})

test('--json prints the coverage as a separate object, equal to the content of --coverage-file', () => {
  const { out } = heddleCheck('box.check.ts', '--json', '--coverage', '--coverage-file', 'box.json')
  const printed = JSON.parse(out.trim().split('\n').at(-1)!) as { coverage: FileCoverage[] }
  expect(printed.coverage).toEqual(JSON.parse(readFileSync(join(folder, 'box.json'), 'utf8')))
  expect(printed.coverage.map(({ file }) => file)).toEqual([checkFile, join(folder, 'box.ts')])
})

test('a check fails when no execution reaches an expected outcome, in parallel too', () => {
  for (const flags of [
    ['--parallel', '2'],
    ['--memory', 'weak'],
  ]) {
    const { out, code } = heddleCheck('missing.check.ts', ...flags)
    expect(out).toContain('an outcome that the check expects and no execution reaches: [false, 5]')
    expect(code).toBe(1)
  }
})

test('a program that the command does not run counts coverage with HEDDLE_COVERAGE', () => {
  const program = join(folder, 'program.check.ts')
  writeFileSync(
    program,
    `${checks}import { coverage, formatCoverage } from '${root}/src/checker/check.ts'
check('box', {}, setup)
console.log(formatCoverage(coverage()))
`,
  )
  const run = (env: Record<string, string>): string =>
    execFileSync(process.execPath, ['--import', join(root, 'src/checker/run/register.ts'), program], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, ...env },
    })
  expect(
    run({ HEDDLE_COVERAGE: '1' })
      .split('\n')
      .map(line => line.trim()),
  ).toEqual(expect.arrayContaining(unreached))
  expect(run({ HEDDLE_COVERAGE: '' })).not.toContain('box.ts')
})

test('the plugin counts coverage with its option', () => {
  const transformed = (coverage: boolean): string =>
    heddleChecker({ coverage }).transform(box, 'box.check.ts')!.code
  expect(transformed(true)).toContain('"default"')
  expect(transformed(false)).not.toContain('"default"')
})
