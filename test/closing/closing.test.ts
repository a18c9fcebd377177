import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { rows } from './rows.ts'

/**
 * `close({ deadline })` ends in every case, every task has an outcome, and nothing keeps the process alive.
 */

interface Closed {
  readonly way: string
  readonly ends: readonly string[]
  readonly told: readonly string[]
}

/** The limit for all rows. Not a measure of speed: it ends a kernel that does not close. */
const PATIENCE_MS = 240_000

const closed = new Map<string, Closed>()
let underWay = 'none'
let said = ''
let exitCode: number | null = null

beforeAll(async () => {
  const program = spawn(process.execPath, [new URL('./program.ts', import.meta.url).pathname], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PATIENCE_MS,
    killSignal: 'SIGKILL',
  })
  let rest = ''
  program.stdout.on('data', data => {
    const lines = (rest + String(data)).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      const { way, ends, told } = JSON.parse(line) as Closed
      underWay = ends === undefined ? way : 'none'
      if (ends !== undefined) closed.set(way, { way, ends, told })
    }
  })
  program.stderr.on('data', data => (said += String(data)))
  exitCode = await new Promise(resolve => program.once('close', resolve))
}, PATIENCE_MS + 10_000)

test.each(rows)('$way: the kernel closes', ({ way, ends = /TaskKilledError|CpuLostError/, told = [] }) => {
  const row = closed.get(way)
  expect(row, `the kernel that did not close: ${underWay}\n${said}`).toBeDefined()
  for (const end of row!.ends) expect(end).toMatch(ends)
  expect(row!.told).toEqual(told)
})

test('the process exits by itself when all of them have closed', () => {
  expect({ exitCode, underWay }, said).toEqual({ exitCode: 0, underWay: 'none' })
})

test('each way is a row of the table in the chapter on recovery', () => {
  const chapter = readFileSync(new URL('../../docs/recovery.md', import.meta.url), 'utf8')
  const listed = [...chapter.matchAll(/^\| ([^|]+) \| [^|]+ \|$/gm)].map(([, way]) => way)
  expect(listed).toEqual(expect.arrayContaining(rows.map(({ way }) => way)))
})
