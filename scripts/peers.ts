import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { type Exclusion, piscinaExclusions, workerpoolExclusions } from './peerexclusions.ts'

/**
 * `npm run peers -- piscina|workerpool FOLDER [file…]`: runs another pool's own tests, from the folder of its
 * package, against ours. The tests are unchanged; only their import of the package is redirected. Tests about
 * its internals are left out: peerexclusions.ts lists them with the reasons.
 *
 *   npm i --prefix /tmp/peer piscina@5 concat-stream abort-controller @napi-rs/nice tsx
 *   npm run peers -- piscina /tmp/peer/node_modules/piscina
 *
 *   git clone --branch v4.6.1 https://github.com/piscinajs/piscina /tmp/piscina4
 *   npm i --prefix /tmp/piscina4 --no-save tsx
 *   npm run peers -- piscina /tmp/piscina4
 *
 *   git clone https://github.com/josdejong/workerpool /tmp/workerpool && npm i --prefix /tmp/workerpool
 *   npm run peers -- workerpool /tmp/workerpool
 */
interface Peer {
  /** Makes the package that the tests import, in `root`, beside the test files. */
  lay(root: string, folder: string): void
  /** The test files, below `root`. */
  files(root: string): string[]
  command(file: string, skip: string | null, root: string): string[]
  readonly exclusions: readonly Exclusion[]
}

const source = resolve(import.meta.dirname, '../src')

const piscina: Peer = {
  exclusions: piscinaExclusions,
  lay(root, folder) {
    cpSync(join(folder, 'test'), join(root, 'test'), { recursive: true })
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
    const entry = JSON.stringify(join(source, 'piscina/index.ts'))
    const names = [
      'ArrayTaskQueue',
      'FixedQueue',
      'Piscina',
      'isWorkerThread',
      'move',
      'queueOptionsSymbol',
      'transferableSymbol',
      'valueSymbol',
      'version',
      'workerData',
    ]
    mkdirSync(join(root, 'dist'))
    write(
      root,
      'package.json',
      JSON.stringify({
        name: 'piscina',
        version,
        main: './dist/index.js',
        exports: { '.': { import: './dist/index.mjs', require: './dist/index.js' } },
      }),
    )
    write(root, 'dist/index.js', `module.exports = require(${entry})`)
    write(
      root,
      'dist/index.mjs',
      `import mod from './index.js'\nexport default mod\n${names.map(name => `export const ${name} = mod.${name}`).join('\n')}`,
    )
    // Two internals have an equivalent here.
    write(
      root,
      'dist/common.js',
      `module.exports = { ...require(${JSON.stringify(join(source, 'piscina/transferable.ts'))}), getAvailableParallelism: require('node:os').availableParallelism }`,
    )
    write(
      root,
      'dist/symbols.js',
      `const { queueOptionsSymbol } = require(${entry})\nmodule.exports = { kQueueOptions: queueOptionsSymbol }`,
    )
    write(root, 'dist/worker_pool.js', 'module.exports = {}')
    const own = join(folder, 'node_modules')
    symlinkSync(existsSync(own) ? own : dirname(folder), join(root, 'node_modules'))
  },
  files: root =>
    readdirSync(join(root, 'test'))
      .filter(name => name.endsWith(isTap(root) ? '.ts' : '.test.ts'))
      .map(name => join('test', name)),
  command: (file, skip, root) =>
    isTap(root)
      ? ['--import=tsx', file]
      : [
          '--import=tsx',
          '--test',
          '--test-timeout=60000',
          ...(skip === null ? [] : [`--test-skip-pattern=${skip}`]),
          file,
        ],
}

/** The tests of version 4 use tap, those of version 5 node:test. */
function isTap(root: string): boolean {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  return Number.parseInt(version, 10) < 5
}

