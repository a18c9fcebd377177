/**
 * The key of a module whose functions can move: the name of its package, and its path inside the package. It
 * is the same on another machine, where the package is in another folder, and in a bundle.
 */
import { readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'

/** The folder of the package of each folder, and its name; null: the folder is in no package. */
const packages = new Map<string, { readonly folder: string; readonly name: string } | null>()

export function moduleKey(file: string): string {
  const found = packageOf(dirname(file))
  if (found === null) return basename(file)
  return `${found.name}/${relative(found.folder, file).replaceAll('\\', '/')}`
}

function packageOf(folder: string): { readonly folder: string; readonly name: string } | null {
  let found = packages.get(folder)
  if (found === undefined) {
    const name = nameIn(folder)
    const parent = dirname(folder)
    found = name !== null ? { folder, name } : parent === folder ? null : packageOf(parent)
    packages.set(folder, found)
  }
  return found
}

/** The name in the package.json of a folder. One without a name only says how its files are loaded. */
function nameIn(folder: string): string | null {
  try {
    const { name } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name?: unknown }
    return typeof name === 'string' && name !== '' ? name : null
  } catch {
    return null
  }
}
