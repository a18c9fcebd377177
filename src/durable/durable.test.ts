/** Durable runs, on the embedded database and on a real PostgreSQL. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Kernel } from '../kernel/boot/kernel.ts'
import { type Postgres, startPostgres } from '../../testing/durable/postgres.ts'
import { sum } from '../../testing/durable/runs.ts'
import type * as Work from '../../testing/durable/runs.ts'
import type { Run, StartedRun } from './run.ts'
import { openPostgres } from './database/node-postgres.ts'
import { migrate } from './database/schema.ts'
import { withTraceContext } from '../kernel/cpu/context.ts'
import { imageToBytes } from '../payload/imagebytes.ts'
import {
  Durable,
  type DurableOptions,
  once,
  progress,
  receive,
  type RunState,
  runsText,
  runTelemetry,
  sleep,
} from './index.ts'

const url = new URL('../../testing/durable/runs.ts', import.meta.url)
type Runs = Awaited<ReturnType<typeof importRuns>>
const importRuns = (kernel: Kernel) => kernel.import<typeof Work>(url)

let postgres: Postgres
let kernel: Kernel
let work: Runs

beforeAll(async () => {
  postgres = await startPostgres()
  kernel = await Kernel.boot({ cpus: 2, control: false })
  work = await importRuns(kernel)
}, 60_000)

afterAll(async () => {
  await kernel.close()
  await postgres.close()
})

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise(resolve => setTimeout(resolve, 5))
}

async function inState(run: StartedRun, state: RunState): Promise<void> {
  await until(async () => (await run.status()).state === state)
}

async function kindsOf(run: StartedRun): Promise<string[]> {
  const kinds: string[] = []
  for await (const { kind } of run.events()) kinds.push(kind)
  return kinds
}

/** The kinds of the events of a run that goes on. */
async function kindsBefore(durable: Durable, id: string): Promise<string[]> {
  return (await durable.store.reads.eventsOf(id, 0)).map(({ kind }) => kind as string)
}

/** The rejection of a run. */
function failureOf(run: StartedRun<any> | Run<any>): Promise<any> {
  return run.result().then(
    () => expect.unreachable('the run completed'),
    (error: unknown) => error,
  )
}

/** A run that sleeps for an hour goes on now. */
async function wakeNow(durable: Durable, id: string): Promise<void> {
  const { database } = durable.store
  await database.query('update heddle.journal set deadline = now() where run = $1', [id])
  await wakeJob(durable, id)
}

/** A run that is tried again later is tried now. */
async function wakeJob(durable: Durable, id: string): Promise<void> {
  const job = '(select job from heddle.run where id = $1)'
  await durable.store.database.query(`update heddle_boss.job set start_after = now() where id = ${job}`, [id])
}

const HOUR = 3_600_000

