/**
 * `"heddle": { "compile": […] }` in the program's package.json, on the CPUs of a program without a loader.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'heddle manifest #')))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const files = {
  'package.json': '{ "name": "own", "type": "module", "heddle": { "compile": ["slow", "./old"] } }',
  'node_modules/slow/package.json': '{ "name": "slow" }',
  'node_modules/slow/index.js': 'exports.spin = function spin(n) { for (let i = 0; i < n; i++); return n }',
  'node_modules/tool/package.json': '{ "name": "tool", "type": "module" }',
  'node_modules/tool/cli.js': "await import(new URL('../../main.js', import.meta.url))",
  'old/sum.js': 'export function sum(n) { for (let i = 0; i < n; i++); return n }',
  'plain.js': 'export function plain(n) { for (let i = 0; i < n; i++); return n }',
  'work.js': `import { spin } from 'slow'
import { sum } from './old/sum.js'
import { plain } from './plain.js'
const isCompiled = fn => Symbol.for('heddle.itself') in fn || Symbol.for('heddle.twin') in fn
export const compiled = () => [spin, sum, plain].filter(isCompiled).map(({ name }) => name).join(' ')`,
  'main.js': `import { Kernel } from ${JSON.stringify(new URL('../../index.ts', import.meta.url).href)}
const kernel = await Kernel.boot({ cpus: 1 })
const work = await kernel.import(new URL('./work.js', import.meta.url))
console.log(await kernel.spawn(work.compiled))
await kernel.close()`,
}
for (const [name, text] of Object.entries(files)) {
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), text)
}

test.each([
  ['started from elsewhere', tmpdir(), join(folder, 'main.js')],
  ['started by a tool that is installed', folder, join('node_modules', 'tool', 'cli.js')],
])('CPUs compile the packages that package.json names, in a program %s', (_, cwd, file) => {
  const { stdout, stderr } = spawnSync(process.execPath, [file], {
    cwd,
    encoding: 'utf8',
    env: { PATH: process.env.PATH },
  })
  expect(stderr).toBe('')
  expect(stdout).toBe('spin sum\n')
})
