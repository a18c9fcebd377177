import { execFile } from 'node:child_process'
import { cp, glob, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileLoaded } from './loader.ts'

const source = fileURLToPath(new URL('../', import.meta.url))
const root = fileURLToPath(new URL('../../', import.meta.url))

/** Every Node that the loader is tried on: this one, and those that HEDDLE_NODES names. */
const nodes = [process.execPath, ...(process.env['HEDDLE_NODES']?.split(':').filter(Boolean) ?? [])]

let folder: string

/** A project that has heddle installed: built, under its name, in a node_modules of its own. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-register-'))
  const installed = join(folder, 'node_modules', 'heddle')
  await buildInto(join(installed, 'dist'))
  await cp(join(root, 'package.json'), join(installed, 'package.json'))
  for (const name of ['oxc-parser', 'magic-string', 'tsx']) {
    await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  }
  await mkdir(join(folder, 'app'))
  await cp(fileURLToPath(new URL('./fixtures/loader/', import.meta.url)), join(folder, 'app'), {
    recursive: true,
  })
  const imports = { '#coroutine': './heddle-coroutine.mjs' }
  await writeFile(join(folder, 'app', 'package.json'), JSON.stringify({ type: 'module', imports }))
  await writeFile(
    join(folder, 'app', 'heddle-coroutine.mjs'),
    "export * from '../node_modules/heddle/dist/coroutine/coroutine.js'\n",
  )
})

/** One file for each module, as the package has them: the loader finds its parts by their paths. */
async function buildInto(outdir: string): Promise<void> {
  const entryPoints = await Array.fromAsync(
    glob('{arena,machine,coroutine,compiler}/**/*.ts', {
      cwd: source,
      exclude: name => /\.(?:test|check)\.ts$|fixtures|differential|realcode/.test(name),
    }),
    name => join(source, name),
  )
  const { outputFiles } = await build({
    entryPoints,
    outdir,
    outbase: source,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'error',
  })
  for (const { path, text } of outputFiles) {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text.replaceAll(/(["'])(\.{1,2}\/[^"'\s]*)\.ts\1/g, '$1$2.js$1'))
  }
}

afterAll(() => rm(folder, { recursive: true, force: true }))

interface Run {
  lines: string[]
  errors: string
  code: number | null
}

function run(node: string, ...args: string[]): Promise<Run> {
  return new Promise(resolve => {
    const { NODE_OPTIONS: _, ...env } = process.env
    execFile(
      node,
      args,
      { cwd: join(folder, 'app'), env: { ...env, NODE_NO_WARNINGS: '' } },
      (error, stdout, stderr) => {
        const lines = stdout.split('\n').filter(line => line !== '')
        resolve({ lines, errors: stderr, code: error === null ? 0 : (error.code as never as number) })
      },
    )
  })
}

/** Hides registerHooks, so that the loader takes the way that an older Node offers. */
const olderNode = `data:text/javascript,${encodeURIComponent("import m from 'node:module'; delete m.registerHooks")}`

const typescript = [
  'even same preempted',
  'sum same preempted',
  'turn 0',
  'turn 1',
  'the line is 24 work.ts:24',
]
const javascript = [
  'sum same preempted',
  'fib same preempted',
  'turn 0',
  'turn 1',
  'the line is 13 work-plain.js:13',
  'turn 0',
  'turn 1',
  'the line is 12 common.cjs:12',
]

for (const node of nodes) {
  describe(`node --import heddle/register${node === process.execPath ? '' : ` with ${node}`}`, () => {
    test('compiles JavaScript and CommonJS modules, and stacks name the lines that were written', async () => {
      const { lines, errors, code } = await run(node, '--import', 'heddle/register', 'main.js')
      expect({ lines, code }, errors).toEqual({ lines: javascript, code: 0 })
    })

    test('compiles CommonJS that is the entry, required and imported', async () => {
      const { lines, errors } = await run(node, '--import', 'heddle/register', 'common-main.cjs')
      expect(lines, errors).toEqual(['twice same preempted', 'fib same preempted'])
    })

    test('compiles TypeScript, on a Node that strips types and on one that does not, across modules that import each other', async () => {
      const { lines, errors, code } = await run(node, '--import', 'heddle/register', 'main.ts')
      expect({ lines, code }, errors).toEqual({ lines: typescript, code: 0 })
    })

    test('compiles inside workers', async () => {
      const plain = await run(node, '--import', 'heddle/register', 'threads.js')
      expect(plain.lines, plain.errors).toEqual(['sum in a worker same preempted'])
      const stripped = await run(node, '--import', 'heddle/register', 'threads.ts')
      expect(stripped.lines, stripped.errors).toEqual(['even in a worker same preempted'])
    })

    test('works with tsx, whichever of the two comes first', async () => {
      for (const order of [
        ['tsx', 'heddle/register'],
        ['heddle/register', 'tsx'],
      ]) {
        const { lines, errors } = await run(node, ...order.flatMap(name => ['--import', name]), 'main.ts')
        expect(lines, errors).toEqual(typescript)
      }
    })

    test('works where Node has no registerHooks', async () => {
      const hidden = ['--import', olderNode, '--import', 'heddle/register']
      const common = await run(node, ...hidden, 'common-main.cjs')
      expect(common.lines, common.errors).toEqual(['twice same preempted', 'fib same preempted'])
      const plain = await run(node, ...hidden, 'main.js')
      expect(plain.lines, plain.errors).toEqual(javascript)
      const stripped = await run(node, ...hidden, 'main.ts')
      expect(stripped.lines, stripped.errors).toEqual(typescript)
    })

    test('shows a syntax error with the place and the lines around it', async () => {
      const { errors, code } = await run(node, '--import', 'heddle/register', 'broken.js')
      expect(code).toBe(1)
      expect(errors).toContain('SyntaxError')
      expect(errors).toContain('broken.js:3:')
      expect(errors).toContain('let a = = 1')
    })

    test('warns about what stays plain, with the line and the reason, and runs it', async () => {
      const { errors, code } = await run(node, '--import', 'heddle/register', 'getter.js')
      expect(code).toBe(0)
      expect(errors).toContain('HeddleWarning')
      expect(errors).toContain('getter.js:3:')
    })
  })
}

describe('a loaded module', () => {
  const url = pathToFileURL('/somewhere/module.js').href

  test('without the directive is handed on as it is', () => {
    for (const text of ['export const a = 1', Buffer.from('export const a = 1')]) {
      const loaded = { format: 'module', source: text }
      expect(compileLoaded(url, loaded)).toBe(loaded)
    }
  })

  test('that is not a file, or not a program, is handed on as it is', () => {
    const text = "'use task'\nexport const f = () => { for (;;) f() }"
    for (const [address, format] of [
      ['data:text/javascript,x', 'module'],
      [url, 'json'],
      [url, 'wasm'],
      [url, 'builtin'],
    ] as const) {
      const loaded = { format, source: text }
      expect(compileLoaded(address, loaded)).toBe(loaded)
    }
  })

  test('may come as text, as bytes or as a buffer', () => {
    const text = "export function f(n) { 'use task'; return n < 1 ? 0 : f(n - 1) }"
    const bytes = new TextEncoder().encode(text)
    const outputs = [text, bytes, bytes.buffer].map(
      given => compileLoaded(url, { format: 'module', source: given }).source,
    )
    expect(outputs[0]).toMatch(/import \{[^}]*\} from .*runtime/)
    expect(outputs[1]).toBe(outputs[0])
    expect(outputs[2]).toBe(outputs[0])
  })
})
