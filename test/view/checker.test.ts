/** The checker's panel in a real browser: `heddle check --view`, and `heddle view` of a saved failure. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'puppeteer-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { keepScreenshot, openBrowser, openPage } from '../../testing/browser/browser.ts'

const root = join(import.meta.dirname, '../..')
/** By name: this file itself is no check. */
const checker = join(root, 'src/checker/check.ts')
const folder = mkdtempSync(join(tmpdir(), 'heddle-checkview-'))
let browser: Browser

beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(async () => {
  await browser.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Two threads count without order; the text is HTML, and the page must show it as text. */
const racing = `import { check } from '${checker}'

check('two <b>increments</b> are two', {}, () => {
  const memory = new Int32Array(new SharedArrayBuffer(8))
  const add = () => {
    memory[0] = memory[0] + 1
  }
  return { threads: { one: add, two: add, '<img src=x>': () => Atomics.store(memory, 1, 1) } }
})
`

/** A sleeper that misses its wakeup, because the ringer rings before it changes the word. */
const bell = `import { check } from '${checker}'

check('the sleeper is woken', {}, () => {
  const memory = new Int32Array(new SharedArrayBuffer(8))
  return {
    threads: {
      sleeper: () => {
        if (Atomics.load(memory, 0) === 0) Atomics.wait(memory, 0, 0)
        Atomics.load(memory, 1)
      },
      ringer: () => {
        Atomics.notify(memory, 0)
        Atomics.store(memory, 0, 1)
      },
    },
  }
})
`

/** Two threads that never end: each undoes the change of the other. */
const livelock = `import { check } from '${checker}'

check('they never end', { steps: 2000, allowIncomplete: true, rerun: false, shrink: 0 }, () => {
  const memory = new Int32Array(new SharedArrayBuffer(8))
  return {
    threads: {
      up: () => { for (;;) Atomics.add(memory, 0, 1) },
      down: () => { for (;;) Atomics.sub(memory, 0, 1) },
    },
  }
})
`

const long = `import { check } from '${checker}'

check('one lock after the other', { rerun: false }, () => {
  const memory = new Int32Array(new SharedArrayBuffer(8))
  const add = () => { for (let i = 0; i < 6; i++) Atomics.add(memory, 0, 1) }
  return { threads: [add, add, add] }
})
`

function checkFile(name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

/** Starts a command that serves a page. Resolves with the address. */
function served(...args: string[]): Promise<{ url: string; child: ChildProcess; said: () => string }> {
  const child = spawn(process.execPath, [join(root, 'src/cli/main.ts'), ...args], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  return new Promise((resolve, reject) => {
    const hear = (text: Buffer): void => {
      said += text
      const url = /heddle view: (http\S+)/.exec(said)?.[1]
      if (url !== undefined) resolve({ url, child, said: () => said })
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('close', () => reject(new Error(`the command ended: ${said}`)))
  })
}

async function texts(page: Page, selector: string): Promise<string[]> {
  return await page.$$eval(`>>> ${selector}`, all => all.map(({ textContent }) => textContent ?? ''))
}

async function text(page: Page, selector: string): Promise<string> {
  return (await texts(page, selector)).join('\n')
}

describe('heddle check --view', () => {
  test('shows a failing execution: threads, steps, the racing pair, words and the source', async () => {
    const { url, child, said } = await served('check', checkFile('race.check.ts', racing), '--view')
    const { page, errors } = await openPage(browser, url)
    await page.waitForSelector('>>> .steps')
    expect(await texts(page, '.threads .thread')).toEqual(['one', 'two', '<img src=x>'])
    expect(await text(page, 'h2')).toContain('two <b>increments</b> are two')
    expect(await text(page, '.end')).toContain('data race between one')
    const steps = await texts(page, '.step')
    expect(steps).toHaveLength(3)
    expect(steps[1]).toContain('write memory[0] = 1')
    expect(await texts(page, '.step.marked .number')).toEqual(['▶ 2', '▶ 3'])
    expect(await page.$$('>>> path.race')).toHaveLength(1)
    // The selected step is the last of the pair: its line is beside it.
    expect(await text(page, '.source li.here')).toContain('memory[0] = memory[0] + 1')
    expect(await text(page, '.words')).toContain('memory[0]')
    await keepScreenshot(page, 'checker-race')

    // Back, by the button and by the keys.
    await page.click('>>> .bar button')
    expect(await text(page, '.step.selected .number')).toContain('2')
    expect(await text(page, '.words td')).toBe('0 1')
    await page.focus('>>> .rows')
    await page.keyboard.press('Home')
    expect(await text(page, '.step.selected .number')).toBe('1')
    await page.keyboard.press('End')
    expect(await text(page, '.step.selected .number')).toContain('3')
    expect(errors).toEqual([])

    child.removeAllListeners('close')
    const ended = new Promise(resolve => child.on('close', resolve))
    child.kill('SIGINT')
    expect(await ended).toBe(1)
    expect(said()).toContain('1 check: 0 passed, 1 failed')
    await page.waitForFunction(
      () => document.body.firstElementChild?.shadowRoot?.querySelector('.status.ended') !== null,
    )
    await page.close()
  })

  test('a step is dragged to another place: the page says whether that is possible, and how it ends', async () => {
    const { url } = await served('check', checkFile('bell.check.ts', bell), '--view')
    const { page, errors } = await openPage(browser, url, { dark: true })
    await page.waitForSelector('>>> .steps')
    await canBeReordered(page)
    await keepScreenshot(page, 'checker-moved-dark')
    expect(errors).toEqual([])
    await page.close()
  })

  test('an execution of thousands of steps has elements for the rows in sight only', async () => {
    const { url } = await served('check', checkFile('livelock.check.ts', livelock), '--view')
    const { page, errors } = await openPage(browser, url)
    await page.waitForSelector('>>> .steps')
    expect(await text(page, '.end')).toContain('livelock')
    await page.focus('>>> .rows')
    for (const [key, row] of [
      ['Home', '1'],
      ['End', '4000'],
    ] as const) {
      await page.keyboard.press(key)
      await expect.poll(() => text(page, '.step.selected .number')).toBe(row)
      expect((await page.$$('>>> .step')).length).toBeLessThan(200)
    }
    expect(errors).toEqual([])
    await page.close()
  })

  test('a search that runs shows how far it is, and one that has ended what it explored', async () => {
    const { url, child } = await served('check', checkFile('long.check.ts', long), '--view')
    const { page, errors } = await openPage(browser, url)
    await page.waitForSelector('>>> .explored')
    await expect
      .poll(() => text(page, '.progress'))
      .toMatch(/About [\d.]+ % done, about [\d,]+ in all, about \d+ (s|min) left/)
    expect(await page.$$('>>> figure rect')).not.toHaveLength(0)
    expect(await text(page, '.sites')).toContain('Atomics.add(memory, 0, 1)')
    await keepScreenshot(page, 'checker-explored')
    // Ctrl-C ends the search; the page stays until the next one.
    child.kill('SIGINT')
    await expect.poll(() => text(page, '.progress')).toContain('Not complete: it was interrupted')
    expect(errors).toEqual([])
    await page.close()
  })
})

describe('heddle view', () => {
  test('opens a failure that heddle check --view-file wrote, and runs its steps in another order', async () => {
    const file = checkFile('saved.check.ts', bell)
    const saved = join(folder, 'failure.json')
    const child = spawn(process.execPath, [
      join(root, 'src/cli/main.ts'),
      'check',
      file,
      '--view-file',
      saved,
    ])
    expect(await new Promise(resolve => child.on('close', resolve))).toBe(1)
    const { url } = await served('view', saved)
    const { page, errors } = await openPage(browser, url)
    await page.waitForSelector('>>> .steps')
    await canBeReordered(page)
    expect(errors).toEqual([])
    await page.close()

    // The file of the check has changed: the steps are shown, and stay where they are.
    writeFileSync(file, bell.replace('notify', 'notify '))
    const again = await served('view', saved)
    const later = await openPage(browser, again.url)
    await later.page.waitForSelector('>>> .steps')
    expect(await text(later.page, '.note')).toContain('has changed since the failure was saved')
    await later.page.close()
  })
})

async function canBeReordered(page: Page): Promise<void> {
  expect(await text(page, '.end')).toContain('lost wakeup')
  const kinds = (): Promise<string[]> => texts(page, '.step b')
  expect(await kinds()).toEqual(['notify', 'load', 'wait', 'store'])
  // The ringer rings after the sleeper sleeps: the sleeper wakes, and goes on.
  await drag(page, 0, 2)
  await expect.poll(() => text(page, '.end')).toContain('no failure')
  expect(await text(page, '.note')).toBe('Step 1 later, as step 3: possible.')
  expect(await kinds()).toEqual(['load', 'wait', 'notify', 'store', 'load'])
  expect(await texts(page, '.was')).toHaveLength(1)
  // A thread that sleeps cannot load.
  const steps = await page.$$('>>> .step')
  await steps[4].click()
  await page.focus('>>> .rows')
  await page.keyboard.down('Alt')
  await page.keyboard.press('Home')
  await page.keyboard.up('Alt')
  await expect.poll(() => text(page, '.note')).toContain('not possible. sleeper sleeps there')
  expect(await kinds()).toEqual(['load', 'wait', 'notify', 'store', 'load'])
  // Undo goes back to the failure.
  await page.$$eval('>>> .bar button', all => (all[2] as HTMLElement).click())
  await expect.poll(() => text(page, '.end')).toContain('lost wakeup')
}

async function drag(page: Page, from: number, to: number): Promise<void> {
  const steps = await page.$$('>>> .step')
  const start = (await steps[from].boundingBox())!
  const end = (await steps[to].boundingBox())!
  await page.mouse.move(start.x + 80, start.y + start.height / 2)
  await page.mouse.down()
  await page.mouse.move(start.x + 80, end.y + end.height / 2, { steps: 5 })
  await page.mouse.up()
}
