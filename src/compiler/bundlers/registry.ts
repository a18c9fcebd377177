/**
 * Module references in webpack and Rspack, whose chunks cannot be imported by address. The URL becomes a
 * name, `heddle-module:src/work.ts`. The module machine/web/bundled.ts, which is part of the page and of
 * every worker, becomes the list of these names, each with an `import()` that the bundler follows. The
 * bundler itself handles workers: it knows `new Worker(new URL(…))`.
 *
 * The list is complete only after every module has been read. So the module is rebuilt at the end of each
 * pass, until no new name is found.
 */
import { dirname, relative, resolve } from 'node:path'
import { MagicString } from 'magic-string'
import type { UnpluginContextMeta, UnpluginOptions } from 'unplugin'
import { moduleReferences, referenceText } from './references.ts'
import { isOtherPlatform, isLoader, ownModule, pathOf } from './ownmodules.ts'

const scheme = 'heddle-module:'

/** The part of webpack's and Rspack's compiler that is used here. */
interface Compiler {
  readonly context: string
  readonly options: {
    readonly target?: unknown
    readonly module: { parser?: { javascript?: { worker?: unknown } } }
  }
  readonly hooks: {
    readonly thisCompilation: { tap(name: string, hook: (compilation: Compilation) => void): void }
    readonly finishMake: { tapPromise(name: string, hook: (compilation: Compilation) => Promise<void>): void }
  }
  readonly platform?: { readonly node?: boolean | null }
}

interface Compilation {
  readonly hooks: {
    readonly processWarnings?: { tap(name: string, hook: (all: Warning[]) => Warning[]): void }
  }
  readonly modules: Iterable<BuiltModule>
  readonly errors: unknown[]
  rebuildModule(module: BuiltModule, done: (error?: unknown) => void): void
}

interface Warning {
  readonly message: string
}

interface BuiltModule {
  readonly resource?: string
  originalSource(): { source(): unknown } | null
}

interface LoaderContext {
  cacheable?(flag: boolean): void
}

export function registry(framework: UnpluginContextMeta['framework']): UnpluginOptions {
  let context = process.cwd()
  let isNode = false
  /** The list that the module last contained. */
  let listed = ''
  const files = new Map<string, string>()

  const nameOf = (file: string): string => {
    const name = `${scheme}${relative(context, file).replaceAll('\\', '/')}`
    files.set(name, file)
    return name
  }

  const list = (): string =>
    [...files]
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([name, file]) => `${JSON.stringify(name)}: () => import(${JSON.stringify(file)})`)
      .join(',\n  ')

  const apply = (compiler: Compiler): void => {
    ;({ context } = compiler)
    isNode = compiler.platform?.node === true || /node/.test(String(compiler.options.target))
    const javascript = ((compiler.options.module.parser ??= {}).javascript ??= {})
    const known = javascript.worker
    if (known !== false) {
      javascript.worker = [...(Array.isArray(known) ? known : ['...']), 'Worker from node:worker_threads']
    }
    // The module that makes a CPU's worker is also part of that worker, where nothing calls it.
    compiler.hooks.thisCompilation.tap('heddle', ({ hooks, modules }) => {
      hooks.processWarnings?.tap('heddle', warnings =>
        [...modules].some(({ resource }) => isList(resource))
          ? warnings.filter(
              ({ message }) => !message.includes('Circular dependency between chunks with runtime'),
            )
          : warnings,
      )
    })
    compiler.hooks.finishMake.tapPromise('heddle', async compilation => {
      for (;;) {
        const modules = [...compilation.modules]
        // The plugin has not seen modules that come from the bundler's cache.
        for (const module of modules) findNames(module)
        const own = modules.filter(({ resource }) => isList(resource))
        if (own.length === 0) {
          if (files.size > 0) compilation.errors.push(notBundled(framework, [...files.keys()]))
          return
        }
        if (list() === listed) return
        for (const module of own) {
          await new Promise<void>((done, failed) =>
            compilation.rebuildModule(module, error => (error ? failed(error as Error) : done())),
          )
        }
      }
    })
  }

  const findNames = (module: BuiltModule): void => {
    const { resource } = module
    if (resource === undefined || isList(resource)) return
    if (/[\\/]node_modules[\\/]/.test(resource) && ownModule(resource) === null) return
    const text = String(module.originalSource()?.source() ?? '')
    for (const [, path] of text.matchAll(/"heddle-module:([^"]+)"/g)) nameOf(resolve(context, path))
  }

  return {
    name: 'heddle:modules',
    enforce: 'pre',
    webpack: compiler => apply(compiler as unknown as Compiler),
    rspack: compiler => apply(compiler as unknown as Compiler),
    transform: {
      filter: { id: /\.[cm]?[jt]sx?(?:$|\?)/ },
      handler(source, id) {
        const own = ownModule(id)
        const file = pathOf(id)
        if (isList(file)) {
          const native = this.getNativeBuildContext?.() as { loaderContext?: LoaderContext } | undefined
          native?.loaderContext?.cacheable?.(false)
          listed = list()
          return `export const bundled = {\n  ${listed}\n}\n`
        }
        if (!referenceText.test(source)) return null
        const references = moduleReferences(source, file, own !== null)
        if (references.length === 0) return null
        const text = new MagicString(source)
        for (const { start, end, specifier, isWorker } of references) {
          if (own !== null && (isLoader(specifier) || isOtherPlatform(specifier, isNode)))
            text.update(start, end, 'null')
          else if (!isWorker) {
            const name = nameOf(resolve(dirname(file), specifier))
            text.update(start, end, `new URL(${JSON.stringify(name)})`)
          }
        }
        // Node's worker class, which the bundle must import by name.
        if (own === 'machine/node/node-thread' && isNode) {
          const at = source.indexOf('threads.Worker')
          text.update(at, at + 'threads.Worker'.length, 'Worker')
          text.prepend('import { Worker } from "node:worker_threads"; ')
        }
        return { code: text.toString(), map: text.generateMap({ source: id, hires: 'boundary' }) as never }
      },
    },
  }
}

function isList(file: string | undefined): boolean {
  return file !== undefined && ownModule(file) === 'machine/web/bundled'
}

function notBundled(framework: string, names: readonly string[]): Error {
  return new Error(
    `heddle: ${names.map(name => name.slice(scheme.length)).join(', ')} cannot be loaded by tasks, because heddle itself is not part of this bundle; remove heddle from \`externals\` (${framework})`,
  )
}
