/** Real packages doing real work: each runs as published, and compiled as a whole. */
import { readFileSync } from 'node:fs'
import { compile } from '../src/compiler/compile.ts'
import type { LoweringName } from '../src/compiler/analysis/directive.ts'
import type { Namespace } from '../test/compiler/differential/evaluate.ts'
import { importedCostsOf } from '../src/compiler/loading/neighbours.ts'
import { fileOf, link } from '../test/compiler/realcode/packages.ts'

export interface Job {
  readonly name: string
  /** The function to call, and its arguments. */
  prepare(namespace: Namespace): { fn: (...args: any[]) => unknown; self?: unknown; args: unknown[] }
  /** The package's file. */
  readonly entry: string
}

const text = (name: string, path: string): string => readFileSync(fileOf(name, path), 'utf8')

/** Bytes of medium entropy, the same in every run. */
function bytes(length: number): Uint8Array {
  let seed = 0x2545f491
  return Uint8Array.from({ length }, (_, i) => {
    seed ^= seed << 13
    seed ^= seed >>> 17
    seed ^= seed << 5
    return i % 7 < 4 ? 97 + (i % 13) : seed & 0xff
  })
}

const here = (path: string): string => new URL(path, import.meta.url).pathname

/** Parsing, rendering Markdown, compressing, decoding an image, formatting code and data, validating. */
export const jobs: readonly Job[] = [
  {
    name: 'acorn',
    entry: fileOf('acorn', 'dist/acorn.mjs'),
    prepare: ({ parse }) => ({
      fn: parse,
      args: [text('acorn', 'dist/acorn.mjs'), { ecmaVersion: 'latest', sourceType: 'module' }],
    }),
  },
  {
    name: 'marked',
    entry: fileOf('marked', 'lib/marked.esm.js'),
    prepare: ({ parse }) => ({
      fn: parse,
      args: [`${text('commander', 'Readme.md')}\n\n${text('acorn', 'CHANGELOG.md')}`],
    }),
  },
  {
    name: 'terser',
    entry: fileOf('terser', 'dist/bundle.min.js'),
    prepare: ({ minify_sync: format }) => ({
      fn: format,
      args: [
        text('acorn', 'dist/acorn.mjs')
          .slice(0, 40_000)
          .replace(/[^}]*$/, ''),
        { compress: false, mangle: false, module: true, format: { beautify: true } },
      ],
    }),
  },
  {
    name: 'js-yaml',
    entry: fileOf('js-yaml', 'dist/js-yaml.mjs'),
    prepare: ({ dump }) => ({
      fn: dump,
      args: [
        Object.fromEntries(
          Object.entries(
            (JSON.parse(readFileSync(here('../package-lock.json'), 'utf8')) as { packages: object }).packages,
          ).slice(0, 150),
        ),
      ],
    }),
  },
  {
    name: 'fflate',
    entry: fileOf('fflate', 'esm/browser.js'),
    prepare: ({ zlibSync }) => ({ fn: zlibSync, args: [bytes(300_000), { level: 6 }] }),
  },
  {
    name: 'pako',
    entry: fileOf('pako', 'dist/pako.mjs'),
    prepare: ({ deflate }) => ({ fn: deflate, args: [bytes(200_000), { level: 6 }] }),
  },
  {
    name: 'jpeg-js',
    entry: fileOf('jpeg-js', 'lib/decoder.js'),
    prepare: decode => ({ fn: decode as never, args: [picture(), { useTArray: true }] }),
  },
  {
    name: 'json-schema',
    entry: fileOf('@cfworker/json-schema', 'dist/esm/index.js'),
    prepare: ({ validate }) => ({
      fn: validate,
      args: [
        JSON.parse(readFileSync(here('../biome.json'), 'utf8')),
        JSON.parse(text('@biomejs/biome', 'configuration_schema.json')),
        '7',
        undefined,
        false,
      ],
    }),
  },
]

function picture(): Uint8Array {
  const width = 320
  const height = 240
  const data = new Uint8Array(width * height * 4)
  for (let i = 0; i < width * height; i++) data.set([i % 256, (i * 3) % 256, (i >> 3) % 256, 255], i * 4)
  const encode = link(fileOf('jpeg-js', 'lib/encoder.js'), source => source) as never as (
    image: object,
    quality: number,
  ) => { data: Uint8Array }
  return encode({ data: Buffer.from(data), width, height }, 80).data
}

export interface Loaded {
  readonly namespace: Namespace
  /** Characters of the package's files, and of their compiled output. */
  readonly before: number
  readonly after: number
}

/** The package as published, or compiled as a whole by one lowering. */
export function load({ entry }: Job, lowering: LoweringName | 'best' | 'movable' | null): Loaded {
  let before = 0
  let after = 0
  const namespace = link(entry, (source, file) => {
    const code =
      lowering === null
        ? source
        : compile(source, file, {
            whole: true,
            neighbour: importedCostsOf(file),
            sourcemap: false,
            ...(lowering === 'movable' ? { movable: true } : lowering === 'best' ? {} : { lowering }),
          }).code
    before += source.length
    after += code.length
    return code
  })
  return { namespace, before, after }
}
