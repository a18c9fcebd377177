/**
 * Drives the server with autocannon. Long requests: LONG_CLIENTS connections; each requests the next picture
 * when it has received one. Short requests: SHORT_CLIENTS connections; each sends a small request once a
 * second while pictures are made.
 *
 * Times come from autocannon's events. Its summary cannot be used. The duration of a run is a whole number of
 * one-second samples. With a rate, it adds one answer for every millisecond that an answer is late, as if
 * each connection sent a thousand requests a second.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import autocannon, { type Client, type Instance, type Options, type Result } from 'autocannon'

export type Variant = 'piscina' | 'heddle' | 'priorities'

export interface Figures {
  /** Milliseconds from a short request to its answer. */
  readonly shortP50: number
  readonly shortP99: number
  readonly shortCount: number
  /** Answered long requests a second. */
  readonly longPerSecond: number
  /** CPU time of the server for one long request, in milliseconds, over all its threads. */
  readonly cpuPerLong: number
}

const LONG_CLIENTS = 16
const SHORT_CLIENTS = 60
const SHORT_EVERY_MS = 1000
/** How often autocannon checks whether it must stop. */
const STOP_MS = 50

/**
 * Starts the server on that pool, drives it, and ends it. `long`: how many pictures are timed; `warm`: how
 * many come before them.
 */
export async function drive(variant: Variant, long: number, warm: number): Promise<Figures> {
  const server = fork(join(import.meta.dirname, 'server.ts'), [variant], { execArgv: [], stdio: 'inherit' })
  try {
    const [port] = (await once(server, 'message')) as [number]
    return await load(server, `http://127.0.0.1:${port}`, long, warm)
  } finally {
    await end(server)
  }
}

async function load(server: ChildProcess, url: string, amount: number, warm: number): Promise<Figures> {
  const answers: Answer[] = []
  const warmed = warm > 0 ? longRequests(url, warm) : Promise.resolve()
  const clients: Run[] = []
  for (let client = 0; client < SHORT_CLIENTS; client++) {
    const requests = [{ path: '/ping' }, { path: '/markdown' }]
    if (client % 2 === 1) requests.reverse()
    clients.push(
      start({ url, requests, connections: 1, connectionRate: 1000 / SHORT_EVERY_MS, duration: 3600 }, ms =>
        answers.push({ asked: performance.now() - ms, ms }),
      ),
    )
    await sleep(SHORT_EVERY_MS / SHORT_CLIENTS)
  }
  await warmed
  const cpuBefore = await cpuTime(server)
  const from = performance.now()
  const to = await longRequests(url, amount)
  const cpu = (await cpuTime(server)) - cpuBefore
  // Requests that were sent before the stop are answered.
  await sleep(SHORT_EVERY_MS)
  await Promise.all(clients.map(client => client.stop()))
  const latencies = answers.filter(({ asked }) => asked >= from && asked <= to).map(({ ms }) => ms)
  latencies.sort((a, b) => a - b)
  return {
    shortP50: percentile(latencies, 0.5),
    shortP99: percentile(latencies, 0.99),
    shortCount: latencies.length,
    longPerSecond: (1000 * amount) / (to - from),
    cpuPerLong: cpu / amount,
  }
}

interface Answer {
  /** A time on this process's clock. */
  readonly asked: number
  readonly ms: number
}

/** Requests this many pictures. Returns the time when the last one has arrived. */
async function longRequests(url: string, amount: number): Promise<number> {
  let last = NaN
  const connections = Math.min(LONG_CLIENTS, amount)
  await start({ url: `${url}/resize`, connections, amount }, () => (last = performance.now())).ended
  return last
}

interface Run {
  readonly ended: Promise<void>
  stop(): Promise<void>
}

/** Starts autocannon; `answered` gets the milliseconds of each answer. Fails when a request fails. */
function start(options: Options, answered: (ms: number) => void): Run {
  let running!: Instance
  const ended = new Promise<Result>((resolve, reject) => {
    running = autocannon({ ...options, timeout: 60, sampleInt: STOP_MS }, (error, result) =>
      error ? reject(error as Error) : resolve(result),
    )
  }).then(({ non2xx, errors }) => {
    if (non2xx + errors > 0) throw new Error(`${non2xx + errors} requests to ${options.url} failed`)
  })
  running.on('response', (_client: Client, _status: number, _bytes: number, ms: number) => answered(ms))
  const stop = (): Promise<void> => {
    running.stop()
    return ended
  }
  return { ended, stop }
}

/** The smallest value that this share of the sorted values does not exceed. */
function percentile(sorted: readonly number[], part: number): number {
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? NaN
}

/** CPU time of the server so far, in milliseconds. */
async function cpuTime(server: ChildProcess): Promise<number> {
  server.send('cpu')
  const [ms] = (await once(server, 'message')) as [number]
  return ms
}

async function end(server: ChildProcess): Promise<void> {
  const exited = once(server, 'exit')
  server.kill()
  await exited
}
