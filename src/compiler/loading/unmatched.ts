/** Patterns that can select nothing: a misspelt package, or a path where there is no file. */
import { existsSync, readdirSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isPath, namePattern, nearestManifest } from './selection.ts'

/**
 * The pattern selects nothing that the modules beside `files` could import: why; null: it may select
 * something. `all` and regular expressions always may, and a `!` may name what a program does not have.
 */
export function whyUnmatched(text: string, files: readonly string[]): string | null {
  if (text === 'all' || text.startsWith('regexp:') || text.startsWith('!')) return null
  const path = text.startsWith('file:') ? fileURLToPath(text) : text
  if (isPath(path))
    return !isAbsolute(path) || existsSync(path) ? null : 'there is no such file or folder; check the path'
  // Yarn's Plug'n'Play keeps packages in archives.
  if ('pnp' in process.versions) return null
  const pattern = namePattern(text)
  if (files.some(file => foldersOf(file).some(folder => hasPackage(folder, pattern)))) return null
  return 'no package of that name is installed; check the name'
}

/** The folder of the file, and those that it is in. */
function foldersOf(file: string): string[] {
  const folders = [dirname(file)]
  for (let at = folders[0]!; dirname(at) !== at; ) folders.push((at = dirname(at)))
  return folders
}

function hasPackage(folder: string, pattern: RegExp): boolean {
  const isOwn = nearestManifest(folder, ({ name }) => name !== undefined && pattern.test(name)) !== null
  if (isOwn) return true
  const installed = join(folder, 'node_modules')
  const packages = packagesIn(installed)
  return (
    packages.some(name => pattern.test(name)) ||
    // Packages of other packages: in pnpm's store, or beside an older version of themselves.
    packagesIn(join(installed, '.pnpm', 'node_modules')).some(name => pattern.test(name)) ||
    namesIn(join(installed, '.pnpm')).some(entry => pattern.test(storedName(entry))) ||
    packages.some(name => packagesIn(join(installed, name, 'node_modules')).some(own => pattern.test(own)))
  )
}

/** `@acme+tools@1.0.0_peer@2.0.0` is `@acme/tools`. */
function storedName(entry: string): string {
  return entry.replace(/(?!^)@.*$/, '').replace('+', '/')
}

function packagesIn(folder: string): string[] {
  return namesIn(folder).flatMap(name =>
    name.startsWith('@') ? namesIn(join(folder, name)).map(own => `${name}/${own}`) : name,
  )
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
