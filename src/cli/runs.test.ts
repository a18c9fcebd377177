import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Ended, heddle, heddleEnds, jsonLines, Started } from '../../testing/cli/command.ts'
import { type Postgres, startPostgres } from '../../testing/durable/postgres.ts'
import type { RunEvent, RunStatus } from '../durable/states.ts'
import { listText, showText } from './runs.ts'
import { databaseError, placeOf } from './runsdatabase.ts'
import { ageText, bytesText, jsonOf, noteOf, progressText, shareOf } from './runtexts.ts'
import { terminalOf } from './terminal.ts'

const fixtures = resolve(import.meta.dirname, '../../testing/cli/fixtures/durable')

let folder: string
let postgres: Postgres
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'heddle-runs-'))
  postgres = await startPostgres()
})
afterAll(async () => {
  await postgres.close()
  rmSync(folder, { recursive: true, force: true })
})

/** The commands, on one database. */
async function runs(place: string, ...args: string[]): Promise<Ended> {
  const at = place.startsWith('postgres:') ? ['--database', place] : ['--folder', place]
  return await heddleEnds(['runs', ...args, ...at])
}

async function json(place: string, ...args: string[]): Promise<any> {
  const { out, err, code } = await runs(place, ...args, '--json')
  expect(err).toBe('')
  expect(code).toBe(0)
  return JSON.parse(out)
}

async function refused(place: string, args: readonly string[], code: number, err: RegExp): Promise<void> {
  const ended = await runs(place, ...args)
  expect(ended.err).toMatch(err)
  expect(ended).toMatchObject({ code, out: '' })
}

