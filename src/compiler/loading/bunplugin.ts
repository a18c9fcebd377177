/**
 * The loader in Bun, which has no hooks of Node's: a plugin of its own runtime reads every module that is
 * imported on this thread.
 */
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseSync } from 'oxc-parser'
import type { Loaded } from './loader.ts'

interface BunBuild {
  onLoad(
    filter: { filter: RegExp },
    load: (args: { path: string }) => { contents: string; loader: string },
  ): void
}

interface Bun {
  plugin(plugin: { name: string; setup(build: BunBuild): void }): void
}

const loaders: Readonly<Record<string, string>> = {
  '.ts': 'ts',
  '.mts': 'ts',
  '.cts': 'ts',
  '.tsx': 'tsx',
  '.jsx': 'jsx',
}

/**
 * A program's own modules. A plugin of Bun's must give the text of all that it asks for, and Bun then takes
 * it for a module.
 */
const ownModules = /^(?!.*[\\/]node_modules[\\/]).*\.m?[jt]sx?$/

/** Bun strips the types itself, after us. */
export function registerInBun(compile: (url: string, loaded: Loaded) => Loaded): void {
  const { Bun } = globalThis as unknown as { Bun: Bun }
  Bun.plugin({
    name: 'heddle',
    setup(build) {
      build.onLoad({ filter: ownModules }, ({ path }) => {
        const source = readFileSync(path, 'utf8')
        const loader = loaders[extname(path)] ?? 'js'
        if (isCommonJs(source, path)) {
          throw new SyntaxError(
            `${path} is CommonJS: in Bun the loader of heddle takes modules alone. Name it .cjs, and it is left as it is; or write it with import and export`,
          )
        }
        const format = loader.startsWith('ts') ? 'module-typescript' : 'module'
        const loaded = compile(pathToFileURL(path).href, { format, source })
        return { contents: loaded.source as string, loader }
      })
    },
  })
}

function isCommonJs(source: string, path: string): boolean {
  if (!/\bmodule\.exports\b|\bexports\.\w+\s*=/.test(source)) return false
  const { module, errors } = parseSync(path, source)
  return errors.length === 0 && !module.hasModuleSyntax
}
