/**
 * `npm run docs [dev]`: builds the documentation as a site, into dist-site; with `dev`, serves it and
 * rebuilds after changes.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { buildLivePages } from './livepages.ts'

const root = resolve(import.meta.dirname, '..')

function run(command: string, ...args: string[]): void {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}

console.log('docs: building the package for the reference of its types')
run('npx', 'tsdown', '--logLevel', 'error')
run(process.execPath, 'scripts/api.ts')
if (!existsSync(resolve(root, 'site/node_modules/vitepress')))
  run('npm', 'install', '--prefix', 'site', '--no-audit', '--no-fund')
// The live pages are beside the chapters. `dev` finds them among the files that it serves as they are.
const isDev = process.argv[2] === 'dev'
if (isDev) await buildLivePages(resolve(root, 'docs/public/live'))
run(resolve(root, 'site/node_modules/.bin/vitepress'), isDev ? 'dev' : 'build', 'site')
if (!isDev) await buildLivePages(resolve(root, 'dist-site/live'))
