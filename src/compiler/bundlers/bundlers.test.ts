import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Configuration as RspackConfiguration, rspack } from '@rspack/core'
import * as esbuild from 'esbuild'
import * as rolldown from 'rolldown'
import * as rollup from 'rollup'
import * as vite from 'vite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import webpack from 'webpack'
import esbuildPlugin from './esbuild.ts'
import rolldownPlugin from './rolldown.ts'
import rollupPlugin from './rollup.ts'
import rspackPlugin from './rspack.ts'
import vitePlugin from './vite.ts'
import webpackPlugin from './webpack.ts'

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../../testing/compiler/fixtures/bundle/${name}`, import.meta.url))

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-bundle-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Bundles `entry` into `file`, as for production; rejects with the bundler's error. */
type Bundle = (entry: string, file: string) => Promise<void>

const stripTypes: rollup.Plugin = {
  name: 'strip-types',
  transform: (code, id) => (id.endsWith('.ts') ? { code: stripTypeScriptTypes(code), map: null } : null),
}

const bundlers: Record<string, Bundle> = {
  async vite(entry, file) {
    await vite.build({
      configFile: false,
      logLevel: 'silent',
      root: folder,
      plugins: [vitePlugin()],
      // The development transform writes each element's line and column into it, which differ between the two
      // forms.
      oxc: { jsx: { development: false } },
      build: {
        ssr: entry,
        outDir: join(file, '..'),
        emptyOutDir: false,
        sourcemap: true,
        minify: true,
        rollupOptions: { output: { entryFileNames: file.slice(folder.length + 1) } },
      },
    })
  },
  async rollup(entry, file) {
    const bundle = await rollup.rollup({
      input: entry,
      plugins: [rollupPlugin(), stripTypes],
      external: /^node:/,
      onwarn() {},
    })
    await bundle.write({ file, format: 'es', sourcemap: true })
    await bundle.close()
  },
  async rolldown(entry, file) {
    const bundle = await rolldown.rolldown({
      input: entry,
      plugins: [rolldownPlugin()],
      platform: 'node',
      logLevel: 'silent',
    })
    await bundle.write({ file, format: 'es', sourcemap: true, minify: true })
    await bundle.close()
  },
  async esbuild(entry, file) {
    await esbuild.build({
      entryPoints: [entry],
      outfile: file,
      bundle: true,
      format: 'esm',
      platform: 'node',
      sourcemap: true,
      minify: true,
      logLevel: 'silent',
      plugins: [esbuildPlugin()],
    })
  },
  async webpack(entry, file) {
    const stats = await promisify<webpack.Configuration, webpack.Stats | undefined>(webpack)({
      mode: 'production',
      devtool: 'source-map',
      target: 'node20',
      entry,
      context: folder,
      output: { path: folder, filename: file.slice(folder.length + 1), module: true, chunkFormat: 'module' },
      experiments: { outputModule: true },
      plugins: [webpackPlugin()],
      module: { rules: [{ test: /\.ts$/, use: fixture('strip-types.cjs') }] },
    })
    if (stats?.hasErrors()) throw new Error(stats.toString({ all: false, errors: true }))
  },
  async rspack(entry, file) {
    const configuration: RspackConfiguration = {
      mode: 'production',
      devtool: 'source-map',
      target: 'node20',
      entry,
      context: folder,
      output: { path: folder, filename: file.slice(folder.length + 1), module: true, chunkFormat: 'module' },
      plugins: [rspackPlugin()],
      module: {
        rules: [
          {
            test: /\.ts$/,
            loader: 'builtin:swc-loader',
            options: { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' } },
          },
        ],
      },
    }
    await new Promise<void>((resolve, reject) => {
      rspack(configuration, (error, stats) => {
        if (error) reject(error)
        else if (stats?.hasErrors()) reject(new Error(stats.toString({ all: false, errors: true })))
        else resolve()
      })
    })
  },
}

describe.each(Object.entries(bundlers))('a bundle made by %s', (name, bundle) => {
  test('has twins that behave like the plain functions, preempted at every safepoint, with correct source lines', async () => {
    const file = join(folder, `${name}.mjs`)
    await bundle(fixture('main.ts'), file)
    const { stdout } = await promisify(execFile)(process.execPath, ['--enable-source-maps', file])
    expect(stdout.trim().split('\n')).toEqual([
      'total same preempted',
      'primes same preempted',
      'turn 0',
      'turn 1',
      'the line is 28 work.ts:28',
    ])
  })

  test('fails on a syntax error with its position and the lines around it', async () => {
    const failure = await bundle(fixture('broken.ts'), join(folder, `${name}-broken.mjs`)).then(
      () => null,
      (error: Error) => error,
    )
    expect(failure).toBeInstanceOf(Error)
    expect(failure!.message).toContain('broken.ts:3:')
    expect(failure!.message).toContain('const a: number = = 1')
  })
})

test.each(['vite', 'rolldown', 'esbuild'])('%s transpiles JSX after the compiler', async name => {
  const file = join(folder, `${name}-view.mjs`)
  await bundlers[name]!(fixture('view.tsx'), file)
  const { stdout } = await promisify(execFile)(process.execPath, [file])
  expect(stdout).toBe('same preempted\n')
})
