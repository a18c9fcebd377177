import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * `npm run lock`: recreates package-lock.json from package.json alone. An `npm install` beside an existing
 * node_modules leaves out the binaries of other platforms, and then `npm ci` refuses the lock file
 * everywhere.
 */
const root = join(import.meta.dirname, '..')
const scratch = mkdtempSync(join(tmpdir(), 'heddle-lock-'))
copyFileSync(join(root, 'package.json'), join(scratch, 'package.json'))
copyFileSync(join(root, 'package-lock.json'), join(scratch, 'package-lock.json'))
const lock = (): void => {
  execFileSync('npm', ['install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: scratch,
    stdio: 'inherit',
  })
}
// From scratch, so that no package stays that package.json no longer needs.
rmSync(join(scratch, 'package-lock.json'))
lock()
copyFileSync(join(scratch, 'package-lock.json'), join(root, 'package-lock.json'))
rmSync(scratch, { recursive: true })
