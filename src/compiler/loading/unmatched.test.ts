import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { whyUnmatched } from './unmatched.ts'

/** A workspace: its root, a package beside others, and a package that only links to what it uses. */
let folder: string
const packages = [
  'node_modules/marked',
  'node_modules/@acme/tools',
  'node_modules/jimp/node_modules/jpeg-js',
  'node_modules/.pnpm/pako@3.0.3/node_modules/pako',
  'node_modules/.pnpm/@deep+one@1.0.0_peer@2.0.0/node_modules/@deep/one',
  'packages/tasks/node_modules/zod',
]
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'heddle-unmatched-'))
  for (const path of packages) mkdirSync(join(folder, path), { recursive: true })
  mkdirSync(join(folder, 'packages', 'app', 'lib'), { recursive: true })
  mkdirSync(join(folder, 'packages', 'app', 'node_modules'))
  symlinkSync(join(folder, 'packages', 'tasks'), join(folder, 'packages', 'app', 'node_modules', 'tasks'))
  writeFileSync(join(folder, 'packages', 'app', 'package.json'), '{ "name": "@mine/app" }')
  writeFileSync(join(folder, 'packages', 'tasks', 'work.mjs'), 'export function one() {\n  return 1\n}\n')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const why = (text: string): string | null =>
  whyUnmatched(text, [join(folder, 'packages/app/main.js'), join(folder, 'packages/tasks/work.mjs')])

describe('a pattern that may select something:', () => {
  const names = ['marked', '@acme/*', '@acme/tools', 'jpeg-js', 'pako', '@deep/one', 'zod', '*mark*']
  const others = ['tasks', '@mine/app', 'all', '!react', 'regexp::^nothing', './relative']
  test.each([...names, ...others])('%s', text => expect(why(text)).toBe(null))

  test('a file, and a folder', () => {
    expect(why(join(folder, 'packages/app/lib'))).toBe(null)
    expect(why(pathToFileURL(join(folder, 'packages/tasks/work.mjs')).href)).toBe(null)
  })
})

describe('a pattern that selects nothing:', () => {
  test.each(['mark', 'jpg-js', '@acme/tool', '@other/*', 'acme', 'one'])('%s', text =>
    expect(why(text)).toBe('no package of that name is installed; check the name'),
  )

  test('a file that does not exist', () => {
    const missing = join(folder, 'packages/app/nope.js')
    for (const text of [missing, pathToFileURL(missing).href])
      expect(why(text)).toBe('there is no such file or folder; check the path')
  })
})

test('a kernel warns once, whichever of its CPUs is first', () => {
  writeFileSync(
    join(folder, 'packages', 'app', 'main.mjs'),
    `import { Kernel } from ${JSON.stringify(new URL('../../index.ts', import.meta.url).href)}
const kernel = await Kernel.boot({ cpus: 2, compile: ['jpg-js', 'marked', 'jpg-js', /nothing/] })
const url = new URL('../tasks/work.mjs', import.meta.url)
const { one } = await kernel.import(url)
await kernel.import(url.href + '?again')
console.log(await kernel.spawn(one))
await kernel.close()
`,
  )
  const { stdout, stderr } = spawnSync(process.execPath, ['main.mjs'], {
    cwd: join(folder, 'packages', 'app'),
    env: { ...process.env, HEDDLE_COMPILE: 'zod, marked,', NODE_OPTIONS: '' },
    encoding: 'utf8',
  })
  expect(stdout, stderr).toBe('1\n')
  expect(stderr.match(/HeddleWarning: .*/g)).toEqual([
    "HeddleWarning: compile: 'jpg-js' selects nothing: no package of that name is installed; check the name",
  ])
})
