import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from 'vitest'
import { isTransient } from './database.ts'
import { openPostgres } from './node-postgres.ts'

/** A message of the protocol: its type, its length, its body. */
function message(type: string, ...body: Buffer[]): Buffer {
  const bytes = Buffer.concat(body)
  const head = Buffer.alloc(5)
  head.write(type, 'latin1')
  head.writeInt32BE(bytes.length + 4, 1)
  return Buffer.concat([head, bytes])
}

const authenticated = message('R', Buffer.from([0, 0, 0, 0]))
const ready = message('Z', Buffer.from('I'))
const terminated = message('E', Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0'))

test('an error of the server that comes together with the answer before it ends no process', async () => {
  // The server accepts a connection, and in the same packet says that it ends it.
  const server = createServer(socket => {
    socket.once('data', () => socket.end(Buffer.concat([authenticated, ready, terminated])))
    socket.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const database = await openPostgres({
    url: `postgres://nobody@127.0.0.1:${port}/none`,
    connections: 2,
    onError: () => undefined,
  })
  const uncaught: unknown[] = []
  const listener = (error: unknown): void => void uncaught.push(error)
  process.on('uncaughtException', listener)
  try {
    const error = await database.transaction(sql => sql.query('select 1')).catch((thrown: unknown) => thrown)
    expect(isTransient(error)).toBe(true)
    expect(uncaught).toEqual([])
  } finally {
    process.off('uncaughtException', listener)
    await database.close()
    server.close()
  }
})
