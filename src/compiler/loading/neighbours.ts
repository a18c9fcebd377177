/**
 * The modules that a file imports by a relative path. Each thread reads each module once, for the costs of
 * its functions.
 */
import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { ModuleCosts, ModuleCostsLookup } from '../analysis/importedcosts.ts'
import { exportedCosts } from '../analysis/exportedcosts.ts'

/** Larger files are ignored: reading them twice takes too long. */
const sizeMost = 1_000_000

const found = new Map<string, ModuleCosts | null>()

/**
 * Returns the costs of the modules that this file imports. A module outside the package, or an unreadable
 * one, has none.
 */
export function importedCostsOf(file: string): ModuleCostsLookup {
  const folder = dirname(file)
  return specifier => {
    const path = pathOf(resolve(folder, specifier))
    if (path === null) return null
    let brief = found.get(path)
    if (brief === undefined) {
      brief = read(path)
      found.set(path, brief)
    }
    return brief
  }
}

/** The file that a relative specifier names. */
function pathOf(path: string): string | null {
  for (const end of ['', '.js', '.cjs', '/index.js', '.ts', '/index.ts']) {
    const candidate = path + end
    if (/\.[cm]?[jt]s$/.test(candidate) && isSmallFile(candidate)) return candidate
  }
  const source = path.replace(/js$/, 'ts')
  return source !== path && isSmallFile(source) ? source : null
}

function isSmallFile(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat !== undefined && stat.isFile() && stat.size <= sizeMost
}

function read(path: string): ModuleCosts | null {
  try {
    return exportedCosts(readFileSync(path, 'utf8'), path)
  } catch {
    return null
  }
}
