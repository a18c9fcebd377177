import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cell } from '../test/matrix/cell.ts'
import { cells } from '../test/matrix/cells.ts'
import { npm, runCells } from './matrix.ts'
import { nodes } from './nodes.ts'
import { lostImports } from './sideeffects.ts'
import { wrongInPackage } from './tarball.ts'
import type { command as Command, Step } from './test.ts'

/**
 * The package as a user gets it: built, packed, checked by publint and attw, installed, run on three Nodes,
 * and used in the most common kinds of projects.
 */
export function packageSteps(root: string, scratch: string, command: typeof Command): Step[] {
  const bin = (name: string): string => join(root, 'node_modules', '.bin', name)
  const tarball = join(scratch, 'heddle.tgz')
  const consumer = join(scratch, 'consumer')
  return [
    { name: 'build', run: command(bin('tsdown'), ['--logLevel', 'warn']) },
    {
      name: 'pack',
      run: async () => {
        try {
          const [{ filename }] = JSON.parse(
            npm(root, 'pack', '--json', '--ignore-scripts', '--pack-destination', scratch),
          )
          execFileSync('mv', [join(scratch, filename), tarball])
          return undefined
        } catch (error) {
          return String(error)
        }
      },
    },
    { name: 'publint', run: command(bin('publint'), [tarball, '--strict']) },
    {
      name: 'are the types wrong',
      run: command(bin('attw'), [tarball, '--profile', 'esm-only', '--no-emoji']),
    },
    {
      name: 'install the package',
      run: async () => {
        mkdirSync(consumer)
        writeFileSync(join(consumer, 'package.json'), '{ "private": true, "type": "module" }')
        try {
          npm(consumer, 'install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error', tarball)
          return undefined
        } catch (error) {
          return String(error)
        }
      },
    },
    {
      name: 'imports for effect are in the package',
      run: async () =>
        lostImports(root, join(consumer, 'node_modules', 'heddle', 'dist')).join('\n') || undefined,
    },
    {
      name: 'files of the package',
      run: async () => wrongInPackage(join(consumer, 'node_modules', 'heddle')).join('\n') || undefined,
    },
    {
      name: 'types in TypeScript 5 and 7',
      run: command(bin('node'), [join(root, 'test', 'types', 'main.ts'), consumer]),
    },
    ...nodes(root).map(({ name, path }) => ({
      name: `smoke test on ${name}`,
      run: command(path, [join(root, 'test', 'smoke', 'main.mjs'), consumer]),
    })),
    ...nodes(root)
      .filter(({ path }) => !path.includes('node24'))
      .map(({ name, path }) => ({
        name: `first steps on ${name}`,
        run: command(path, [join(root, 'test', 'smoke', 'projects.mjs'), consumer]),
      })),
    ...cells.filter(({ quick }) => quick).map(cell => matrixStep(consumer, cell)),
    ...[join(root, 'test', 'node20'), root].map(folder => ({
      name: `snippets of the documentation on Node ${folder === root ? 26 : 20}${leftOut()}`,
      run: command(bin('node'), [
        join(root, 'test', 'snippets', 'main.ts'),
        consumer,
        join(folder, 'node_modules', '.bin', 'node'),
      ]),
    })),
  ]
}

/** Parts of the snippets that this machine cannot run. */
function leftOut(): string {
  const isMissing = spawnSync('redis-server', ['--version']).error !== undefined
  return isMissing ? ' (BullMQ is skipped: no redis-server)' : ''
}

/** A cell of the matrix that every test run includes; `npm run matrix` runs the others. */
function matrixStep(consumer: string, cell: Cell): Step {
  return {
    name: `matrix: ${cell.name}`,
    run: async () => {
      let said: string | undefined
      await runCells(consumer, [cell], ({ wrong }) => (said = wrong))
      return said
    },
  }
}