describe.each(['an embedded database', 'PostgreSQL'])('heddle runs on %s', kind => {
  const place = (): string => (kind === 'PostgreSQL' ? postgres.url : join(folder, 'runs'))

  it('says that there are no runs, and makes no database', async () => {
    await refused(place(), [], 1, /has no durable runs \(a program makes them by Durable\.open/)
    await refused(place(), ['show', 'a'], 1, /has no durable runs/)
  })

  it('lists, shows, cancels, retries, sends to and exports runs', async () => {
    const list = JSON.stringify([
      ['fails', ['no luck'], { id: 'fails-1' }],
      ['approval', [], { id: 'approval-1' }],
      ['values', [], { id: 'values-1', priority: 'low', queue: 'other' }],
    ])
    const started = await new Started([join(fixtures, 'start.ts'), place(), list]).ended
    expect(started).toMatchObject({ code: 0, err: '' })

    const all = (await json(place())) as RunStatus[]
    expect(all.map(({ id }) => id).sort()).toEqual(['approval-1', 'fails-1', 'values-1'])
    expect(Object.keys(all[0]!).sort()).toEqual(
      `attempts blocked cancelling checkpoint createdAt endedAt epoch error failures function id module name
        priority progress queue retries startedAt state waitsFor wakesAt worker`
        .split(/\s+/)
        .sort(),
    )
    expect(await json(place(), '--queue', 'other', '--state', 'queued,failed')).toMatchObject([
      { id: 'values-1', priority: 'low', function: 'values', attempts: 0 },
    ])
    expect(await json(place(), 'cancel', 'values-1', '--reason', 'not now')).toEqual({
      id: 'values-1',
      state: 'cancelled',
      cancelling: false,
    })
    expect((await runs(place(), 'retry', 'values-1')).out).toBe('values-1: queued\n')
    expect(await json(place(), 'send', 'approval-1', 'approval', '{"by":"ann"}')).toEqual({
      id: 'approval-1',
      name: 'approval',
    })
    const at = place().startsWith('postgres:') ? ['--database', place()] : ['--folder', place()]
    const queues = ['--queue', 'default', '--queue', 'other', '--cpus', '1']
    const worker = heddle(['work', ...at, ...queues, '--import', join(fixtures, 'work.ts'), '--json'])
    await worker.until(
      out =>
        ['"failed"', '"completed"'].every(event => out.includes(event)) &&
        out.split('"completed"').length === 3,
    )
    expect((await worker.end('SIGTERM')).code).toBe(0)

    expect(await json(place(), 'show', 'approval-1')).toMatchObject({
      state: 'completed',
      args: [],
      result: 'approved by ann',
      checkpoint: null,
    })
    const failed = await json(place(), 'show', 'fails-1')
    expect(failed).toMatchObject({
      state: 'failed',
      attempts: 1,
      failures: 1,
      args: ['no luck'],
      error: { name: 'TypeError', message: 'no luck', stack: expect.stringContaining('work.ts') },
    })
    expect(failed.history.map(({ kind }: RunEvent) => kind)).toEqual(['queued', 'claimed', 'failed'])
    const shown = (await runs(place(), 'show', 'fails-1')).out
    expect(shown).toMatch(/^fails-1\n {2}state +failed\n {2}name +fails\n/)
    expect(shown).toMatch(/\n {2}error +TypeError: no luck\n/)
    expect(shown).toMatch(/\n {2,}at fails .*work\.ts/)

    const { out, code } = await runs(place(), 'export')
    expect(code).toBe(0)
    const lines = jsonLines(out)
    expect(lines.map(({ id }) => id)).toEqual(['approval-1', 'fails-1', 'values-1'])
    expect(lines[2]).toMatchObject({
      state: 'completed',
      result: { big: '100000000000000000000', map: [['a', 1]], bytes: 'AQID' },
    })
    expect(lines[2]!.history.map(({ kind }: RunEvent) => kind)).toEqual(
      expect.arrayContaining(['cancelled', 'claimed', 'completed']),
    )
  })
})

describe('heddle runs', () => {
  it('takes DATABASE_URL, and options before the subcommand', async () => {
    const shown = await heddleEnds(['runs', '--json', 'show', 'fails-1'], { DATABASE_URL: postgres.url })
    expect(JSON.parse(shown.out)).toMatchObject({ id: 'fails-1' })
  })

  it('filters a list, as text and as JSON', async () => {
    const { url } = postgres
    const text = (await runs(url, '--limit', '2')).out.split('\n')
    expect(text[0]).toMatch(/^ID +STATE +NAME +QUEUE +ATTEMPTS +CREATED +CHECKPOINT +NOTE$/)
    expect(text[3]).toBe('the newest 2; --limit shows more')
    expect(await json(url, '--limit', '1')).toHaveLength(1)
    expect(await json(url, '--state', 'failed')).toMatchObject([{ id: 'fails-1' }])
    expect(await json(url, '--state', 'queued')).toEqual([])
    expect(await json(url, 'list', '--state', 'failed', '--limit', '1')).toMatchObject([{ id: 'fails-1' }])
    expect(await json(url, '--queue', 'other', 'list')).toEqual(await json(url, 'list', '--queue', 'other'))
    expect((await runs(url, '--state', 'queued', '--queue', 'a')).out).toBe(
      'no runs in state queued, queue a\n',
    )
  })

  it('refuses what a run cannot do, and runs that are not there', async () => {
    const { url } = postgres
    await refused(url, ['cancel', 'fails-1'], 1, /run fails-1 has ended: failed \(/)
    await refused(url, ['retry', 'approval-1'], 1, /run approval-1 is completed \(only a run that failed or/)
    await refused(
      url,
      ['send', 'approval-1', 'approval', '1'],
      1,
      /run approval-1 has completed, and receives no message \(/,
    )
    for (const command of [
      ['show', 'nowhere'],
      ['cancel', 'nowhere'],
      ['retry', 'nowhere'],
      ['send', 'nowhere', 'a', '1'],
    ])
      await refused(url, command, 1, /there is no run 'nowhere' in .*\(heddle runs lists them/)
  })

  it('shows a run whose row somebody has changed', async () => {
    const client = new pg.Client({ connectionString: postgres.url })
    await client.connect()
    await client.query(
      `update heddle.run set outcome = '\\x010203', name = E'a\\u001b[2Jb' where id = 'approval-1'`,
    )
    await client.end()
    const damaged = await json(postgres.url, 'show', 'approval-1')
    expect(damaged.result).toEqual({ unreadable: expect.any(String) })
    const { out, code } = await runs(postgres.url)
    expect(code).toBe(0)
    expect(out).toContain('a [2Jb')
    expect(out).not.toContain('\u001b[2J')
  })

  it('lists all runs where somebody has changed the times and errors of one', async () => {
    const client = new pg.Client({ connectionString: postgres.url })
    await client.connect()
    const at =
      "created_at = 'infinity', started_at = '-infinity', ended_at = 'infinity', image_at = 'infinity'"
    await client.query(
      `update heddle.run set ${at}, error = '{"name": 5, "stack": 7}', progress = '{"total": 0}' where id = 'fails-1'`,
    )
    await client.query(`update heddle.event set at = 'infinity', detail = '"text"' where run = 'fails-1'`)
    await client.end()
    for (const command of [[], ['show', 'fails-1'], ['export']]) {
      const { out, err, code } = await runs(postgres.url, ...command)
      expect(out).toContain('fails-1')
      expect({ err, code }).toEqual({ err: '', code: 0 })
    }
  })

  it('says why a database does not serve', async () => {
    const wrong = new URL(postgres.url)
    wrong.pathname = '/nowhere'
    await refused(wrong.href, [], 1, /cannot use .*: database "nowhere" does not exist \(create the database/)
    const stranger = new URL(postgres.url)
    stranger.password = 'secret'
    await refused(stranger.href, [], 1, /password authentication failed .*\(check user and password/)
    await refused(
      'postgres://ann@127.0.0.1:1/runs',
      ['export'],
      1,
      /heddle runs export: cannot use .*no server listens/,
    )
  })

  it.each<[args: string[], err: RegExp]>([
    [['sim-42'], /'sim-42' is not a command of heddle runs \(heddle runs show sim-42 shows a run/],
    [['--state', 'done'], /give states of queued, running/],
    [['--limit', '0'], /give a number from 1 to 100000/],
    [['show'], /missing required argument 'id'/],
    [['send', 'a', 'b', '{by:ann}'], /the message \{by:ann\} is not JSON: .*\(quote it for the shell/],
    [['--database', 'http://x'], /--database is not the URL/],
  ])('says what is wrong with %j', async (args, err) => {
    const ended = await heddleEnds(['runs', ...args])
    expect(ended.err).toMatch(err)
    expect(ended).toMatchObject({ code: 2, out: '' })
  })

  it('prints an error as JSON', async () => {
    const { err, code } = await heddleEnds([
      'runs',
      'show',
      'a',
      '--json',
      '--folder',
      join(folder, 'nowhere'),
    ])
    expect(code).toBe(1)
    expect(JSON.parse(err)).toMatchObject({ command: 'runs show', exitCode: 1 })
  })
})

describe('a run as text', () => {
  const plain = terminalOf({}, { LANG: 'C' })
  const at = new Date(2026, 0, 2, 3, 4, 5)
  const run: RunStatus = {
    id: 'sim-42',
    state: 'running',
    name: 'simulate',
    function: 'simulate',
    module: 'app/work.ts',
    queue: 'default',
    priority: 'normal',
    worker: 'desk',
    epoch: 2,
    attempts: 2,
    failures: 1,
    retries: 3,
    blocked: null,
    wakesAt: null,
    waitsFor: null,
    progress: { done: 1, total: 4 },
    checkpoint: { at, age: 90_000, bytes: 12_345, rawBytes: 2_500_000 },
    error: { name: 'TypeError', message: 'no\nluck', stack: 'TypeError: no\nluck\n    at work.ts:1:2' },
    cancelling: false,
    createdAt: at,
    startedAt: at,
    endedAt: null,
  }
  const event = (id: number, kind: RunEvent['kind'], detail: RunEvent['detail'] = null): RunEvent => ({
    id,
    at,
    kind,
    epoch: 1,
    detail,
  })

  it('is a row of a list', () => {
    const rows = listText([run, { ...run, id: 'b', blocked: 'no\ncode' }], plain, false)
    expect(rows[1]).toMatch(
      /^sim-42 +running +simulate +default +2 +2026-01-02 03:04:05 +12\.3 kB 1 min ago +25 %$/,
    )
    expect(rows[2]).toMatch(/blocked: no code$/)
    expect(listText([run], { ...plain, columns: 20 }, true)[1]).toHaveLength(20)
  })

  it('has its history, with the last of several checkpoints', () => {
    const history = [
      event(1, 'claimed', { worker: 'desk' }),
      event(2, 'checkpoint', { bytes: 1 }),
      event(3, 'checkpoint', { bytes: 2 }),
      event(4, 'error', { message: 'no luck', stack: 'at …' }),
    ]
    const lines = showText(run, { args: [1] }, history, plain)
    expect(lines).toContain('  checkpoint  1 min ago, 12.3 kB stored, 2.5 MB in memory')
    expect(lines).toContain('  error       TypeError: no luck')
    expect(lines).toContain('      at work.ts:1:2')
    expect(lines.slice(lines.indexOf('history') + 1).map(line => line.slice(23))).toEqual([
      'claimed    epoch 1  worker desk',
      'checkpoint epoch 1  bytes 2',
      'error      epoch 1  message no luck',
    ])
  })

  it('shows the progress of a run that goes on, and none of one that has ended', () => {
    const run = { blocked: null, cancelling: false, wakesAt: null, progress: 0.25 } as never
    const noteIn = (state: string): string => noteOf(Object.assign({ state }, run))
    expect(['running', 'queued', 'completed', 'cancelled'].map(noteIn)).toEqual(['25 %', '25 %', '', ''])
  })

  it('has a share where the progress has one', () => {
    expect([0.5, { done: 1, total: 4 }, { done: 5, total: 4 }, 'half', null, 2].map(shareOf)).toEqual([
      0.5,
      0.25,
      null,
      null,
      null,
      null,
    ])
    expect(progressText({ turn: 3 })).toBe('{"turn":3}')
    expect([5, 5000, 5e6].map(bytesText)).toEqual(['5 B', '5.0 kB', '5.0 MB'])
    expect([500, 90_000, 7.2e6, 1e9].map(ageText)).toEqual(['500 ms', '1 min', '2 h', '11 d'])
  })

  it('is JSON also where its values are not', () => {
    expect(jsonOf({ a: 1n, b: new Set([1]), c: new Float64Array([1, 2]), d: new RangeError('far') })).toEqual(
      {
        a: '1',
        b: [1],
        c: [1, 2],
        d: { name: 'RangeError', message: 'far' },
      },
    )
    expect(jsonOf(undefined)).toBeNull()
  })
})

describe('the database of a command', () => {
  it('is the option, then DATABASE_URL, then a folder', () => {
    const env = { DATABASE_URL: 'postgres://ann:secret@host/a?x=1' }
    expect(placeOf({}, env)).toEqual({ database: env.DATABASE_URL, text: 'postgres://ann@host/a' })
    expect(placeOf({ database: 'postgresql://host/b' }, env).database).toBe('postgresql://host/b')
    expect(placeOf({ folder: 'x' }, env)).toMatchObject({ folder: resolve('x') })
    expect(placeOf({}, { DATABASE_URL: '' })).toMatchObject({ folder: resolve('.heddle/runs') })
  })

  it('has errors with a fix', () => {
    const place = placeOf({ database: 'postgres://host/a' })
    const refusal = new AggregateError([Object.assign(new Error('connect ECONNREFUSED ::1:5432'))], '')
    expect(databaseError(place, Object.assign(refusal, { code: 'ECONNREFUSED' })).line('work')).toBe(
      'heddle work: cannot use postgres://host/a: connect ECONNREFUSED ::1:5432 (no server listens there; start it, or check host and port)\n',
    )
    const old = new Error('heddle/durable: its queue, pg-boss, needs Node 22.12 or later')
    expect(databaseError(place, old)).toMatchObject({ message: old.message, exitCode: 1 })
    expect(databaseError(place, new RangeError('lease: 3 is not'))).toMatchObject({ exitCode: 2 })
  })
})