describe.each(['embedded', 'postgres'] as const)('on a database that is %s', kind => {
  let durable: Durable
  const warnings: string[] = []

  async function open(options: DurableOptions = {}): Promise<Durable> {
    const where = kind === 'postgres' ? { database: postgres.url } : { folder: 'memory://' }
    const opened = await Durable.open({ ...where, patience: 200, poll: 100, ...options })
    opened.onWarning(({ message }) => warnings.push(message))
    return opened
  }

  beforeAll(async () => {
    durable = await open({ kernel })
  }, 60_000)

  afterAll(async () => await durable.close())

  afterEach(() => {
    warnings.length = 0
  })

  test('start resolves with the run, and awaiting the run gives the result', async () => {
    const run = await durable.start(work.sum, [50])
    expect(run.id).toMatch(/^[\da-f-]{36}$/)
    expect(await (run as Run<number>)).toBe(sum(50))
    expect(await run.result()).toBe(sum(50))
    expect(await durable.run(run.id)).toBe(sum(50))
    expect(await run.status()).toMatchObject({ state: 'completed', attempts: 1, failures: 0, worker: null })
  })

  test('the same id is the same run, and for another function an error', async () => {
    const [first, second] = await Promise.all([
      durable.start(work.sum, [40], { id: `${kind}-same` }),
      durable.start(work.sum, [41], { id: `${kind}-same` }),
    ])
    expect(await second.result()).toBe(await first.result())
    expect((await first.status()).attempts).toBe(1)
    await expect(durable.start(work.slept, [1, 1], { id: `${kind}-same` })).rejects.toThrow(/give another id/)
  })

  test('the same id with other arguments is the same run, and a warning', async () => {
    const id = `${kind}-other`
    const first = await durable.start(work.sum, [3], { id })
    await durable.start(work.sum, [3], { id })
    expect(warnings).toEqual([])
    const second = await durable.start(work.sum, [4], { id })
    expect(await second.result()).toBe(sum(3))
    expect(warnings).toEqual(['start(sum): the run exists, with other arguments; these have no effect'])
    expect((await first.status()).attempts).toBe(1)
  })

  test('values come back as they were: collections, buffers, big integers, cycles', async () => {
    const value: Record<string, unknown> = {
      map: new Map<unknown, unknown>([['a', new Set([1n])]]),
      numbers: new Float64Array([1, 2.5, Number.NaN]),
      bytes: new Uint8Array(300_000).fill(7),
      big: -(2n ** 200n),
      date: new Date(5),
      pattern: /a+/gi,
      nothing: undefined,
      zero: -0,
      error: new RangeError('far', { cause: { why: 'near' } }),
    }
    value.itself = value
    expect(await (await durable.start(work.echoed, [value])).result()).toEqual(value)
  })

  test('texts that PostgreSQL does not take are stored with U+FFFD', async () => {
    for (const text of ['a\0b', 'a\ud800b']) {
      const run = await durable.start(work.throwsTexts, [text])
      const error = await failureOf(run)
      expect(error).toBeInstanceOf(RangeError)
      expect(error).toMatchObject({ message: text, code: text, cause: new Map([[1, 2n]]) })
      const status = await run.status()
      expect(status).toMatchObject({ state: 'failed', error: { message: 'a\ufffdb' } })
      expect(status.progress).toEqual({ 'a\ufffdb': 'a\ufffdb' })
    }
    const run = await durable.start(work.sum, [1], { delay: 60_000 })
    await run.cancel('a\0b')
    expect((await failureOf(run)).message).toContain('a\ufffdb')
    await failureOf(await durable.start(work.throwsNothing))
  })

  test('the history has the error of each attempt', async () => {
    const run = await durable.start(work.fails, ['again'], {
      retries: 1,
      backoff: { initial: 1, max: Infinity },
    })
    await failureOf(run)
    const errors: unknown[] = []
    for await (const { kind, detail } of run.events())
      if (kind === 'error' || kind === 'failed') errors.push(detail)
    expect(errors).toMatchObject([
      { name: 'TypeError', message: 'again' },
      { name: 'TypeError', message: 'again' },
    ])
  })

  test('events come while the run goes on, and a listener may leave', async () => {
    const run = await durable.start(work.approval, ['approval'])
    const kinds: string[] = []
    for await (const { kind } of run.events()) {
      kinds.push(kind)
      if (kind === 'waiting') break
    }
    expect(kinds).toEqual(['queued', 'claimed', 'waiting'])
    for await (const { kind } of run.events()) {
      kinds.push(kind)
      if (kind === 'waiting') await run.send('approval', { by: 'Ada' })
      if (kind === 'message' && kinds.filter(one => one === 'message').length === 1)
        await run.send('amount', 1)
    }
    expect(kinds.slice(3, 6)).toEqual(['queued', 'claimed', 'waiting'])
    expect(kinds.at(-1)).toBe('completed')
  })

  test('an error is stored with its name, its text and its class', async () => {
    const run = await durable.start(work.fails, ['no money'])
    const error = await failureOf(run)
    expect(error).toBeInstanceOf(TypeError)
    expect(error.message).toBe('no money')
    expect(await run.status()).toMatchObject({ state: 'failed', failures: 1, error: { name: 'TypeError' } })
  })

  test('a run that fails is retried as often as it says, and is then a dead letter that retry revives', async () => {
    const run = await durable.start(work.fails, ['again'], { retries: 2, backoff: { initial: 10 } })
    await failureOf(run)
    expect(await kindsOf(run)).toEqual([
      'queued',
      'claimed',
      'error',
      'claimed',
      'error',
      'claimed',
      'failed',
    ])
    const dead = await durable.store.database.query(
      "select 1 from heddle_boss.job where name = 'default.dead' and data->>'run' = $1",
      [run.id],
    )
    expect(dead).toHaveLength(1)
    expect(await run.retry()).toBe(true)
    await failureOf(run)
    expect((await run.status()).attempts).toBe(6)
  })

  test('a long sleep leaves the kernel, and the run goes on after it', async () => {
    const run = await durable.start(work.sleptAndSummed, [HOUR, 20])
    await inState(run, 'asleep')
    expect(durable.running).not.toContain(run.id)
    expect(kernel.active).toBe(0)
    expect((await run.status()).checkpoint?.bytes).toBeGreaterThan(0)
    await wakeNow(durable, run.id)
    expect(await run.result()).toBe(2 * sum(20))
    expect(await kindsOf(run)).toEqual(['queued', 'claimed', 'asleep', 'claimed', 'completed'])
  })

  test('a short sleep stays in memory', async () => {
    const run = await durable.start(work.slept, [50, 7])
    expect(await run.result()).toBe('slept 7')
    expect(await kindsOf(run)).toEqual(['queued', 'claimed', 'completed'])
  })

  test('a run waits for a message without a CPU, and messages that came before are there', async () => {
    const run = await durable.start(work.approval, ['approval'])
    await inState(run, 'waiting')
    expect((await run.status()).waitsFor).toBe('approval')
    await durable.send(run.id, 'amount', 3)
    expect((await run.status()).state).toBe('waiting')
    await run.send('approval', { by: 'Ada' })
    expect(await run.result()).toEqual({ first: { by: 'Ada' }, second: 3 })
    await expect(durable.send('nobody', 'x', 1)).rejects.toThrow("there is no run 'nobody'")
  })

  test('a wait for a message has a limit of time', async () => {
    expect(await (await durable.start(work.late, ['never', 400])).result()).toBe('TimeoutError')
    expect(await (await durable.start(work.late, ['never', 0])).result()).toBe('TimeoutError')
  })

  test('once stores its first result, also that of a promise', async () => {
    const run = await durable.start(work.charged, ['card'])
    const [receipt, again] = (await run.result()) as [{ number: number }, unknown]
    expect(receipt.number).toBeGreaterThanOrEqual(0)
    expect(again).toEqual(receipt)
    expect(await (await durable.start(work.promised, ['p'])).result()).toBe('promised p')
  })

  test('once inside once stores both results, and one whose function fails stores nothing', async () => {
    expect(await (await durable.start(work.nested)).result()).toEqual({
      both: 6,
      inner: 5,
      errors: ['not yet'],
      fails: 'done',
    })
  })

  test('many messages at the same time arrive, each once', async () => {
    const run = await durable.start(work.collected, [20])
    const numbers = Array.from({ length: 20 }, (_, index) => index)
    await Promise.all(numbers.map(number => durable.send(run.id, 'number', number)))
    expect(((await run.result()) as number[]).toSorted((a, b) => a - b)).toEqual(numbers)
  })

  test('a run that was cancelled with a checkpoint begins again with its arguments', async () => {
    const run = await durable.start(work.slept, [HOUR, 5])
    await inState(run, 'asleep')
    await run.cancel()
    expect((await run.status()).checkpoint).toBeNull()
    expect(await run.retry()).toBe(true)
    await inState(run, 'asleep')
    await wakeNow(durable, run.id)
    expect(await run.result()).toBe('slept 5')
  })

  test('a running run that was cancelled with a checkpoint begins again with its arguments', async () => {
    const run = await durable.start(work.sum, [100_000], { checkpoint: 5 })
    await until(async () => (await run.status()).checkpoint !== null)
    expect(await run.cancel()).toBe('running')
    expect((await failureOf(run)).code).toBe('ERR_HEDDLE_RUN_CANCELLED')
    expect((await run.status()).checkpoint).toBeNull()
    await durable.store.database.query('update heddle.run set args = $2 where id = $1', [
      run.id,
      imageToBytes([50], 'args'),
    ])
    expect(await run.retry()).toBe(true)
    expect(await run.result()).toBe(sum(50))
  })

  test('runs are cancelled while they are queued, asleep and running', async () => {
    const delayed = await durable.start(work.sum, [1], { delay: 60_000 })
    expect(await delayed.cancel('too late')).toBe('cancelled')
    expect((await failureOf(delayed)).message).toBe(`run ${delayed.id} was cancelled: too late`)
    const asleep = await durable.start(work.slept, [60_000, 1])
    await inState(asleep, 'asleep')
    expect(await asleep.cancel()).toBe('cancelled')
    const running = await durable.start(work.cleaned, [1e9])
    await inState(running, 'running')
    await until(() => kernel.active > 0)
    expect(await running.cancel('enough')).toBe('running')
    expect((await failureOf(running)).code).toBe('ERR_HEDDLE_RUN_CANCELLED')
    expect(await running.status()).toMatchObject({ state: 'cancelled' })
    expect(kernel.active).toBe(0)
    expect(await running.cancel()).toBe('cancelled')
  })

  test('a worker whose run has another epoch writes nothing, kills the task, and says so', async () => {
    const run = await durable.start(work.sum, [1e9], { checkpoint: 20 })
    await until(async () => (await run.status()).checkpoint !== null)
    const { database } = durable.store
    await database.query("update heddle.run set epoch = epoch + 1, worker = 'another' where id = $1", [
      run.id,
    ])
    await until(() => !durable.running.includes(run.id))
    expect(kernel.active).toBe(0)
    expect(warnings.some(text => text.includes('this worker has lost it (epoch 1)'))).toBe(true)
    expect(await run.status()).toMatchObject({ state: 'running', epoch: 2, worker: 'another' })
    await database.query("update heddle.run set state = 'cancelled', ended_at = now() where id = $1", [
      run.id,
    ])
  })

  test('an image that was changed is an error of its run, and nothing else', async () => {
    const run = await durable.start(work.slept, [HOUR, 1])
    await inState(run, 'asleep')
    await durable.store.database.query(
      'update heddle.image set bytes = set_byte(bytes, 40, 255 - get_byte(bytes, 40)) where run = $1',
      [run.id],
    )
    await wakeNow(durable, run.id)
    const error = await failureOf(run)
    expect(error.name).toBe('ImageError')
    expect(await (await durable.start(work.sum, [3])).result()).toBe(sum(3))
  })

  test('a run whose image is gone begins again, if retry says so', async () => {
    const run = await durable.start(work.slept, [HOUR, 6])
    await inState(run, 'asleep')
    await durable.store.database.query('delete from heddle.image where run = $1', [run.id])
    await wakeNow(durable, run.id)
    expect((await failureOf(run)).message).toContain("run.retry({ from: 'start' })")
    expect(await run.retry()).toBe(true)
    expect((await failureOf(run)).message).toContain('the stored image is gone')
    await expect(run.retry({ from: 'end' as never })).rejects.toThrow("from: 'end' is not a place")
    expect(await run.retry({ from: 'start' })).toBe(true)
    expect(await run.result()).toBe('slept 6')
  })

  test.each([
    ['arguments', "update heddle.run set args = '\\x0102'", 'the arguments of run'],
    ['arguments of a later version', 'update heddle.run set args = set_byte(args, 3, 57)', 'version 9'],
    ['options', "update heddle.run set options = 'null'", 'changed the options'],
    ['an option', `update heddle.run set options = options || '{"retries": "many"}'`, 'changed the options'],
    ['the priority', 'update heddle.run set priority = 99999', 'priority: 99999'],
    ['the trace', `update heddle.run set trace = '5'`, 'traceparent'],
    ['the image', "update heddle.image set bytes = ''", 'the stored image is gone'],
    ['the version of the image', 'update heddle.image set bytes = set_byte(bytes, 0, 9)', 'has version 9'],
    ['the size of the image', 'update heddle.run set image_raw_bytes = 3', 'the stored image is damaged'],
    [
      'a result of once',
      `update heddle.journal set value = '\\x01'`,
      "the result of once('effect') cannot be read",
    ],
  ])('a changed row, %s, is an error of its run, and others go on', async (_, statement, why) => {
    const isOfImage = /image|journal/.test(statement)
    const run = await (isOfImage
      ? durable.start(work.effectAndSlept, [HOUR])
      : durable.start(work.slept, [HOUR, 1], { delay: HOUR }))
    if (isOfImage) await inState(run, 'asleep')
    const key = statement.includes('heddle.run') ? 'id' : 'run'
    const journaled = statement.includes('journal') ? "key = 'once:effect' and " : ''
    await durable.store.database.query(`${statement} where ${journaled}${key} = $1`, [run.id])
    await wakeNow(durable, run.id)
    const { name, message } = await failureOf(run)
    expect(`${name}: ${message}`).toContain(why)
    expect((await durable.list({ limit: 1 }))[0]).toMatchObject({ id: run.id, state: 'failed' })
    expect(await (await durable.start(work.sum, [3])).result()).toBe(sum(3))
  })

  test('an outcome that was changed is an error that says so', async () => {
    const run = await durable.start(work.sum, [3])
    await run.result()
    await durable.store.database.query("update heddle.run set outcome = '\\x01' where id = $1", [run.id])
    await expect(durable.run(run.id).result()).rejects.toThrow(`the result of run ${run.id} cannot be read`)
  })

  test('times and errors that were changed are shown as what can be shown', async () => {
    const run = await durable.start(work.fails, ['no luck'])
    await failureOf(run)
    const { database } = durable.store
    for (const time of ['infinity', '-infinity', '294270-01-01']) {
      await database.query(
        `update heddle.run set created_at = $2, started_at = $2, ended_at = $2, wake_at = $2, image_at = $2
         where id = $1`,
        [run.id, time],
      )
      await database.query('update heddle.event set at = $2 where run = $1', [run.id, time])
      const status = await run.status()
      const { createdAt, startedAt, endedAt, wakesAt, checkpoint } = status
      for (const date of [createdAt, startedAt, endedAt, wakesAt, checkpoint?.at])
        expect(date?.toISOString()).toMatch(/^[+-]2\d{5}-/)
      for await (const { at } of run.events()) expect(at.toISOString()).toMatch(/^[+-]2\d{5}-/)
    }
    for (const error of ['5', '"text"', '[]', '{"name": 5, "stack": 7, "message": {}}']) {
      await database.query('update heddle.run set error = $2::jsonb where id = $1', [run.id, error])
      await database.query('update heddle.event set detail = $2::jsonb where run = $1', [run.id, error])
      const { error: shown } = await run.status()
      expect(shown).toEqual({ name: 'Error', message: JSON.stringify(JSON.parse(error)) })
      for await (const { detail } of run.events()) expect(detail).toBeTypeOf('object')
    }
  })

  test('jobs and notifications that are not ours, and counters at their end, stop no worker', async () => {
    const { database, engine } = durable.store
    const jobs = [5, null, { run: 5 }, { run: 'nobody' }, { schedule: '{' }, { schedule: '{}' }]
    for (const data of jobs)
      await database.transaction(sql => engine.send(sql, 'default', data as never, { priority: 1 }))
    const last = await durable.start(work.sum, [1], { delay: HOUR })
    await database.query('update heddle.run set epoch = 2147483647 where id = $1', [last.id])
    await wakeNow(durable, last.id)
    for (const text of ['', 'null', '7', '{"queues":5,"ended":"all","cancelled":{}}'])
      await database.query("select pg_notify('heddle_runs', $1)", [text])
    for (let turn = 0; turn < 8; turn++)
      expect(await (await durable.start(work.sum, [turn])).result()).toBe(sum(turn))
    const ids = `(select job from heddle.run)`
    await until(async () => {
      const rows = await database.query(
        `select 1 from heddle_boss.job where name = 'default' and state < 'completed' and id not in ${ids}`,
      )
      return rows.length === 0
    })
    expect(warnings.filter(text => text.includes('starts no run'))).toHaveLength(2)
    await last.cancel()
  })

  test('a row that names a module nobody imported leads to no import', async () => {
    const run = await durable.start(work.sum, [3], { delay: 60_000 })
    const { database } = durable.store
    await database.query("update heddle.run set fn_module = 'data:text/javascript,evil' where id = $1", [
      run.id,
    ])
    await database.query(
      'update heddle_boss.job set start_after = now() where id = (select job from heddle.run where id = $1)',
      [run.id],
    )
    await until(async () => (await run.status()).blocked !== null)
    expect((await run.status()).blocked).toContain('this worker has not imported data:text/javascript,evil')
    await until(async () => {
      await wakeNow(durable, run.id)
      const { attempts, state } = await run.status()
      return attempts >= 4 && state === 'queued'
    })
    expect((await kindsBefore(durable, run.id)).slice(0, 3)).toEqual(['queued', 'claimed', 'blocked'])
    expect((await kindsBefore(durable, run.id)).filter(kind => kind === 'blocked')).toHaveLength(1)
    await run.cancel()
  })

  test('a state that cannot be written keeps a run in memory, and says why', async () => {
    const run = await durable.start(work.stuck, [3e7], { checkpoint: 10 })
    expect(await run.result()).toBeTypeOf('number')
    expect(await kindsOf(run)).toContain('refused')
    expect(warnings.some(text => text.includes('a WeakMap cannot travel'))).toBe(true)
  })

  test('a state that could not be written for a while leaves the kernel later', async () => {
    const run = await durable.start(work.stuckThenSlept, [3e7, HOUR], { checkpoint: 10 })
    await inState(run, 'asleep')
    expect(await kindsBefore(durable, run.id)).toContain('refused')
    await run.cancel()
  })

  test('a write of a run that has just ended is no loss of it', async () => {
    const { writes, journal } = durable.store
    const ends: string[] = []
    const forget = durable.onAttempt(({ run, end }) => ends.push(`${run} ${end}`))
    const late: Promise<unknown>[] = []
    const begun = new Set<string>()
    const delay = (calls: any, name: string): (() => void) => {
      const call = calls[name].bind(calls)
      calls[name] = (run: { id: string }, ...rest: unknown[]) => {
        begun.add(run.id)
        const done = until(() => ends.some(end => end.startsWith(run.id))).then(() => call(run, ...rest))
        late.push(done)
        return done
      }
      return () => delete calls[name]
    }
    const restore = [delay(writes, 'saveImage'), delay(journal, 'journal')]
    const completed = await durable.start(work.sum, [40_000], { checkpoint: 5 })
    const failed = await durable.start(work.sumThenFails, [40_000], { checkpoint: 5 })
    const cancelled = await durable.start(work.charged, ['late'])
    await until(() => [completed, failed, cancelled].every(({ id }) => begun.has(id)))
    await cancelled.cancel()
    await until(() => ends.length === 3)
    expect(await Promise.allSettled(late)).toMatchObject(
      late.map(() => ({ reason: { code: 'ERR_HEDDLE_FENCED' } })),
    )
    for (const call of restore) call()
    forget()
    expect(new Set(ends)).toEqual(
      new Set([`${completed.id} completed`, `${failed.id} failed`, `${cancelled.id} cancelled`]),
    )
    await new Promise(resolve => setTimeout(resolve))
    expect(warnings).toEqual([])
  })

  test('a state that is too large is refused once, however often its size changes', async () => {
    const small = await open({ kernel, queues: ['small'], imageLimit: 100 })
    const run = await small.start(work.growing, [3000], { queue: 'small', checkpoint: 20 })
    expect(await run.result()).toBe(3000)
    expect((await kindsOf(run)).filter(kind => kind === 'refused')).toHaveLength(1)
    expect(warnings.filter(text => text.includes('100 are allowed'))).toHaveLength(1)
    await small.close()
  })

  test('a function that cannot move needs `checkpoint: false`', async () => {
    await expect(durable.start(work.plain, [1])).rejects.toThrow(
      /begin it, or its module, with 'use task movable'.*; or give `checkpoint: false`/,
    )
    await expect(durable.start(work.movableAsync, [1])).rejects.toThrow(/`heddle compile --stats` says why/)
    expect(await (await durable.start(work.plain, [1], { checkpoint: false })).result()).toBe(2)
  })

  test('bad input is refused with the name, the value and the fix', async () => {
    const start = (options: object) => durable.start(work.sum, [1], options as never)
    await expect(start({ checkpoints: 5 })).rejects.toThrow(/checkpoints/)
    await expect(start({ checkpoint: 0 })).rejects.toThrow('checkpoint: 0 is not an interval')
    await expect(start({ retries: -1 })).rejects.toThrow('retries: -1')
    await expect(start({ queue: 'a/b' })).rejects.toThrow("queue: 'a/b' is not a name of a queue")
    await expect(start({ id: '' })).rejects.toThrow("id: '' is not a name")
    await expect(start({ id: 'a\0' })).rejects.toThrow(String.raw`id: 'a\0' is not a name`)
    await expect(start({ delay: Infinity })).rejects.toThrow('delay: Infinity ms is more than 100 years')
    await expect(start({ backoff: { factor: Infinity } })).rejects.toThrow('backoff.factor: Infinity')
    await expect(durable.send('x', '', 1)).rejects.toThrow("send('x', name): '' is not a name")
    const forever = await durable.start(work.slept, [Infinity, 1])
    const misspelt = await durable.start(work.receivedWith, [{ timeuot: 5 }])
    expect((await failureOf(misspelt)).message).toContain('did you mean timeout?')
    expect((await failureOf(forever)).message).toBe(
      'ms: Infinity ms is more than 100 years; give a shorter time',
    )
    await expect(start({ priority: 'urgent' })).rejects.toThrow(/priority: 'urgent'/)
    await expect(start({ concurrency: { key: 'a', limit: 0 } })).rejects.toThrow('concurrency.limit: 0')
    await expect(start({ onCodeChanged: 'ignore' })).rejects.toThrow("onCodeChanged: 'ignore'")
    await expect(durable.start(sum as never, [1] as never)).rejects.toThrow(/kernel.import/)
    await expect(durable.list({ state: 'done' as never })).rejects.toThrow("'done' is not a state")
    await expect(start({ backoff: { start: 5 } })).rejects.toThrow("backoff: there is no option 'start'")
    await expect(start({ backoff: null })).rejects.toThrow('backoff: null is not an object with options')
    await expect(start({ concurrency: { key: 'a', max: 2 } })).rejects.toThrow("no option 'max'")
    await expect(durable.list({ stat: 'failed' } as never)).rejects.toThrow("no option 'stat'")
    await expect(durable.list({ limit: -1 })).rejects.toThrow('list: limit: -1 is not a number in range')
    await expect(durable.list({ queue: 5 as never })).rejects.toThrow('list: queue: 5 is not a name')
  })

  test('two names are never one in the database, and each name that is taken fits its index', async () => {
    const start = (options: object) => durable.start(work.sum, [1], options as never)
    const half = 'a\ud800b'
    const refused = String.raw`'a\ud800b' is not a name`
    await expect(start({ id: half })).rejects.toThrow(refused)
    await expect(start({ concurrency: { key: half } })).rejects.toThrow(refused)
    await expect(durable.send('x', half, 1)).rejects.toThrow(refused)
    for (const fn of [work.charged, work.approval])
      expect((await failureOf(await durable.start(fn, [half]))).message).toContain(refused)
    // Ideographs that do not repeat: three bytes each, which no index compresses.
    const long = (bytes: number): string =>
      String.fromCharCode(...Array.from({ length: bytes / 3 }, (_, at) => 0x4e00 + ((at * 7919) % 20_000)))
    await expect(start({ id: long(1002) })).rejects.toThrow('has 1002 bytes in UTF-8')
    const id = kind[0]! + long(999)
    const run = await durable.start(work.chargedAndReceived, [long(1500), long(999)], { id })
    await run.send(long(999), 'sent')
    expect(await run.result()).toEqual([1, 'sent'])
    const keyed = await start({ concurrency: { key: long(999) } })
    expect(await keyed.result()).toBe(sum(1))
    const tooLong = await durable.start(work.chargedAndReceived, [long(1503), 'x'])
    expect((await failureOf(tooLong)).message).toContain('has 1503 bytes in UTF-8')
  })

  test('an error of a listener is an uncaught error of the program, and the runs go on', async () => {
    const uncaught: unknown[] = []
    const others = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.on('uncaughtException', error => uncaught.push((error as Error).message))
    const stops = (['onAttempt', 'onWarning'] as const).map(event =>
      durable[event](() => {
        throw new Error(event)
      }),
    )
    try {
      const id = `${kind}-listened`
      expect(await (await durable.start(work.sum, [1], { id })).result()).toBe(sum(1))
      await durable.start(work.sum, [2], { id })
      await until(() => uncaught.length === 2)
      expect(uncaught.toSorted()).toEqual(['onAttempt', 'onWarning'])
    } finally {
      for (const stop of stops) stop()
      process.removeAllListeners('uncaughtException')
      for (const listener of others) process.on('uncaughtException', listener)
    }
    expect(() => durable.onAttempt(5 as never)).toThrow('onAttempt(listener): 5 is not a function')
    expect(() => durable.onWarning(null as never)).toThrow('onWarning(listener): null is not a function')
  })

  test('a run that is not there is the same error for every call', async () => {
    const nobody = durable.run('nobody')
    const calls = await Promise.allSettled([
      nobody.status(),
      nobody.result(),
      nobody.cancel(),
      nobody.retry(),
      nobody.send('x', 1),
      kindsOf(nobody),
    ])
    for (const call of calls) {
      expect(call).toMatchObject({
        reason: {
          code: 'ERR_HEDDLE_RUN_MISSING',
          message: expect.stringContaining("there is no run 'nobody'"),
        },
      })
    }
  })

  test('a completed run takes no message, and one that can be retried does', async () => {
    const run = await durable.start(work.sum, [1])
    await run.result()
    await expect(run.send('late', 1)).rejects.toMatchObject({
      code: 'ERR_HEDDLE_RUN_ENDED',
      message: `send('${run.id}', 'late'): the run '${run.id}' has completed and receives no message; send it before, or to another run`,
    })
    expect(await kindsOf(run)).not.toContain('message')
    const cancelled = await durable.start(work.late, ['now', HOUR], { delay: HOUR })
    await cancelled.cancel()
    await cancelled.send('now', 1)
    expect(await cancelled.retry()).toBe(true)
    expect(await cancelled.result()).toBe('received')
  })

  test('a progress that JSON cannot write is an error that names the call', async () => {
    for (const kind of ['bigint', 'cycle'] as const) {
      const run = await durable.start(work.unwritable, [kind])
      expect((await failureOf(run)).message).toMatch(/^progress\(value\): JSON cannot write the value: /)
    }
  })

  test.each([
    ['every day', 'five fields'],
    ['61 * * * *', '(Constraint error, got value 61 expected range 0-59)'],
    ['*/5 * * * * *', 'five fields'],
    ['5', 'five fields'],
    ['@secondly', 'five fields'],
    ['@sometimes', 'five fields'],
    [undefined, 'undefined is not a cron expression'],
  ])('the cron expression %j is refused, with its value and the fix', async (cron, message) => {
    const error = await durable
      .schedule('wrong', cron as never, work.sum, [1])
      .catch((thrown: Error) => thrown)
    expect((error as Error).message).toContain("schedule('wrong', cron)")
    expect((error as Error).message).toContain(String(cron))
    expect((error as Error).message).toContain(message)
    expect(await durable.schedules()).toEqual([])
  })

  test('a schedule takes no id and no delay, and options that are an object', async () => {
    const schedule = (options: unknown) =>
      durable.schedule('wrong', '@daily', work.sum, [1], options as never)
    await expect(schedule({ id: 'x' })).rejects.toThrow("there is no option 'id'")
    await expect(schedule({ delay: 5 })).rejects.toThrow("there is no option 'delay'")
    await expect(schedule(null)).rejects.toThrow('null is not an object with options')
    await expect(durable.schedule('a b', '@daily', work.sum, [1])).rejects.toThrow(
      "schedule(key): 'a b' is not a key",
    )
    await expect(durable.unschedule(5 as never)).rejects.toThrow('unschedule(key): 5 is not a key')
    expect(await durable.schedules()).toEqual([])
  })

  test('a time zone that is none is refused', async () => {
    await expect(
      durable.schedule('zone', '@daily', work.sum, [1], { timeZone: 'Mars/Olympus' }),
    ).rejects.toThrow("schedule('zone'): timeZone: 'Mars/Olympus' is not a time zone")
  })

  test('a Durable that is closed says so, also to calls that wait', async () => {
    const closed = await open({ kernel, queues: ['nothing'] })
    const run = await closed.start(work.sum, [1], { queue: 'nobody' })
    const waiting = Promise.allSettled([run.result(), kindsOf(run)])
    await closed.close()
    const later = await Promise.allSettled([
      closed.start(work.sum, [1]),
      closed.send(run.id, 'name', 1),
      closed.list(),
      closed.counts(),
      closed.schedule('closed', '0 3 * * *', work.sum, [1]),
      closed.unschedule('closed'),
      closed.schedules(),
      closed.run(run.id).result(),
      run.status(),
      run.cancel(),
      run.retry(),
      run.send('name', 1),
      kindsOf(run),
    ])
    for (const result of [...(await waiting), ...later])
      expect(result).toMatchObject({ reason: { message: 'this Durable is closed; open another one' } })
  })

  test('a durable call outside of a run is an error that says so', async () => {
    const error = { code: 'ERR_HEDDLE_NOT_DURABLE', message: expect.stringContaining('durable.start(fn)') }
    await expect(kernel.spawn(work.charged, ['x'])).rejects.toMatchObject(error)
    await expect(kernel.spawn(work.slept, [1, 1])).rejects.toMatchObject(error)
    for (const call of [() => sleep(1), () => receive('x'), () => once('x', () => 1)])
      expect(call).toThrow(expect.objectContaining(error))
    expect(() => progress(0.5)).not.toThrow()
  })

  test('at most so many runs of a key run at the same time', async () => {
    const key = `${kind}-key`
    const runs = await Promise.all(
      Array.from({ length: 6 }, () => durable.start(work.slept, [30, 1], { concurrency: { key } })),
    )
    await Promise.all(runs.map(run => run.result()))
    const rows = await durable.store.database.query(
      `select e.kind from heddle.event e join heddle.run r on r.id = e.run
       where r.group_key = $1 and e.kind in ('claimed', 'completed') order by e.id`,
      [key],
    )
    expect(rows.map(row => row.kind as string)).toEqual(
      Array.from({ length: 6 }, () => ['claimed', 'completed']).flat(),
    )
  })

  test('attempts are spans, linked to the span that started the run, and metrics', async () => {
    const spans: { name: string; options: any; status?: any }[] = []
    const tracerProvider = {
      getTracer: () => ({
        startSpan(name: string, options: object) {
          const span = {
            name,
            options,
            setStatus: (status: object) => void Object.assign(span, { status }),
            end: () => undefined,
          }
          spans.push(span)
          return span
        },
      }),
    }
    const counted: [number, any][] = []
    const instrument = {
      add: (...of: [number, any]) => counted.push(of),
      record() {},
      addCallback() {},
      removeCallback() {},
    }
    const meterProvider = {
      getMeter: () => ({
        createCounter: () => instrument,
        createHistogram: () => instrument,
        createObservableGauge: () => instrument,
      }),
    }
    const stop = runTelemetry(durable, { tracerProvider, meterProvider } as never)
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const run = await withTraceContext({ traceparent }, () => durable.start(work.sleptAndSummed, [600, 2]))
    await run.result()
    await until(() => spans.length === 2)
    stop()
    expect(
      spans.map(({ name, options }) => [
        name,
        options.attributes.end,
        options.attributes['heddle.run.epoch'],
      ]),
    ).toEqual([
      ['sleptAndSummed', 'asleep', 1],
      ['sleptAndSummed', 'completed', 2],
    ])
    expect(spans[0]!.options.links[0].context).toMatchObject({ spanId: '00f067aa0ba902b7', isRemote: true })
    expect(counted.map(([, { end }]) => end)).toEqual(['asleep', 'completed'])
    expect(await runsText(durable)).toMatch(/heddle_runs\{queue="default",state="completed"\} \d+/)
    expect(() => runTelemetry(durable, {})).toThrow(/give a tracerProvider/)
  })

  test('runs are listed by state, the newest first', async () => {
    const run = await durable.start(work.sum, [1], { delay: 60_000, name: 'listed' })
    const [newest] = await durable.list({ state: 'queued', limit: 1 })
    expect(newest).toMatchObject({ id: run.id, name: 'listed', state: 'queued', function: 'sum' })
    expect(newest!.module).toMatch(/testing\/durable\/runs\.ts$/)
    await run.cancel()
  })

  test('a job of a schedule becomes one run, whichever worker claims it', async () => {
    await durable.schedule(`${kind}-nightly`, '0 3 * * *', work.sum, [30], { priority: 'low' })
    expect(await durable.schedules()).toContainEqual({ key: `${kind}-nightly`, cron: '0 3 * * *' })
    const { database, engine } = durable.store
    const [row] = await database.query('select data from heddle_boss.schedule where key = $1', [
      `${kind}-nightly`,
    ])
    const id = await database.transaction(sql =>
      engine.send(sql, 'default', row!.data as { schedule: string }, { priority: 1 }),
    )
    const run = durable.run(`${kind}-nightly:${id}`)
    await until(async () => (await durable.list({ limit: 5 })).some(one => one.id === run.id))
    expect(await run.result()).toBe(sum(30))
    await durable.unschedule(`${kind}-nightly`)
    expect(await durable.schedules()).toEqual([])
    await expect(durable.schedule('x', 'never', work.sum, [1])).rejects.toThrow()
  })

  test('a run whose job was deleted gets another one', async () => {
    const run = await durable.start(work.sum, [9], { delay: 60_000 })
    const waiting = await durable.start(work.late, ['never', HOUR])
    await inState(waiting, 'waiting')
    const { database } = durable.store
    for (const { id } of [run, waiting]) {
      const job = '(select job from heddle.run where id = $1)'
      await database.query(`delete from heddle_boss.job where id = ${job}`, [id])
    }
    await database.query('update heddle.run set wake_at = null where id = $1', [run.id])
    await database.query('update heddle.run set wake_at = now() where id = $1', [waiting.id])
    await database.query('update heddle.journal set deadline = now() where run = $1', [waiting.id])
    expect(await durable.store.upkeep.repair('default')).toBe(2)
    expect(await durable.store.upkeep.repair('default')).toBe(0)
    expect(await run.result()).toBe(sum(9))
    expect(await waiting.result()).toBe('TimeoutError')
  })
})

