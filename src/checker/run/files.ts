import { readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type AnyDeclaredCheck, collectChecks } from '../check.ts'
import { CheckError } from '../errors.ts'
import { messageWithPlace } from '../async/place.ts'
import { checkedUrl, instrumentChecks } from './loader.ts'
import { evaluatedFile, isLoaded } from './modulegraph.ts'
import { shorten } from '../report/paths.ts'
import type { CheckOptions } from './options.ts'

const CHECK_FILE = /\.check\.[cm]?[jt]sx?$/

/** The check files under the given paths, in order. A path of a file is used as it is. */
export function findCheckFiles(paths: readonly string[]): string[] {
  const files: string[] = []
  const visit = (folder: string): void => {
    const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
    for (const entry of entries) {
      if (entry.name.startsWith('.') || entry.name === 'node_modules' || entry.name === 'dist') continue
      const path = join(folder, entry.name)
      if (entry.isDirectory()) visit(path)
      else if (CHECK_FILE.test(entry.name)) files.push(path)
    }
  }
  for (const path of paths) {
    const full = resolve(path)
    const stat = statSync(full, { throwIfNoEntry: false })
    if (stat === undefined) {
      throw new CheckError('ERR_CHECK_PATH', `${path}: there is no such file or folder`)
    }
    if (stat.isDirectory()) visit(full)
    else files.push(full)
  }
  return files
}

/**
 * A check with a name of its own, which is the same in each process and thread. Its position in the list of
 * its file is not: that list has the checks of imported check files, unless these were loaded before.
 */
export type LoadedCheck = AnyDeclaredCheck & { readonly id: string }

/**
 * Loads a check file, instrumented, and returns the checks that it declares. Throws when there are none.
 */
export async function loadChecks(file: string): Promise<LoadedCheck[]> {
  instrumentChecks()
  // Another check file has imported this one, and its checks are among those of that file.
  const isImported = isLoaded(checkedUrl(pathToFileURL(file).href, []))
  const checks = await declaredIn(file, [])
  if (checks.length === 0 && !isImported) {
    throw new CheckError(
      'ERR_CHECK_NOTHING',
      'the file declares no checks; call `check(name, options, setup)` at its top',
    )
  }
  // The modules that a check names are instrumented for that check alone: it comes from its own copy of the
  // file.
  for (const [index, { options }] of checks.entries()) {
    const { modules } = options
    if (modules === undefined || modules.length === 0) continue
    const again = await declaredIn(file, modules)
    checks[index] = again.find(({ id }) => id === checks[index].id) ?? checks[index]
  }
  return checks
}

/** The URLs under which `loadChecks` has loaded a check of this file that has these options. */
export function checkUrls(file: string, { modules = [] }: Pick<CheckOptions, 'modules'>): string[] {
  const { href } = pathToFileURL(file)
  const lists = modules.length === 0 ? [[]] : [[], [...modules].sort()]
  return lists.map(list => checkedUrl(href, list))
}

/**
 * The message of an error that Node or the compiler found in a text, and the place if only the stack has it.
 */
function syntaxError(error: SyntaxError): string {
  const { code } = error as NodeJS.ErrnoException
  const [, file, line] = /^(?:file:\/\/)?(\/.*?)(?:\?.*)?:(\d+)\n/.exec(error.stack ?? '') ?? []
  const place = file === undefined ? '' : ` (at ${shorten(file)}:${line})`
  return code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX'
    ? `${error.message}${place}; Node only removes types: write it in plain JavaScript there (an object for an enum, a field for a parameter property), or run the check in vitest with \`heddle/checker/vite\``
    : `${error.message}${place}`
}

/** Files that are loaded, by URL: Node evaluates each once. */
const loaded = new Map<string, LoadedCheck[]>()
/** How many checks the evaluation of a file has declared, by that file and the modules named with it. */
const declared = new Map<string, number>()

async function declaredIn(file: string, modules: readonly string[]): Promise<LoadedCheck[]> {
  const url = checkedUrl(pathToFileURL(file).href, [...modules].sort())
  const known = loaded.get(url)
  if (known !== undefined) return [...known]
  const checks: LoadedCheck[] = []
  collectChecks(check => {
    const evaluated = evaluatedFile() ?? ''
    const key = `${evaluated}${url.slice(url.indexOf('?'))}`
    const nth = declared.get(key) ?? 0
    declared.set(key, nth + 1)
    checks.push({ ...check, id: `${nth} of ${evaluated}` })
  })
  try {
    await import(url)
  } catch (error) {
    if (error instanceof CheckError) throw error
    const detail = error instanceof SyntaxError ? syntaxError(error) : messageWithPlace(error)
    throw new CheckError('ERR_CHECK_LOAD', `${file} could not be loaded: ${detail}`, { cause: error })
  } finally {
    collectChecks(undefined)
  }
  loaded.set(url, checks)
  return [...checks]
}
