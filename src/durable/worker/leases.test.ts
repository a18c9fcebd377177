import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import type { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { startPostgres } from '../../../testing/durable/postgres.ts'
import { openPostgres } from '../database/node-postgres.ts'
import { Engine } from '../engine.ts'
import { keepLeases } from './leases.ts'

test('a database that is away when the thread of leases starts is asked again', async () => {
  const postgres = await startPostgres()
  const { port } = new URL(postgres.url)
  const database = await openPostgres({ url: postgres.url, connections: 2, onError: () => undefined })
  const engine = await Engine.open(database, { lease: 10, supervises: false, onError: () => undefined })
  // In front of the server: at first it answers with the end of the connection.
  let isThere = false
  const door = createServer(socket => {
    socket.on('error', () => undefined)
    if (!isThere) return void socket.destroy()
    const behind = connect(Number(port), '127.0.0.1')
    behind.on('error', () => socket.destroy())
    behind.on('close', () => socket.destroy())
    socket.on('close', () => behind.destroy())
    socket.pipe(behind).pipe(socket)
  })
  door.listen(0, '127.0.0.1')
  await once(door, 'listening')
  const url = new URL(postgres.url)
  url.port = String((door.address() as AddressInfo).port)
  let beats = 0
  const errors: string[] = []
  const leases = keepLeases(
    { ...database, url: url.href },
    {
      lease: 10,
      every: 50,
      session: 'w',
      onError: error => errors.push(error.message),
      onBeat: () => beats++,
    },
  )
  await expect.poll(() => errors.length).toBeGreaterThan(0)
  expect(beats).toBe(0)
  isThere = true
  await expect.poll(() => beats).toBeGreaterThan(0)
  await leases.close()
  await engine.close()
  await database.close()
  door.close()
  await postgres.close()
})

test('a thread that has died is replaced, and the leases are renewed', async () => {
  const postgres = await startPostgres()
  const database = await openPostgres({ url: postgres.url, connections: 2, onError: () => undefined })
  const threads: Worker[] = []
  const see = (thread: Worker): void => void threads.push(thread)
  process.on('worker', see)
  let beats = 0
  const errors: string[] = []
  const leases = keepLeases(database, {
    lease: 10,
    every: 50,
    session: 'w',
    onError: error => errors.push(error.message),
    onBeat: () => beats++,
  })
  await expect.poll(() => beats, { timeout: 20_000 }).toBeGreaterThan(0)
  await threads[0]!.terminate()
  beats = 0
  await expect.poll(() => beats, { timeout: 20_000 }).toBeGreaterThan(0)
  expect(threads).toHaveLength(2)
  expect(errors).toContain('the thread that renews the leases has ended; another one begins')
  await leases.close()
  process.off('worker', see)
  await database.close()
  await postgres.close()
}, 60_000)
