/**
 * How the snippets of each page are run: every block of code belongs to a file of a project, and every file
 * is run or imported.
 */
export interface PageRun {
  /** The arguments of `heddle`, in the project's folder. */
  readonly heddle: readonly string[]
  /** A command of the machine that the program needs. Without it the run is skipped with a message. */
  readonly needs?: string
  /** The expected output. */
  readonly prints: RegExp
  /** The expected output on Node 20, which has no `module.registerHooks`, if it differs. */
  readonly onNode20?: RegExp
}

export interface PageProject {
  readonly page: string
  readonly runs: readonly PageRun[]
  /** Files around snippets that need a context. */
  readonly harness?: Readonly<Record<string, string>>
}

const phases = `
import { Kernel } from 'heddle'
const kernel = await Kernel.boot({ cpus: 1 })
const work = await kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))
await kernel.spawn(work.phases)
console.log('marked')
await kernel.close()
`

/** Sends the server a long and a short request, and prints which answer came first. */
const client = `
import { registerHooks } from 'node:module'
import http from 'node:http'
const { createServer } = http
const listen = http.Server.prototype.listen
http.Server.prototype.listen = function () {
  return listen.call(this, 0, async () => {
    const { port } = this.address()
    const long = fetch('http://localhost:' + port + '/primes').then(answer => answer.text())
    const short = fetch('http://localhost:' + port + '/').then(answer => answer.text())
    console.log(await Promise.race([long, short]))
    console.log(await long)
    process.exit(0)
  })
}
await import('./server.ts')
`

/**
 * Drives a server of the guide: every CPU gets endless tasks, and short requests must still be answered. Then
 * the clients of the long ones disconnect, and the process gets SIGTERM. It ends only if the tasks were
 * stopped.
 */
const clientOf = (server: string): string => `
import http from 'node:http'
import { availableParallelism } from 'node:os'
// A server whose tasks were not stopped does not end after SIGTERM.
setTimeout(() => process.exit(1), 120_000).unref()
const log = console.log
const many = availableParallelism() + 1
const listening = withResolvers()
const begun = withResolvers()
const ended = withResolvers()
const stopped = []
console.log = text => {
  if (stopped.push(text) === many) ended.resolve()
}
let requests = 0
const { listen } = http.Server.prototype
http.Server.prototype.listen = function (...args) {
  this.once('listening', () => listening.resolve(this.address().port))
  this.on('request', () => {
    if (++requests === many) begun.resolve()
  })
  return listen.call(this, 0, '127.0.0.1', args.findLast(arg => typeof arg === 'function'))
}
await import('./${server}')
const url = 'http://127.0.0.1:' + (await listening.promise)
const ask = async (path, options) => (await fetch(url + path, options)).text()
const clients = Array.from({ length: many }, () => new AbortController())
const long = clients.map(({ signal }) => ask('/e/100000', { signal }).then(() => 'answered', error => error.name))
await begun.promise
log(await ask('/e/20'), await ask('/ping'))
for (const client of clients) client.abort()
log(new Set(await Promise.all(long)))
await ended.promise
log(new Set(stopped))
log(await ask('/e/30'))
process.once('exit', code => log('ended with ' + code))
process.kill(process.pid, 'SIGTERM')

function withResolvers() {
  let resolve
  const promise = new Promise(own => { resolve = own })
  return { promise, resolve }
}
`

/**
 * Gives a BullMQ worker an endless job: its lock must be renewed, and a short job must run beside it. Then
 * the job is cancelled, and the process must end after SIGTERM. Redis is a child process of this program.
 */
