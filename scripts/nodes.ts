import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

export interface NodeBinary {
  readonly name: string
  readonly path: string
}

/**
 * The development Node, Node 24 (in its own package folder, because two packages named `node` would share a
 * bin), and the system's Node.
 */
export function nodes(root: string): NodeBinary[] {
  const own = (process.env.PATH ?? '')
    .split(':')
    .filter(folder => !folder.includes('node_modules'))
    .map(folder => join(folder, 'node'))
    .find(existsSync)
  const candidates = [
    own,
    join(root, 'test', 'node24', 'node_modules', '.bin', 'node'),
    join(root, 'node_modules', '.bin', 'node'),
  ]
  return candidates
    .filter(path => path !== undefined)
    .map(path => ({ name: `Node ${versionOf(path)}`, path }))
}

function versionOf(path: string): string {
  try {
    return execFileSync(path, ['--version'], { encoding: 'utf8' }).trim()
  } catch {
    return `at ${path} (missing)`
  }
}
