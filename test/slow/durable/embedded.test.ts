/** A process with an embedded database is killed, and the next one goes on. */
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Durable } from '../../../src/durable/index.ts'
import { sum } from '../../../testing/durable/runs.ts'

const program = join(import.meta.dirname, '../../../testing/durable/folderworker.ts')
const TURNS = 100_000
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'heddle-runs-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

interface Report {
  readonly epoch: number
  readonly progress?: { readonly turn: number } | null
  readonly result?: number
}

/** Runs the program until `isOver` says so of a report, and kills it then. Returns that report. */
async function runUntil(isOver: (report: Report) => boolean): Promise<Report> {
  const child = fork(program, [folder, String(TURNS)])
  const report = await new Promise<Report>((resolve, reject) => {
    child.on('message', (message: Report) => isOver(message) && resolve(message))
    child.once('exit', code => reject(new Error(`the program has ended with ${code}`)))
  })
  if (report.result === undefined) child.kill('SIGKILL')
  if (child.exitCode === null && child.signalCode === null)
    await new Promise(resolve => child.once('exit', resolve))
  return report
}

test('a killed process leaves its run to the next one, which goes on from the checkpoint', async () => {
  const first = await runUntil(({ progress }) => (progress?.turn ?? 0) > TURNS / 20)
  const second = await runUntil(({ epoch, progress }) => epoch === 2 && progress!.turn > first.progress!.turn)
  expect(second.epoch).toBe(2)
  const last = await runUntil(({ result }) => result !== undefined)
  expect(last).toMatchObject({ result: sum(TURNS), epoch: 3 })
}, 300_000)

test('a lock of an ended process that had the number of this one is stale, and an open folder is refused', async () => {
  writeFileSync(join(folder, 'heddle.lock'), String(process.pid))
  const durable = await Durable.open({ folder })
  await expect(Durable.open({ folder })).rejects.toMatchObject({ code: 'ERR_HEDDLE_DATABASE_BUSY' })
  await durable.close()
  await (await Durable.open({ folder })).close()
})

test('a folder that is open in another process is refused, with its process number', async () => {
  const child = fork(program, [folder, String(TURNS)])
  await new Promise(resolve => child.once('message', resolve))
  await expect(Durable.open({ folder })).rejects.toMatchObject({
    code: 'ERR_HEDDLE_DATABASE_BUSY',
    message: expect.stringContaining(`is open in process ${child.pid}`),
  })
  child.kill('SIGKILL')
  await new Promise(resolve => child.once('exit', resolve))
}, 300_000)

test('a lock file that its process has not written is stale after a while', async () => {
  writeFileSync(join(folder, 'heddle.lock'), '')
  await (await Durable.open({ folder })).close()
})
