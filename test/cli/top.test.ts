import { spawn as spawnTerminal } from '@lydell/node-pty'
import headless from '@xterm/headless'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'

const main = new URL('../../src/cli/main.ts', import.meta.url).pathname
const busy = new URL('./programs/busy.ts', import.meta.url).pathname
const columns = 110
const rows = 20

/** A separate folder for sockets: other programs of this user may run kernels too. */
const folder = mkdtempSync(join(tmpdir(), 'heddle-top-'))
const env = { ...process.env, HEDDLE_RUN_DIR: folder }
afterAll(() => rmSync(folder, { recursive: true }))

const started: { kill(): void }[] = []
afterEach(() => {
  for (const one of started.splice(0)) one.kill()
})

/** The command in a pseudo-terminal, with the screen that a user would see. */
function terminal(...args: string[]) {
  const screen = new headless.Terminal({ cols: columns, rows, allowProposedApi: true })
  const pty = spawnTerminal(process.execPath, [main, ...args], {
    cols: columns,
    rows,
    env: {
      ...env,
      TERM: 'xterm-256color',
      LANG: 'C.UTF-8',
      LC_ALL: 'C.UTF-8',
      NO_COLOR: undefined,
    } as never,
  })
  let written = ''
  pty.onData(data => {
    written += data
    screen.write(data)
  })
  let exitCode: number | undefined
  pty.onExit(({ exitCode: code }) => {
    exitCode = code
  })
  started.push({ kill: () => exitCode === undefined && pty.kill('SIGKILL') })
  const lines = (): string[] =>
    Array.from({ length: rows }, (_, at) => screen.buffer.active.getLine(at)?.translateToString(true) ?? '')
  const seen = async (text: string | RegExp): Promise<void> => {
    await expect.poll(() => lines().join('\n'), { interval: 50 }).toMatch(text)
  }
  return {
    lines,
    seen,
    type: (keys: string) => pty.write(keys),
    written: () => written,
    screen,
    exit: () => exitCode,
  }
}

async function program(): Promise<ChildProcess> {
  const child = spawn(process.execPath, [main, 'run', busy], { stdio: ['ignore', 'pipe', 'inherit'], env })
  started.push({ kill: () => child.kill('SIGTERM') })
  await once(child.stdout!, 'data')
  return child
}

const ENTER = '\u001b[?1049h'
const LEAVE = '\u001b[?1049l'

describe('heddle top, in a terminal', () => {
  it('shows a running program, and controls its tasks from the keyboard', async () => {
    const child = await program()
    const top = terminal('top', '--interval', '100')
    await top.seen(/3 tasks: /)
    await top.seen(/spinner A/)
    expect(top.lines()[0]).toMatch(/^heddle top {2}busy\.ts \(\d+\) {2}up /)
    expect(top.lines()[2]).toMatch(/^CPU {2}0 .*%/)
    expect(top.lines().at(-1)).toContain('q quit')
    expect(top.lines().find(line => line.includes('sleeper'))).toMatch(/sleeping/)

    top.type('/spinner A\r')
    await top.seen(/^(?![\s\S]*sleeper)[\s\S]*spinner A/)
    top.type('s')
    await top.seen(/stop \d+: done/)
    await top.seen(/stopped .*spinner A/)
    top.type('phigh\r')
    await top.seen(/priority \d+: done/)
    await top.seen(/ 96 .*spinner A/)
    top.type('c')
    await top.seen(/continue \d+: done/)
    await top.seen(/(running|runnable) .*spinner A/)
    top.type('k')
    await top.seen(/kill \d+: done/)
    await top.seen(/no task matches "spinner A"/)

    top.type('h')
    await top.seen(/any key closes this page/)
    top.type('xq')
    await expect.poll(() => top.exit()).toBe(0)
    expect(top.written()).toContain(ENTER)
    expect(top.written().trimEnd().endsWith(LEAVE)).toBe(true)
    child.kill('SIGTERM')
  })

  it('restores the terminal on Ctrl-C, and reports the end of the program', async () => {
    const child = await program()
    const first = terminal('top', '--interval', '100')
    await first.seen(/spinner B/)
    first.type('\u0003')
    await expect.poll(() => first.exit()).toBe(0)
    expect(first.written()).toContain(LEAVE)

    const second = terminal('top', '--interval', '100')
    await second.seen(/spinner B/)
    child.kill('SIGTERM')
    await expect.poll(() => second.exit()).toBe(0)
    expect(second.written()).toContain('the program has ended')
  })

  it('watches a program that it starts, and prints its output afterwards', async () => {
    const top = terminal('run', '--top', busy, '4000')
    await top.seen(/sleeper/)
    await expect.poll(() => top.exit()).toBe(0)
    expect(top.written().slice(top.written().indexOf(LEAVE))).toContain(
      'booted\r\nfulfilled fulfilled fulfilled',
    )
  })

  it('prints the display once without a terminal, or JSON', async () => {
    const child = await program()
    const once = spawn(process.execPath, [main, 'top'], { stdio: 'pipe', env })
    let text = ''
    for await (const piece of once.stdout) text += String(piece)
    expect(text).toContain('spinner A')
    expect(text).not.toContain('\u001b')
    const json = spawn(process.execPath, [main, 'top', '--json'], { stdio: 'pipe', env })
    let line = ''
    for await (const piece of json.stdout) line += String(piece)
    expect(JSON.parse(line).tasks).toHaveLength(3)
    child.kill('SIGTERM')
  })
})
