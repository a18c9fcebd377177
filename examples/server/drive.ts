/** Drives the server with autocannon: long requests without a pause, and short ones at a steady rate while they last. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import autocannon, { type Result } from 'autocannon'

export type Variant = 'piscina' | 'heddle' | 'priorities'

export interface Figures {
  /** Milliseconds from a short request to its answer. */
  readonly shortP50: number
  readonly shortP99: number
  readonly shortCount: number
  /** Long requests that were answered in a second. */
  readonly longPerSecond: number
}

const LONG_AT_ONCE = 16
const SHORT_CONNECTIONS = 10
const SHORT_PER_SECOND = 60

/** Starts the server on that pool, drives it, and ends it. `long`: how many long requests. */
export async function drive(variant: Variant, long: number): Promise<Figures> {
  const server = fork(join(import.meta.dirname, 'server.ts'), [variant], { execArgv: [], stdio: 'inherit' })
  try {
    const [port] = (await once(server, 'message')) as [number]
    return await load(`http://127.0.0.1:${port}`, long)
  } finally {
    await end(server)
  }
}

async function load(url: string, amount: number): Promise<Figures> {
  let stop = (): void => undefined
  const short = new Promise<Result>((resolve, reject) => {
    const running = autocannon(
      {
        url,
        requests: [{ path: '/ping' }, { path: '/markdown' }],
        connections: SHORT_CONNECTIONS,
        overallRate: SHORT_PER_SECOND,
        duration: 120,
        timeout: 60,
      },
      (error, result) => (error ? reject(error as Error) : resolve(result)),
    )
    stop = () => running.stop()
  })
  const long = await autocannon({
    url: `${url}/resize`,
    connections: Math.min(LONG_AT_ONCE, amount),
    amount,
    timeout: 60,
  })
  stop()
  const { latency, non2xx, errors, '2xx': answered } = await short
  const wrong = non2xx + errors + long.non2xx + long.errors
  if (wrong > 0) throw new Error(`${wrong} requests failed`)
  return {
    shortP50: latency.p50,
    shortP99: latency.p99,
    shortCount: answered,
    longPerSecond: long['2xx'] / long.duration,
  }
}

async function end(server: ChildProcess): Promise<void> {
  const exited = once(server, 'exit')
  server.kill()
  await exited
}
