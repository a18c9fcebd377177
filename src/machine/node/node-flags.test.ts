import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { flagsOfWorkers } from './node-flags.ts'

test('workers get the flags of the process from Node, unless one of the flags is --input-type', () => {
  expect(flagsOfWorkers(['--import', 'heddle/register', '--max-old-space-size=100'])).toBeUndefined()
  expect(
    flagsOfWorkers([
      '--input-type',
      'module',
      '--import',
      'a',
      '-r',
      'b',
      '--max-old-space-size=9',
      '-e',
      'code',
    ]),
  ).toEqual(['--import', 'a', '-r', 'b'])
  expect(flagsOfWorkers(['--input-type=module', '--import=a', '--no-warnings', '-e', '1'])).toEqual([
    '--import=a',
    '--no-warnings',
  ])
})

test('a kernel boots in a program given on the command line', () => {
  const text = `import { Kernel } from ${JSON.stringify(new URL('../../index.ts', import.meta.url).href)}
const kernel = await Kernel.boot({ cpus: 1 })
console.log(kernel.online)
await kernel.close()`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', text], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH },
  })
  expect(stderr).toBe('')
  expect(stdout).toBe('1\n')
})
