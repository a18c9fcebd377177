/** What is done with the snippets of each page: every block of code belongs to a file of a project, and every file is run or imported. */
export interface PageRun {
  /** What `heddle` is called with, in the project's folder. */
  readonly heddle: readonly string[]
  /** What the program must print. */
  readonly prints: RegExp
  /** What it must print on Node 20, which has no `module.registerHooks`, where that is another thing. */
  readonly onNode20?: RegExp
}

export interface PageProject {
  readonly page: string
  readonly runs: readonly PageRun[]
  /** Files that stand around snippets which need a context. */
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

/** Asks the server for much and then for little, and says which answer came first. */
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

const pool = `
import { fileURLToPath } from 'node:url'
const { default: Piscina } = await import('./piscina.ts')
const pool = new Piscina({ filename: fileURLToPath(new URL('./work.js', import.meta.url)), maxThreads: 1 })
console.log(await pool.run(20))
await pool.destroy()
`

export const projects: readonly PageProject[] = [
  {
    page: 'README.md',
    runs: [{ heddle: ['run', 'main.ts'], prints: /^168\n.*changed my mind/m }],
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
    runs: [{ heddle: ['run', 'pool.ts'], prints: /^21$/m }],
    harness: {
      'pool.ts': pool,
      'piscina.ts': 'SNIPPET\nexport default Piscina\n',
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
    runs: [{ heddle: ['run', 'client.mjs'], prints: /^at once, whatever else is being computed\n148933$/m }],
    harness: {
      'client.mjs': client
        .replace("import { registerHooks } from 'node:module'\n", '')
        .replace('const { createServer } = http\n', ''),
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
    page: 'docs/guides/testing.md',
    runs: [
      { heddle: ['check', '.'], prints: /two increments/, onNode20: /use Node 22\.15, 23\.5 or later/ },
      { heddle: ['run', 'program.test.ts'], prints: /^4$/m },
    ],
  },
]

/** Snippets that are not a program: a configuration that another tool reads, and code for a page alone. Both are compiled by `tsc` (test/docs.test.ts), and the matrix has them in full. */
export const notRun: readonly string[] = [
  'docs/guides/browser.md vite.config.js',
  'docs/guides/browser.md paint.ts',
]
