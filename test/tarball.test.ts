import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { limits, wrongInPackage } from '../scripts/tarball.ts'

let folder: string
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'heddle-tarball-'))))
afterEach(() => rmSync(folder, { recursive: true }))

function put(files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
}

const whole = {
  'package.json': JSON.stringify({
    exports: {
      '.': { types: './dist/index.d.ts', default: './dist/index.js' },
      './package.json': './package.json',
    },
  }),
  'README.md': '',
  'CHANGELOG.md': '',
  LICENSE: '',
  'dist/index.js': `import './chunk.js'; new Worker(new URL('./deep/worker.js', import.meta.url))`,
  'dist/chunk.js': '',
  'dist/deep/worker.js': `await import('../late.js')`,
  'dist/late.js': '',
  'dist/index.d.ts': `export { X } from './types/x.js'`,
  'dist/types/x.d.ts': '',
}

test('a package whose files are all reached is right', () => {
  put(whole)
  expect(wrongInPackage(folder)).toEqual([])
})

test.each([
  ['a dead chunk', { 'dist/dead.js': '' }, 'dist/dead.js: no entry'],
  ['a source map', { 'dist/index.js.map': '' }, 'dist/index.js.map: only development'],
  ['a test program', { 'dist/a.test.js': '' }, 'dist/a.test.js: only development'],
  ['too much', { 'dist/chunk.js': 'x'.repeat(limits.bytes) }, `at most ${limits.bytes}`],
])('%s in a package is named', (_, more, text) => {
  put({ ...whole, ...more })
  expect(wrongInPackage(folder).join('\n')).toContain(text)
})

test.each(['LICENSE', 'dist/index.d.ts'])('a package without %s is refused', name => {
  put(whole)
  rmSync(join(folder, name))
  expect(wrongInPackage(folder).join('\n')).toMatch(new RegExp(`${name}.* missing`))
})
