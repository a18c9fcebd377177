/** Public packages, with each file marked 'use task' when it is read. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseSync } from 'oxc-parser'
import { compile, type Diagnostic, type FunctionStat } from '../../../src/compiler/compile.ts'
import { evaluateModule, evaluateScript, type Namespace } from '../differential/evaluate.ts'
import { importedCostsOf } from '../../../src/compiler/loading/neighbours.ts'
import * as runtime from '../../../src/compiler/runtime.ts'

export interface Package {
  /** As published. */
  plain: Namespace
  /** Compiled whole. */
  compiled: Namespace
  stats: FunctionStat[]
  diagnostics: Diagnostic[]
  /** The lowering that compiled it. */
  asked: 'frames' | 'generator'
}

/** The path of a file in an installed package, even if its exports do not name it. */
export function fileOf(packageName: string, path: string): string {
  return fileURLToPath(new URL(`../../../node_modules/${packageName}/${path}`, import.meta.url))
}

/** How often loops without calls check the safepoint: more often than by default, to reach more of them. */
const strip = 32

export function loadPackage(entry: string, lowering: 'frames' | 'generator'): Package {
  const stats: FunctionStat[] = []
  const diagnostics: Diagnostic[] = []
  const plain = link(entry, source => source)
  const compiled = link(entry, (source, file) => {
    const neighbour = importedCostsOf(file)
    const result = compile(`'use task';${source}`, file, { lowering, strip, whole: true, neighbour })
    refuseErrors(result.diagnostics)
    stats.push(...result.stats)
    diagnostics.push(...result.diagnostics)
    return result.code
  })
  return { plain, compiled, stats, diagnostics, asked: lowering }
}

/** Throws if the compiler reports an error, or failed and wrote the functions in another way. */
function refuseErrors(diagnostics: readonly Diagnostic[]): void {
  const error = diagnostics.find(({ severity, code }) => severity === 'error' || code === 'internal')
  if (error !== undefined) throw new SyntaxError(`${error.message}\n${error.frame}`)
}

/** The package, compiled whole so that its functions can move. `ending`: of the addresses of its modules. */
export function loadMovable(entry: string, ending = ''): Package {
  const stats: FunctionStat[] = []
  const compiled = link(
    entry,
    (source, file) => {
      const neighbour = importedCostsOf(file)
      const result = compile(source, file, { strip, whole: true, movable: true, neighbour })
      refuseErrors(result.diagnostics)
      stats.push(...result.stats)
      return result.code
    },
    ending,
  )
  return { plain: link(entry, source => source), compiled, stats, diagnostics: [], asked: 'frames' }
}

/** Evaluates a file and its imports from the same package, each after `write`. */
export function link(entry: string, write: (source: string, file: string) => string, ending = ''): Namespace {
  const loaded = new Map<string, Namespace>()
  function load(file: string): Namespace {
    const known = loaded.get(file)
    if (known !== undefined) return known
    const code = write(readFileSync(file, 'utf8'), file)
    const url = (pathToFileURL(file).href + ending) as unknown as Namespace
    const modules: Record<string, Namespace> = { 'heddle/runtime': runtime, url }
    const { module } = parseSync(file, code)
    const isModule = module.hasModuleSyntax
    const specifiers = isModule
      ? [...module.staticImports, ...module.staticExports.flatMap(({ entries }) => entries)].map(
          ({ moduleRequest }) => moduleRequest?.value,
        )
      : Array.from(code.matchAll(/require\(['"]([^'"]+)['"]\)/g), match => match[1])
    for (const specifier of specifiers) {
      if (!specifier?.startsWith('.')) continue
      const path = join(dirname(file), specifier)
      modules[specifier] = load(/\.\w+$/.test(path) ? path : `${path}.js`)
    }
    const namespace = isModule ? evaluateModule(code, file, modules) : evaluateScript(code, file, modules)
    loaded.set(file, namespace)
    return namespace
  }
  return load(entry)
}
