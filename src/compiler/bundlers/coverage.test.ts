import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLogger, createServer, type Plugin } from 'vite'
import { expect, onTestFinished, test } from 'vitest'
import heddle from './vite.ts'

const source =
  "export function total(rows: number[]) {\n  'use task'\n  let sum = 0\n  for (const row of rows) sum += other(row)\n  return sum\n}\nexport let other = (n: number) => n\n"

/**
 * Transforms a module as vitest would with this provider: the input of the counting plugin, the output, and
 * the warnings.
 */
async function transform(
  provider: string,
  enabled: boolean,
  root = process.cwd(),
): Promise<{ seen: string; code: string; warnings: string[] }> {
  let seen = ''
  const warnings: string[] = []
  const logger = createLogger('silent')
  logger.warn = message => void warnings.push(message)
  // As vitest's own plugin: after all others except those that ask to be last.
  const counters: Plugin = {
    name: 'vitest:coverage-transform',
    enforce: 'post',
    transform(code, id) {
      if (!id.endsWith('work.ts')) return null
      seen = code
      return { code: code.replace('return sum', 'counted(1); return sum'), map: null }
    },
  }
  const files: Plugin = {
    name: 'files',
    resolveId: id => (id.endsWith('work.ts') ? id : null),
    load: id => (id.endsWith('work.ts') ? source : null),
  }
  const server = await createServer({
    configFile: false,
    root,
    customLogger: logger,
    server: { middlewareMode: true, ws: false, watch: null },
    optimizeDeps: { noDiscovery: true },
    plugins: [files, heddle(), counters],
    test: { coverage: { enabled, provider } },
  } as never)
  onTestFinished(() => server.close())
  const { code } = (await server.environments.ssr.transformRequest('/work.ts'))!
  return { seen, code, warnings }
}

test("under istanbul's coverage the counters are inserted into the source, and compiled with it", async () => {
  const { seen, code, warnings } = await transform('istanbul', true)
  expect(seen).toContain('use task')
  expect(seen).not.toContain('frames as ')
  // In both forms of the function.
  expect(code.split('$s(').length).toBeGreaterThan(2)
  expect(code.match(/counted,void 0,1/g)).toHaveLength(2)
  expect(warnings).toEqual([])
})

test('without coverage the source is compiled first', async () => {
  const { seen, warnings } = await transform('istanbul', false)
  expect(seen).toContain('frames as ')
  expect(warnings).toEqual([])
})

test("under V8's coverage each block of the source calls a counter in both forms of its function", async () => {
  const { seen, code, warnings } = await transform('v8', true)
  expect(seen).not.toContain('frames as ')
  expect(seen).not.toContain('$counted')
  expect(code.split('$s(').length).toBeGreaterThan(2)
  expect(code.match(/\$counted1\(\);/g)).toHaveLength(2)
  expect(warnings).toEqual([])
})

test('a provider that cannot accept counts causes a warning', async () => {
  const { seen, warnings } = await transform('v8', true, tmpdir())
  expect(seen).toContain('frames as ')
  expect(warnings.filter(text => text.includes("provider to 'istanbul'"))).toHaveLength(1)
})

const folder = fileURLToPath(new URL('../../../testing/compiler/fixtures/covered/', import.meta.url))
const vitest = fileURLToPath(new URL('../../../node_modules/vitest/vitest.mjs', import.meta.url))

interface Place {
  readonly start: object
  readonly end: object
}

interface FileReport {
  readonly statementMap: Record<string, Place>
  readonly fnMap: Record<string, { name: string; decl: Place; loc: Place }>
  readonly branchMap: Record<string, { type: string; loc: Place; locations: Place[] }>
  readonly s: Record<string, number>
  readonly f: Record<string, number>
  readonly b: Record<string, number[]>
}

/**
 * The provider's report of the fixture's files: statements, functions and branches by position, with their
 * counts.
 */
async function reportsOf(mode: 'plain' | 'compiled'): Promise<Record<string, Record<string, unknown>>> {
  const reports = mkdtempSync(join(tmpdir(), 'heddle-coverage-'))
  onTestFinished(() => rmSync(reports, { recursive: true }))
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST')))
  const args = [vitest, 'run', '--config', join(folder, 'vitest.config.ts')]
  const child = spawn(process.execPath, [...args, `--coverage.reportsDirectory=${reports}`], {
    cwd: folder,
    env: { ...env, COVERED: mode },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  }
  const exit = await new Promise<number | null>(resolve => child.on('close', resolve))
  expect(exit, output).toBe(0)
  const text = readFileSync(join(reports, 'coverage-final.json'), 'utf8')
  const all = Object.entries(JSON.parse(text) as Record<string, FileReport>)
  return Object.fromEntries(all.map(([path, report]) => [path.slice(folder.length), byPlace(report)]))
}

function byPlace({ statementMap, fnMap, branchMap, s, f, b }: FileReport): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  for (const [key, place] of Object.entries(statementMap)) found[JSON.stringify(place)] = s[key]
  for (const [key, { name, decl, loc }] of Object.entries(fnMap)) {
    found[`${name} ${JSON.stringify([decl, loc])}`] = f[key]
  }
  for (const [key, { type, loc, locations }] of Object.entries(branchMap)) {
    found[`${type} ${JSON.stringify([loc, locations])}`] = b[key]
  }
  return found
}

test("V8's report of a compiled module has the counts of the plain one, also for preempted tasks", async () => {
  const [plain, compiled] = [await reportsOf('plain'), await reportsOf('compiled')]
  expect(Object.keys(plain).sort()).toEqual(['unseen.ts', 'work.ts'])
  const counts = Object.values(plain['work.ts']!).flat()
  expect(counts.length).toBeGreaterThan(150)
  expect(counts).toContain(0)
  expect(Math.max(...(counts as number[]))).toBeGreaterThan(9000)
  expect(compiled).toEqual(plain)
})

test('vitest caches no compiled module on disk: the output depends on more than the text', () => {
  type Key = (module: { id: string; sourceCode: string }) => unknown
  const keys: Key[] = []
  for (const hook of heddle({ include: ['acorn'] }) as { configureVitest?: (context: object) => void }[]) {
    hook.configureVitest?.({ defineCacheKeyGenerator: (key: Key) => keys.push(key) })
  }
  const acorn = fileURLToPath(new URL('../../../node_modules/acorn/dist/acorn.mjs', import.meta.url))
  expect(keys.map(key => key({ id: '/a/work.ts', sourceCode: source }))).toEqual([false])
  expect(keys.map(key => key({ id: acorn, sourceCode: '' }))).toEqual([false])
  expect(keys.map(key => key({ id: '/a/other.ts', sourceCode: 'export {}' }))).toEqual([undefined])
})
