import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'

/** The limits of the package. Over one of them, find out what came in before you raise it. */
export const limits = { files: 200, bytes: 3_600_000 }

/** Files that are not under `dist`. */
const besides = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']

/**
 * What is wrong with the files of an unpacked package: a file that no entry reaches, one that an entry names
 * and that is missing, one that only development needs, or too much of everything.
 */
export function wrongInPackage(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => posix.join(entry.parentPath.slice(folder.length + 1).replaceAll('\\', '/'), entry.name))
  const wrong: string[] = []
  for (const name of besides) if (!files.includes(name)) wrong.push(`${name} is missing`)
  for (const file of files) {
    if (/\.(test|check)\.|\.map$|(^|\/)(testing|fixtures)\//.test(file))
      wrong.push(`${file}: only development needs it`)
  }
  const { reached, missing } = reach(folder, new Set(files))
  wrong.push(...missing)
  for (const file of files)
    if (!besides.includes(file) && !reached.has(file))
      wrong.push(`${file}: no entry of the package reaches it`)
  const bytes = files.reduce((sum, file) => sum + statSync(join(folder, file)).size, 0)
  if (files.length > limits.files) wrong.push(`${files.length} files, at most ${limits.files} are expected`)
  if (bytes > limits.bytes) wrong.push(`${bytes} bytes, at most ${limits.bytes} are expected`)
  return wrong
}

/** The files that the entries in package.json name, by imports or by `new URL('./x.js', import.meta.url)`. */
function reach(folder: string, files: ReadonlySet<string>): { reached: Set<string>; missing: string[] } {
  const { exports, imports, bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<
    string,
    object
  >
  const missing: string[] = []
  const reached = new Set<string>()
  const named = pathsIn([exports, imports, bin]).map(path => ({ path, from: 'package.json' }))
  for (const { path, from } of named) {
    if (reached.has(path)) continue
    if (!files.has(path)) {
      missing.push(`${path}: ${from} names it, and it is missing`)
      continue
    }
    reached.add(path)
    if (!/\.(js|d\.ts)$/.test(path)) continue
    for (const target of namedIn(path, readFileSync(join(folder, path), 'utf8'))) {
      // Examples in messages name files that do not exist; an import of one would fail in the smoke test.
      if (files.has(target)) named.push({ path: target, from: path })
    }
  }
  return { reached, missing }
}

function pathsIn(value: unknown): string[] {
  if (typeof value === 'string') return [posix.normalize(value)]
  return value === undefined ? [] : Object.values(value as object).flatMap(pathsIn)
}

/** Every relative path in quotes. A declaration names the script of another one. */
function namedIn(file: string, text: string): string[] {
  return [...text.matchAll(/(["'`])(\.{1,2}\/[^"'`\s]+\.js)\1/g)].map(([, , path]) => {
    const target = posix.join(dirname(file), path!)
    return file.endsWith('.d.ts') ? target.replace(/\.js$/, '.d.ts') : target
  })
}
