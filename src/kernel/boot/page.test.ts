import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { transform } from 'esbuild'
import type { Browser } from 'puppeteer-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openBrowser } from '../../../testing/browser/browser.ts'

/** The kernel in a real browser: the server only strips the types of the sources. */
const root = resolve(import.meta.dirname, '../../..')

/** Less than the runner's own limit, so that the error names the last step. */
const SILENT_MS = 110_000

let browser: Browser
const servers: Server[] = []

beforeAll(async () => {
  browser = await openBrowser()
})

afterAll(async () => {
  await browser.close()
  for (const server of servers) server.close()
})

async function source(path: string): Promise<string> {
  const text = readFileSync(join(root, path), 'utf8')
  return (await transform(text, { loader: 'ts', target: 'esnext' })).code
}

/** Serves a page that runs the module. Resolves with its report. */
function pageSays(module: string, headers: Record<string, string>): Promise<Record<string, unknown>> {
  return new Promise((said, failed) => {
    const steps: string[] = []
    const giveUp = (): void =>
      failed(new Error(`the page reported nothing more after ${steps.join(', ') || 'its start'}`))
    AbortSignal.timeout(SILENT_MS).addEventListener('abort', giveUp)
    const serving = createServer((request, response) => {
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
      const path = request.url ?? '/'
      if (request.method === 'POST') {
        let body = ''
        request.on('data', part => (body += part))
        request.on('end', () => {
          response.end()
          if (path === '/step') steps.push(JSON.parse(body))
          else said(JSON.parse(body) as Record<string, unknown>)
        })
      } else if (path === '/') {
        response.setHeader('content-type', 'text/html')
        response.end(`<script type="module" src="${module}"></script>`)
      } else {
        source(path).then(
          code => {
            response.setHeader('content-type', 'text/javascript')
            response.end(code)
          },
          () => {
            response.statusCode = 404
            response.end()
          },
        )
      }
    })
    servers.push(serving)
    serving.listen(0, '127.0.0.1', () => {
      const { port } = serving.address() as AddressInfo
      void open(`http://localhost:${port}/`).catch(failed)
    })
  })
}

async function open(url: string): Promise<void> {
  const page = await browser.newPage()
  page.on('pageerror', error => console.error(error))
  await page.goto(url)
}

const isolated = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
}

describe('in a browser', () => {
  test('tasks run on Web Workers: every kind of function, children, failures, kills, replaced CPUs, and locks of dead CPUs', async () => {
    expect(await pageSays('/testing/kernel/fixtures/page.ts', isolated)).toEqual({
      add: 3,
      naps: 'slept',
      later: 'later',
      family: 12,
      fails: 'RangeError: on a page',
      shared: [2, 7],
      returned: [9, 1, 7],
      inherited: 9,
      cell: [1, 7],
      killed: 'TaskKilledError: task forever was killed: enough',
      evicted:
        'TaskKilledError: task stubborn was killed, did not end within the grace period, and lost its CPU: now',
      back: 'restarted',
      many: 20_100,
      again: 5,
      priority: 'high',
      holder: expect.stringMatching(/^CpuLostError: /),
    })
  })

  const policies: Record<string, Record<string, string>> = {
    'the two headers': isolated,
    'a document isolation policy': { 'Document-Isolation-Policy': 'isolate-and-require-corp' },
  }

  test.each(Object.keys(policies))(
    'on a page isolated by %s, a task receives a canvas, a picture, a stream and a port',
    async policy => {
      expect(await pageSays('/testing/kernel/fixtures/transferpage.ts', policies[policy]!)).toEqual({
        isolated: true,
        canvas: 8,
        pixel: '1,200,3',
        picture: [3, 2],
        emptied: 0,
        stream: 20,
        port: 21,
        forgotten: expect.stringMatching(/MessagePort.*transfer/),
      })
    },
  )

  test('a page that is not isolated has coroutines, and an error says how to isolate it', async () => {
    expect(await pageSays('/testing/kernel/fixtures/plainpage.ts', {})).toEqual({
      isolated: false,
      boot: expect.stringMatching(
        /Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp.*Document-Isolation-Policy: isolate-and-require-corp.*new Schedule\(\)/,
      ),
      lock: expect.stringMatching(/^new Mutex: the page has no shared memory.*Cross-Origin-Opener-Policy/),
      counted: 3e6,
      turned: true,
    })
  })
})
