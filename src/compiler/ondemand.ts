/**
 * As register.ts, for a thread that may never meet a module with 'use task' in it: a CPU of the kernel. The compiler is
 * loaded when the first such module is, where Node can do that from inside a hook; else at once.
 */
import Module from 'node:module'
import type { Loaded } from './loader.ts'

const runtimeSymbol = Symbol.for('heddle.runtime')
const directive = 'use task'

interface Compiler {
  compileLoaded<T extends Loaded>(url: string, loaded: T): T
}

let compiler: Compiler | undefined
let isLoading = false

/** The compiler itself mentions the directive: while it is loaded, nothing is compiled. */
function loadCompiler(): Compiler {
  isLoading = true
  try {
    const require = Module.createRequire(import.meta.url)
    const suffix = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
    const value: unknown = require(`./runtime${suffix}`)
    Object.defineProperty(globalThis, runtimeSymbol, { value, configurable: true, enumerable: false })
    process.setSourceMapsEnabled(true)
    return require(`./loader${suffix}`) as Compiler
  } finally {
    isLoading = false
  }
}

function mentions(source: Loaded['source']): boolean {
  if (source === null || source === undefined) return false
  if (typeof source === 'string') return source.includes(directive)
  const bytes = ArrayBuffer.isView(source)
    ? Buffer.from(source.buffer, source.byteOffset, source.byteLength)
    : Buffer.from(source)
  return bytes.includes(directive)
}

const canRequire = (process.features as { require_module?: boolean }).require_module === true

if (typeof Module.registerHooks === 'function' && canRequire) {
  Module.registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      if (isLoading || !url.startsWith('file:') || !mentions(loaded.source)) return loaded
      compiler ??= loadCompiler()
      return compiler.compileLoaded(url, loaded)
    },
  })
} else {
  await import('./register.ts')
}
