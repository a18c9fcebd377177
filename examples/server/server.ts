/**
 * A server that hands its work to a pool. The pool is the one line that differs:
 *
 *     import Piscina from 'piscina'
 *     import Piscina from 'heddle/piscina'
 *
 * Here the line is an argument, so that one file serves for both: `node server.ts piscina`,
 * `node server.ts heddle`, `node server.ts priorities`.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import jpeg from 'jpeg-js'

const which = process.argv[2] ?? 'piscina'
const { default: Piscina } = (await import(
  which === 'piscina' ? 'piscina' : '../../src/piscina/index.ts'
)) as typeof import('../../src/piscina/index.ts')

const pool = new Piscina({
  filename: new URL('./work.ts', import.meta.url).href,
  minThreads: 2,
  maxThreads: 2,
})
/** With heddle a request may have a high priority. */
const urgent = which === 'priorities' ? { priority: 'high' as const } : {}

const image = picture(720, 540)
const page =
  '# Hello\n\nA *short* page with `code`, a [link](https://example.com) and\n\n- a list\n- of two\n'.repeat(4)

async function answer(path: string): Promise<string | Uint8Array> {
  switch (path) {
    case '/resize':
      return await pool.run({ image, width: 120 }, { name: 'resize' })
    case '/markdown':
      return await pool.run(page, { name: 'markdown', ...urgent })
    case '/ping':
      return await pool.run('world', { name: 'ping', ...urgent })
    default:
      throw new Error(`no route ${path}; use /resize, /markdown or /ping`)
  }
}

const server = createServer((request, response) => {
  answer(request.url ?? '/').then(
    body => response.end(body),
    (error: Error) => fail(response, error),
  )
})

function fail(response: ServerResponse, error: Error): void {
  response.statusCode = 500
  response.end(`${error.message}\n`)
}

server.listen(0, '127.0.0.1', async () => {
  // Every worker has loaded its modules and warmed up its code before the first timed request.
  for (let round = 0; round < 3; round++)
    await Promise.all(['/resize', '/resize', '/markdown', '/ping'].map(answer))
  process.send?.((server.address() as AddressInfo).port)
})

// The driver requests the CPU time of this process.
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.((user + system) / 1000)
})

/** A picture with some detail. */
function picture(width: number, height: number): Uint8Array {
  const data = new Uint8Array(width * height * 4)
  for (let at = 0; at < data.length; at += 4) {
    const x = (at / 4) % width
    const y = Math.floor(at / 4 / width)
    data[at] = (x * 255) / width
    data[at + 1] = (y * 255) / height
    data[at + 2] = (x ^ y) & 255
    data[at + 3] = 255
  }
  return jpeg.encode({ width, height, data }, 85).data
}
