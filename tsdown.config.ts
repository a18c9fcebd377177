import { writeFile } from 'node:fs/promises'
import { defineConfig, type UserConfig } from 'tsdown'
import { bundlePage } from './view/bundle.ts'

/**
 * One output file per source file: worker entries stay reachable by `new URL('./x.js', import.meta.url)`,
 * which is what bundlers look for. Sources name them `./x.ts`, because they run unbuilt too; the build
 * renames them.
 */
const config: UserConfig = defineConfig({
  entry: ['src/**/*.ts', '!src/**/*.test.ts', '!src/**/*.check.ts'],
  outDir: 'dist',
  root: 'src',
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
  unbundle: true,
  dts: { oxc: true },
  sourcemap: true,
  clean: true,
  hash: false,
  outExtensions: () => ({ js: '.js', dts: '.d.ts' }),
  deps: { neverBundle: [/^[^./]/] },
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
      name: 'worker-urls',
      transform(code) {
        if (!code.includes('import.meta.url')) return null
        return { code: code.replaceAll(/(new URL\('\.[^']*)\.ts'/g, "$1.js'"), map: null }
      },
    },
  ],
})

export default config
