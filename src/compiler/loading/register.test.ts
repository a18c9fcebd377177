import { execFile } from 'node:child_process'
import { cp, glob, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileLoaded } from './loader.ts'
import { textHash } from './texthash.ts'

const source = fileURLToPath(new URL('../../', import.meta.url))
const root = fileURLToPath(new URL('../../../', import.meta.url))

/** Every Node for the tests of the loader: this one, and those in HEDDLE_NODES. */
const nodes = [process.execPath, ...(process.env['HEDDLE_NODES']?.split(':').filter(Boolean) ?? [])]

let folder: string

/** A project with heddle installed: built, under its name, in its own node_modules. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-register-'))
  const installed = join(folder, 'node_modules', 'heddle')
  await buildInto(join(installed, 'dist'))
  await cp(join(root, 'package.json'), join(installed, 'package.json'))
  for (const name of ['oxc-parser', 'magic-string', 'tsx']) {
    await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  }
  await mkdir(join(folder, 'app'))
  await cp(
    fileURLToPath(new URL('../../../testing/compiler/fixtures/loader/', import.meta.url)),
    join(folder, 'app'),
    {
      recursive: true,
    },
  )
  const imports = { '#coroutine': './heddle-coroutine.mjs' }
  await writeFile(join(folder, 'app', 'package.json'), JSON.stringify({ type: 'module', imports }))
  await writeFile(
    join(folder, 'app', 'heddle-coroutine.mjs'),
    "export * from '../node_modules/heddle/dist/coroutine/core/coroutine.js'\n",
  )
})

/** One file for each module, as in the package: the loader finds its parts by path. */
async function buildInto(outdir: string): Promise<void> {
  const entryPoints = await Array.fromAsync(
    glob('{arena,machine,payload,thread,coroutine,compiler}/**/*.ts', {
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

const run = (node: string, ...args: string[]): Promise<Run> => runWith({}, node, ...args)

function runWith(more: NodeJS.ProcessEnv, node: string, ...args: string[]): Promise<Run> {
  return new Promise(resolve => {
    const { NODE_OPTIONS: _, ...env } = { ...process.env, ...more }
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

/** Hides registerHooks, so that the loader uses the interface of an older Node. */
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
    test('compiles JavaScript and CommonJS modules, and stacks show the original lines', async () => {
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

    test('works with tsx, in either order', async () => {
      for (const order of [
        ['tsx', 'heddle/register'],
        ['heddle/register', 'tsx'],
      ]) {
        const { lines, errors } = await run(node, ...order.flatMap(name => ['--import', name]), 'main.ts')
        expect(lines, errors).toEqual(typescript)
      }
    })

    test('works if Node has no registerHooks', async () => {
      const hidden = ['--import', olderNode, '--import', 'heddle/register']
      const common = await run(node, ...hidden, 'common-main.cjs')
      expect(common.lines, common.errors).toEqual(['twice same preempted', 'fib same preempted'])
      const plain = await run(node, ...hidden, 'main.js')
      expect(plain.lines, plain.errors).toEqual(javascript)
      const stripped = await run(node, ...hidden, 'main.ts')
      expect(stripped.lines, stripped.errors).toEqual(typescript)
    })

    test('shows a syntax error with its position and the lines around it', async () => {
      const { errors, code } = await run(node, '--import', 'heddle/register', 'broken.js')
      expect(code).toBe(1)
      expect(errors).toContain('SyntaxError')
      expect(errors).toContain('broken.js:3:')
      expect(errors).toContain('let a = = 1')
    })

    test('warns about code that stays plain, with the line and the reason, and runs it', async () => {
      const { errors, code } = await run(node, '--import', 'heddle/register', 'getter.js')
      expect(code).toBe(0)
      expect(errors).toContain('HeddleWarning')
      expect(errors).toContain('getter.js:3:')
    })
  })
}

/** A package as other people write it: unmarked CommonJS, without a `type`. */
async function addPackage(name: string, text: string, manifest: object = {}): Promise<void> {
  const at = join(folder, 'app', 'node_modules', name)
  await mkdir(at, { recursive: true })
  await writeFile(join(at, 'package.json'), JSON.stringify({ name, main: 'index.js', ...manifest }))
  await writeFile(join(at, 'index.js'), text)
}

const unmarked = `
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
exports.fib = fib
exports.isCompiled = () => Symbol.for('heddle.itself') in fib || Symbol.for('heddle.twin') in fib
`

for (const node of nodes) {
  describe(`packages, on ${node}`, () => {
    const asks = async (file: string, text: string, env: NodeJS.ProcessEnv = {}): Promise<Run> => {
      await writeFile(join(folder, 'app', file), text)
      return runWith(env, node, '--import', 'heddle/register', file)
    }

    test('a marked function of a required package without a type is compiled', async () => {
      await addPackage('marked-cjs', unmarked.replace('fib(n) {', "fib(n) { 'use task';"))
      const { lines, errors } = await asks(
        'require.cjs',
        "const a = require('marked-cjs'); console.log(a.isCompiled(), a.fib(10))",
      )
      expect(lines, errors).toEqual(['true 55'])
    })

    test('a selected package is compiled, required and imported, and an excluded one is not', async () => {
      await addPackage('foreign', unmarked)
      await addPackage('foreign-esm', unmarked.replaceAll(/exports\.(\w+) = /g, 'export const $1_ = '), {
        type: 'module',
      })
      const text = `
        const a = require('foreign')
        import('foreign-esm').then(b => console.log(a.isCompiled(), a.fib(10), b.isCompiled_(), b.fib_(10)))`
      const on = { HEDDLE_COMPILE: 'foreign*' }
      expect((await asks('both.cjs', text)).lines).toEqual(['false 55 false 55'])
      expect((await asks('both.cjs', text, on)).lines).toEqual(['true 55 true 55'])
      const partly = { HEDDLE_COMPILE: 'all,!foreign' }
      expect((await asks('both.cjs', text, partly)).lines).toEqual(['false 55 true 55'])
    })

    test('a marked function that a pattern excludes causes one warning', async () => {
      await addPackage('marked-cjs', unmarked.replace('fib(n) {', "fib(n) { 'use task';"))
      const { lines, errors } = await asks(
        'require.cjs',
        "const a = require('marked-cjs'); console.log(a.isCompiled())",
        { HEDDLE_COMPILE: 'all,!marked-cjs' },
      )
      expect(lines, errors).toEqual(['false'])
      expect(errors.match(/marked-cjs.index\.js contains 'use task' and is not compiled/g)).toHaveLength(1)
    })

    test('a module of several threads is compiled once, cached for the next start, and recompiled if damaged', async () => {
      const cache = join(folder, `cache-${nodes.indexOf(node)}`)
      await addPackage('foreign', `${unmarked}\n// ${Math.random()}`)
      const text = `
        const { isMainThread, Worker } = require('node:worker_threads')
        console.log(require('foreign').isCompiled())
        if (isMainThread) for (let n = 0; n < 3; n++) new Worker(__filename)`
      const env = { HEDDLE_COMPILE: 'foreign', HEDDLE_CACHE: cache, NODE_DEBUG: '' }
      const entries = async (): Promise<string[]> =>
        (await readdir(cache, { recursive: true })).filter(name => name.endsWith('.entry'))
      const all = ['true', 'true', 'true', 'true']
      expect((await asks('several.cjs', text, env)).lines).toEqual(all)
      const [entry, ...others] = await entries()
      expect(others).toEqual([])
      // The cache entry runs: the second start compiles nothing.
      const kept = await readFile(join(cache, entry!), 'utf8')
      const body = kept
        .slice(33)
        .replace('exports.isCompiled = ', "console.log('kept'); exports.isCompiled = ")
      await writeFile(join(cache, entry!), `${textHash(body)}\n${body}`)
      const again = await asks('several.cjs', text, env)
      expect(
        again.lines.filter(line => line === 'kept'),
        again.errors,
      ).toHaveLength(4)
      await writeFile(join(cache, entry!), body)
      expect((await asks('several.cjs', text, env)).lines).toEqual(all)
      expect(await readFile(join(cache, entry!), 'utf8')).toBe(kept)
    })

    test('the error of the first `import` in a CommonJS package names the fix', async () => {
      const at = join(folder, 'app', 'initialised')
      await mkdir(at, { recursive: true })
      await writeFile(join(at, 'package.json'), '{ "name": "initialised", "type": "commonjs" }')
      for (const file of ['main.ts', 'main.js']) {
        await writeFile(join(at, file), "import { join } from 'node:path'\nconsole.log(join('a', 'b'))")
        const { errors, code } = await run(node, '--import', 'heddle/register', join(at, file))
        expect(code).toBe(1)
        expect(errors).toMatch(/npm pkg set type=module`, or name the file main\.m[jt]s/)
      }
    })
  })
}

describe('a loaded module', () => {
  const url = pathToFileURL('/somewhere/module.js').href

  test('without the directive is passed on unchanged', () => {
    for (const text of ['export const a = 1', Buffer.from('export const a = 1')]) {
      const loaded = { format: 'module', source: text }
      expect(compileLoaded(url, loaded)).toBe(loaded)
    }
  })

  test('that is not a file, or not a program, is passed on unchanged', () => {
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
