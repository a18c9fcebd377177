/**
 * A server that stays responsive while it computes, on one thread.
 *
 *     npm run example responsive-server
 *
 * It measures how a computation delays other clients, with a plain call and with a schedule. With
 * `npm run example responsive-server -- --serve` it serves after that:
 *
 *     curl localhost:8080/                      answers immediately
 *     curl localhost:8080/primes?below=5000000  computes for seconds, and delays no other client
 *
 * In a project of your own, `node --import heddle/register server.ts` compiles the marked functions of every
 * module.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Worker } from 'node:worker_threads'
import '../src/compiler/loading/register.ts'
import { Schedule } from '../src/coroutine/index.ts'

// After the loader: the loader compiles this module.
const { countPrimes } = await import('./responsive-server/primes.ts')

const schedule = new Schedule()

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url!, 'http://localhost')
  if (pathname === '/primes') void primes(request, response, Number(searchParams.get('below') ?? 1e6))
  else response.end('hello\n')
})

/** Computes for one client while it stays connected, for ten seconds at most. */
async function primes(request: IncomingMessage, response: ServerResponse, below: number): Promise<void> {
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  try {
    const options = { name: `primes below ${below}`, signal: gone.signal, timeout: 10_000, onProgress }
    const count = await schedule.run(options, countPrimes, below)
    response.end(`${count} primes below ${below}\n`)
  } catch (error) {
    if (gone.signal.aborted) return
    response.statusCode = 503
    response.end(`${(error as Error).message}\n`)
  }

  function onProgress(done: number): void {
    if (request.headers['x-progress'] !== undefined) response.write(`${Math.round(done * 100)} %\n`)
  }
}

/** The slowest answer to another client during the computation. */
async function slowestWhile(
  compute: () => unknown,
): Promise<{ slowest: number; answers: number; took: number }> {
  const { port } = server.address() as AddressInfo
  const asker = new Worker(new URL('./responsive-server/asker.ts', import.meta.url), {
    workerData: `http://localhost:${port}/`,
  })
  await once(asker, 'online')
  await new Promise(resolve => setTimeout(resolve, 200))
  const start = performance.now()
  await compute()
  const took = performance.now() - start
  asker.postMessage('stop')
  const [said] = (await once(asker, 'message')) as [{ slowest: number; answers: number }]
  return { ...said, took }
}

const BELOW = 5_000_000
const serves = process.argv.includes('--serve')

server.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EADDRINUSE') throw error
  console.error(
    'responsive-server: the port is taken; choose another: PORT=8081 npm run example responsive-server -- --serve',
  )
  process.exit(1)
})
server.listen(serves ? Number(process.env.PORT ?? 8080) : 0)
await once(server, 'listening')
console.log(
  `counting the primes below ${BELOW.toLocaleString('en')} while another client asks every 10 ms:\n`,
)
for (const [how, compute] of [
  ['not at all', () => new Promise(resolve => setTimeout(resolve, 1000))],
  ['called plainly', () => countPrimes(BELOW)],
  ['schedule.run', () => schedule.run(countPrimes, BELOW)],
] as const) {
  const { slowest, answers, took } = await slowestWhile(compute)
  const ms = (value: number): string => `${value.toFixed(0)} ms`.padStart(8)
  console.log(
    `  ${how.padEnd(16)} took ${ms(took)}   ${String(answers).padStart(4)} answers, the slowest after ${ms(slowest)}`,
  )
}

if (serves) {
  const { port } = server.address() as AddressInfo
  const address = `http://localhost:${port}`
  console.log(`\nserving on ${address}/ and ${address}/primes?below=${BELOW}; Ctrl-C ends it`)
} else {
  schedule.exit()
  server.close()
  server.closeAllConnections()
}
