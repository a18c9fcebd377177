import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CompileFlags, compileCommand, compileFile } from './compile.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-compile-'))
  await writeFile(
    join(folder, 'work.ts'),
    [
      'export function work(n: number): number {',
      "  'use task'",
      '  let t = 0',
      '  for (let i = 0; i < n; i++) t += i',
      '  const o = { get size() { let s = 0; while (s < n) s += work(1) + 1; return s } }',
      '  return n > 0 ? work(n - 1) + o.size : t',
      '}',
      'export function other(): void {}',
      '',
    ].join('\n'),
  )
  await writeFile(join(folder, 'plain.js'), 'export const a = 1\n')
  await writeFile(join(folder, 'broken.ts'), "export function f() {\n  'use task'\n  return +\n}\n")
})
afterAll(() => rm(folder, { recursive: true, force: true }))

function run(name: string, flags: CompileFlags = {}): { out: string; err: string; code: number } {
  let out = ''
  let err = ''
  const code = compileFile(join(folder, name), flags, {
    out: text => void (out += text),
    err: text => void (err += text),
  })
  return { out, err, code }
}

describe('heddle compile', () => {
  test('prints the module with its resumable forms, and keeps its types', () => {
    const { out, code } = run('work.ts')
    expect(code).toBe(0)
    expect(out).toContain('function work(n: number')
    expect(out).toMatch(/\bsave as /)
    expect(out).toContain('from "heddle/runtime"')
  })

  test('says with --movable --stats which functions can move, and why others cannot', async () => {
    await writeFile(
      join(folder, 'moves.ts'),
      [
        "'use task movable'",
        'export function sum(rows: number[]): number {',
        '  let total = 0',
        '  for (const row of rows) total += row',
        '  return total',
        '}',
        'export function* walk(rows: number[]) {',
        '  for (const row of rows) yield sum([row])',
        '}',
        '',
      ].join('\n'),
    )
    const { out } = run('moves.ts', { stats: true })
    expect(out).toMatch(/^2 {2}sum .*; it can move$/m)
    expect(out).toMatch(/^7 {2}walk .*; it cannot move, because it is a generator/m)
    expect(run('work.ts', { stats: true }).out).not.toContain('move')
    expect(run('work.ts', { stats: true, movable: true }).out).toMatch(/^1 {2}work .*; it can move$/m)
  })

  test('prints generators with --lowering generator', () => {
    const { out } = run('work.ts', { lowering: 'generator' })
    expect(out).toContain('work(n: number): number')
    expect(out).toContain('function*')
  })

  test('lists with --stats which functions have a twin, which stay plain, and why', () => {
    const { out, code } = run('work.ts', { stats: true })
    expect(code).toBe(0)
    expect(out).toMatch(/^\s*1 {2}work\b.* twin/m)
    expect(out).toMatch(/^\s*5 .* plain {2}\S/m)
    expect(out).toMatch(/\d+ with a twin, \d+ plain\n$/)
  })

  test('warns on the error stream about functions that stay plain, with their lines', () => {
    expect(run('work.ts').err).toMatch(/warning: .*\n.*work\.ts:5:\d+\n/)
  })

  test('prints one JSON object with --json', () => {
    const { stats, diagnostics, code } = JSON.parse(run('work.ts', { json: true }).out)
    expect(code).toMatch(/\bsave as /)
    expect(stats).toContainEqual(expect.objectContaining({ name: 'work', line: 1, form: 'twin' }))
    expect(diagnostics).toContainEqual(expect.objectContaining({ severity: 'warning', line: 5 }))
    expect(JSON.parse(run('work.ts', { json: true, stats: true }).out)).not.toHaveProperty('code')
  })

  test('compiles for the checker', () => {
    expect(run('work.ts', { mode: 'checker' }).out).toContain('from "heddle/checker/runtime"')
  })

  test('prints a module without marks unchanged, and says so', () => {
    const { out, err, code } = run('plain.js')
    expect({ out, code }).toEqual({ out: 'export const a = 1\n', code: 0 })
    expect(err).toContain('nothing in')
  })

  test('fails on a syntax error, and shows its lines but no stack', () => {
    const { out, err, code } = run('broken.ts')
    expect({ out, code }).toEqual({ out: '', code: 1 })
    expect(err).toContain('broken.ts:')
    expect(err).toContain('return +')
    expect(err).not.toMatch(/^\s+at /m)
    expect(JSON.parse(run('broken.ts', { json: true }).out).diagnostics[0]).toMatchObject({
      severity: 'error',
    })
    expect(run('broken.ts', { json: true }).code).toBe(1)
  })

  test('answers a bad path in one line with a hint', () => {
    for (const name of ['missing.ts', '.', 'plain.js/x']) {
      const { out, err, code } = run(name)
      expect({ out, code }).toEqual({ out: '', code: 2 })
      expect(err).toMatch(/^heddle compile: .* \(.*\)\n$/)
    }
  })

  test('is a command with a file, --stats, --movable, --json, --mode and --lowering', async () => {
    const command = compileCommand()
      .exitOverride()
      .configureOutput({ writeErr() {} })
    expect(command.name()).toBe('compile')
    expect(command.options.map(({ long }) => long)).toEqual([
      '--whole',
      '--stats',
      '--movable',
      '--json',
      '--mode',
      '--lowering',
    ])
    await expect(command.parseAsync(['x.ts', '--mode', 'nonsense'], { from: 'user' })).rejects.toThrow(
      /task, checker/,
    )
  })
})
