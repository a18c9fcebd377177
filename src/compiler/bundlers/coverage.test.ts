import { createLogger, createServer, type Plugin } from 'vite'
import { expect, onTestFinished, test } from 'vitest'
import heddle from './vite.ts'

const source =
  "export function total(rows: number[]) {\n  'use task'\n  let sum = 0\n  for (const row of rows) sum += other(row)\n  return sum\n}\nexport let other = (n: number) => n\n"

/** Transforms a module as vitest would with this provider: what the plugin that counts has seen, what came out, and warnings. */
async function transform(
  provider: string,
  enabled: boolean,
): Promise<{ seen: string; code: string; warnings: string[] }> {
  let seen = ''
  const warnings: string[] = []
  const logger = createLogger('silent')
  logger.warn = message => void warnings.push(message)
  // As vitest's own is: behind all others but those that ask to be last.
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

test("under istanbul's coverage the counters are put into the source, and compiled with it", async () => {
  const { seen, code, warnings } = await transform('istanbul', true)
  expect(seen).toContain('use task')
  expect(seen).not.toContain('$h_')
  // In both forms of the function.
  expect(code.split('$h_save(').length).toBeGreaterThan(2)
  expect(code.match(/counted,void 0,1/g)).toHaveLength(2)
  expect(warnings).toEqual([])
})

test('without coverage, and under that of V8, the source is compiled first; V8 is warned of', async () => {
  const without = await transform('istanbul', false)
  expect(without.seen).toContain('$h_')
  expect(without.warnings).toEqual([])
  const { seen, warnings } = await transform('v8', true)
  expect(seen).toContain('$h_')
  expect(warnings.filter(text => text.includes("provider to 'istanbul'"))).toHaveLength(1)
})
