/** How CPUs load the code of their tasks: CommonJS, code without marks, code that does not parse. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { Kernel } from '../kernel/boot/kernel.ts'
import { record } from './recording.ts'
import { Summary } from './summary.ts'

const common = new URL('../../testing/kernel/fixtures/common.cjs', import.meta.url)
const folder = mkdtempSync(join(tmpdir(), 'heddle-code-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the functions of a CommonJS module are found, although only its execution shows them', async () => {
  await using kernel = await Kernel.boot({ cpus: 1 })
  const work = await kernel.import(common)
  expect(await kernel.spawn(work.two!)).toBe('two')
  expect(await kernel.spawn(work.total!, [10])).toBe(45)
  expect(await kernel.spawn(work.isCompiled!)).toBe(false)
})

test('`compile` makes unmarked code preemptible on every CPU', async () => {
  await using kernel = await Kernel.boot({ cpus: 2, compile: [common] })
  const work = await kernel.import(common)
  for (const cpu of [0, 1]) {
    expect(await kernel.spawn(work.isCompiled!, [], { affinity: [cpu] })).toBe(true)
  }
  expect(await kernel.spawn(work.total!, [10])).toBe(45)
})

test.each([
  [1, /^compile: 1 is not a list; give/],
  ['marked', /^compile: 'marked' is not a list; give/],
  [[''], /^compile: '' is not a pattern; give/],
  [[{}], /is not a pattern/],
  [['./lib'], /^compile: '\.\/lib' is relative, and a CPU cannot resolve it; give new URL/],
])('boot refuses compile: %j', async (compile, message) => {
  await expect(Kernel.boot({ cpus: 1, compile: compile as never })).rejects.toThrow(message)
})

test('spawn refuses a class', async () => {
  await using kernel = await Kernel.boot({ cpus: 1 })
  const { Klass } = await kernel.import(common)
  expect(() => kernel.spawn(Klass!)).toThrow(/^spawn\(Klass\): Klass is a class.*export a function/)
})

test('a syntax error in an imported module, or in one that it imports, has its file, line and text', async () => {
  writeFileSync(join(folder, 'broken.mjs'), 'export const a = 1\n\nlet b = = 2\n')
  writeFileSync(join(folder, 'outer.mjs'), "import { a } from './broken.mjs'\nexport const f = () => a\n")
  await using kernel = await Kernel.boot({ cpus: 1 })
  for (const file of ['broken.mjs', 'outer.mjs']) {
    const failure = await kernel.import(pathToFileURL(join(folder, file))).then(
      () => null,
      (error: Error) => error.message,
    )
    expect(failure).toContain(`${join(folder, 'broken.mjs')}:3:9`)
    expect(failure).toContain('let b = = 2')
  }
})

test('boot, spawn and close refuse unknown options', async () => {
  await expect(Kernel.boot({ cpu: 1 } as never)).rejects.toThrow(/Kernel\.boot.*'cpu'.*cpus\?/)
  await expect(Kernel.boot({ watchdog: { limt: 1 } as never })).rejects.toThrow(/watchdog.*'limt'.*limit\?/)
  await using kernel = await Kernel.boot({ cpus: 1 })
  const work = await kernel.import(common)
  expect(() => kernel.spawn(work.two!, [], { prority: 'high' } as never)).toThrow(/'prority'.*priority\?/)
  expect(() => kernel.close({ dealine: 1 } as never)).toThrow(/'dealine'.*deadline\?/)
  expect(await kernel.spawn(work.two!)).toBe('two')
})

test('a trace names tasks by their functions', async () => {
  await using kernel = await Kernel.boot({ cpus: 1 })
  const work = await kernel.import(common)
  const summary = new Summary()
  const recording = record(kernel, summary)
  await kernel.spawn(work.total!, [10])
  await kernel.spawn(work.total!, [10], { name: 'mine' })
  recording.stop()
  const names = summary.tasks.map(({ name }) => name)
  expect(names).toContain('total')
  expect(names).toContain('mine')
  expect(names.filter(name => /^task \d/.test(name))).toEqual([])
})
