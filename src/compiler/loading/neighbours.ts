/**
 * The modules next to a file, as Node reads them. Each is read once in a thread, for what it tells of its
 * functions.
 */
import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Brief, Neighbour } from '../analysis/importedcosts.ts'
import { briefOf } from '../analysis/exportedcosts.ts'

/** Larger files are no neighbours: to read them twice takes too long. */
const size_most = 1_000_000

const found = new Map<string, Brief | null>()

/**
 * What is next to this file. A module that is not a file of its package, or cannot be read, tells nothing.
 */
export function neighboursOf(file: string): Neighbour {
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

/** The file that a relative specifier means. */
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
  return stat !== undefined && stat.isFile() && stat.size <= size_most
}

function read(path: string): Brief | null {
  try {
    return briefOf(readFileSync(path, 'utf8'), path)
  } catch {
    return null
  }
}
