/** Unmarked packages that the plugin compiles because `include` names them. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import * as esbuild from 'esbuild'
import * as rolldown from 'rolldown'
import { afterAll, beforeAll, expect, test } from 'vitest'
import webpack from 'webpack'
import esbuildPlugin from '../bundlers/esbuild.ts'
import type { HeddleOptions } from '../bundlers/options.ts'
import rolldownPlugin from '../bundlers/rolldown.ts'
import webpackPlugin from '../bundlers/webpack.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-include-'))
  await symlink(join(import.meta.dirname, '../../../node_modules'), join(folder, 'node_modules'))
  await writeFile(
    join(folder, 'main.js'),
    `import jpeg from 'jpeg-js'
     import { marked, lexer } from 'marked'
     const compiled = fn => Symbol.for('heddle.itself') in fn || Symbol.for('heddle.twin') in fn
     const image = jpeg.encode({ data: new Uint8Array(64).fill(200), width: 4, height: 4 }, 90)
     console.log(compiled(jpeg.decode), compiled(marked.parse), jpeg.decode(image.data).width, marked.parse('*a*').trim())`,
  )
})
afterAll(() => rm(folder, { recursive: true, force: true }))

type Bundle = (file: string, options: HeddleOptions) => Promise<void>

const bundlers: Record<string, Bundle> = {
  async rolldown(file, options) {
    const bundle = await rolldown.rolldown({
      input: join(folder, 'main.js'),
      plugins: [rolldownPlugin(options)],
      platform: 'node',
      logLevel: 'silent',
    })
    await bundle.write({ file, format: 'es' })
    await bundle.close()
  },
  async esbuild(file, options) {
    await esbuild.build({
      entryPoints: [join(folder, 'main.js')],
      outfile: file,
      bundle: true,
      format: 'esm',
      platform: 'node',
      logLevel: 'silent',
      plugins: [esbuildPlugin(options)],
    })
  },
  async webpack(file, options) {
    const stats = await promisify<webpack.Configuration, webpack.Stats | undefined>(webpack)({
      mode: 'development',
      devtool: false,
      target: 'node20',
      entry: join(folder, 'main.js'),
      context: folder,
      output: { path: folder, filename: file.slice(folder.length + 1), module: true, chunkFormat: 'module' },
      experiments: { outputModule: true },
      plugins: [webpackPlugin(options)],
      ignoreWarnings: [() => true],
      // The runtime is source here: the bundler must strip its types, as Node would.
      module: {
        rules: [
          {
            test: /\.ts$/,
            use: join(import.meta.dirname, '../../../testing/compiler/fixtures/bundle/strip-types.cjs'),
          },
        ],
      },
    })
    if (stats?.hasErrors()) throw new Error(stats.toString({ all: false, errors: true }))
  },
}

test.each(Object.entries(bundlers))(
  '%s compiles the included packages, and no others',
  async (name, bundle) => {
    const cases: [HeddleOptions, string][] = [
      [{}, 'false false'],
      [{ include: ['jpeg-js', /^marked\//] }, 'true true'],
      [{ include: 'all', exclude: ['marked'] }, 'true false'],
    ]
    for (const [index, [options, expected]] of cases.entries()) {
      const file = join(folder, `${name}-${index}.mjs`)
      await bundle(file, { ...options, warnings: false })
      const { stdout } = await promisify(execFile)(process.execPath, [file])
      expect(stdout).toBe(`${expected} 4 <p><em>a</em></p>\n`)
    }
  },
)

test('an invalid pattern is refused when the plugin is made', () => {
  expect(() => esbuildPlugin({ include: 'marked' as never })).toThrow(/^include: marked is not a list/)
  expect(() => esbuildPlugin({ exclude: [1 as never] })).toThrow(/^exclude: 1 is not a pattern/)
})
