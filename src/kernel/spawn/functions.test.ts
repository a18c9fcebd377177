import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, expect, test, vi } from 'vitest'
import { FunctionTable, warnOfModule } from './functions.ts'

const folder = mkdtempSync(join(tmpdir(), 'heddle-functions-'))
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true, force: true })
})

test('the booting thread warns once of a marked function that CPUs without a loader did not compile', async () => {
  const said: string[] = []
  vi.spyOn(process, 'emitWarning').mockImplementation((message: unknown) => void said.push(String(message)))
  const file = join(folder, 'work.mjs')
  writeFileSync(file, "export function marked() {\n  'use task'\n}\nexport function plain() {}\n")
  const url = pathToFileURL(file).href
  const functions = await new FunctionTable({ loader: null, compile: [], companions: [] }).load(url, 1)
  expect(said).toEqual([])
  expect(functions.map(({ name, warning }) => [name, warning !== null])).toEqual([
    ['marked', true],
    ['plain', false],
  ])
  warnOfModule(url, functions, null)
  expect(said).toHaveLength(1)
  expect(said[0]).toMatch(/^marked says 'use task' and was not compiled/)
})
