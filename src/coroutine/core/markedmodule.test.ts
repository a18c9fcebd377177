import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, expect, test, vi } from 'vitest'
import { moduleSaysTask, tellUncompiledModule } from './markedmodule.ts'

const folder = mkdtempSync(join(tmpdir(), 'heddle marked #1 '))
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true, force: true })
})

function put(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
}

/** Runs the program in a process without a loader; what it warned of. */
async function warnings(program: string): Promise<string[]> {
  const said = await new Promise<string>((done, failed) => {
    execFile(
      process.execPath,
      [join(folder, program)],
      { env: { PATH: process.env.PATH } },
      (error, _, text) => (error === null ? done(text) : failed(new Error(text))),
    )
  })
  return said.split('\n').filter(line => line.includes('HEDDLE_NOT_COMPILED'))
}

const schedule = JSON.stringify(new URL('../index.ts', import.meta.url).href)
const marked =
  "// sums\n'use strict'; 'use task'\nexport function sum(n) { let s = 0; for (let i = 0; i < n; i++) s += i; return s }\n"

test('a module says it in its first statement, whatever stands before that', () => {
  for (const text of [
    "'use task'",
    '#!/usr/bin/env node\n/* a */ // b\n"use strict"; "use task generator";\n',
    marked,
  ])
    expect(moduleSaysTask(text), text).toBe(true)
  for (const text of [
    "import a from 'a'\n'use task'",
    "export function f() { 'use task' }",
    "// 'use task'\nf()",
    '',
  ])
    expect(moduleSaysTask(text), text).toBe(false)
})

test.each([
  ['imports by name', "import { sum } from './work.mjs'", 'sum', 'work.mjs'],
  ['imports under another name', "import { sum as add } from './work.mjs'", 'add', 'work.mjs'],
  ['imports whole', "import * as work from './work.mjs'", 'work.sum', 'work.mjs'],
  ['imports from a package', "import { sum } from 'summing'", 'sum', 'index.mjs'],
  ['is itself', "'use task'\nconst sum = n => n", 'sum', 'main.mjs'],
])('a schedule says once of a marked module that it %s, and what to do', async (_, first, fn, file) => {
  put({
    'work.mjs': marked,
    'node_modules/summing/package.json': '{ "name": "summing", "exports": "./index.mjs" }',
    'node_modules/summing/index.mjs': marked,
    'main.mjs': `${first}\nimport { Schedule } from ${schedule}
const schedule = new Schedule()
for (const n of [1, 2]) await schedule.run(${fn}, n)
await schedule.run(() => ${fn}(3))
`,
  })
  const said = await warnings('main.mjs')
  expect(said).toHaveLength(1)
  expect(said[0]).toContain(`the module ${file} says 'use task' and was not compiled`)
  expect(said[0]).toContain('npx heddle run main.mjs')
})

test('a schedule says nothing of plain functions beside a marked module that it does not run', async () => {
  put({
    'work.mjs': marked,
    'main.mjs': `import { sum } from './work.mjs'\nimport { Schedule } from ${schedule}
await new Schedule().run(function plain() { return 1 })
sum(1)
`,
  })
  expect(await warnings('main.mjs')).toEqual([])
})

test('an imported module of tasks that nothing has compiled is reported once, also inside a bundle', async () => {
  const said: string[] = []
  vi.spyOn(process, 'emitWarning').mockImplementation((message: unknown) => void said.push(String(message)))
  put({
    'a b.js': marked,
    'bundle.js': "(() => {\n'use task';\nfunction f() {}\n})()",
    'plain.js': "export const text = 'use task'",
  })
  for (const name of ['a b.js', 'a b.js', 'bundle.js', 'plain.js', 'missing.js'])
    await tellUncompiledModule(pathToFileURL(join(folder, name)).href)
  expect(said).toHaveLength(2)
  expect(said[0]).toMatch(/^the module a b\.js says 'use task' and was not compiled.*plugin \(heddle\/vite/)
  expect(said[1]).toMatch(/^the module bundle\.js /)
})
