import { mkdtempSync, mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { requestedPatterns, type CompilePattern, checkPatterns, patternText, Selection } from './selection.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'heddle-selection-'))
  mkdirSync(join(folder, 'packages', 'linked'), { recursive: true })
  writeFileSync(join(folder, 'packages', 'linked', 'package.json'), '{ "name": "@acme/linked" }')
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'app', heddle: { compile: ['marked', './lib'] } }),
  )
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const files = [
  'node_modules/marked/lib/marked.js',
  'node_modules/.pnpm/jpeg-js@0.4.4/node_modules/jpeg-js/index.js',
  'node_modules/@acme/tools/a.js',
  'node_modules/heddle/dist/index.js',
  'node_modules/oxc-parser/src-js/index.js',
  'packages/linked/index.js',
  'lib/old.js',
  'main.js',
  'node_modules/.vite/deps/@acme_tools.js',
]

test.each<[CompilePattern[], number[]]>([
  [['marked'], [0]],
  [['jpeg-js'], [1]],
  [['@acme/*'], [2, 5, 8]],
  [[/^@acme\//], [2, 5, 8]],
  [[/\/lib\//], [0, 6]],
  [['./lib'], [6]],
  [['./lib/old.js'], [6]],
  [['all'], [0, 1, 2, 5, 6, 7, 8]],
  [
    ['all', '!marked', '!./lib'],
    [1, 2, 5, 7, 8],
  ],
  [['!marked'], []],
  [['app'], [6, 7]],
  [['mark'], []],
  [[], []],
])('%j selects its packages and files, and never the compiler', (patterns, expected) => {
  const selection = new Selection()
  selection.add(patterns.map(pattern => patternText(pattern, folder)))
  const found = files.flatMap((file, index) => (selection.includes(join(folder, file)) ? [index] : []))
  expect(found).toEqual(expected)
})

test('a file: URL names a file', () => {
  const selection = new Selection()
  selection.add([
    pathToFileURL(join(folder, 'main.js')).href,
    `!${pathToFileURL(join(folder, 'lib')).href}`,
    'app',
  ])
  expect(selection.includes(join(folder, 'main.js'))).toBe(true)
  expect(selection.includes(join(folder, 'lib/old.js'))).toBe(false)
  expect(selection.excludes(join(folder, 'lib/old.js'))).toBe(true)
})

test('a path by a symbolic link selects what Node loads from where the link leads', () => {
  const link = `${folder}-link`
  symlinkSync(folder, link)
  try {
    const real = realpathSync(folder)
    for (const pattern of ['./lib', './lib/old.js', pathToFileURL(join(link, 'lib', 'old.js')).href]) {
      mkdirSync(join(folder, 'lib'), { recursive: true })
      writeFileSync(join(folder, 'lib', 'old.js'), '')
      const selection = new Selection()
      selection.add([patternText(pattern, link)])
      expect(selection.includes(join(real, 'lib', 'old.js'))).toBe(true)
      expect(selection.includes(join(link, 'lib', 'old.js'))).toBe(true)
      expect(selection.includes(join(real, 'main.js'))).toBe(false)
    }
  } finally {
    rmSync(link)
  }
})

test('the package.json of the program and the environment select packages', () => {
  process.env['HEDDLE_COMPILE'] = 'jpeg-js, !react'
  try {
    expect(requestedPatterns(join(folder, 'main.js'))).toEqual([
      'jpeg-js',
      '!react',
      'marked',
      join(folder, 'lib'),
    ])
  } finally {
    delete process.env['HEDDLE_COMPILE']
  }
})

test('the error of an invalid pattern names it, and the option', () => {
  for (const wrong of [1, 'marked', {}, null]) {
    expect(() => checkPatterns('compile', wrong)).toThrow(/^compile: .* is not a list; give/)
  }
  for (const wrong of [1, '', '!', null, {}]) {
    expect(() => checkPatterns('compile', [wrong])).toThrow(/^compile: .* is not a pattern; give/)
  }
})
