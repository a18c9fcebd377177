/**
 * A server that computes with libraries which do not use heddle (decimal.js, marked). The option `compile`
 * names them and makes them preemptible: short requests do not wait behind long ones, and a task ends when
 * its client leaves.
 *
 *     npm run example unmarked-libraries
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Kernel, type ModuleView } from '../src/index.ts'
import { waiting } from './terminal/waiting.ts'

type Work = typeof import('./unmarked-libraries/work.ts')

const DIGITS = 1000
const LONG = 6
const SHORT = 12
const text = '# Hello\n\nA *short* page with a [link](https://example.com) and\n\n- a list\n- of two\n'
const work = new URL('./unmarked-libraries/work.ts', import.meta.url)

/** A server, and a kernel that compiles these packages and files. */
class Site implements AsyncDisposable {
  readonly kernel: Kernel
  /** Resolves when a client has left and its task has ended. */
  readonly stopped: Promise<void>
  private readonly server = createServer()

  private constructor(kernel: Kernel, functions: ModuleView<Work>) {
    this.kernel = kernel
    this.stopped = new Promise(resolve => {
      this.server.on('request', async (request, response) => {
        const [, route, digits] = request.url!.split('/')
        const client = new AbortController()
        response.once('close', () => client.abort(new Error('the client is gone')))
        const { signal } = client
        try {
          const body =
            route === 'e'
              ? await kernel.spawn(functions.euler, [Number(digits)], { signal })
              : await kernel.spawn(functions.page, [text], { signal })
          response.end(body)
        } catch (error) {
          if (!signal.aborted) throw error
          resolve()
        }
      })
    })
  }

  static async open(compile: readonly (string | URL)[]): Promise<Site> {
    const kernel = await Kernel.boot({ cpus: 2, compile })
    // Without a listener the kernel would warn of each task that keeps its CPU.
    kernel.on('stuck', () => undefined)
    const site = new Site(kernel, await kernel.import<Work>(work))
    site.server.listen(0, '127.0.0.1')
    await once(site.server, 'listening')
    return site
  }

  /** Requests a page; returns the milliseconds until it has arrived. */
  async ask(path: string, signal?: AbortSignal): Promise<number> {
    const { port } = this.server.address() as AddressInfo
    const from = performance.now()
    await (await fetch(`http://127.0.0.1:${port}${path}`, { signal })).text()
    return performance.now() - from
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.close()
    this.server.closeAllConnections()
    await this.kernel.close()
  }
}

async function pagesBesideLongTasks(site: Site): Promise<string> {
  await Promise.all([site.ask('/e/50'), site.ask('/page')])
  let running = LONG
  const long = Array.from({ length: LONG }, () => site.ask(`/e/${DIGITS}`).finally(() => running--))
  await new Promise(resolve => setTimeout(resolve, 50))
  const times: number[] = []
  for (let n = 0; n < SHORT; n++) times.push(await site.ask('/page'))
  const stillRunning = running
  await Promise.all(long)
  const slowest = Math.max(...times).toFixed(0)
  return `the slowest page took ${slowest} ms; after the last one ${stillRunning} of ${LONG} long tasks were running`
}

console.log(
  `${LONG} clients want e to ${DIGITS} digits, and another one asks for ${SHORT} short pages meanwhile`,
)
console.log('Kernel.boot({ cpus: 2 })')
{
  await using site = await Site.open([])
  console.log(`  ${await waiting('requests', pagesBesideLongTasks(site))}`)
}
console.log("Kernel.boot({ cpus: 2, compile: ['decimal.js', 'marked', work] })")
{
  await using site = await Site.open(['decimal.js', 'marked', work])
  console.log(`  ${await waiting('requests', pagesBesideLongTasks(site))}`)
  const client = new AbortController()
  const asked = site.ask('/e/100000', client.signal).catch((error: Error) => error.name)
  setTimeout(() => client.abort(), 200)
  await asked
  const left = performance.now()
  await site.stopped
  console.log(`  a client leaves: its task ended ${(performance.now() - left).toFixed(0)} ms later`)
}
