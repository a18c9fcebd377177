// First steps with the installed package in common kinds of projects: a package.json with and without a type,
// TypeScript and JavaScript, modules and CommonJS, `heddle run` and `node --import heddle/register`. Each
// program counts on a CPU, and reports whether its function was compiled there and on the main thread. node
// test/smoke/projects.mjs <folder in which heddle is installed>
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import Module from 'node:module'
import { join } from 'node:path'

const consumer = process.argv[2]
const heddle = join(consumer, 'node_modules', 'heddle', 'dist', 'cli', 'main.js')
const folder = join(consumer, `projects-${process.version}`)

const count = types => `function count(below${types ? ': number' : ''})${types ? ': number' : ''} {
  'use task'
  let odd${types ? ': number' : ''} = 0
  for (let n = 0; n < below; n++) odd += n & 1
  return odd
}
function isCompiled()${types ? ': boolean' : ''} {
  return Symbol.for('heddle.itself') in count || Symbol.for('heddle.twin') in count
}
`
const moduleWork = types => count(types).replaceAll(/^function/gm, 'export function')
const commonWork = types => `${count(types)}module.exports = { count, isCompiled }\n`
const moduleMain = (work, types) => `import { Kernel } from 'heddle'
import { isCompiled } from './${work}'
const kernel${types ? ': Kernel' : ''} = await Kernel.boot({ cpus: 2 })
const work = await kernel.import${types ? `<typeof import('./${work}')>` : ''}(new URL('./${work}', import.meta.url))
console.log(await kernel.spawn(work.count, [1000]), await kernel.spawn(work.isCompiled), isCompiled())
await kernel.close()
`
const commonMain = (work, types) => `const { Kernel } = require('heddle')
const { isCompiled } = require('./${work}')
async function main()${types ? ': Promise<void>' : ''} {
  const kernel = await Kernel.boot({ cpus: 2 })
  const work = await kernel.import(require('node:path').join(__dirname, '${work}'))
  console.log(await kernel.spawn(work.count, [1000]), await kernel.spawn(work.isCompiled), isCompiled())
  await kernel.close()
}
main()
`

/** Puts a program and its work into a project whose package.json has this type, and runs it. */
function run(type, ending, isModule, by = [heddle, 'run']) {
  const types = ending.endsWith('ts')
  const at = join(folder, type ?? 'untyped')
  mkdirSync(at, { recursive: true })
  writeFileSync(join(at, 'package.json'), JSON.stringify({ name: 'project', ...(type && { type }) }))
  const [main, work] = [`main-${isModule}.${ending}`, `work-${isModule}.${ending}`]
  writeFileSync(join(at, main), isModule ? moduleMain(work, types) : commonMain(work, types))
  writeFileSync(join(at, work), isModule ? moduleWork(types) : commonWork(types))
  const { stdout, stderr } = spawnSync(process.execPath, [...by, main], { cwd: at, encoding: 'utf8' })
  return { stdout, stderr, what: `${by.join(' ')} ${main} in a package with type ${type}` }
}

const cells = [
  ['module', 'ts', true],
  ['module', 'cts', false],
  [undefined, 'ts', true],
  [undefined, 'js', false],
  ['commonjs', 'ts', false],
  ['commonjs', 'mts', true],
  ['module', 'ts', true, ['--import', 'heddle/register']],
  ['commonjs', 'js', false, ['--import', 'heddle/register']],
]
for (const cell of cells) {
  const { stdout, stderr, what } = run(...cell)
  assert.equal(stdout, '500 true true\n', `${what}: ${stderr}`)
}

const refused = run('commonjs', 'ts', true)
assert.match(refused.stderr, /npm pkg set type=module`, or name the file main-true\.mts/, refused.what)

// TypeScript that is more than types: the error names the place, and what to do instead.
const refusedTypes = [
  [
    'enum',
    'export enum Colour { red, green }',
    /an `enum` cannot be erased as a type: write `const Name = .*/,
  ],
  ['decorator', 'export @(of => of) class Colour {}', /a decorator needs a transpiler: .* --import tsx .*/],
]
const version = Number.parseInt(process.versions.node, 10)
if (version < 24) {
  const says = /`using` is syntax of Node 24 and later: call close\(\), .* in a `finally` instead, .*/
  refusedTypes.push(['using', 'export function work() {\n  using none = null\n}', says, 3])
}
for (const [name, code, says, line = 2] of refusedTypes) {
  const at = text => join(folder, 'module', text)
  writeFileSync(
    at(`work-${name}.ts`),
    `import './${name}.ts'\nexport function one() {\n  'use task'\n  return 1\n}\n`,
  )
  writeFileSync(at(`${name}.ts`), `export const none: number = 0\n${code}\n`)
  writeFileSync(
    at(`main-${name}.ts`),
    `import { Kernel } from 'heddle'
const kernel = await Kernel.boot({ cpus: 1 })
const work = new URL('./work-' + '${name}.ts', import.meta.url)
await kernel.import(work).catch(error => console.log(error.message))
await kernel.close()
`,
  )
  const { stdout, stderr } = spawnSync(process.execPath, [heddle, 'run', `main-${name}.ts`], {
    cwd: at('.'),
    encoding: 'utf8',
  })
  assert.match(
    stdout,
    new RegExp(`work-${name}\\.ts: ${says.source}\\n.*${name}\\.ts:${line}:\\d+\\n`),
    stderr,
  )
}

