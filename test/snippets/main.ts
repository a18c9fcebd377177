import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { notRun, projects } from './pages.ts'

/**
 * Runs every snippet of the README, the first steps, the guides, the futexes and the page for newcomers from
 * other libraries, with the installed package, on a given Node: node test/snippets/main.ts <folder in which
 * heddle is installed> <a Node> [one page]
 */
const root = join(import.meta.dirname, '..', '..')
const [home, node, only] = process.argv.slice(2) as [string, string, string?]

const PATIENCE_MS = 180_000

const isNode20 = execFileSync(node, ['--version'], { encoding: 'utf8' }).startsWith('v20')

/** Packages that snippets import: linked into the folder with heddle. */
for (const name of ['bullmq', 'decimal.js', 'express', 'fastify', 'ioredis']) {
  const found = [root, join(root, 'test', 'matrix')]
    .map(folder => join(folder, 'node_modules', name))
    .find(existsSync)
  if (found === undefined) throw new Error(`${name} is not installed; run npm ci --prefix test/matrix`)
  const to = join(home, 'node_modules', name)
  if (!existsSync(to)) symlinkSync(found, to)
}

interface Block {
  readonly language: string
  readonly line: number
  readonly code: string
}

function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].map(({ 1: language, 2: code, index }) => ({
    language: language!,
    code: code!,
    line: text.slice(0, index).split('\n').length,
  }))
}

function run(folder: string, args: readonly string[]): Promise<string> {
  const cli = join(home, 'node_modules', 'heddle', 'dist', 'cli', 'main.js')
  return new Promise(resolve => {
    const child = spawn(node, [cli, ...args], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    // Signals the whole process group: a busy program may not handle a signal.
    const timer = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), PATIENCE_MS)
    let out = ''
    let err = ''
    child.stdout.on('data', part => (out += String(part)))
    child.stderr.on('data', part => (err += String(part)))
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      resolve(code === 0 ? out : `${out}\n${err}\n${signal ?? `exit code ${code}`}`)
    })
  })
}

const wrong: string[] = []
const pages = [
  'README.md',
  'docs/start.md',
  'docs/coming-from.md',
  'docs/futex.md',
  ...readdirSync(join(root, 'docs', 'guides')).map(name => `docs/guides/${name}`),
]
for (const page of pages.filter(each => only === undefined || each === only)) {
  const project = projects.find(one => one.page === page)
  // Settings of an editor (jsonc) are for test/types.
  const blocks = blocksOf(page).filter(({ language }) => language !== 'sh' && language !== 'jsonc')
  if (project === undefined) {
    if (blocks.length > 0)
      wrong.push(`${page}: has snippets, and nothing runs them; add it to test/snippets/pages.ts`)
    continue
  }
  const folder = join(home, 'snippets', page.replaceAll(/\W/g, '-'))
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  let manifest: Record<string, unknown> = { private: true, type: 'module' }
  const names: string[] = []
  let added = ''
  for (const { language, line, code } of blocks) {
    const name = /^\/\/ ([\w.-]+\.[jt]s)\b/.exec(code)?.[1]
    if (language === 'json') manifest = { ...manifest, ...(JSON.parse(code) as object) }
    else if (language === 'diff') added += code.replaceAll(/^(?:\+(.*)|-.*| (.*))\n/gm, '$1$2\n')
    else if (name === undefined)
      wrong.push(`${page}:${line}: a snippet of code begins with its file's name, as in // main.ts`)
    else {
      names.push(name)
      writeFileSync(join(folder, name), code)
    }
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  for (const [name, text] of Object.entries(project.harness ?? {})) {
    writeFileSync(join(folder, name), text.replace('SNIPPET', added))
  }
  const read = readdirSync(folder)
    .filter(name => /\.m?[jt]s$/.test(name))
    .map(name => readFileSync(join(folder, name), 'utf8'))
    .join('\n')
  for (const name of names) {
    const used = project.runs.some(({ heddle }) => heddle.includes(name)) || read.includes(`'./${name}'`)
    const checked = name.endsWith('.check.ts') && project.runs.some(({ heddle }) => heddle[0] === 'check')
    if (!used && !checked && !notRun.includes(`${page} ${name}`)) wrong.push(`${page}: nothing runs ${name}`)
  }
  for (const { heddle, needs, prints: always, onNode20 = always } of project.runs) {
    if (needs !== undefined && spawnSync(needs, ['--version']).error !== undefined) {
      console.log(`- ${page}: heddle ${heddle.join(' ')} is skipped: ${needs} is not on the PATH`)
      continue
    }
    const prints = isNode20 ? onNode20 : always
    const from = performance.now()
    const said = await run(folder, heddle)
    const seconds = ((performance.now() - from) / 1000).toFixed(1)
    const ok = prints.test(said)
    console.log(`${ok ? '✓' : '✗'} ${page}: heddle ${heddle.join(' ')} (${seconds} s)`)
    if (!ok) wrong.push(`${page}: heddle ${heddle.join(' ')} does not print ${prints}, but:\n${said}`)
  }
}
const traced = only === undefined || only === 'docs/start.md'
if (traced && !existsSync(join(home, 'snippets', 'docs-start-md', 'out.pftrace')))
  wrong.push('docs/start.md: no trace was written')
for (const text of wrong) console.log(text)
process.exitCode = wrong.length === 0 ? 0 : 1
