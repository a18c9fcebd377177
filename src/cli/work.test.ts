import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Ended, heddle, heddleEnds, jsonLines, Started } from '../../testing/cli/command.ts'
import { counted } from '../../testing/cli/fixtures/durable/work.ts'
import { type Postgres, startPostgres } from '../../testing/durable/postgres.ts'

const fixtures = resolve(import.meta.dirname, '../../testing/cli/fixtures/durable')
const workFile = join(fixtures, 'work.ts')

let folder: string
let postgres: Postgres
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'heddle-work-'))
  postgres = await startPostgres()
})
afterAll(async () => {
  await postgres.close()
  rmSync(folder, { recursive: true, force: true })
})

type Run = readonly [name: string, args: readonly unknown[], options?: object]

/** Starts runs in a process that ends then. */
async function start(place: string, runs: readonly Run[]): Promise<void> {
  const list = JSON.stringify(runs.map(([name, args, options = {}]) => [name, args, options]))
  const { code, err } = await new Started([join(fixtures, 'start.ts'), place, list]).ended
  expect(err).toBe('')
  expect(code).toBe(0)
}

const at = (place: string): string[] =>
  place.startsWith('postgres:') ? ['--database', place] : ['--folder', place]

function work(place: string, ...args: string[]): Started {
  return heddle(['work', ...at(place), '--import', workFile, '--cpus', '1', '--json', ...args])
}

async function runs(place: string, ...args: string[]): Promise<any> {
  const [command, ...rest] = args
  const words = command?.startsWith('-') ? ['runs', ...args] : ['runs', command!, ...rest]
  const { out, err, code } = await heddleEnds([...words, ...at(place), '--json'])
  expect(err).toBe('')
  expect(code).toBe(0)
  return JSON.parse(out)
}

/** The turns that a run of `count` has logged. */
function turnsIn(log: string): number[] {
  return existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1).map(Number) : []
}

/** Resolves when the log has `more` lines more than now. */
async function logged(log: string, more: number): Promise<void> {
  const before = turnsIn(log).length
  while (turnsIn(log).length < before + more) await new Promise(done => setTimeout(done, 20))
}

const hasEvent =
  (event: string, run: string) =>
  (out: string): boolean =>
    jsonLines(out.slice(0, out.lastIndexOf('\n') + 1)).some(line => line.event === event && line.run === run)

function eventsOf({ out }: Ended, run: string): string[] {
  return jsonLines(out)
    .filter(line => line.run === run)
    .map(line => line.event as string)
}