describe('several workers on PostgreSQL', () => {
  const opened: AsyncDisposable[] = []

  async function openWorker(options: DurableOptions = {}): Promise<Durable> {
    const durable = await Durable.open({
      database: postgres.url,
      patience: 200,
      poll: 100,
      queues: ['several'],
      ...options,
    })
    durable.onWarning(() => undefined)
    opened.push(durable)
    return durable
  }

  afterEach(async () => {
    for (const one of opened.splice(0)) await one[Symbol.asyncDispose]()
  })

  test('a worker that closes lets its run go on elsewhere, from where it is', async () => {
    const other = await Kernel.boot({ cpus: 1, control: false })
    try {
      await importRuns(other)
      const first = await openWorker({ kernel, name: 'first' })
      const turns = 60_000
      const run = await first.start(work.sum, [turns], { queue: 'several', checkpoint: 60_000 })
      await until(async () => Number((await run.status()).progress !== null) > 0)
      const id = run.id
      await first.close()
      const client = await openWorker()
      expect(await client.run(id).status()).toMatchObject({ state: 'queued' })
      expect((await client.run(id).status()).checkpoint).not.toBeNull()
      await openWorker({ kernel: other, name: 'second' })
      expect(await client.run(id)).toBe(sum(turns))
      const kinds = await kindsOf(client.run(id))
      expect(kinds).toEqual(['queued', 'claimed', 'released', 'claimed', 'completed'])
    } finally {
      await other.close()
    }
  })

  test('better priorities are claimed first', async () => {
    const client = await openWorker()
    const levels = ['low', 'normal', 'high', 'idle'] as const
    for (const priority of levels)
      await client.start(work.sum, [1], { queue: 'several', priority, name: priority })
    await openWorker({ kernel, concurrency: 1 })
    await until(async () => (await client.list({ queue: 'several', state: 'completed' })).length >= 5)
    const rows = await client.store.database.query(
      `select r.name from heddle.event e join heddle.run r on r.id = e.run
       where r.queue = 'several' and e.kind = 'claimed' and r.name = any($1) order by e.id`,
      [levels],
    )
    expect(rows.map(row => row.name as string)).toEqual(['high', 'normal', 'low', 'idle'])
  })

  test('a run of other code waits for its worker, restarts, or is migrated: as it says', async () => {
    const durable = await openWorker({ kernel })
    const start = (onCodeChanged: any) =>
      durable.start(work.slept, [HOUR, 1], { queue: 'several', onCodeChanged })
    const runs = [await start('wait'), await start('restart'), await start(work.migrated)]
    for (const run of runs) await inState(run, 'asleep')
    // The image then names a module that no worker has loaded.
    for (const { id } of runs) {
      await renameModule(durable, id)
      await wakeNow(durable, id)
    }
    const [waits, restarts, migrates] = runs
    await until(async () => (await waits!.status()).blocked !== null)
    expect((await waits!.status()).blocked).toContain('waits for a worker with the code')
    await waits!.cancel()
    expect(await restarts!.result()).toBe('slept 1')
    expect(await migrates!.result()).toEqual({ migrated: [HOUR, 1], because: 'ModuleMissingError' })
  })

  test('the database goes away and comes back: no run is lost', async () => {
    const durable = await openWorker({ kernel })
    const runs = await Promise.all(
      Array.from({ length: 4 }, () => durable.start(work.sum, [3000], { queue: 'several', checkpoint: 20 })),
    )
    await until(async () => (await runs[0]!.status()).state !== 'queued')
    const kinds = kindsOf(runs[0]!)
    await postgres.restart()
    expect((await kinds).at(-1)).toBe('completed')
    for (const run of runs) expect(await run.result()).toBe(sum(3000))
  }, 60_000)
})

