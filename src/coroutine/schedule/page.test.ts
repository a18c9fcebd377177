/** The schedule on pages of real browsers, and in a context that has only the globals of a page. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createContext, runInContext } from 'node:vm'
import { build } from 'esbuild'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  type BrowserName,
  firefox,
  isolated,
  openBrowser,
  pageSays,
  serveFolder,
} from '../../../testing/browser/browser.ts'

let script: string

/** For a browser: an import of Node's would fail here. */
beforeAll(async () => {
  const { outputFiles, warnings } = await build({
    entryPoints: [fileURLToPath(new URL('../index.ts', import.meta.url))],
    bundle: true,
    write: false,
    platform: 'browser',
    format: 'iife',
    globalName: 'heddle',
    target: 'es2022',
    logLevel: 'silent',
    define: { 'import.meta.url': '"https://page.example/heddle.js"' },
  })
  expect(warnings).toEqual([])
  script = outputFiles[0].text
})

const program = `
  const { Schedule, needResched, PREEMPTED, sleep, wait, progress } = heddle
  const schedule = new Schedule({ slice: 1 })
  const counts = [0, 0]
  const seen = new Set()
  function* count(own) {
    while (counts[own] < 3e6) {
      counts[own]++
      if (counts[own] % 64 === 0) {
        if (needResched()) yield PREEMPTED
        seen.add(counts[1 - own])
      }
    }
  }
  async function main() {
    let timers = 0
    const timer = setInterval(() => timers++, 1)
    schedule.go(count, 0)
    schedule.go(count, 1)
    await schedule.run()
    clearInterval(timer)
    const heard = []
    const value = await schedule.run({ onProgress: part => heard.push(part) }, function* () {
      progress(0.5)
      yield* sleep(2)
      return yield* wait(Promise.resolve('waited'))
    })
    const statistics = schedule.statistics
    return { counts, between: [...seen].filter(n => n > 0 && n < 3e6).length, timers, heard, value, ticks: statistics.ticks }
  }
  main()`

/** As a page has it: each message is a task of its own. Node delivers them in bunches. */
class MessageChannel {
  readonly port1: { onmessage: (() => void) | null } = { onmessage: null }
  readonly port2 = { postMessage: (): void => void setImmediate(() => this.port1.onmessage?.()) }
}

interface Said {
  counts: number[]
  between: number
  timers: number
  heard: number[]
  value: string
  ticks: string
  isolated?: boolean
}

function page(globals: object, before = ''): Promise<Said> {
  const { setTimeout, clearTimeout, setInterval, clearInterval, performance, AbortController, DOMException } =
    globalThis
  const context = createContext({
    setTimeout: (fn: () => void, ms: number) => void setTimeout(fn, ms),
    clearTimeout,
    setInterval,
    clearInterval,
    performance: { now: () => performance.now(), timeOrigin: performance.timeOrigin },
    AbortController,
    DOMException,
    URL,
    ...globals,
  })
  return runInContext(`${before};${script};${program}`, context) as Promise<Said>
}

describe('a page', () => {
  test.each([
    [
      'that is not isolated: no shared memory, ticks from the clock',
      { MessageChannel },
      'delete globalThis.SharedArrayBuffer',
    ],
    [
      'that is not isolated, though it has the constructor',
      { MessageChannel, crossOriginIsolated: false },
      '',
    ],
    ['without message channels', {}, 'delete globalThis.SharedArrayBuffer'],
  ])('%s', async (_name, globals, before) => {
    const said = await page(globals, before)
    expect(said.counts).toEqual([3e6, 3e6])
    expect(said.between).toBeGreaterThan(1)
    expect(said.timers).toBeGreaterThan(0)
    expect([...said.heard]).toEqual([0.5])
    expect(said.value).toBe('waited')
    expect(said.ticks).toBe('clock')
  })

  test('that may not block can still wait', async () => {
    const blocked = `
      Atomics.wait = () => { throw new TypeError('Atomics.wait cannot be called in this context') }`
    const said = await page({ MessageChannel, crossOriginIsolated: false }, blocked)
    expect(said.value).toBe('waited')
  })
})

const browsers: readonly BrowserName[] = firefox === undefined ? ['chromium'] : ['chromium', 'firefox']

/** Runs the program on a page of a real browser, with these headers of its server. */
async function realPage(name: BrowserName, headers: Readonly<Record<string, string>>): Promise<Said> {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-page-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'heddle.js'), script)
  const start = program.replace(
    /main\(\)$/,
    'main().then(all => { all.isolated = crossOriginIsolated; said = all })',
  )
  writeFileSync(
    join(folder, 'index.html'),
    `<!doctype html><script>var said</script><script src="heddle.js"></script><script>${start}</script>`,
  )
  const { url, close } = await serveFolder(folder, headers)
  onTestFinished(close)
  const browser = await openBrowser(name)
  onTestFinished(() => browser.close())
  return JSON.parse(await pageSays(browser, url)) as Said
}

describe.each(browsers)('a page of %s', name => {
  test.each([
    ['that is isolated', isolated, true],
    ['that is not isolated', {}, false],
  ])('%s', async (_name, headers, isIsolated) => {
    const said = await realPage(name, headers)
    expect(said).toMatchObject({ counts: [3e6, 3e6], heard: [0.5], value: 'waited', isolated: isIsolated })
    expect(said.between).toBeGreaterThan(1)
    expect(said.timers).toBeGreaterThan(0)
  })
})