describe.each(['an embedded database', 'PostgreSQL'])('heddle work on %s', kind => {
  const name = kind === 'PostgreSQL' ? 'postgres' : 'embedded'
  const place = (): string => (kind === 'PostgreSQL' ? postgres.url : join(folder, 'runs'))

  it('goes on where a worker was that got SIGTERM', async () => {
    const log = join(folder, `${name}.log`)
    const gate = join(folder, `${name}.gate`)
    await start(place(), [['count', [log, gate], { id: 'count-1', checkpoint: 100 }]])
    const first = work(place())
    await logged(log, 3)
    const released = await first.end('SIGTERM')
    expect(released).toMatchObject({ code: 0, err: '' })
    expect(eventsOf(released, 'count-1')).toEqual(['claimed', 'released'])
    expect(jsonLines(released.out)[0]).toMatchObject({
      event: 'begun',
      cpus: 1,
      concurrency: 1,
      queues: ['default'],
    })
    expect(jsonLines(released.out).at(-1)).toMatchObject({ event: 'ended', released: ['count-1'] })
    const between = await runs(place(), 'show', 'count-1')
    expect(between).toMatchObject({ state: 'queued', attempts: 1, failures: 0, worker: null })
    expect(between.checkpoint.bytes).toBeGreaterThan(0)
    expect(between.progress).toEqual(expect.any(Number))

    const second = work(place())
    await logged(log, 2)
    const before = turnsIn(log)
    // Nothing is done twice: the state is that of the moment of the release.
    expect(before).toEqual([...new Set(before)].sort((a, b) => a - b))

    // The run goes on from the state of the first worker, or a newer one, when the second is killed.
    if (kind !== 'PostgreSQL') {
      expect((await second.end('SIGKILL')).signal).toBe('SIGKILL')
    } else {
      expect((await second.end('SIGINT')).code).toBe(0)
    }
    // An embedded database waits for no lease: this one would not lapse in the time of the test.
    const third = work(place(), '--lease', '3600')
    await third.until(hasEvent('claimed', 'count-1'))
    await logged(log, 1)
    writeFileSync(gate, '')
    await third.until(hasEvent('completed', 'count-1'))
    const ended = await third.end('SIGTERM')
    expect(ended).toMatchObject({ code: 0, err: '' })
    const turns = turnsIn(log)
    expect(turns.filter(turn => turn === 0)).toHaveLength(1)
    const last = turns.at(-1)!
    const done = await runs(place(), 'show', 'count-1')
    expect(done).toMatchObject({
      state: 'completed',
      attempts: 3,
      result: { turns: last, sum: counted(last) },
      error: null,
    })
    expect(done.history.map((event: { kind: string }) => event.kind)).toEqual(
      expect.arrayContaining(['queued', 'claimed', 'released', 'completed']),
    )
  })

  it('prints lines for people, and claims the best priority first', async () => {
    await start(place(), [
      ['fails', ['no luck\nat all'], { id: 'late', priority: 'low', queue: 'lines' }],
      ['fails', ['no luck'], { id: 'soon', priority: 'high', queue: 'lines' }],
    ])
    const args = ['work', ...at(place()), '--import', workFile, '--cpus', '1', '--queue', 'lines']
    const worker = heddle([...args, '--name', 'desk'])
    await worker.until(out => out.includes('late (fails): failed'))
    const { out, err, code } = await worker.end('SIGINT')
    expect(err).toBe('')
    expect(code).toBe(0)
    const lines = out.trimEnd().split('\n')
    expect(lines[0]).toMatch(/^desk works with 1 CPU and 6 functions for the queue lines of /)
    expect(lines[0]).not.toContain('heddle@')
    expect(lines.slice(1)).toEqual([
      'soon (fails): begins',
      'soon (fails): failed: TypeError: no luck',
      'late (fails): begins',
      'late (fails): failed: TypeError: no luck at all',
      'SIGINT: ends; stores the states of 0 runs',
      'no run had to be released; 2 failed',
    ])
  })

  it('releases a run whose state cannot be written, and ends at once by a second SIGINT', async () => {
    const log = join(folder, `${name}.blocked`)
    await start(place(), [['blocked', [log, 120_000], { id: 'blocked-1', queue: 'slow' }]])
    const first = work(place(), '--queue', 'slow', '--grace', '300')
    while (!existsSync(log))
      await first.until(() => true).then(() => new Promise(done => setTimeout(done, 20)))
    const released = await first.end('SIGTERM')
    expect(released.code).toBe(0)
    expect(jsonLines(released.out).at(-1)).toMatchObject({ event: 'ended', released: ['blocked-1'] })
    expect(await runs(place(), 'show', 'blocked-1')).toMatchObject({ state: 'queued', failures: 0 })

    const second = work(place(), '--queue', 'slow', '--grace', '100000')
    await second.until(hasEvent('claimed', 'blocked-1'))
    second.child.kill('SIGINT')
    await second.until(out => out.includes('"draining"'))
    const ended = await second.end('SIGINT')
    expect(ended.code).toBe(130)
    expect(ended.err).toMatch(/^heddle work: ended at once; its runs go on when their leases have lapsed$/m)
  })
})

