/**
 * Asks the engine whether it can parse the output: far faster than a parser that builds a tree, and with a
 * fraction of the memory. A yes is certain. A no may only mean that the engine does not know the language of
 * the text, or that a module could not be turned into a script: then the parser decides.
 */
import type { Rope } from './rope.ts'
import type { Node } from '../analysis/syntax.ts'

/** True if the engine parses the text as a CommonJS module. */
export function isScript(code: string): boolean {
  return parses(Function, code)
}

/** True if the engine parses the text of a module, without its imports and exports. */
export function isModuleText(output: Rope, source: string, program: Node): boolean {
  const bare = output.text(source, outsideOf(program)).replace(runtimeImport, '')
  return parses(AsyncFunction, `'use strict'; ${bare}`)
}

const runtimeImport = /import \{[^}]*\} from "(?:[^"\\]|\\.)*";/

const AsyncFunction = (async () => {}).constructor as FunctionConstructor

/** Makes a function of the text, without calling it. A page may forbid that, which counts as a no. */
function parses(Maker: FunctionConstructor, body: string): boolean {
  try {
    const made = new Maker('exports', 'require', 'module', '__filename', '__dirname', body)
    return typeof made === 'function'
  } catch {
    return false
  }
}

/**
 * The parts of a module that no function body can contain: imports, export lists, `export` before a
 * declaration.
 */
function outsideOf(program: Node): { start: number; end: number }[] {
  const found: { start: number; end: number }[] = []
  if (program.hashbang) found.push(program.hashbang)
  for (const { type, start, end, declaration } of program.body as Node[]) {
    if (type === 'ImportDeclaration' || type === 'ExportAllDeclaration') found.push({ start, end })
    else if (type === 'ExportNamedDeclaration' || type === 'ExportDefaultDeclaration') {
      found.push({ start, end: declaration?.start ?? end })
    }
  }
  return found
}
