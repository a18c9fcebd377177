/**
 * Installs the loader on this thread: for the main program with `heddle/register`, and on each CPU of a
 * kernel. The compiler itself is loaded for the first module that is not in the cache, if Node can load it
 * from inside a hook.
 *
 * registerHooks runs in the loading thread and covers `import` and `require`. If Node lacks it, `register`
 * covers `import`, and CommonJS is compiled where Node itself compiles it.
 */
import { readFileSync } from 'node:fs'
import Module from 'node:module'
import { MessageChannel } from 'node:worker_threads'
import { claimsMemory, programFile } from '../../machine/node/node-claims.ts'
import { runtime } from '../../machine/core/runtime.ts'
import type { HooksData } from './hooks.ts'
import {
  registerThreadLoader,
  compileLoaded,
  compileRequired,
  explainedError,
  nodeStrips,
  selection,
  setRuntime,
  setTranslator,
} from './loader.ts'

const { require_module: canRequire } = process.features as { require_module?: boolean }

if (!(Symbol.for('heddle.loader') in globalThis)) {
  // Deno and Bun claim that they can, but then do not find the module's imports.
  // A tool that requires TypeScript (tsx) also makes a second instance of each of heddle's modules.
  if (canRequire !== true || runtime() !== 'node' || hasOtherRequire()) await loadAll()
  if (runtime() === 'bun') {
    // Its module loads the parser, which other runtimes need only when they compile.
    const { registerInBun } = await import('./bunplugin.ts')
    registerThreadLoader(() => undefined)
    registerInBun(compileLoaded)
  } else if (typeof Module.registerHooks === 'function') {
    registerThreadLoader(() => undefined)
    Module.registerHooks({ load: (url, context, nextLoad) => compileLoaded(url, nextLoad(url, context)) })
  } else {
    // The output of another thread runs here.
    process.setSourceMapsEnabled(true)
    registerInThread()
    hookRequire()
  }
}

/** True if another tool has hooked `require`, on a Node without TypeScript. */
function hasOtherRequire(): boolean {
  return !nodeStrips && '.ts' in (Module as unknown as { _extensions: object })._extensions
}

async function loadAll(): Promise<void> {
  const [translator, runtime] = await Promise.all([
    import('./translate.ts').catch(error => {
      throw explainedError(error)
    }),
    import('../runtime.ts'),
  ])
  setTranslator(translator)
  setRuntime(runtime)
}

function registerInThread(): void {
  const { port1, port2 } = new MessageChannel()
  registerThreadLoader(patterns => port1.postMessage(patterns))
  port1.unref()
  const data: HooksData = {
    patterns: selection.texts,
    port: port2,
    claims: claimsMemory(),
    program: programFile(),
  }
  Module.register(new URL('./hooks.ts', import.meta.url), { data, transferList: [port2] })
}

interface CommonJsModule {
  _compile(this: unknown, content: string, filename: string, ...rest: unknown[]): unknown
}

function hookRequire(): void {
  const prototype = Module.prototype as unknown as CommonJsModule
  const compileOriginal = prototype._compile
  prototype._compile = function (content, filename, ...rest) {
    // Node 20 and 22 also load a module that is required here: the format says so, or `true`.
    const isModule = rest[0] === true || rest[0] === 'module'
    const compiled = typeof content === 'string' ? compileRequired(content, filename, false, isModule) : null
    return compileOriginal.call(this, compiled ?? content, filename, ...rest)
  }
  if (!nodeStrips) requireTypeScript(compileOriginal)
}

type Extension = (module: CommonJsModule, file: string) => unknown

/** `require` of TypeScript, if Node does not support it yet. */
function requireTypeScript(compile: CommonJsModule['_compile']): void {
  const { _extensions: extensions } = Module as unknown as { _extensions: Record<string, Extension> }
  for (const ending of ['.ts', '.cts', '.mts']) {
    extensions[ending] ??= (module, file) => {
      const source = readFileSync(file, 'utf8')
      return compile.call(module, compileRequired(source, file, true) ?? source, file)
    }
  }
}
