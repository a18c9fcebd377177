/** The live pages of the documentation's site, in a real browser. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'puppeteer-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildLivePages } from '../../scripts/livepages.ts'
import { keepScreenshot, openBrowser, openPage, serveFolder } from '../../testing/browser/browser.ts'

const folder = mkdtempSync(join(tmpdir(), 'heddle-live-'))
let browser: Browser
let site: { url: string; close(): void }

beforeAll(async () => {
  await buildLivePages(folder)
  browser = await openBrowser()
  // A host that sends no headers: the service worker of the pages adds them.
  site = await serveFolder(folder, {})
})
afterAll(async () => {
  await browser.close()
  site.close()
  rmSync(folder, { recursive: true, force: true })
})

const text = (page: Page, selector: string): Promise<string> =>
  page.$$eval(selector, all => all.map(({ textContent }) => textContent ?? '').join('|'))

/** The text of the status, also while the page loads once more. */
const stateOf = (page: Page): Promise<string> => text(page, '#state').catch(() => '')

test('a reader runs a real kernel, with preemption and without, and sees both on the time line', async () => {
  const { page, errors } = await openPage(browser, `${site.url}scheduler.html`, { height: 1000 })
  await expect.poll(() => stateOf(page)).toBe('Ready.')
  expect(await page.evaluate('crossOriginIsolated')).toBe(true)
  await page.tracing.start()
  await page.click('#run')
  await expect.poll(() => stateOf(page)).toContain('All tasks have ended. Now turn preemption off')
  await expectTracks(await page.tracing.stop())
  await keepScreenshot(page, 'site-scheduler')
  await page.click('#preempt')
  await page.click('#run')
  await expect.poll(() => stateOf(page)).toContain('All tasks have ended. Now turn it on')
  expect(await text(page, '#results tbody tr td:first-child')).toBe('with preemption|without preemption')
  // Without preemption a hog ends before the short task begins.
  expect(await text(page, '.ended')).toMatch(/^0 of 4 hogs ended before it\|[1-4] of 4 hogs ended before it$/)
  await keepScreenshot(page, 'site-scheduler-off')
  expect(errors).toEqual([])
  await page.close()
})

/** The profile has the kernel's tracks: CPUs with tasks, and tasks with states. */
async function expectTracks(profile: Uint8Array | undefined): Promise<void> {
  const { traceEvents } = JSON.parse(new TextDecoder().decode(profile)) as {
    traceEvents: { name: string; args?: { data?: { name?: string; track?: string; trackGroup?: string } } }[]
  }
  const entries = traceEvents
    .filter(({ name, args }) => name === 'TimeStamp' && args?.data?.trackGroup === 'heddle')
    .map(({ args }) => `${args?.data?.track}: ${args?.data?.name}`)
  for (const part of [/^CPU \d: hog 1$/, /^hog 1: running on CPU \d$/, /^short task: running/])
    expect(entries).toContainEqual(expect.stringMatching(part))
}

test('a reader edits a check and explores it in the browser', async () => {
  const { page, errors } = await openPage(browser, `${site.url}checker.html`, { height: 1100 })
  await expect.poll(() => stateOf(page)).toBe('Ready.')
  await page.click('#run')
  await expect.poll(() => stateOf(page)).toBe('two increments are two: failed')
  await page.waitForSelector('>>> .steps')
  expect(await text(page, '>>> .step.marked b')).toBe('write|read')
  expect(await page.evaluate('scrollY')).toBe(0)
  await keepScreenshot(page, 'site-checker')

  // The steps run again in another order, in the worker of the page.
  await page.focus('>>> .rows')
  await page.keyboard.press('End')
  await page.keyboard.down('Alt')
  await page.keyboard.press('Home')
  await page.keyboard.up('Alt')
  await expect.poll(() => text(page, '>>> .note')).toContain('Step 3 earlier, as step 1: possible.')

  // With atomic adds it passes.
  const edit = (from: string, to: string): Promise<void> =>
    page.$eval(
      '#code',
      (field, a, b) => {
        const area = field as HTMLTextAreaElement
        area.value = area.value.replace(a as string, b as string)
      },
      from,
      to,
    )
  await edit('memory[0] = memory[0] + 1', 'Atomics.add(memory, 0, 1)')
  await page.focus('#code')
  await page.keyboard.down('Control')
  await page.keyboard.press('Enter')
  await page.keyboard.up('Control')
  await expect.poll(() => stateOf(page)).toBe('two increments are two: passed')
  await expect.poll(() => text(page, '>>> .progress')).toContain('Complete: every interleaving is covered.')

  // Errors of the text are shown, with their place.
  await edit('Atomics.add(', 'Atomics.add((')
  await page.click('#run')
  await expect.poll(() => text(page, '#error')).toContain('page.check.js:5')
  await page.select('#example', 'A lost wakeup')
  await expect.poll(() => stateOf(page)).toBe('the sleeper wakes: failed')
  await page.select('#example', 'A lock that works')
  await expect.poll(() => stateOf(page)).toBe('a lock keeps two threads apart: passed')
  expect(errors).toEqual([])
  await page.close()
})
