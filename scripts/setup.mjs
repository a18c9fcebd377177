// Runs before `npm start`, `npm test` and `npm run bench`, on whatever Node is at hand and with nothing installed.
// It installs from the lock file when something is missing, and makes sure that the development Node is there.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const windows = process.platform === 'win32'
const nodePath = join(root, 'node_modules', '.bin', windows ? 'node.cmd' : 'node')

/** @returns {string | undefined} why the installed tree does not match the lock file */
function missing() {
  const marker = join(root, 'node_modules', '.package-lock.json')
  if (!existsSync(marker)) return 'no dependencies yet'
  if (statSync(join(root, 'package-lock.json')).mtimeMs <= statSync(marker).mtimeMs) return undefined
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  const have = JSON.parse(readFileSync(marker, 'utf8')).packages
  for (const [path, { version, optional }] of Object.entries(wanted)) {
    if (path === '' || optional) continue
    if (have[path]?.version !== version) return `${path} is not ${version}`
  }
  return undefined
}

/** @returns {string | undefined} the version of the development Node, when it runs */
function developmentNode() {
  try {
    return execFileSync(nodePath, ['--version'], { encoding: 'utf8', shell: windows }).trim()
  } catch {
    return undefined
  }
}

function npm(...args) {
  const cli = process.env.npm_execpath ?? createRequire(import.meta.url).resolve('npm')
  return spawnSync(process.execPath, [cli, ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' })
}

const why = missing()
if (why !== undefined) {
  console.log(`heddle: installing the locked dependencies (${why}); about a minute, once`)
  const done = npm('ci', '--no-audit', '--no-fund', '--loglevel=error')
  if (done.status !== 0) {
    console.error(done.stdout + done.stderr)
    console.error('heddle: `npm ci` failed (above). Mend what it names, then run the command again.')
    process.exit(1)
  }
}
if (developmentNode() === undefined) {
  console.error(
    [
      'heddle: the development Node is not there: the install script of the npm package `node` did not run.',
      '        It fetches a Node binary from the npm registry. Allow it, then run the command again:',
      '          npm rebuild node --foreground-scripts      (scripts were skipped: --ignore-scripts)',
      '          npm install-scripts approve node && npm ci  (your npm asks for approval)',
    ].join('\n'),
  )
  process.exit(1)
}
