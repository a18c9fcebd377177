import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { transform } from 'esbuild'
import { afterAll, describe, expect, test } from 'vitest'

/** The kernel in a real browser, where there is one: the sources as they are, stripped of their types by the server. */
const chromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
const src = resolve(import.meta.dirname, '..')

/** Below the runner's own limit, so that it is told where. */
const SILENT_MS = 110_000

let server: Server | undefined
let browser: ChildProcess | undefined
let profile: string | undefined

afterAll(async () => {
  const gone = browser && new Promise(ended => browser?.once('exit', ended))
  browser?.kill('SIGKILL')
  await gone
  server?.close()
  if (profile !== undefined) rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
})

async function source(path: string): Promise<string> {
  const text = readFileSync(join(src, path), 'utf8')
  return (await transform(text, { loader: 'ts', target: 'esnext' })).code
}

/** Serves a page that runs the module, and resolves with what it tells. */
function pageSays(module: string, headers: Record<string, string>): Promise<Record<string, unknown>> {
  return new Promise((said, failed) => {
    const steps: string[] = []
    const giveUp = (): void =>
      failed(new Error(`the page fell silent after ${steps.join(', ') || 'nothing'}`))
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
    server = serving
    serving.listen(0, () => {
      const { port } = serving.address() as AddressInfo
      profile = mkdtempSync(join(tmpdir(), 'heddle-page-'))
      const quiet = ['--no-first-run', '--disable-background-networking', '--disable-component-update']
      const flags = [
        '--headless=new',
        '--no-sandbox',
        '--disable-gpu',
        `--user-data-dir=${profile}`,
        ...quiet,
      ]
      browser = spawn(chromium as string, [...flags, `http://localhost:${port}/`], { stdio: 'ignore' })
      browser.once('error', failed)
    })
  })
}

const isolated = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
}

describe.skipIf(chromium === undefined)('in a browser', () => {
  test('tasks run on Web Workers: every kind of function, children, failures, kills, CPUs that are replaced, and locks of dead ones', async () => {
    expect(await pageSays('/task/fixtures/page.ts', isolated)).toEqual({
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
})
