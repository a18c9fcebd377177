import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { decodedMappings, TraceMap } from '@jridgewell/trace-mapping'
import { expect, onTestFinished, test } from 'vitest'
import { compile } from '../compile.ts'

const folder = fileURLToPath(new URL('../../../testing/compiler/fixtures/debugged/', import.meta.url))
const loader = ['--import', new URL('../loading/register.ts', import.meta.url).href]

interface Debugged {
  readonly result: number
  readonly switches: number
  /** The source lines at which it stopped. */
  readonly seen: readonly number[]
}

async function run(flags: readonly string[], program: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, join(folder, program), ...args])
  return stdout
}

async function debug(flags: readonly string[], how: 'stop' | 'step'): Promise<Debugged> {
  return JSON.parse(await run(flags, 'stepping.ts', how)) as Debugged
}

test('breakpoints on source lines stop a task like the plain function, even if it is often preempted', async () => {
  const [plain, compiled] = await Promise.all([debug([], 'stop'), debug(loader, 'stop')])
  expect(plain.seen.length).toBeGreaterThan(60)
  expect(compiled.seen).toEqual(plain.seen)
  expect(compiled.result).toBe(plain.result)
  expect(compiled.switches).toBeGreaterThan(8)
})

test('steps lead from statement to statement of the source', async () => {
  const [plain, compiled] = await Promise.all([debug([], 'step'), debug(loader, 'step')])
  expect(plain.seen.length).toBeGreaterThan(20)
  expect(compiled.seen).toEqual(plain.seen)
})

interface Profile {
  readonly nodes: readonly {
    readonly callFrame: { readonly functionName: string; readonly url: string }
    readonly positionTicks?: readonly { readonly line: number; readonly ticks: number }[]
  }[]
}

test('a profile shows the functions of the source and, by the map, the lines that took the time', async () => {
  const scratch = mkdtempSync(join(tmpdir(), 'heddle-profile-'))
  onTestFinished(() => rmSync(scratch, { recursive: true }))
  expect(await run([...loader, '--cpu-prof', `--cpu-prof-dir=${scratch}`], 'profiled.ts')).toBe('true\n')
  const [file] = readdirSync(scratch)
  const profile = JSON.parse(readFileSync(join(scratch, file!), 'utf8')) as Profile
  const path = join(folder, 'work.ts')
  const source = readFileSync(path, 'utf8')
  const lines = decodedMappings(new TraceMap(compile(source, path).map as never))
  const ticks = new Map<string, number>()
  for (const { callFrame, positionTicks = [] } of profile.nodes) {
    if (!callFrame.url.endsWith('/debugged/work.ts')) continue
    for (const { line, ticks: count } of positionTicks) {
      // Profile ticks have only lines; a line of the output has one statement.
      const origin = lines[line - 1]!.find(segment => segment.length > 1) as [number, number, number, number]
      const place = `${callFrame.functionName}: ${source.split('\n')[origin[2]]!.trim()}`
      ticks.set(place, (ticks.get(place) ?? 0) + count)
    }
  }
  const [most] = [...ticks].sort((left, right) => right[1] - left[1])
  expect(most![0]).toMatch(/^inner: (?:value = .*takes the time|for \(let i = 0; i < 2000)/)
  expect([...ticks.keys()].every(place => /^(?:inner|spin): /.test(place))).toBe(true)
})
