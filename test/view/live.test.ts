/** The page in a real browser: a running program, a trace of a million events, a kernel of the page. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { transform } from 'esbuild'
import type { Browser, Page } from 'puppeteer-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { isolated, keepScreenshot, openBrowser, openPage } from '../../testing/browser/browser.ts'
import { bigTrace } from '../../testing/view/bigtrace.ts'
import { pageScript } from '../../src/view/node-bundle.ts'
import { FileSource } from '../../src/view/node-filesource.ts'
import { serveView } from '../../src/view/node-server.ts'

const root = resolve(import.meta.dirname, '../..')
const fixtures = join(root, 'testing/view/fixtures')
const folder = mkdtempSync(join(tmpdir(), 'heddle-view-'))
let browser: Browser

/** Ends a program with all that it has started, unless it has ended. */
function endGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(async () => {
  await browser.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs `heddle run --view` and resolves with the address that it prints. */
function runViewed(program: string): Promise<{ url: string; said: () => string }> {
  const args = [join(root, 'src/cli/main.ts'), 'run', '--view', join(fixtures, program)]
  const child = spawn(process.execPath, args, { cwd: folder, detached: true })
  onTestFinished(() => endGroup(child))
  let said = ''
  return new Promise((found, failed) => {
    const hear = (text: Buffer): void => {
      said += text
      const url = /heddle view: (http\S+)/.exec(said)?.[1]
      if (url !== undefined) found({ url, said: () => said })
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('close', () => failed(new Error(`the command ended: ${said}`)))
  })
}

async function texts(page: Page, selector: string): Promise<string[]> {
  return await page.$$eval(`>>> ${selector}`, all => all.map(({ textContent }) => textContent ?? ''))
}

async function text(page: Page, selector: string): Promise<string> {
  return (await texts(page, selector)).join('|')
}

async function click(page: Page, selector: string): Promise<void> {
  await page.$eval(`>>> ${selector}`, element => (element as HTMLElement).click())
}

/** The window of the time line, in nanoseconds. */
async function shown(page: Page): Promise<{ from: number; span: number }> {
  return await page.$eval('>>> canvas.lanes', canvas => {
    const { from, span } = (canvas as HTMLElement).dataset
    return { from: Number(from), span: Number(span) }
  })
}

test('a running program: the time line moves, pauses and zooms; a task is killed after a question', async () => {
  const { url, said } = await runViewed('tasks.ts')
  const { page, errors } = await openPage(browser, url)
  await expect.poll(() => text(page, '.status')).toMatch(/tasks\.ts \(\d+\).*live/)
  await expect.poll(() => text(page, '.figures')).toMatch(/\d+ events/)

  const first = await shown(page)
  await expect.poll(async () => (await shown(page)).from).toBeGreaterThan(first.from)
  await page.focus('>>> canvas.lanes')
  await page.keyboard.press('Space')
  await expect.poll(() => text(page, '.tools button')).toContain('Go live')
  const paused = await shown(page)
  await page.mouse.move(700, 300)
  await page.mouse.wheel({ deltaY: -400 })
  await expect.poll(async () => (await shown(page)).span).toBeLessThan(paused.span)
  await page.keyboard.press('ArrowLeft')
  const zoomed = await shown(page)
  await expect.poll(async () => (await shown(page)).from).toBeLessThanOrEqual(zoomed.from)
  await page.keyboard.press('ArrowDown')
  await expect.poll(() => text(page, '.details')).toMatch(/running|runnable|preempted|asleep/)
  await keepScreenshot(page, 'view-live')

  await click(page, '#tab-tasks')
  await expect.poll(() => texts(page, '.rows .row .name')).toHaveLength(6)
  const named = await texts(page, '.rows .row .name')
  expect(named.some(name => name.startsWith('spin <img src=x onerror'))).toBe(true)
  expect(await page.$$('>>> .rows img')).toHaveLength(0)
  await page.$$eval('>>> .rows .row', rows =>
    (rows.find(row => row.textContent?.includes('spin two')) as HTMLElement).click(),
  )
  await expect.poll(() => text(page, 'aside h2')).toContain('spin two')
  await page.$$eval('>>> .controls button', all =>
    all.find(({ textContent }) => textContent === 'Stack')!.click(),
  )
  await expect.poll(() => text(page, '.stack')).toMatch(/at spin \(.*work\.ts:\d+/)
  await click(page, '.controls .danger')
  await expect.poll(() => text(page, 'dialog[open]')).toContain('Kill spin two?')
  await keepScreenshot(page, 'view-kill')
  // Cancel has the focus: Enter alone kills nothing.
  await page.keyboard.press('Enter')
  await expect.poll(() => texts(page, 'dialog[open]')).toHaveLength(0)
  await click(page, '.controls .danger')
  await expect.poll(() => texts(page, 'dialog[open] .danger')).toHaveLength(1)
  await click(page, 'dialog[open] .danger')
  await expect.poll(said).toContain('TaskKilledError')
  await expect.poll(() => texts(page, '.rows .row .name')).toHaveLength(5)
  expect(errors).toEqual([])
})

test('heddle view attaches to a program that runs already, and shows when it has ended', async () => {
  // The sockets of this test alone: without a process id the command finds the only program.
  const env = { ...process.env, HEDDLE_RUN_DIR: mkdtempSync(join(folder, 'run-')) }
  const start = (...args: string[]): ChildProcess => {
    const child = spawn(process.execPath, [join(root, 'src/cli/main.ts'), ...args], { env, detached: true })
    onTestFinished(() => endGroup(child))
    return child
  }
  const program = start('run', join(fixtures, 'tasks.ts'))
  const sockets = (): string[] => readdirSync(env.HEDDLE_RUN_DIR, { recursive: true, encoding: 'utf8' })
  await expect.poll(() => sockets().some(name => name.endsWith('.sock'))).toBe(true)
  let said = ''
  start('view', '--json').stdout!.on('data', (text: Buffer) => (said += text))
  await expect.poll(() => said).toContain('\n')
  const { page, errors } = await openPage(browser, (JSON.parse(said) as { url: string }).url)
  await click(page, '#tab-tasks')
  await expect.poll(() => texts(page, '.rows .row .name')).toHaveLength(6)
  process.kill(-program.pid!, 'SIGTERM')
  await expect.poll(() => text(page, '.status')).toContain('ended')
  await click(page, '#tab-timeline')
  await expect.poll(() => text(page, '.figures')).toMatch(/[1-9][\d,]* events/)
  expect(errors).toEqual([])
})

test('a deadlock is drawn as a circle, and a lent priority as a chain', async () => {
  const { url } = await runViewed('locks.ts')
  const { page, errors } = await openPage(browser, url, { dark: true })
  await click(page, '#tab-locks')
  await expect.poll(() => text(page, '.deadlock')).toMatch(/waits for mutex “accounts”/)
  const circle = await text(page, '.deadlock')
  expect(circle).toContain('transfer')
  expect(circle).toContain('report')
  expect(circle).toMatch(/at transfer \(.*work\.ts:\d+/)
  await expect.poll(() => text(page, '.block .drawing')).toContain('base 160, lent 96')
  await keepScreenshot(page, 'view-locks')
  expect(errors).toEqual([])
})

test('a trace of a million events opens, is searched, zoomed and pointed at', async () => {
  const file = join(folder, 'million.pftrace')
  writeFileSync(file, bigTrace(1_000_000))
  const server = await serveView(new FileSource(file))
  onTestFinished(() => server.close())
  const { page, errors } = await openPage(browser, server.url)
  await expect.poll(() => text(page, '.figures')).toMatch(/1,000,\d\d\d events/)
  await expect.poll(async () => (await shown(page)).span).toBeGreaterThan(1e9)
  await page.type('>>> .finder input', 'worker 17')
  await expect.poll(() => text(page, '#findings li')).toContain('worker 17')
  await page.keyboard.press('Enter')
  await expect.poll(() => text(page, '.tools')).toContain('Clear 1 chosen task')
  const whole = await shown(page)
  await page.focus('>>> canvas.lanes')
  for (let n = 0; n < 24; n++) await page.keyboard.press('+')
  await expect.poll(async () => (await shown(page)).span).toBeLessThan(whole.span / 100)
  await page.mouse.move(700, 95 + 30)
  await expect
    .poll(() => text(page, '.details'))
    .toMatch(/worker \d+: running on CPU \d.*How long.*Cause.*Ended/)
  await page.keyboard.press('0')
  await expect.poll(async () => (await shown(page)).span).toBeGreaterThan(1e9)
  await keepScreenshot(page, 'view-million')
  await click(page, '#tab-tasks')
  await expect.poll(() => text(page, '.tablepane .tools')).toContain('200 tasks')
  expect((await texts(page, '.rows .row')).length).toBeLessThan(60)
  expect(errors).toEqual([])
  await server.close()
  await expect.poll(() => text(page, '.status')).toContain('ended')
})

test('a file that is no trace is named, with what to open instead', async () => {
  const file = join(folder, 'notes.txt')
  writeFileSync(file, 'hello, <b>this</b> is no trace')
  const server = await serveView(new FileSource(file))
  onTestFinished(() => server.close())
  const { page } = await openPage(browser, server.url)
  await expect
    .poll(() => text(page, '.empty'))
    .toMatch(/This is no trace.*notes\.txt is not a trace.*heddle run --trace/)
})

test('mountView shows the kernel of a page inside one of its elements', async () => {
  const bundle = await pageScript()
  const server = createServer((request, response) => {
    for (const [name, value] of Object.entries(isolated)) response.setHeader(name, value)
    const path = request.url ?? '/'
    if (path === '/') {
      response.setHeader('content-type', 'text/html')
      response.end(
        '<!doctype html><body><script type="module" src="/testing/view/fixtures/mounted.ts"></script>',
      )
      return
    }
    response.setHeader('content-type', 'text/javascript')
    if (path === '/view/page.tsx') response.end(bundle)
    else if (!path.endsWith('.ts')) response.end()
    else {
      const source = readFileSync(join(root, path), 'utf8')
      void transform(source, { loader: 'ts', target: 'esnext' }).then(({ code }) => response.end(code))
    }
  })
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const { page, errors } = await openPage(browser, `http://localhost:${port}/`)
  await expect
    .poll(async () => [await page.evaluate('globalThis.said !== undefined'), ...errors], { timeout: 60_000 })
    .toEqual([true])
  await expect.poll(() => text(page, '.status')).toContain('in a page')
  await click(page, '#tab-tasks')
  await expect.poll(() => text(page, '.rows .row .name')).toContain('nap 1')
  await click(page, '#tab-timeline')
  await expect.poll(() => text(page, '.figures')).toMatch(/[1-9][\d,]* events/)
  await keepScreenshot(page, 'view-mounted')
  await page.evaluate('closeView()')
  expect(await page.$$('>>> .app')).toHaveLength(0)
  expect(errors).toEqual([])
})
