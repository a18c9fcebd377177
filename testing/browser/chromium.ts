/**
 * The Chromium inside the npm package `@sparticuz/chromium`, unpacked once into `node_modules/.cache`. The
 * package itself unpacks into the temporary folder, file by file: two test files that start together would
 * run half a browser. Here each process unpacks into a folder of its own, and a rename publishes the whole.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')
const packed = join(root, 'node_modules/@sparticuz/chromium')

/** How to start a browser: its program, and the variables that its process needs. */
export interface Launchable {
  readonly executablePath: string
  readonly env: NodeJS.ProcessEnv
}

/** Browsers of the machine, for platforms for which the package has none. */
const installed: readonly string[] = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
]

/**
 * A Chromium that starts on this machine: the one that HEDDLE_CHROMIUM names, else that of the package, else
 * one of the machine. Throws an error with the reason and the fix.
 */
export function findChromium(): Launchable {
  const named = process.env.HEDDLE_CHROMIUM
  if (named !== undefined && named !== '') return { executablePath: named, env: process.env }
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    const executablePath = installed.find(path => existsSync(path))
    if (executablePath !== undefined) return { executablePath, env: process.env }
    throw new Error(
      `no Chromium for ${process.platform} ${process.arch}: the npm package carries one for Linux on x64 alone; install Chrome, or set HEDDLE_CHROMIUM to the path of a Chromium`,
    )
  }
  const folder = unpacked()
  const executablePath = join(folder, 'chromium')
  const env: NodeJS.ProcessEnv = { ...process.env }
  // A bare system has no fonts: every text would be invisible.
  if (!existsSync('/etc/fonts/fonts.conf')) env.FONTCONFIG_PATH ??= join(folder, 'fonts')
  const missing = whyNot(executablePath, env)
  if (missing === undefined) return { executablePath, env }
  // The package carries the libraries that a system with Node alone lacks: nss, nspr, expat.
  const libraries = join(folder, 'al2023/lib')
  env.LD_LIBRARY_PATH = [libraries, env.LD_LIBRARY_PATH].filter(Boolean).join(':')
  const still = whyNot(executablePath, env)
  if (still === undefined) return { executablePath, env }
  throw new Error(
    `Chromium does not start: ${still}. Install the library that is missing, or set HEDDLE_CHROMIUM to the path of a Chromium that runs here (the one that failed: ${executablePath})`,
  )
}

/** Why the program cannot start; undefined when it can. */
function whyNot(executablePath: string, env: NodeJS.ProcessEnv): string | undefined {
  const { status, stderr, error, signal } = spawnSync(executablePath, ['--version'], {
    env,
    encoding: 'utf8',
    timeout: 60_000,
  })
  if (status === 0) return undefined
  return (stderr ?? '').trim() || error?.message || `it ended with ${signal ?? `exit code ${status}`}`
}

/** The folder of the unpacked browser. The first call on a clone unpacks it, in some seconds. */
function unpacked(): string {
  if (!existsSync(packed))
    throw new Error('no Chromium: the package @sparticuz/chromium is not installed; run npm install')
  const { version } = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8')) as { version: string }
  const cache = join(root, 'node_modules/.cache/heddle')
  const folder = join(cache, `chromium-${version}`)
  if (existsSync(folder)) return folder
  mkdirSync(cache, { recursive: true })
  const own = mkdtempSync(join(cache, 'unpacking-'))
  try {
    // The package unpacks into the temporary folder of its process.
    execFileSync(process.execPath, ['--input-type=module', '-e', unpackAll], {
      cwd: root,
      env: { ...process.env, TMPDIR: own, NODE_OPTIONS: '' },
    })
    renameSync(own, folder)
  } catch (error) {
    // Another process was faster: its folder has the same contents.
    if (!existsSync(folder))
      throw new Error(`Chromium could not be unpacked into ${folder}: ${(error as Error).message}`, {
        cause: error,
      })
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
  return folder
}

const unpackAll = `
import { inflate } from '@sparticuz/chromium'
for (const name of ['chromium.br', 'fonts.tar.br', 'swiftshader.tar.br', 'al2023.tar.br'])
  await inflate(${JSON.stringify(join(packed, 'bin/'))} + name)`
