/**
 * `node --import heddle/register main.ts`: functions marked 'use task' are compiled as they are loaded. Workers inherit
 * the flag, so their modules are compiled too.
 *
 * registerHooks runs in the loading thread and covers `import` and `require`. Where Node lacks it, `register` covers
 * `import`, and CommonJS is compiled where Node itself compiles it.
 */
import Module from 'node:module'
import { compileLoaded, compileText, runtimeSymbol } from './loader.ts'
import * as runtime from './runtime.ts'

Object.defineProperty(globalThis, runtimeSymbol, { value: runtime, configurable: true, enumerable: false })

// Stack traces then name the lines that were written, not those that were compiled.
process.setSourceMapsEnabled(true)

if (typeof Module.registerHooks === 'function') {
  Module.registerHooks({ load: (url, context, nextLoad) => compileLoaded(url, nextLoad(url, context)) })
} else {
  Module.register(import.meta.url.endsWith('.ts') ? './hooks.ts' : './hooks.js', import.meta.url)
  compileRequired()
}

interface CommonJsModule {
  _compile(this: unknown, content: string, filename: string, ...rest: unknown[]): unknown
}

function compileRequired(): void {
  const prototype = Module.prototype as unknown as CommonJsModule
  const compileOriginal = prototype._compile
  prototype._compile = function (content, filename, ...rest) {
    const compiled =
      typeof content === 'string' && content.includes('use task')
        ? compileText(content, filename, { typescript: false, commonjs: true })
        : null
    return compileOriginal.call(this, compiled ?? content, filename, ...rest)
  }
}