const queue = `
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Queue, QueueEvents } from 'bullmq'
const free = createServer().listen(0, '127.0.0.1')
const port = await new Promise(resolve => free.once('listening', () => resolve(free.address().port)))
await new Promise(resolve => free.close(resolve))
const folder = mkdtempSync(join(tmpdir(), 'heddle-redis-'))
const redis = spawn('redis-server', ['--port', port, '--bind', '127.0.0.1', '--save', '', '--dir', folder])
process.once('exit', code => {
  console.log('ended with ' + code)
  redis.kill('SIGKILL')
  rmSync(folder, { recursive: true })
})
// A job whose task was not stopped keeps the process alive.
setTimeout(() => process.exit(1), 120_000).unref()
process.env.REDIS_URL = 'redis://127.0.0.1:' + port
await new Promise(resolve => redis.stdout.on('data', text => /Ready to accept/.test(text) && resolve()))
const connection = { url: process.env.REDIS_URL }
const queue = new Queue('digits', { connection })
const events = new QueueEvents('digits', { connection })
await events.waitUntilReady()
const { worker } = await import('./worker.js')
worker.on('error', error => console.log(error.message))
worker.on('stalled', id => console.log('stalled ' + id))
const long = await queue.add('e', { digits: 100_000 })
const renewed = new Promise(resolve => {
  let count = 0
  worker.on('locksRenewed', ({ jobIds }) => {
    if (jobIds.includes(long.id) && ++count === 3) resolve(count)
  })
})
console.log('renewed ' + (await renewed) + ' times')
const short = await queue.add('e', { digits: 20 })
console.log(await short.waitUntilFinished(events))
console.log(await long.getState())
const failed = long.waitUntilFinished(events).then(() => 'finished', error => error.message)
console.log(worker.cancelJob(long.id, 'no longer wanted'), await failed)
await events.close()
await queue.close()
process.kill(process.pid, 'SIGTERM')
// Redis no longer keeps this process alive.
redis.unref()
for (const stream of redis.stdio) stream.destroy()
`

const piscina = `
import { fileURLToPath } from 'node:url'
const { default: Piscina } = await import('./pools.ts')
const pool = new Piscina({ filename: fileURLToPath(new URL('./work.js', import.meta.url)), maxThreads: 1 })
console.log(await pool.run(20))
await pool.destroy()
`

const pool = `${piscina}
const { workerpool } = await import('./pools.ts')
const workers = workerpool.pool({ maxWorkers: 1 })
console.log(await workers.exec(n => n + 2, [40]))
await workers.terminate()
`

