import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'puppeteer-core'
import { FileSource } from '../src/view/node-filesource.ts'
import { serveView } from '../src/view/node-server.ts'
import { openBrowser, openPage } from '../testing/browser/browser.ts'
import { bigTrace } from '../testing/view/bigtrace.ts'
import { BusySource } from '../testing/view/busysource.ts'
import { measure, type Row } from './harness.ts'

/**
 * The page of the view in a real browser. `frame` is CPU time of the page's main thread, so that other load
 * on the machine does not count; a frame at 60 a second has 16.7 ms. `open-million` is the time from the
 * request for the page until a trace of a million events is drawn.
 */
const FRAMES_MS = 4000

interface Metrics {
  readonly metrics: readonly { readonly name: string; readonly value: number }[]
}

/** Milliseconds of CPU time of the main thread for each frame that was drawn meanwhile. */
async function frameCost(page: Page): Promise<number> {
  const session = await page.createCDPSession()
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const read = async (): Promise<number> => {
    const { metrics } = (await session.send('Performance.getMetrics')) as Metrics
    return metrics.find(({ name }) => name === 'TaskDuration')!.value * 1000
  }
  const before = await read()
  const frames = (await page.evaluate(
    `new Promise(done => {
      let frames = 0
      const until = performance.now() + ${FRAMES_MS}
      const next = () => (frames++, performance.now() < until ? requestAnimationFrame(next) : done(frames))
      requestAnimationFrame(next)
    })`,
  )) as number
  const spent = (await read()) - before
  await session.detach()
  return spent / frames
}

async function openMillion(browser: Browser, url: string): Promise<number> {
  const begun = performance.now()
  const { page } = await openPage(browser, url)
  await page.waitForFunction(
    `(() => {
      const root = document.body.firstElementChild?.shadowRoot
      const span = Number(root?.querySelector('canvas.lanes')?.dataset.span)
      return span > 1e9 && /1,000,/.test(root.querySelector('.figures')?.textContent)
    })()`,
    { polling: 'raf' },
  )
  const taken = performance.now() - begun
  await page.close()
  return taken
}

export async function* rows(): AsyncGenerator<Row> {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-viewbench-'))
  const browser = await openBrowser()
  try {
    const busy = await serveView(new BusySource(8, 10_000))
    const { page } = await openPage(browser, busy.url)
    await page.waitForSelector('>>> canvas.lanes')
    await new Promise(resolve => setTimeout(resolve, 3000))
    yield await measure('view/frame', 'ms', () => frameCost(page), { rounds: 5, target: { valueMost: 16.7 } })
    await page.close()
    await busy.close()
    const file = join(folder, 'million.pftrace')
    writeFileSync(file, bigTrace(1_000_000))
    const recorded = await serveView(new FileSource(file))
    const open = (): Promise<number> => openMillion(browser, recorded.url)
    yield await measure('view/open-million', 'ms', open, { rounds: 5, target: { valueMost: 2000 } })
    await recorded.close()
  } finally {
    await browser.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
