/**
 * Asks the engine whether it parses what the compiler wrote: far quicker than a parser that builds a tree,
 * and in a fraction of the memory. A yes is certain. A no may only mean that the engine does not know the
 * text's language, or that a module was not turned into a script well enough: then the parser is asked.
 */
import type { Rope } from './rope.ts'
import type { Node } from '../analysis/syntax.ts'

/** True when the engine takes the text for a CommonJS module. */
export function isScript(code: string): boolean {
  return parses(Function, code)
}

/**
 * True when the engine takes the text for a module's, but for its imports and exports, which are left out.
 */
export function isModuleText(output: Rope, source: string, program: Node): boolean {
  const bare = output.text(source, outsideOf(program)).replace(runtimeImport, '')
  return parses(AsyncFunction, `'use strict'; ${bare}`)
}

const runtimeImport = /import \{[^}]*\} from "(?:[^"\\]|\\.)*";/

const AsyncFunction = (async () => {}).constructor as FunctionConstructor

/**
 * Makes a function of the text, and does not call it. A page may forbid that, which is a no like any other.
 */
function parses(Maker: FunctionConstructor, body: string): boolean {
  try {
    const made = new Maker('exports', 'require', 'module', '__filename', '__dirname', body)
    return typeof made === 'function'
  } catch {
    return false
  }
}

/** What of a module no function body can hold: imports, lists of exports, the words before a declaration. */
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
