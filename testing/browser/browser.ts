import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, resolve } from 'node:path'
import puppeteer, { type Browser, type Page } from 'puppeteer-core'
import { findChromium } from './chromium.ts'

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
  const { executablePath, env } = findChromium()
  return await puppeteer.launch({
    executablePath,
    env,
    headless: 'shell',
    args: ['--no-sandbox', '--disable-gpu'],
    protocolTimeout: 300_000,
  })
}

/** A page, and the errors that it has shown since it was opened. */
export interface WatchedPage {
  readonly page: Page
  /** Errors of the console, uncaught errors, failed requests. */
  readonly errors: string[]
}

/** Opens a page and collects its errors: a test expects none of them. */
export async function openPage(
  browser: Browser,
  url: string,
  { width = 1280, height = 800, dark = false }: { width?: number; height?: number; dark?: boolean } = {},
): Promise<WatchedPage> {
  const page = await browser.newPage()
  await page.setViewport({ width, height })
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }])
  const errors: string[] = []
  page.on('console', message => {
    if (message.type() === 'error') errors.push(message.text())
  })
  page.on('pageerror', error => errors.push(String((error as Error).message)))
  page.on('requestfailed', request => errors.push(`${request.url()}: ${request.failure()?.errorText}`))
  page.on('response', response => {
    if (response.status() >= 400) errors.push(`${response.status()}: ${response.url()}`)
  })
  await page.goto(url)
  return { page, errors }
}

/** A picture of the page in `test-screenshots`, for people: no test compares it. */
export async function keepScreenshot(page: Page, name: string): Promise<void> {
  const folder = resolve(import.meta.dirname, '../../test-screenshots')
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `${name}.png`) as `${string}.png` })
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
  '.css': 'text/css',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain',
  '.wasm': 'application/wasm',
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