describe('heddle work', () => {
  // pg-boss has a package 'pg' of its own, wherever an installer puts it.
  const noPackage = (name: string): NodeJS.ProcessEnv => ({
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(
      `import{registerHooks}from'node:module';registerHooks({resolve(s,c,n){if(s==='${name}'&&!c.parentURL?.includes('pg-boss'))throw new Error('no package');return n(s,c)}})`,
    )}`,
  })

  it.each<[title: string, args: string[], code: number, err: RegExp, env?: NodeJS.ProcessEnv]>([
    ['no module', [], 2, /no module is named \(.*--import work\.ts\)/],
    [
      'a module that is not there',
      ['--import', 'nowhere.ts'],
      2,
      /no file nowhere\.ts \(the path is relative to /,
    ],
    ['a folder', ['--import', fixtures], 2, /is a folder \(name one file in it\)/],
    [
      'two databases',
      ['--import', workFile, '--database', 'postgres://x', '--folder', 'x'],
      2,
      /exclude each other/,
    ],
    [
      'another URL',
      ['--import', workFile, '--database', 'mysql://x'],
      2,
      /--database is not the URL of a PostgreSQL/,
    ],
    [
      'another URL in the environment',
      ['--import', workFile],
      2,
      /DATABASE_URL is not the URL of a PostgreSQL server \(.*--folder/,
      { DATABASE_URL: 'mysql://x' },
    ],
    ['a wrong number', ['--import', workFile, '--concurrency', '0'], 2, /give a number from 1 to 10000/],
    ['a short lease', ['--import', workFile, '--lease', '9'], 2, /seconds from 10 to 3600/],
    ['a wrong queue', ['--import', workFile, '--queue', 'a b'], 2, /letters, digits, dots/],
  ])('says what is wrong: %s', async (_, args, code, err, env) => {
    const ended = await heddleEnds(['work', ...args], env)
    expect(ended.err).toMatch(err)
    expect(ended).toMatchObject({ code, out: '' })
  })

  it('says what is wrong with a module', async () => {
    const nothing = join(fixtures, 'nothing.ts')
    const none = await heddleEnds(['work', '--import', nothing, '--folder', join(folder, 'none')])
    expect(none).toMatchObject({ code: 2, out: '' })
    expect(none.err).toMatch(/nothing\.ts: it exports no function \(export the functions of the runs/)
    const broken = join(folder, 'broken.ts')
    writeFileSync(broken, "import './nowhere.ts'\nexport function f() {}\n")
    const failed = await heddleEnds(['work', '--import', broken, '--folder', join(folder, 'none'), '--json'])
    expect(failed).toMatchObject({ code: 1, out: '' })
    expect(JSON.parse(failed.err)).toMatchObject({ command: 'work', exitCode: 1 })
    expect(JSON.parse(failed.err).error).toMatch(/broken\.ts: .*nowhere\.ts/)
    // No database was made for it.
    expect(existsSync(join(folder, 'none'))).toBe(false)
  })

  it('warns of a module whose functions have no state that can be written', async () => {
    const worker = heddle(['work', '--folder', join(folder, 'fixed'), '--import', join(fixtures, 'fixed.ts')])
    await worker.until(out => out.includes('works with'))
    const { code, err } = await worker.end('SIGTERM')
    expect(code).toBe(0)
    expect(err).toMatch(
      /^heddle work: no function of .*fixed\.ts has a state that can be written, .*checkpoint: false/,
    )
  })

  it('says which package is missing', async () => {
    const pg = await heddleEnds(['work', '--import', workFile, '--database', postgres.url], noPackage('pg'))
    expect(pg).toMatchObject({ code: 1, out: '' })
    expect(pg.err).toMatch(/needs the package 'pg'; run npm install pg/)
    const boss = ['work', '--import', workFile, '--folder', join(folder, 'missing')]
    const missing = await heddleEnds(boss, noPackage('pg-boss'))
    expect(missing).toMatchObject({ code: 1, out: '' })
    expect(missing.err).toMatch(/needs the package 'pg-boss'; run npm install pg-boss/)
  })

  it('says that the server does not answer, without the password', async () => {
    const url = 'postgres://ann:secret@127.0.0.1:1/runs'
    const { err, code, out } = await heddleEnds(['work', '--import', workFile], { DATABASE_URL: url })
    expect(err).toMatch(
      /cannot use postgres:\/\/ann@127\.0\.0\.1:1\/runs: .*ECONNREFUSED.*\(no server listens there/,
    )
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).not.toContain('secret')
  })

  it('says which process has the folder', async () => {
    const busy = join(folder, 'busy')
    const args = ['work', '--folder', busy, '--import', workFile]
    const worker = heddle(args)
    await worker.until(out => out.includes('works with'))
    const second = await heddleEnds(args)
    expect(second).toMatchObject({ code: 1, out: '' })
    expect(second.err).toMatch(`is open in process ${worker.child.pid} (an embedded database belongs to one`)
    expect((await worker.end('SIGTERM')).code).toBe(0)
  })
})