// Without the loader, the main thread's code is not compiled, and a schedule says so.
const alone = join(folder, 'module', 'alone.mjs')
writeFileSync(
  alone,
  "import { Schedule } from 'heddle'\nfunction work() {\n  'use task'\n  return 1\n}\nconsole.log(await new Schedule().run(work))\n",
)
const untold = spawnSync(process.execPath, [alone], { encoding: 'utf8' })
assert.equal(untold.stdout, '1\n', untold.stderr)
assert.match(untold.stderr, /work says 'use task' and was not compiled.*npx heddle run alone\.mjs/)
assert.equal(untold.stderr.match(/HEDDLE_NOT_COMPILED/g).length, 1)

// A module that CommonJS requires, and what the worker of a pool imports. Node 20 has no hooks for `require`.
const inModules = text => join(folder, 'module', text)
writeFileSync(inModules('inner.js'), moduleWork(false))
writeFileSync(
  inModules('worker.js'),
  `import { isCompiled } from './inner.js'
export default () => isCompiled()
`,
)
writeFileSync(inModules('required.cjs'), "console.log(require('./inner.js').isCompiled())\n")
writeFileSync(
  inModules('pool.js'),
  `import Piscina from 'heddle/piscina'
const pool = new Piscina({ filename: new URL('worker.js', import.meta.url).href, maxThreads: 1, compile: 'all' })
console.log(await pool.run())
await pool.close()
`,
)
for (const command of [['--import', 'heddle/register', 'required.cjs'], ['pool.js']]) {
  const { stdout, stderr } = spawnSync(process.execPath, command, {
    cwd: inModules('.'),
    encoding: 'utf8',
  })
  assert.equal(stdout, 'true\n', `${command.join(' ')}: ${stderr}`)
  assert.doesNotMatch(stderr, /Heddle/)
}

// Under tsx, TypeScript in a CommonJS package, with an import that only tsx resolves. Where Node has no
// synchronous hooks, a long task that waits for a short one on its CPU ends only if it is preempted. In a
// package of modules it is preempted on each Node.
const writePool = at => {
  const isModule = at.endsWith('module')
  writeFileSync(join(at, 'kinds.ts'), 'export const Kind = { none: 0, short: 1 } as const\n')
  writeFileSync(
    join(at, 'handlers.ts'),
    `import { Kind } from './kinds${isModule ? '.ts' : ''}'
export default function long(flag: Int32Array): string {
  while (Atomics.load(flag, 0) === Kind.none);
  return 'long'
}
export function short(flag: Int32Array): string {
  Atomics.store(flag, 0, Kind.short)
  return 'short'
}
`,
  )
  writeFileSync(
    join(at, 'pool.ts'),
    `import { join } from 'node:path'
import Piscina from 'heddle/piscina'
async function main(): Promise<void> {
  const preempts = process.argv[2] === 'preempts'
  const filename = join(${isModule ? 'import.meta.dirname' : '__dirname'}, 'handlers.ts')
  const pool = new Piscina({ filename, maxThreads: 1, compile: preempts ? 'all' : undefined })
  const flag = new Int32Array(new SharedArrayBuffer(4))
  const run = (name: string): Promise<string> => pool.run(flag, { name })
  if (preempts) console.log((await Promise.all([run('default'), run('short')])).join())
  else console.log([await run('short'), await run('default')].join())
  await pool.close()
}
main()
`,
  )
}
for (const type of ['commonjs', 'module']) {
  const cwd = join(folder, type)
  writePool(cwd)
  const isPreempted = type === 'module' || typeof Module.registerHooks !== 'function'
  for (const how of isPreempted ? ['plain', 'preempts'] : ['plain']) {
    const command = ['--import', import.meta.resolve('tsx'), 'pool.ts', how]
    const options = { cwd, encoding: 'utf8', timeout: 60_000, killSignal: 'SIGKILL' }
    const { stdout, stderr } = spawnSync(process.execPath, command, options)
    const says = how === 'plain' ? 'short,long\n' : 'long,short\n'
    assert.equal(stdout, says, `${command.join(' ')} in a package with type ${type}: ${stderr}`)
  }
}

rmSync(folder, { recursive: true, force: true })
console.log(`${process.version}: ${cells.length + 7} first steps do what they say`)
