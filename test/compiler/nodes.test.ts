import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build, transform } from 'esbuild'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodes } from '../../scripts/nodes.ts'
import { moduleBody } from './differential/evaluate.ts'
import type { ModuleText } from './differential/instantiate.ts'
import { outputOf, programFiles, readProgram } from './differential/programs.ts'
import type { Play, Played } from './play.ts'

const root = join(import.meta.dirname, '..', '..')
/** `npm test` installs Node 24; it may be missing if this file runs alone. */
const all = nodes(root).filter(({ path }) => existsSync(path))
/** On this Node the programs run in test/compiler/differential. */
const others = all.filter(({ name }) => name !== `Node ${process.version}`)

let folder: string

/** This Node's output for the others: the runtime built for Node 20, and the programs as text. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-nodes-'))
  await build({
    entryPoints: [join(import.meta.dirname, 'play.ts')],
    outfile: join(folder, 'play.mjs'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'error',
  })
  const plays: Play[] = []
  for (const file of programFiles()) {
    const source = readProgram(file)
    const compiled = []
    for (const lowering of ['frames', 'generator'] as const) {
      for (const strip of [512, 1]) {
        const { code } = outputOf(source, file, { lowering, strip })
        compiled.push({ by: `${lowering}, in strips of ${strip}`, text: await textOf(code, file) })
      }
    }
    plays.push({ plain: await textOf(source, file), compiled })
  }
  await writeFile(join(folder, 'plays.json'), JSON.stringify(plays))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

async function textOf(source: string, file: string): Promise<ModuleText> {
  if (file.endsWith('.cjs')) return { kind: 'script', file, body: source }
  // `using` is newer than Node 20. For that version a bundler removes it, and leaves the rest alone.
  const isNew = /(?:^|[{;(]|await)\s*using [a-z]/m.test(source)
  const text = isNew ? (await transform(source, { target: 'node20', format: 'esm' })).code : source
  return { kind: 'module', file, body: moduleBody(text, file) }
}

function play(node: string): Promise<Played> {
  return new Promise((resolve, reject) => {
    const args = [join(folder, 'play.mjs'), join(folder, 'plays.json')]
    execFile(node, args, { encoding: 'utf8', maxBuffer: 1 << 28 }, (error, stdout, stderr) => {
      if (error === null) resolve(JSON.parse(stdout) as Played)
      else reject(new Error(`${node}: ${error.message}\n${stderr}`))
    })
  })
}

test.each(others.length > 0 ? others : all)(
  'programs compiled here behave on $name like plain ones',
  async ({ path }) => {
    const { programs, preemptions, differences } = await play(path)
    expect(differences).toEqual([])
    expect(programs).toBeGreaterThanOrEqual(250)
    expect(preemptions).toBeGreaterThan(10 * programs)
  },
)
