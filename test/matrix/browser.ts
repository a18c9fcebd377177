import { existsSync, readFileSync, statSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import chromium from '@sparticuz/chromium'
import puppeteer, { type Browser } from 'puppeteer-core'

/** A page that reports nothing for this long has hung: a normal page takes less than a tenth. */
const PATIENCE_MS = 120_000

export type BrowserName = 'chromium' | 'firefox'

/** Possible paths of Firefox, which no package contains. */
export const firefox: string | undefined = [
  process.env.HEDDLE_FIREFOX,
  '/usr/bin/firefox',
  '/usr/bin/firefox-esr',
].find(path => path !== undefined && existsSync(path))

/** Starts a browser with ordinary flags: the page decides whether it is isolated. */
export async function openBrowser(name: BrowserName = 'chromium'): Promise<Browser> {
  if (name === 'firefox') {
    if (firefox === undefined) throw new Error('no Firefox is installed; set HEDDLE_FIREFOX to its path')
    return await puppeteer.launch({ browser: 'firefox', executablePath: firefox, headless: true })
  }
  // A browser of the machine is preferred to that of the package.
  const executablePath = process.env.HEDDLE_CHROMIUM ?? (await chromium.executablePath())
  return await puppeteer.launch({
    executablePath,
    headless: 'shell',
    args: ['--no-sandbox', '--disable-gpu'],
    protocolTimeout: 300_000,
  })
}

/** Both headers that a page needs for shared memory. */
export const isolated: Readonly<Record<string, string>> = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.txt': 'text/plain',
}

/** Serves a folder on the loopback interface. */
export async function serveFolder(
  folder: string,
  headers: Readonly<Record<string, string>> = isolated,
): Promise<{ url: string; close(): void }> {
  const server: Server = createServer((request, response) => {
    const path = join(folder, decodeURI(new URL(request.url ?? '/', 'http://localhost').pathname))
    const file = existsSync(path) && statSync(path).isDirectory() ? join(path, 'index.html') : path
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    if (!existsSync(file)) {
      response.statusCode = 404
      response.end()
      return
    }
    response.setHeader('content-type', types[extname(file)] ?? 'application/octet-stream')
    response.end(readFileSync(file))
  })
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  return { url: `http://localhost:${port}/`, close: () => server.close() }
}

/**
 * The final report of a page (`globalThis.said`), as JSON. Without a report, throws the errors of the page.
 */
export async function pageSays(
  browser: Browser,
  url: string,
  patience: number = PATIENCE_MS,
): Promise<string> {
  const page = await browser.newPage()
  const heard: string[] = []
  page.on('console', message => heard.push(`console.${message.type()}: ${message.text()}`))
  page.on('pageerror', error => heard.push(String((error as Error).message)))
  page.on('requestfailed', request => heard.push(`failed: ${request.url()} ${request.failure()?.errorText}`))
  page.on('response', response => {
    if (response.status() >= 400) heard.push(`${response.status()}: ${response.url()}`)
  })
  try {
    await page.goto(url)
    await page.waitForFunction('globalThis.said !== undefined', { timeout: patience })
    return JSON.stringify(await page.evaluate('globalThis.said'))
  } catch (error) {
    throw new Error(`${url}: ${(error as Error).message}\n${heard.join('\n')}`, { cause: error })
  } finally {
    await page.close()
  }
}