const workerpool: Peer = {
  exclusions: workerpoolExclusions,
  lay(root, folder) {
    cpSync(join(folder, 'test'), join(root, 'test'), { recursive: true })
    const of = (file: string): string => `require(${JSON.stringify(join(source, 'workerpool', file))})`
    mkdirSync(join(root, 'src'))
    write(root, 'package.json', JSON.stringify({ name: 'workerpool', main: './src/index.js' }))
    write(root, 'src/index.js', `module.exports = ${of('index.ts')}`)
    // The tests import parts of the package by file.
    write(root, 'src/environment.js', `module.exports = ${of('environment.ts')}`)
    write(root, 'src/Pool.js', `module.exports = ${of('pool.ts')}.Pool`)
    write(root, 'src/Promise.js', `module.exports = ${of('index.ts')}`)
    write(root, 'src/queues.js', `module.exports = ${of('queues.ts')}`)
    symlinkSync(join(folder, 'node_modules'), join(root, 'node_modules'))
  },
  files: root =>
    readdirSync(join(root, 'test'))
      .filter(name => /[.-]test\.js$/.test(name))
      .map(name => join('test', name)),
  command: (file, skip) => [
    'node_modules/mocha/bin/mocha.js',
    '--no-config',
    '--exit',
    '--reporter=tap',
    '--timeout=20000',
    ...(skip === null ? [] : ['--invert', '--grep', skip]),
    file,
  ],
}

const peers: Record<string, Peer> = { piscina, workerpool }

function write(root: string, file: string, text: string): void {
  writeFileSync(join(root, file), `${text}\n`)
}

const [name, given, ...only] = process.argv.slice(2)
const peer = peers[name]
if (peer === undefined || given === undefined || !existsSync(join(given, 'test'))) {
  console.error(
    `usage: npm run peers -- ${Object.keys(peers).join('|')} FOLDER [file…], where FOLDER is the package, with its folder test`,
  )
  process.exit(2)
}
const root = mkdtempSync(join(tmpdir(), `heddle-${name}-`))
process.on('exit', () => rmSync(root, { recursive: true, force: true }))
peer.lay(root, resolve(given))
const files = peer.files(root).filter(file => only.length === 0 || only.some(part => file.includes(part)))
if (files.length === 0) {
  console.error(
    `peers: no test file of ${name}${only.length === 0 ? '' : ` with ${only.join(' or ')} in its name`} in ${given}; give the package as npm installs it`,
  )
  process.exit(2)
}
let [passed, failed, left] = [0, 0, 0]
for (const file of files) {
  const excluded = peer.exclusions.filter(one => file.endsWith(one.file))
  if (excluded.some(one => one.test === undefined)) {
    console.log(`- ${file}: left out, ${excluded[0].reason}`)
    left++
    continue
  }
  const skip =
    excluded.length === 0 ? null : `/^(?:${excluded.map(one => escaped(one.test ?? '')).join('|')})$/`
  const done = spawnSync(process.execPath, peer.command(file, skip, root), {
    cwd: root,
    encoding: 'utf8',
    timeout: 240_000,
    env: {
      ...process.env,
      NODE_TEST_CONTEXT: undefined,
      ...(skip !== null && { TAP_GREP: skip, TAP_GREP_INVERT: '1' }),
    },
  })
  const output = `${done.stdout}${done.stderr}`
  const count = (of: 'pass' | 'fail'): number => {
    const told = new RegExp(`^(?:# |ℹ )${of} (\\d+)$`, 'm').exec(output)?.[1]
    if (told !== undefined) return Number(told)
    return [...output.matchAll(of === 'pass' ? /^ok \d.*# time=/gm : /^not ok \d.*# time=/gm)].length
  }
  passed += count('pass')
  failed += count('fail')
  left += excluded.length
  if (done.status === 0)
    console.log(
      `✓ ${file}: ${count('pass')} passed${excluded.length === 0 ? '' : `, ${excluded.length} left out`}`,
    )
  else {
    if (count('fail') === 0) failed++
    console.log(`✗ ${file}\n${output}`)
  }
}
console.log(
  `\n${name}: ${passed} passed, ${failed} failed, ${left} left out (scripts/peerexclusions.ts says why)`,
)
process.exitCode = failed === 0 ? 0 : 1

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`)
}
