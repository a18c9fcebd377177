import { twin } from './coroutine.ts'
import { loaderFace, notCompiled, warnUncompiled } from './uncompiled.ts'

/**
 * Warns when a module that begins with 'use task' was not compiled. The text of its functions does not
 * contain the directive, so the text of the module is read, once. With `kernel.import` that is the named
 * module. A Schedule only has a function, so the module that called it is read, and those from which it
 * imports the function.
 */
type AnyFunction = (...args: any[]) => unknown

interface Builtins {
  (name: 'node:fs'): { readFileSync(file: URL | string, encoding: 'utf8'): string }
  (name: 'node:module'): { createRequire(from: URL): { resolve(name: string): string } }
  (name: 'node:url'): { pathToFileURL(path: string): URL }
}

const builtin = (globalThis as unknown as { process?: { getBuiltinModule?: Builtins } }).process
  ?.getBuiltinModule

/** The first statement after comments and other directives. */
const leading =
  /^(?:#![^\n]*\n)?\s*(?:(?:\/\/[^\n]*\n|\/\*[^]*?\*\/|'[^'\n]*'|"[^"\n]*")\s*;?\s*)*?['"]use task(?: \w+)?['"]/

/** A bundle may wrap the module in a function. */
const statement = /(?:^|[\n;{}]|\*\/)\s*(['"])use task(?: \w+)?\1\s*(?:[;\n}]|$)/

/** Whether the text of a module says 'use task' for the whole module. */
export function moduleSaysTask(text: string): boolean {
  const at = text.indexOf('use task')
  return at >= 0 && leading.test(text.slice(0, at + 24))
}

/** For a module of tasks none of whose functions carries a resumable form, or says 'use task' itself. */
export async function tellUncompiledModule(url: string): Promise<void> {
  if (!/^(?:file|https?|blob):/.test(url)) return
  const text = await textOf(url)
  if (text !== null && statement.test(text)) tellOnce(url, 'no plugin')
}

async function textOf(url: string): Promise<string | null> {
  const read = readNow(url)
  if (read !== null || url.startsWith('file:')) return read
  try {
    const answer = await fetch(url, { cache: 'force-cache' })
    return answer.ok ? await answer.text() : null
  } catch {
    return null
  }
}

function readNow(url: string): string | null {
  try {
    return url.startsWith('file:') ? (builtin?.('node:fs').readFileSync(new URL(url), 'utf8') ?? null) : null
  } catch {
    return null
  }
}

const toldOf = new Set<string>()

function tellOnce(url: string, tool: 'no plugin' | 'no loader'): void {
  if (toldOf.has(url)) return
  toldOf.add(url)
  const name = decodeURI(url.replace(/[?#].*$/, '').replace(/^.*\//, ''))
  warnUncompiled(notCompiled(`the module ${name}`, 'its functions', tool), `uncompiled ${url}`)
}

/**
 * Texts of functions whose modules were checked. A program may make functions without end: only so many are
 * checked.
 */
const lookedAt = new Set<string>()
const LOOKED_AT_MOST = 500

/**
 * For a function that a Schedule runs, and that does not say 'use task' itself. `origin` is the stack of the
 * call. With a loader, the loader has compiled the function or warned. Where compiled code runs without a
 * loader, a plugin has compiled it.
 */
export function tellUncompiledModuleOf(fn: AnyFunction, origin: { readonly stack?: string } | null): void {
  if (origin === null || loaderFace() !== undefined || hasRuntime() || lookedAt.size >= LOOKED_AT_MOST) return
  const text = Function.prototype.toString.call(fn)
  if (lookedAt.has(text)) return
  lookedAt.add(text)
  const caller = /(?:file|https?):\/\/[^\s)]+?(?=:\d+:\d+)|(?<=[( ])\/[^\s()]+?(?=:\d+:\d+)/.exec(
    origin.stack ?? '',
  )?.[0]
  if (caller === undefined) return
  const url = caller.startsWith('/') ? builtin?.('node:url').pathToFileURL(caller).href : caller
  if (url !== undefined) void lookAround(url, fn.name)
}

/** Compiled code loads its runtime, which gives the built-in functions that take callbacks a twin. */
function hasRuntime(): boolean {
  return twin in Array.prototype.forEach
}

async function lookAround(url: string, name: string): Promise<void> {
  // In Node without waiting: the program may end before the next turn of the event loop.
  const text = readNow(url) ?? (await textOf(url))
  if (text === null) return
  if (moduleSaysTask(text)) {
    tellOnce(url, 'no loader')
    return
  }
  for (const from of importedFrom(text, name)) {
    const found = resolved(from, url)
    const imported = found === null ? null : (readNow(found) ?? (await textOf(found)))
    if (imported !== null && moduleSaysTask(imported)) tellOnce(found!, 'no loader')
  }
}

const imports =
  /\bimport\b([^'"();]*?)\bfrom\s*(['"])([^'"\n]+)\2|\b(?:const|let|var)\b([^;=]*)=\s*(?:await\s+import|require)\s*\(\s*(['"])([^'"\n]+)\5/g

/** The modules from which a text imports the name, or everything. */
function importedFrom(text: string, name: string): string[] {
  const found: string[] = []
  for (const [, names, , from, bound, , required] of text.matchAll(imports)) {
    const list = names ?? bound ?? ''
    const specifier = from ?? required!
    if (/^(?:node:|heddle(?:\/|$))/.test(specifier)) continue
    const isWhole = !list.includes('{')
    if (isWhole || (name !== '' && new RegExp(`[{,\\s]${escaped(name)}\\b`).test(list))) found.push(specifier)
  }
  return found
}

function escaped(name: string): string {
  return name.replaceAll('$', String.raw`\$`)
}

function resolved(specifier: string, from: string): string | null {
  try {
    if (/^(?:\.{0,2}\/|file:|https?:)/.test(specifier)) return new URL(specifier, from).href
    if (builtin === undefined || !from.startsWith('file:')) return null
    const path = builtin('node:module').createRequire(new URL(from)).resolve(specifier)
    return builtin('node:url').pathToFileURL(path).href
  } catch {
    return null
  }
}
