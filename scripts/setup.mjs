// Runs before `npm start`, `npm test` and `npm run bench`, on the system's Node and without any dependency.
// It installs from the lock file when something is missing, and makes sure that the development Node is
// there.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const windows = process.platform === 'win32'

/** @returns {string | undefined} why the tree installed in `folder` does not match its lock file */
function missing(folder) {
  const marker = join(folder, 'node_modules', '.package-lock.json')
  if (!existsSync(marker)) return 'no dependencies yet'
  const lock = join(folder, 'package-lock.json')
  if (statSync(lock).mtimeMs <= statSync(marker).mtimeMs) return undefined
  const wanted = JSON.parse(readFileSync(lock, 'utf8')).packages
  const have = JSON.parse(readFileSync(marker, 'utf8')).packages
  for (const [path, { version, optional }] of Object.entries(wanted)) {
    if (path === '' || optional) continue
    if (have[path]?.version !== version) return `${path} is not ${version}`
  }
  return undefined
}

/** @returns {boolean} whether the Node that is a dependency in `folder` runs */
function hasNode(folder) {
  try {
    const path = join(folder, 'node_modules', '.bin', windows ? 'node.cmd' : 'node')
    execFileSync(path, ['--version'], { encoding: 'utf8', shell: windows })
    return true
  } catch {
    return false
  }
}

function npm(folder, ...args) {
  const cli = process.env.npm_execpath
  const [file, first] = cli === undefined ? ['npm', []] : [process.execPath, [cli]]
  return spawnSync(file, [...first, ...args], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
  })
}

function setUp(folder, what, isNode = true) {
  const why = missing(folder)
  if (why !== undefined) {
    console.log(`heddle: installing ${what} from the lock file (${why}), once`)
    const done = npm(folder, 'ci', '--no-audit', '--no-fund', '--loglevel=error')
    if (done.status !== 0) {
      console.error(`${done.stdout}${done.stderr}`)
      console.error(
        'heddle: `npm ci` failed; its output is above. Fix the error, then run the command again.',
      )
      process.exit(1)
    }
  }
  if (!isNode || hasNode(folder)) return
  const where = folder === root ? '' : ` --prefix ${relative(root, folder)}`
  console.error(
    [
      `heddle: ${what}: Node itself is missing, because the install script of the npm package \`node\` did not run.`,
      '        It fetches a Node binary from the npm registry. Allow it, then run the command again:',
      `          npm rebuild node${where}                              (scripts were skipped: --ignore-scripts)`,
      `          npm install-scripts approve node${where} && npm ci${where}   (your npm asks for approval)`,
    ].join('\n'),
  )
  process.exit(1)
}

setUp(root, 'the development tools')
const matrix = process.argv.includes('--matrix')
if (matrix || process.argv.includes('--test')) {
  setUp(join(root, 'test', 'matrix'), 'other runtimes for the matrix', false)
  setUp(join(root, 'test', 'node20'), 'Node 20')
  setUp(join(root, 'test', 'node24'), 'Node 24')
}
if (matrix) setUp(join(root, 'test', 'node22'), 'Node 22')