export const projects: readonly PageProject[] = [
  {
    page: 'README.md',
    runs: [
      { heddle: ['run', 'main.ts'], prints: /^168\n.*changed my mind/m },
      { heddle: ['run', 'pool.ts'], prints: /^21\n$/m },
    ],
    harness: {
      'pool.ts': piscina,
      'pools.ts': 'SNIPPET\nexport default Piscina\n',
      'work.js': 'export default n => n + 1\n',
    },
  },
  {
    page: 'docs/futex.md',
    runs: [
      {
        heddle: ['run', 'main.ts'],
        prints: /^not-equal\ntimed-out\n2\n1\n\[ 'ok', 'ok' \]\nnot-equal\n1\n0\n1\n1\nok\n$/,
      },
    ],
  },
  {
    page: 'docs/start.md',
    runs: [
      { heddle: ['run', 'main.ts'], prints: /^78498$/m },
      { heddle: ['run', '--trace', 'out.pftrace', 'hogs.ts'], prints: /^the short one took [\d.]+ ms$/m },
      { heddle: ['run', 'more.ts'], prints: /^3000\nTimeoutError$/m },
      { heddle: ['run', '--sim', '--seed', '7', 'main.ts'], prints: /^78498$/m },
    ],
  },
  {
    page: 'docs/coming-from.md',
    runs: [{ heddle: ['run', 'pool.ts'], prints: /^21\n42$/m }],
    harness: {
      'pool.ts': pool,
      'pools.ts': 'SNIPPET\nexport { workerpool }\nexport default Piscina\n',
      'work.js': 'export default n => n + 1\n',
    },
  },
  { page: 'docs/guides/browser.md', runs: [{ heddle: ['run', 'main.ts'], prints: /^9592$/m }] },
  {
    page: 'docs/guides/cancel.md',
    runs: [{ heddle: ['run', 'main.ts'], prints: /^TimeoutError\nfinally ran$/m }],
  },
  {
    page: 'docs/guides/crashes.md',
    runs: [{ heddle: ['run', 'main.ts'], prints: /^CPU \d: exited\nthe task is lost, the kernel is not$/m }],
  },
  { page: 'docs/guides/map.md', runs: [{ heddle: ['run', 'main.ts'], prints: /^11$/m }] },
  {
    page: 'docs/guides/responsive.md',
    runs: [{ heddle: ['run', 'client.mjs'], prints: /^immediately, also during a computation\n148933$/m }],
    harness: {
      'client.mjs': client
        .replace("import { registerHooks } from 'node:module'\n", '')
        .replace('const { createServer } = http\n', ''),
    },
  },
  {
    page: 'docs/guides/servers.md',
    runs: [
      ...['express', 'fastify'].map(name => ({
        heddle: ['run', `client-${name}.mjs`],
        prints:
          /^2\.718281828459045235. pong\nSet\(1\) { 'AbortError' }\nSet\(1\) { '\/e\/100000 was stopped' }\n2\.71828182845904523536028747135\nended with 0$/m,
      })),
      {
        heddle: ['run', 'client-bullmq.mjs'],
        needs: 'redis-server',
        prints:
          /^renewed 3 times\n2\.7182818284590452354\nactive\ntrue cancelled: no longer wanted\nended with 0$/m,
      },
    ],
    harness: {
      'client-express.mjs': clientOf('express.js'),
      'client-fastify.mjs': clientOf('fastify.js'),
      'client-bullmq.mjs': queue,
    },
  },
  { page: 'docs/guides/share.md', runs: [{ heddle: ['run', 'main.ts'], prints: /^6\n1\n4\n9$/m }] },
  {
    page: 'docs/guides/slow.md',
    runs: [
      { heddle: ['run', 'metrics.ts'], prints: /^# TYPE heddle_/m },
      { heddle: ['run', 'phases.ts'], prints: /^marked$/m },
    ],
    harness: { 'phases.ts': phases },
  },
  {
    page: 'docs/guides/bugs.md',
    runs: [
      {
        heddle: ['check', '.'],
        prints: new RegExp(
          [
            '✗ coincident #26: lost wakeup',
            '✓ coincident #26, mended',
            '✗ lru-cache #274: uncaught exception in ann: a is undefined',
            '✓ lru-cache #274, mended',
            '✗ piscina #816: uncaught exception in \\w+: an idle worker has 1 task',
            '✓ piscina #816, mended',
            '✗ async-mutex #52: uncaught exception in watcher: waitForUnlock resolved, and the mutex is locked',
            '✓ async-mutex #52, mended',
            '✗ cds-dbs #1721: the final assertion failed: the pool has lost its connection',
            '✓ cds-dbs #1721, mended',
            '10 checks: 5 passed, 5 failed',
          ].join('[^]*'),
        ),
        onNode20: /use Node 22\.15, 23\.5 or later/,
      },
    ],
  },
  {
    page: 'docs/guides/testing.md',
    runs: [
      {
        heddle: ['check', '.'],
        prints: /✓ two increments[^]*✓ one seat, two buyers/,
        onNode20: /use Node 22\.15, 23\.5 or later/,
      },
      { heddle: ['run', 'program.test.ts'], prints: /^4$/m },
    ],
  },
]

/**
 * Snippets that are not a program: a configuration of another tool, and code for a page only. `tsc` compiles
 * both (test/docs.test.ts), and the matrix contains them in full. Those of Next.js were run by hand with the
 * version that the page names.
 */
export const notRun: readonly string[] = [
  'docs/guides/browser.md vite.config.js',
  'docs/guides/browser.md paint.ts',
  'docs/guides/testing.md vitest.config.ts',
  'docs/guides/testing.md vitest.compiled.config.ts',
  'docs/guides/servers.md next.config.js',
  'docs/guides/servers.md kernel.js',
  'docs/guides/servers.md route.js',
]
