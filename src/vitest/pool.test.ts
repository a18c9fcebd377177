import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { heddlePool } from './index.ts'

const folder = fileURLToPath(new URL('../../testing/vitest/fixtures/loops/', import.meta.url))
const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))

interface Result {
  readonly name: string
  readonly message: string
  readonly assertionResults: readonly { title: string; status: string; failureMessages: readonly string[] }[]
}

/** Runs the fixture as a separate project. */
async function run(): Promise<{ exit: number | null; output: string; results: readonly Result[] }> {
  const scratch = mkdtempSync(join(tmpdir(), 'heddle-vitest-'))
  onTestFinished(() => rmSync(scratch, { recursive: true }))
  const report = join(scratch, 'report.json')
  const config = join(folder, 'vitest.config.ts')
  const args = [
    vitest,
    'run',
    '--config',
    config,
    '--reporter=json',
    '--reporter=dot',
    `--outputFile=${report}`,
  ]
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST')))
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  }
  const exit = await new Promise<number | null>(resolve => child.on('close', resolve))
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as { testResults: readonly Result[] }
  return { exit, output, results: testResults }
}

/** The number of the fixture's first line that contains this text. */
function lineOf(file: string, text: string): number {
  return (
    readFileSync(join(folder, file), 'utf8')
      .split('\n')
      .findIndex(line => line.includes(text)) + 1
  )
}

test('a test, a hook and an import that loop for ever fail at their timeouts, and all others run', async () => {
  const { exit, output, results } = await run()
  expect(output).not.toMatch(/Unhandled/)
  expect(exit).toBe(1)
  const statuses: Record<string, string> = {}
  const failures: Record<string, string> = {}
  for (const { name, message, assertionResults } of results) {
    failures[name.slice(folder.length)] = message
    for (const { title, status, failureMessages } of assertionResults) {
      statuses[title] = status
      failures[title] = failureMessages.join('\n')
    }
  }
  expect(statuses).toEqual({
    'a loop in the body of a test': 'failed',
    'the next test of the file runs, in the same module': 'passed',
    'a loop after an await': 'failed',
    'a loop of microtasks': 'failed',
    'a loop in a timer': 'failed',
    'a loop under faked timers': 'failed',
    'timers are put back': 'passed',
    'a long regular expression': 'failed',
    'one that only waits times out as ever': 'failed',
    'its own longer timeout counts': 'passed',
    'a failure that is expected': 'passed',
    'a second try may pass': 'passed',
    'one that waits passes': 'passed',
    'one that loops fails': 'failed',
    'another that waits passes': 'passed',
    'a call of the operating system that returns when the debugger has asked for long': 'failed',
    'the test after it runs, and its thread is not stopped': 'passed',
    'this one fails': 'failed',
    'this one does not run': 'skipped',
    'this one runs': 'passed',
    'a loop in compiled code': 'failed',
    'a loop in compiled code after an await': 'failed',
    'compiled code that catches everything': 'failed',
    'another file runs': 'passed',
  })
  const loop = (file: string): RegExp => {
    const last = lineOf(file, 'the line of the loop')
    return new RegExp(`timed out in \\d+ms[^]*at [^\\n]*${file}:(?:${last - 1}|${last}):`)
  }
  for (const title of [
    'a loop in the body of a test',
    'a loop after an await',
    'a loop in a timer',
    'a loop under faked timers',
    'one that loops fails',
  ]) {
    expect(failures[title]).toMatch(loop('tests.loop.ts'))
    expect(failures[title]).toMatch(/ended where it stood/)
  }
  for (const title of ['a loop in compiled code', 'a loop in compiled code after an await']) {
    expect(failures[title]).toMatch(loop('compiled.loop.ts'))
    expect(failures[title]).toMatch(/was interrupted/)
  }
  expect(failures['compiled code that catches everything']).toMatch(/ended where it stood/)
  expect(failures['this one fails']).toMatch(loop('hooks.loop.ts'))
  expect(failures['import.loop.ts']).toMatch(/The import of .*import\.loop\.ts timed out in 500ms/)
  // Its hook after all tests shows that the `finally` of compiled code ran.
  expect(failures['compiled.loop.ts']).toBe('')
  expect(failures['one that only waits times out as ever']).toMatch(
    /pass a timeout value as the last argument/,
  )
})

test('an option that does not exist is an error', () => {
  expect(() => heddlePool({ importTimout: 1 } as never)).toThrow('did you mean importTimeout?')
  expect(() => heddlePool({ importTimeout: -1 })).toThrow('importTimeout')
})
