import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const example = fileURLToPath(new URL('./report-desk.ts', import.meta.url))

test('the report desk prints the figures of both ways to run it, and ends', async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [example])
  expect(stderr).toBe('')
  expect(stdout).toMatch(/^heddle on \d threads \(.+, Node v\d+\.\d+\.\d+\)$/m)
  const rows = [...stdout.matchAll(/^ {2}(\S.+?) {2,}([\d,.]+ (?:ms|µs each)) +([\d,.]+ (?:ms|µs each))/gm)]
  expect(rows.map(([, what]) => what)).toEqual([
    expect.stringMatching(/^\d reports, the last after$/),
    'half of the requests within',
    '99 of 100 requests within',
    '99 of 100 urgent ones within',
    '10,000 tasks that only add',
  ])
  expect(stdout.split('\n').length).toBeLessThan(20)
})