describe('a kernel that cannot be used', () => {
  test.each<[string, unknown, string]>([
    ['a number', 5, 'kernel: 5 is not a kernel; give the result of await Kernel.boot()'],
    ['an object', {}, 'kernel: {} is not a kernel'],
    ['null', null, 'kernel: null is not a kernel'],
    ['a promise of one', Promise.resolve(), 'kernel: [object Promise] is not a kernel'],
  ])('%s is refused', async (_, wrong, message) => {
    await expect(Durable.open({ kernel: wrong as never, folder: 'memory://' })).rejects.toThrow(message)
  })

  test('simulated CPUs are refused', async () => {
    const own = await Kernel.boot({ cpus: 1, machine: 'simulated', seed: 1 })
    await expect(Durable.open({ kernel: own, folder: 'memory://' })).rejects.toThrow(
      "kernel: it has simulated CPUs, which cannot run durable runs; boot one with machine: 'threads'",
    )
    await own.close()
  })

  async function withOwnKernel(
    body: (own: Kernel, runs: Runs, durable: Durable, warnings: string[]) => Promise<void>,
    options: object = {},
  ): Promise<void> {
    const own = await Kernel.boot({ cpus: 1, control: false, ...options })
    const durable = await Durable.open({ kernel: own, folder: 'memory://', poll: 20, patience: 100 })
    const warnings: string[] = []
    durable.onWarning(({ message }) => warnings.push(message))
    try {
      await body(own, await importRuns(own), durable, warnings)
    } finally {
      await durable.close()
      await own.close({ abort: true })
    }
  }

  test('a closed kernel is refused, and one that is closed later claims nothing', async () => {
    await withOwnKernel(async (own, runs, durable, warnings) => {
      await own.close()
      await expect(Durable.open({ kernel: own, folder: 'memory://' })).rejects.toThrow(
        /^kernel: it runs nothing any more .*the kernel is closed/,
      )
      const run = await durable.start(runs.sum, [1])
      await until(() => warnings.length > 0)
      expect(warnings).toEqual([expect.stringContaining('this worker claims no more runs: ')])
      expect(await run.status()).toMatchObject({ state: 'queued', epoch: 0 })
      expect(await kindsBefore(durable, run.id)).toEqual(['queued'])
    })
  })

  test('a kernel that is ended lets its runs go on elsewhere: none has failed', async () => {
    await withOwnKernel(async (own, runs, durable) => {
      const run = await durable.start(runs.busy, [600_000], { checkpoint: 20 })
      await until(async () => (await run.status()).checkpoint !== null)
      await own.close({ abort: true })
      await inState(run, 'queued')
      expect(await run.status()).toMatchObject({ failures: 0, checkpoint: { rawBytes: expect.any(Number) } })
      expect((await kindsBefore(durable, run.id)).at(-1)).toBe('released')
    })
  })

  test('a kernel without room leaves a run to the next one with room: none has failed', async () => {
    await withOwnKernel(
      async (own, runs, durable) => {
        const other = own.spawn(runs.busy, [600_000])
        const large = await durable.start(runs.echoed, [new Uint8Array(5 << 20)])
        const small = await durable.start(runs.sum, [2])
        for (const run of [small, large]) await until(async () => (await run.status()).blocked !== null)
        const [ofSmall, ofLarge] = [await small.status(), await large.status()]
        expect(ofSmall).toMatchObject({ state: 'queued', failures: 0 })
        expect(ofSmall.blocked).toMatch(/^this worker has no room for it now: .*option `queue`/)
        expect(ofLarge.blocked).toMatch(/^this worker has no room for it now: .*option `/)
        other.kill('enough')
        await other.join().catch(() => undefined)
        await wakeJob(durable, small.id)
        expect(await small.result()).toBe(sum(2))
        await wakeJob(durable, large.id)
        await until(async () => (await large.status()).blocked?.includes('option `heap`') === true)
        await large.cancel()
      },
      { queue: 1, heap: 2 << 20 },
    )
  })
})

describe('a database that cannot be used', () => {
  const opening = (change: (url: URL) => void): Promise<unknown> => {
    const url = new URL(postgres.url)
    change(url)
    return Durable.open({ database: url.href })
  }

  test.each<[title: string, change: (url: URL) => void, message: RegExp]>([
    ['no server', url => (url.port = '1'), /cannot use postgres:.*ECONNREFUSED.*; no server listens there/],
    [
      'no server, by a name with several addresses',
      url => (url.host = 'localhost:1'),
      /ECONNREFUSED.*; no server listens there/,
    ],
    ['a wrong password', url => (url.password = 'secret'), /password authentication failed.*; check user/],
    ['no such database', url => (url.pathname = '/nowhere'), /"nowhere" does not exist; create the database/],
  ])('%s: the error says so, and has no password', async (_, change, message) => {
    const error = await opening(change).then(
      () => expect.unreachable('it opened'),
      (failure: unknown) => failure as Error,
    )
    expect(error.message).toMatch(message)
    expect(error.message).not.toMatch(/secret|:heddle@/)
  })

  test.each(['postgres://[', 'mysql://user:secret@host/runs', 'postgres://user:a/b:se#cret@host/runs', ''])(
    'the URL %j is refused, and its password is not shown',
    async wrong => {
      const error = await Durable.open({ database: wrong }).catch((failure: unknown) => failure as Error)
      expect((error as Error).message).toMatch(
        /^database: .* is not the URL of a PostgreSQL server; give one/,
      )
      expect((error as Error).message).not.toMatch(/secret|se#cret/)
    },
  )

  test.each([
    [
      'another encoding',
      "create database latin encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0",
      '',
      'latin',
      "heddle/durable: the database has the encoding LATIN1, and UTF8 is needed; use one that was made with encoding 'UTF8'",
    ],
    [
      'tables of another program',
      'create database taken',
      'create schema heddle; create table heddle.run (other int)',
      'taken',
      'relation "run" already exists; the schema heddle has tables of another program; use another database',
    ],
    [
      'no writes',
      'create database standby',
      'alter database standby set default_transaction_read_only = on',
      'standby',
      'the server takes no writes; give the URL of the primary server',
    ],
  ])('a database with %s is refused', async (_, make, change, name, message) => {
    const on = async (url: string, script: string): Promise<void> => {
      const admin = await openPostgres({ url, connections: 1, onError: () => undefined })
      await admin.script(script)
      await admin.close()
    }
    await on(postgres.url, make)
    const url = new URL(postgres.url)
    url.pathname = `/${name}`
    if (change !== '') await on(url.href, change)
    await expect(Durable.open({ database: url.href })).rejects.toThrow(message)
  })

  test('a server that is too old is refused', async () => {
    const old = { query: () => Promise.resolve([{ version: 130_016, encoding: 'UTF8' }]) }
    await expect(migrate(old as never)).rejects.toThrow(
      'heddle/durable: the server is PostgreSQL 13, and 14 or later is needed',
    )
  })

  test('a user that may not create schemas uses those that are there', async () => {
    await (await Durable.open({ database: postgres.url })).close()
    const admin = await openPostgres({ url: postgres.url, connections: 1, onError: () => undefined })
    await admin.script(`
      create role limited login password 'limited';
      grant usage on schema heddle, heddle_boss to limited;
      grant all on all tables in schema heddle, heddle_boss to limited;
      grant all on all sequences in schema heddle, heddle_boss to limited;
      grant execute on all functions in schema heddle_boss to limited`)
    await admin.close()
    const url = new URL(postgres.url)
    url.username = 'limited'
    url.password = 'limited'
    const durable = await Durable.open({ database: url.href })
    expect(await durable.list({ limit: 1 })).toHaveLength(1)
    await durable.close()
  })
})

/** Changes the name of a module in an image, with all checksums: as code that was moved would have it. */
async function renameModule(durable: Durable, id: string): Promise<void> {
  const { packImage, unpackImage } = await import('./image.ts')
  const { readSuspended } = await import('../kernel/cpu/suspendedtask.ts')
  const { checksum } = await import('../../testing/durable/images.ts')
  const { database } = durable.store
  const [row] = await database.query('select bytes from heddle.image where run = $1', [id])
  const bytes = await unpackImage(row!.bytes as Uint8Array, null)
  const { image } = readSuspended(bytes)
  const at = bytes.length - image.length
  const name = Buffer.from('testing/durable/runs.ts')
  const found = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let index = found.indexOf(name, at); index >= 0; index = found.indexOf(name, index + 1))
    found[index] = 0x54
  checksum(bytes, at)
  await database.query('update heddle.image set bytes = $2 where run = $1', [
    id,
    await packImage(id, bytes, 1e9),
  ])
  await database.query('update heddle.run set image_raw_bytes = null where id = $1', [id])
}
