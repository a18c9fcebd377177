import { type Cell, programFiles, servePage, type Tools } from './cell.ts'

const esm = { 'package.json': '{ "private": true, "type": "module" }' }
const modes = ['development', 'production'] as const
type Mode = (typeof modes)[number]
type Target = 'node' | 'browser'

/** The set-up of each bundler by its manual; the file builds `dist`. */
interface Bundler {
  readonly name: string
  /** The file that configures or runs the bundler. */
  files(target: Target, mode: Mode): Record<string, string>
  build(project: string, tools: Tools, target: Target, mode: Mode): Promise<unknown>
  /** The output: for a page, and for Node. */
  readonly page: string
  readonly main: string
}

const entry = (target: Target): string => (target === 'node' ? './src/main.ts' : './src/page.ts')

const webpackLike = (name: string, module: string, rule: object): Bundler => ({
  name,
  files: (target, mode) => ({
    'build.mjs': `
import bundler from '${module}'
import heddle from 'heddle/${name}'
const make = bundler.${name === 'rspack' ? 'rspack' : 'webpack'} ?? bundler
make({
  mode: '${mode}',
  target: '${target === 'node' ? 'node20' : 'web'}',
  entry: '${entry(target)}',
  output: { filename: 'main.js', chunkFilename: '[name].[contenthash].js', workerChunkFilename: '[name].[contenthash].js', clean: true },
  resolve: { extensions: ['.ts', '.js'] },
  module: { rules: [${JSON.stringify(rule).replace('"\\\\.ts$"', '/\\.ts$/')}] },
  plugins: [heddle()],
}, (error, stats) => {
  if (error) throw error
  const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true })
  const said = [...errors, ...warnings.filter(({ message }) => !/size limit|performance recommend|limit the size/i.test(message))]
  if (said.length > 0) {
    console.error(said.map(({ message, moduleName }) => moduleName + ': ' + message).join('\\n'))
    process.exitCode = 1
  }
})
`,
  }),
  build: (project, tools) => tools.command(project, tools.node(26), ['build.mjs']),
  page: 'main.js',
  main: 'dist/main.js',
})

const bundlers: readonly Bundler[] = [
  webpackLike('webpack', 'webpack', {
    test: '\\.ts$',
    loader: 'esbuild-loader',
    options: { target: 'es2022' },
  }),
  webpackLike('rspack', '@rspack/core', {
    test: '\\.ts$',
    loader: 'builtin:swc-loader',
    options: { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' } },
  }),
  {
    name: 'rollup',
    files: (target, mode) => ({
      'rollup.config.mjs': `
import resolve from '@rollup/plugin-node-resolve'
import { transform } from 'esbuild'
import heddle from 'heddle/rollup'
const types = { name: 'types', async transform(code, id) {
  return id.endsWith('.ts') ? await transform(code, { loader: 'ts', target: 'es2022', sourcemap: true, minify: ${mode === 'production'} }) : null
} }
export default {
  input: { main: '${entry(target)}' },
  output: { dir: 'dist', format: 'es', entryFileNames: '[name].mjs' },
  external: /^node:/,
  plugins: [heddle(), types, resolve({ browser: ${target === 'browser'} })],
  onwarn(warning) { if (warning.code !== 'CIRCULAR_DEPENDENCY') throw new Error(warning.message) },
}
`,
    }),
    build: (project, tools) =>
      tools.command(project, tools.node(26), [tools.bin('rollup'), '-c', 'rollup.config.mjs']),
    page: 'main.mjs',
    main: 'dist/main.mjs',
  },
  {
    name: 'rolldown',
    files: (target, mode) => ({
      'rolldown.config.mjs': `
import heddle from 'heddle/rolldown'
export default {
  input: { main: '${entry(target)}' },
  platform: '${target}',
  output: { dir: 'dist', format: 'es', entryFileNames: '[name].mjs', minify: ${mode === 'production'} },
  plugins: [heddle()],
}
`,
    }),
    build: (project, tools) =>
      tools.command(project, tools.node(26), [tools.bin('rolldown'), '-c', 'rolldown.config.mjs']),
    page: 'main.mjs',
    main: 'dist/main.mjs',
  },
  {
    name: 'esbuild',
    files: (target, mode) => ({
      'build.mjs': `
import { build } from 'esbuild'
import heddle from 'heddle/esbuild'
const { warnings } = await build({
  entryPoints: { main: '${entry(target)}' },
  outdir: 'dist', bundle: true, format: 'esm', platform: '${target}', outExtension: { '.js': '.mjs' },
  minify: ${mode === 'production'}, sourcemap: true, plugins: [heddle()],
})
if (warnings.length > 0) process.exitCode = 1
`,
    }),
    build: (project, tools) => tools.command(project, tools.node(26), ['build.mjs']),
    page: 'main.mjs',
    main: 'dist/main.mjs',
  },
]

/**
 * Every bundler, for Node with heddle in the bundle and for a page, in development and in production mode.
 */
export const bundlerCells: readonly Cell[] = bundlers.flatMap(bundler =>
  modes.flatMap(mode => [
    {
      name: `${bundler.name}, node, ${mode}`,
      files: () => ({ ...packageOf(bundler), ...programFiles('typescript'), ...bundler.files('node', mode) }),
      run: async (project: string, tools: Tools) => {
        await bundler.build(project, tools, 'node', mode)
        return await tools.command(project, tools.node(26), [bundler.main])
      },
    },
    {
      name: `${bundler.name}, browser, ${mode}`,
      files: () => ({
        ...packageOf(bundler),
        ...programFiles('typescript'),
        ...bundler.files('browser', mode),
      }),
      run: async (project: string, tools: Tools) => {
        await bundler.build(project, tools, 'browser', mode)
        return await tools.page(servePage(project, bundler.page))
      },
    },
  ]),
)

/** webpack and Rspack write CommonJS for Node by default. */
function packageOf({ name }: Bundler): Record<string, string> {
  return name === 'webpack' || name === 'rspack' ? { 'package.json': '{ "private": true }' } : esm
}
