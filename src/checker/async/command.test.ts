import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..', '..', '..')
const folder = mkdtempSync(join(tmpdir(), 'heddle-async-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
writeFileSync(
  join(folder, 'store.ts'),
  `export class Counter {
  value = 0
  async add(ask: () => Promise<void>): Promise<void> {
    const seen = this.value
    await ask()
    this.value = seen + 1
  }
}`,
)
writeFileSync(
  join(folder, 'all.check.ts'),
  `import { check } from '${root}/src/checker/check.ts'
import { Counter } from './store.ts'

check.async('lost', ({ io }) => {
  const counter = new Counter()
  const add = () => counter.add(() => io('ask'))
  return { tasks: { ann: add, bob: add }, final: () => { if (counter.value !== 2) throw new Error('it is ' + counter.value) } }
})
check.async('clocked', ({ io }) => ({ tasks: { ann: async () => { await io('ask'); return Date.now() } } }))
check.async('real', () => ({ tasks: { ann: () => fetch('http://127.0.0.1:1') } }))
`,
)

function heddle(...args: string[]): { text: string; code: number | null } {
  const command = [join(root, 'src', 'cli', 'main.ts'), 'check', 'all.check.ts', ...args]
  const ran = spawnSync(process.execPath, command, { cwd: folder, encoding: 'utf8' })
  return { text: ran.stdout + ran.stderr, code: ran.status }
}

describe('heddle check, of asynchronous code', () => {
  test('shows the order of a failure with the lines of the program, and replays it', () => {
    const { text, code } = heddle('--only', 'lost', '--timeline', 'timeline.json')
    expect(code).toBe(1)
    expect(text).toContain('✗ lost: the final assertion failed: it is 1')
    expect(text).toMatch(/│ calls ask +│ store\.ts:5/)
    expect(readFileSync(join(folder, 'timeline.json'), 'utf8')).toContain('calls ask')
    const schedule = /--replay '([^']+)'/.exec(text)?.[1] ?? ''
    const again = heddle('--only', 'lost', '--replay', schedule, '--json')
    expect(again.code).toBe(1)
    expect(JSON.parse(again.text)).toMatchObject({
      name: 'lost',
      executions: 1,
      failure: { kind: 'assertion', schedule },
    })
  })

  test('has its own exit codes for an incomplete check and for a wrong one', () => {
    const incomplete = heddle('--only', 'clocked')
    expect(incomplete.text).toContain('◐ clocked: ')
    expect(incomplete.code).toBe(3)
    const wrong = heddle('--only', 'real', '--parallel', '2')
    expect(wrong.text).toContain('[ERR_CHECK_UNCONTROLLED]')
    expect(wrong.code).toBe(2)
  })
})
