/**
 * The loader in Bun, which has none of Node's hooks: a Bun plugin reads every module that is imported on this
 * thread.
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
 * The program's own modules. A Bun plugin must return the text of every file that it matches, and Bun treats
 * that text as an ES module.
 */
const ownModules = /^(?!.*[\\/]node_modules[\\/]).*\.m?[jt]sx?$/

/** Bun strips the types itself, after the compiler. */
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
            `${path} is CommonJS: in Bun, heddle's loader supports only ES modules. Rename it to .cjs, and it stays as it is; or use import and export`,
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
