import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const folder = mkdtempSync(join(tmpdir(), 'heddle-runners-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/**
 * A test file as users write it, for either runner: one check that passes, one that fails, one that is
 * incomplete.
 */
function testFile(runner: string): string {
  return `
    import { test } from '${runner}'
    import { check } from '${root}/src/checker/check.ts'
    import { Counter } from './counter.ts'
    test('atomic', () => {
      check('atomic', {}, () => {
        const counter = new Counter()
        return {
          threads: [() => counter.addAtomically(), () => counter.addAtomically()],
          final: () => { if (counter.value !== 2) throw new Error('lost') },
        }
      })
    })
    test('asynchronous', async () => {
      await check.async('asynchronous', ({ io }) => ({ tasks: [() => io('one'), () => io('two')] }))
    })
    test('a lost update', async () => {
      await check.async('a lost update', ({ io }) => {
        let value = 0
        const add = async () => {
          const seen = await io('read', () => value)
          await io('write', () => { value = seen + 1 })
        }
        return { tasks: { ann: add, bob: add }, final: () => { if (value !== 2) throw new Error('it is ' + value) } }
      })
    })
    test('bounded', () => {
      check('bounded', { executions: 1 }, () => {
        const counter = new Counter()
        return { threads: [() => counter.addAtomically(), () => counter.addAtomically()] }
      })
    })
    test('plain', () => {
      check('plain', { races: false }, () => {
        const counter = new Counter()
        return {
          threads: [() => counter.add(), () => counter.add()],
          final: () => { if (counter.value !== 2) throw new Error('lost') },
        }
      })
    })
  `
}

beforeAll(() => {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(
    join(folder, 'counter.ts'),
    `export class Counter {
      words: Int32Array = new Int32Array(new SharedArrayBuffer(4))
      add(): void { this.words[0] = this.words[0] + 1 }
      addAtomically(): void { Atomics.add(this.words, 0, 1) }
      get value(): number { return this.words[0] }
    }`,
  )
  writeFileSync(join(folder, 'node.test.ts'), testFile('node:test'))
  writeFileSync(join(folder, 'vitest.test.ts'), testFile('vitest'))
  writeFileSync(
    join(folder, 'vitest.config.ts'),
    `import { heddleChecker } from '${root}/src/checker/run/vite.ts'
     export default { plugins: [heddleChecker()], test: { include: ['vitest.test.ts'] } }`,
  )
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
})

function run(args: readonly string[]): Promise<{ text: string; code: number | null }> {
  return new Promise(resolve => {
    const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' }
    // The variables of the outer test runner would confuse the inner one.
    for (const name of Object.keys(env))
      if (/^VITEST|^NODE_TEST|^NODE_OPTIONS$|^VITE_/.test(name)) delete env[name]
    const child = spawn(process.execPath, args, { cwd: folder, env })
    let text = ''
    child.stdout.on('data', (data: Buffer) => void (text += data))
    child.stderr.on('data', (data: Buffer) => void (text += data))
    child.on('close', code => resolve({ text, code }))
  })
}

describe('check', () => {
  test('runs inside node:test, with the module that a test imports instrumented', async () => {
    const { text, code } = await run([
      '--import',
      `${root}/src/checker/run/register.ts`,
      '--test',
      'node.test.ts',
    ])
    expect(code).toBe(1)
    expect(text).toMatch(/pass 2\b/)
    expect(text).toMatch(/fail 3\b/)
    expect(text).toMatch(/CheckIncomplete: ◐ bounded: 1 execution/)
    expect(text).toContain('the final assertion failed: lost')
    expect(text).toContain('a lost update: the final assertion failed: it is 1')
    expect(text).toMatch(/calls read +│ +│ (?:node|vitest)\.test\.ts:\d+/)
    expect(text).toMatch(/read this\.words\[0\] → 0 .*│ counter\.ts:3/)
  })

  test('runs inside vitest, with its plugin', async () => {
    const { text, code } = await run([`${root}/node_modules/vitest/vitest.mjs`, 'run'])
    expect(code).toBe(1)
    expect(text).toContain('3 failed | 2 passed')
    expect(text).toMatch(/CheckIncomplete: ◐ bounded: 1 execution/)
    expect(text).toContain('the final assertion failed: lost')
    expect(text).toContain('a lost update: the final assertion failed: it is 1')
    expect(text).toMatch(/calls read +│ +│ (?:node|vitest)\.test\.ts:\d+/)
    expect(text).toMatch(/read this\.words\[0\] → 0 .*│ counter\.ts:3/)
  })

  test('says how to instrument a file that is not instrumented', async () => {
    const { text } = await run(['--test', 'node.test.ts'])
    expect(text).toContain('is not instrumented')
    expect(text).toContain('--import heddle/checker/register')
  })
})
