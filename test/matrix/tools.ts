import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Browser } from 'puppeteer-core'
import { type BrowserName, openBrowser, pageSays, serveFolder } from '../../testing/browser/browser.ts'
import type { Tools, Where } from './cell.ts'

const root = join(import.meta.dirname, '..', '..')

/** A command without output for this long is stopped: a normal cell takes less than a tenth. */
const PATIENCE_MS = 180_000

/** Packages of the development tree that projects are built with: linked into the folder with heddle. */
const lent =
  'vite webpack @rspack/core rollup rolldown esbuild tsx typescript @types/node vite6 vite7 @rollup/plugin-node-resolve esbuild-loader deno bun'.split(
    ' ',
  )

export class MatrixTools implements Tools {
  private readonly home: string
  private readonly browsers = new Map<BrowserName, Promise<Browser>>()

  /** `home`: the folder where the tarball is installed. */
  constructor(home: string) {
    this.home = home
    for (const name of lent) {
      const from = [join(root, 'node_modules', name), join(import.meta.dirname, 'node_modules', name)]
      const to = join(home, 'node_modules', name)
      const found = from.find(existsSync)
      if (found === undefined || existsSync(to)) continue
      mkdirSync(dirname(to), { recursive: true })
      symlinkSync(found, to)
    }
  }

  node(major: number): string {
    const folder = major === 26 ? root : join(root, 'test', `node${major}`)
    const path = join(folder, 'node_modules', '.bin', 'node')
    if (!existsSync(path))
      throw new Error(`Node ${major} is not installed; run npm ci --prefix test/node${major}`)
    return path
  }

  bin(name: string): string {
    const packageName = name === 'tsc' ? 'typescript' : name
    const folder = join(this.home, 'node_modules', packageName)
    const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      bin: string | Record<string, string>
    }
    const path = typeof bin === 'string' ? bin : (bin[name] ?? Object.values(bin)[0])
    return join(folder, path)
  }

  command(project: string, file: string, args: readonly string[]): Promise<string> {
    return new Promise((done, failed) => {
      const child = spawn(file, args, { cwd: project, stdio: ['ignore', 'pipe', 'pipe'], env: environment() })
      let out = ''
      let said = ''
      const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
      child.stdout.on('data', part => {
        out += String(part)
        said += String(part)
      })
      child.stderr.on('data', part => {
        said += String(part)
      })
      child.once('error', failed)
      child.once('close', (code, signal) => {
        clearTimeout(timer)
        if (code === 0) done(out)
        else failed(new Error(`${file} ${args.join(' ')}: ${signal ?? `exit code ${code}`}\n${said}`))
      })
    })
  }

  async page(where: Where, name: BrowserName = 'chromium'): Promise<string> {
    let browser = this.browsers.get(name)
    if (browser === undefined) {
      browser = openBrowser(name)
      this.browsers.set(name, browser)
    }
    const served =
      'folder' in where ? await serveFolder(where.folder, where.headers) : await this.serve(where)
    try {
      return await pageSays(
        await browser,
        new URL('path' in where ? (where.path ?? '') : '', served.url).href,
      )
    } finally {
      served.close()
    }
  }

  async close(): Promise<void> {
    for (const browser of this.browsers.values()) await (await browser).close()
  }

  /** A server in its own process, which prints its address and ends when its input closes. */
  private serve({
    server,
    project,
  }: Extract<Where, { server: unknown }>): Promise<{ url: string; close(): void }> {
    return new Promise((ready, failed) => {
      const child = spawn(this.node(26), server, { cwd: project, stdio: 'pipe', env: environment() })
      let said = ''
      const hear = (part: unknown): void => {
        said += String(part)
        const url = /http:\/\/localhost:\d+\S*/.exec(said)?.[0]
        if (url !== undefined) ready({ url, close: () => child.stdin.end() })
      }
      child.stdout.on('data', hear)
      child.stderr.on('data', hear)
      child.once('close', code => failed(new Error(`${server.join(' ')}: exit code ${code}\n${said}`)))
    })
  }
}

/** Variables of npm and of the test runner would affect the programs. */
function environment(): NodeJS.ProcessEnv {
  const clean = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|NODE_|VITEST|TEST$|FORCE_COLOR)/.test(name),
  )
  return { ...Object.fromEntries(clean), NO_COLOR: '1' }
}
