/** The panel of a simulation in a real browser: `heddle run --sim --view`. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'puppeteer-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { keepScreenshot, openBrowser, openPage } from '../../testing/browser/browser.ts'

const root = join(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'heddle-simview-'))
let browser: Browser

beforeAll(async () => {
  browser = await openBrowser()
  writeFileSync(
    join(folder, 'work.ts'),
    `export function hog(n: number): number {
      'use task'
      let x = 0
      for (let i = 0; i < n; i++) x = (x * 31 + i) | 0
      return x
    }`,
  )
  writeFileSync(
    join(folder, 'main.ts'),
    `import { Kernel } from '${root}/src/index.ts'
    await using kernel = await Kernel.boot()
    const work = await kernel.import(new URL('./work.ts', import.meta.url))
    const hogs = [1, 2, 3, 4].map(n => kernel.spawn(work.hog, [4e6], { name: 'hog ' + n }))
    console.log('sum', (await Promise.all(hogs)).length)`,
  )
})
afterAll(async () => {
  await browser.close()
  rmSync(folder, { recursive: true, force: true })
})

function served(...args: string[]): Promise<{ url: string; said: () => string }> {
  const child = spawn(process.execPath, [join(root, 'src/cli/main.ts'), ...args], { cwd: folder })
  onTestFinished(() => void child.kill('SIGTERM'))
  let said = ''
  return new Promise((resolve, reject) => {
    const hear = (text: Buffer): void => {
      said += text
      const url = /heddle view: (http\S+)/.exec(said)?.[1]
      if (url !== undefined) resolve({ url, said: () => said })
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('close', () => reject(new Error(`the command ended: ${said}`)))
  })
}

async function text(page: Page, selector: string): Promise<string> {
  const all = await page.$$eval(`>>> ${selector}`, found => found.map(({ textContent }) => textContent ?? ''))
  return all.join('|')
}

const steps = async (page: Page): Promise<number> =>
  Number(/([\d,]+) steps/.exec(await text(page, '.clock'))![1].replaceAll(',', ''))

/** Presses a key and waits until the machine has taken steps and stands again. */
async function press(page: Page, key: '.' | 's' | 'l'): Promise<number> {
  const before = await steps(page)
  await page.keyboard.press(key)
  await expect.poll(() => steps(page)).toBeGreaterThan(before)
  await expect.poll(() => text(page, '.note')).toContain('Paused')
  return (await steps(page)) - before
}

/** The running tasks after each of some switches. */
async function switches(page: Page, count: number): Promise<string[]> {
  const seen: string[] = []
  for (let n = 0; n < count; n++) {
    await press(page, 's')
    seen.push(`${await text(page, '.now')} ${await text(page, '.clock')}`)
  }
  return seen
}

test('virtual CPUs advance by the step, the switch and the slice; a seed starts the program again', async () => {
  const { url, said } = await served('run', '--sim', '--slice', '1', '--view', 'main.ts')
  const { page, errors } = await openPage(browser, url)
  await expect.poll(() => text(page, '.note')).toContain('Paused')
  expect(await press(page, '.')).toBe(1)
  const first = await switches(page, 8)
  expect(first.join()).toContain('hog')
  // Two CPUs and four hogs: a slice takes many steps, and ends with another task.
  expect(await press(page, 'l')).toBeGreaterThan(1)
  await switches(page, 4)
  expect(await text(page, '.simtasks tbody')).toContain('runnable')
  await keepScreenshot(page, 'simulation')

  // On without a stop, to the end.
  await page.keyboard.press('r')
  await expect.poll(() => text(page, '.note')).toContain('ended with exit code 0')
  expect(said()).toContain('sum 4')

  // The same seed does the same; another one, by a click, does something else.
  await page.$$eval('>>> .seed button', all => (all[0] as HTMLElement).click())
  await expect.poll(() => text(page, '.note')).toContain('Paused')
  expect(await press(page, '.')).toBe(1)
  expect(await switches(page, 8)).toEqual(first)
  await page.$$eval('>>> .seed button', all => (all[1] as HTMLElement).click())
  await expect.poll(() => page.$eval('>>> .seed input', field => (field as HTMLInputElement).value)).toBe('2')
  await expect.poll(() => text(page, '.note')).toContain('Paused')
  await press(page, '.')
  expect(await switches(page, 8)).not.toEqual(first)
  expect(errors).toEqual([])
  await page.close()
})
