import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join, posix, relative } from 'node:path'
import { defineConfig, type UserConfig } from 'tsdown'
import { distFiles, ownUrl } from './scripts/distfiles.ts'
import { effectModules } from './scripts/sideeffects.ts'
import { bundlePage } from './view/bundle.ts'

const root = import.meta.dirname
const { entries, exported, chunkOf } = distFiles(root, effectModules(root))
const moduleOf = (id: string): string => relative(join(root, 'src'), id)
const entriesOf = (modules: readonly string[]): Record<string, string> =>
  Object.fromEntries(modules.map(module => [module.replace(/\.ts$/, ''), join(root, 'src', module)]))

/** A reference to one of our own files, as `transform` leaves it: a path in dist. */
const distUrl = /\bnew URL\((['"])dist:(.*?)\1, import\.meta\.url\)/g

const common: UserConfig = {
  outDir: 'dist',
  root: 'src',
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
  hash: false,
  outExtensions: () => ({ js: '.js', dts: '.d.ts' }),
  deps: { neverBundle: [/^[^./]/] },
}

/**
 * A file for each entry, and chunks that they share (scripts/distfiles.ts). Workers stay reachable by
 * `new URL('./x.js', import.meta.url)`, which is what bundlers look for. Sources name them `./x.ts`, because
 * they run unbuilt too. No source maps: they would be two thirds of the package, each thread would load
 * them, and stacks would name files of `src`, which the package does not have.
 */
const code: UserConfig = {
  ...common,
  entry: entriesOf(entries),
  dts: false,
  clean: true,
  inputOptions: { preserveEntrySignatures: 'allow-extension' },
  outputOptions: {
    chunkFileNames: ({ facadeModuleId: id, name }) =>
      id ? `${moduleOf(id).replace(/\.ts$/, '')}.js` : `${name}.js`,
    minifyInternalExports: false,
    comments: { jsdoc: false },
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ debugName: 'layers', name: id => (id.endsWith('.ts') ? chunkOf(moduleOf(id)) : null) }],
    },
  },
  hooks: {
    'build:done': async () => await writeFile('dist/view/page.js', await bundlePage()),
  },
  plugins: [
    {
      // The page is a bundle of its own, beside the module that mounts it.
      name: 'page-of-the-view',
      resolveId(source) {
        return source.endsWith('/view/page.tsx') ? { id: './page.js', external: true } : null
      },
    },
    {
      // Under the `browser` condition package.json puts machine/node/absent.ts in the place of these.
      name: 'node-modules-by-condition',
      resolveId(source, importer) {
        const name = /\/(node-(?:host|thread|control))\.ts$/.exec(source)?.[1]
        return name === undefined || importer === undefined ? null : { id: `#${name}`, external: true }
      },
    },
    {
      name: 'own-urls',
      transform(text, id) {
        if (!text.includes('import.meta.url')) return null
        const here = dirname(moduleOf(id))
        return {
          code: text.replaceAll(ownUrl, (whole, given: string) => {
            const path = posix.join(here, given)
            // Examples in messages and comments name files that do not exist.
            if (path.startsWith('..') || !existsSync(join(root, 'src', path))) return whole
            return `new URL('dist:${path.replace(/\.ts$/, '.js')}', import.meta.url)`
          }),
          map: null,
        }
      },
      renderChunk(text, { fileName }) {
        if (!text.includes('dist:')) return null
        const address = (path: string): string => {
          const to = posix.relative(posix.dirname(fileName), path) || '.'
          return `${to.startsWith('.') ? '' : './'}${to}${path.endsWith('/') ? '/' : ''}`
        }
        return {
          code: text.replaceAll(
            distUrl,
            (_, quote, path: string) => `new URL(${quote}${address(path)}${quote}, import.meta.url)`,
          ),
          map: null,
        }
      },
    },
  ],
}

/** The types of the public entries, with shared files in `types`. */
const types: UserConfig = {
  ...common,
  entry: entriesOf(exported),
  dts: { oxc: true, emitDtsOnly: true },
  // `Symbol.dispose` needs no setting in the program's tsconfig.
  banner: { dts: '/// <reference lib="esnext.disposable" />' },
  clean: false,
  outputOptions: { chunkFileNames: 'types/[name].js' },
}

const configs: UserConfig[] = defineConfig([code, types])

export default configs
