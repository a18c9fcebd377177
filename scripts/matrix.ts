import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Cell, checkSaid, makeProject } from '../test/matrix/cell.ts'
import { cells } from '../test/matrix/cells.ts'
import { MatrixTools } from '../test/matrix/tools.ts'

/**
 * `npm run matrix`: tests the packed tarball in projects with other tools (test/matrix). `npm run matrix --
 * vite production` runs the cells whose names contain all of these words; `--quick` runs those of `npm test`;
 * `--list` lists them; `--keep` keeps the projects.
 */
const root = join(import.meta.dirname, '..')

export interface CellResult {
  readonly cell: Cell
  readonly seconds: number
  /** The error. */
  readonly wrong: string | undefined
}

/** Runs cells, one after the other, in a folder where the tarball is installed. */
export async function runCells(
  home: string,
  chosen: readonly Cell[],
  told: (result: CellResult) => void,
): Promise<void> {
  const tools = new MatrixTools(home)
  try {
    for (const cell of chosen) {
      const from = performance.now()
      let wrong: string | undefined
      try {
        const project = join(home, 'cells', cell.name.replaceAll(/\W+/g, '-'))
        makeProject(cell, project)
        wrong = checkSaid(await cell.run(project, tools))
      } catch (error) {
        wrong = (error as Error).message
      }
      told({ cell, seconds: (performance.now() - from) / 1000, wrong })
    }
  } finally {
    await tools.close()
  }
}

/** Makes a folder with the tarball installed, as a user installs it. */
export function installTarball(home: string, tarball: string): void {
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'package.json'), '{ "private": true, "workspaces": ["cells/*"] }')
  npm(home, 'install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error', tarball)
}

export function npm(cwd: string, ...args: string[]): string {
  const cli = process.env.npm_execpath
  const [file, first] = cli === undefined ? ['npm', []] : [process.execPath, [cli]]
  return execFileSync(file, [...first, ...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Builds and packs heddle. Returns the path of the tarball. */
export function packTarball(scratch: string): string {
  execFileSync(process.execPath, [join(root, 'node_modules', '.bin', 'tsdown'), '--logLevel', 'error'], {
    cwd: root,
    stdio: 'pipe',
  })
  const [{ filename }] = JSON.parse(
    npm(root, 'pack', '--json', '--ignore-scripts', '--pack-destination', scratch),
  ) as [{ filename: string }]
  return join(scratch, filename)
}

if (import.meta.main) await main(process.argv.slice(2))

async function main(given: readonly string[]): Promise<void> {
  const words = given.filter(word => !word.startsWith('--'))
  const chosen = cells.filter(
    ({ name, quick }) =>
      (!given.includes('--quick') || quick === true) && words.every(word => name.includes(word)),
  )
  if (chosen.length === 0) {
    console.error(`no cell has ${words.join(' and ')} in its name; --list prints all names`)
    process.exit(1)
  }
  if (given.includes('--list')) {
    for (const { name } of chosen) console.log(name)
    return
  }
  const kept = process.env.HEDDLE_MATRIX_HOME
  const scratch = kept === undefined ? mkdtempSync(join(tmpdir(), 'heddle-matrix-')) : resolve(kept)
  const home = join(scratch, 'home')
  if (!existsSync(join(home, 'node_modules'))) installTarball(home, packTarball(scratch))
  const failed: string[] = []
  await runCells(home, chosen, ({ cell, seconds, wrong }) => {
    console.log(`${wrong === undefined ? '✓' : '✗'} ${cell.name} (${seconds.toFixed(1)} s)`)
    if (wrong === undefined) return
    failed.push(cell.name)
    console.log(wrong.replaceAll(/^/gm, '    '))
  })
  console.log(`\n${chosen.length - failed.length} of ${chosen.length} cells passed`)
  for (const name of failed) console.log(`  failed: ${name}`)
  if (given.includes('--keep')) console.log(`the projects are in ${home}`)
  else if (kept === undefined) rmSync(scratch, { recursive: true, force: true })
  process.exitCode = failed.length === 0 ? 0 : 1
}
