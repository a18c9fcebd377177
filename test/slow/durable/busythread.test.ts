/** A worker keeps its leases while its booting thread is busy for longer than a lease. */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Kernel } from '../../../src/index.ts'
import { Durable } from '../../../src/durable/index.ts'
import { startPostgres } from '../../../testing/durable/postgres.ts'
import type * as Work from '../../../testing/durable/runs.ts'

const LEASE_MS = 10_000

test('neither a task nor the booting thread delays the heartbeats', async () => {
  const postgres = await startPostgres()
  const kernel = await Kernel.boot({ cpus: 1, control: false })
  const folder = join(import.meta.dirname, '../../../testing/durable')
  const work = await kernel.import<typeof Work>(new URL(`file://${folder}/runs.ts`))
  const client = await Durable.open({ database: postgres.url })
  const busy = fork(join(folder, 'busyworker.ts'), [postgres.url, String(LEASE_MS + 4000)])
  try {
    const run = await client.start(work.busy, [LEASE_MS + 1000], { queue: 'busy' })
    await new Promise(resolve => busy.once('message', resolve))
    // Another worker is there all the time, and would take the run when its lease lapses.
    await using other = await Durable.open({ kernel, database: postgres.url, queues: ['busy'] })
    expect(await run.result()).toBe('done')
    expect(await run.status()).toMatchObject({ state: 'completed', epoch: 1, attempts: 1 })
    expect(other.running).toEqual([])
  } finally {
    if (busy.exitCode === null) await new Promise(resolve => busy.once('exit', resolve))
    await client.close()
    await kernel.close()
    await postgres.close()
  }
}, 120_000)
