import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { twinOf } from '../../../src/coroutine/core/coroutine.ts'
import { preemptEverywhere, show } from '../differential/drive.ts'
import { fileOf, loadPackage, type Package } from './packages.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const textOf = (packageName: string, path: string): string => readFileSync(fileOf(packageName, path), 'utf8')

/** Bytes that compress neither well nor badly, the same in every run. */
function bytes(length: number): Uint8Array {
  let seed = 0x2545f491
  return Uint8Array.from({ length }, (_, i) => {
    seed ^= seed << 13
    seed ^= seed >>> 17
    seed ^= seed << 5
    return i % 7 < 4 ? 97 + (i % 13) : seed & 0xff
  })
}

/** The result or error of a call, as text. */
function outcome(call: () => unknown): string {
  try {
    return show(call())
  } catch (error) {
    return `threw ${show(error)}`
  }
}

function expectTwins({ stats, asked }: Package, count: number): void {
  const twins = stats.filter(({ form }) => form === 'twin')
  expect(twins.length).toBeGreaterThanOrEqual(count)
  const unwinding = twins.filter(({ lowering }) => lowering === 'frames')
  if (asked === 'frames') expect(unwinding.length).toBeGreaterThan(twins.length * 0.9)
  else expect(unwinding).toEqual([])
}

describe.each(['frames', 'generator'] as const)('made resumable by %s:', lowering => {
  describe('acorn', () => {
    const acorn = loadPackage(fileOf('acorn', 'dist/acorn.mjs'), lowering)
    const source = textOf('acorn', 'dist/acorn.mjs')
    const options = { ecmaVersion: 'latest', sourceType: 'module', locations: true }

    test('parses itself to the same tree, preempted at every safepoint', () => {
      const expected = JSON.stringify(acorn.plain['parse'](source, options))
      const { value, preemptions } = preemptEverywhere(acorn.compiled['parse'], [source, options])
      expect(JSON.stringify(value) === expected, 'the trees').toBe(true)
      expect(preemptions).toBeGreaterThan(100_000)
      expectTwins(acorn, 100)
    })

    test('reports the same syntax errors', () => {
      for (const broken of [
        'let a = ;',
        'class { }',
        'for (const x of) {}',
        '`${',
        'a => { return',
        'let x; let x',
      ]) {
        const expected = outcome(() => acorn.plain['parse'](broken, options))
        expect(outcome(() => preemptEverywhere(acorn.compiled['parse'], [broken, options]).value)).toBe(
          expected,
        )
        expect(expected).toContain('SyntaxError')
      }
    })
  })

  describe('decimal.js', () => {
    const decimal = loadPackage(fileOf('decimal.js', 'decimal.js'), lowering)

    test('computes logarithms, powers and roots to the same digits, preempted at every safepoint', () => {
      const ours = decimal.compiled as any
      const theirs = decimal.plain as any
      const precision = 60
      ours.set({ precision })
      theirs.set({ precision })
      let preemptions = 0
      const given = ['10', '2', '0.001', '123456.789', '-1.5', 'Infinity', '7e-300']
      for (const name of ['ln', 'log10', 'exp', 'sqrt', 'cbrt', 'sin', 'atan', 'asinh'] as const) {
        for (const text of given) {
          const expected = outcome(() => String(theirs[name](text)))
          const got = outcome(() => {
            const { value, preemptions: count } = preemptEverywhere(ours[name], [text], ours)
            preemptions += count
            return String(value)
          })
          expect(got, `${name}(${text})`).toBe(expected)
        }
      }
      expect(String(ours.ln(10)).slice(0, 20)).toBe('2.302585092994045684')
      expect(String(preemptEverywhere(ours.pow, ['1.5', '33.25'], ours).value)).toBe(
        String(theirs.pow('1.5', '33.25')),
      )
      expect(preemptions).toBeGreaterThan(1000)
      expectTwins(decimal, 40)
    })
  })

  describe('marked', () => {
    const marked = loadPackage(fileOf('marked', 'lib/marked.esm.js'), lowering)
    const document = [
      textOf('marked', 'README.md'),
      textOf('commander', 'Readme.md'),
      textOf('js-yaml', 'README.md'),
      textOf('fflate', 'README.md'),
      textOf('acorn', 'CHANGELOG.md'),
      textOf('typescript', 'README.md'),
      '| a | b |\n|:--|--:|\n| *x* | `y` |\n\n1. one\n   - two\n     > three\n\n```js\nlet a\n```\n\n[r]: http://x.y "t"\n[r] ![i](u)\n',
    ].join('\n\n')

    test('renders a large document to the same HTML, preempted at every safepoint', () => {
      const expected = marked.plain['parse'](document)
      const { value, preemptions } = preemptEverywhere(marked.compiled['parse'], [document])
      expect(value === expected, 'the HTML').toBe(true)
      expect(document.length).toBeGreaterThan(90_000)
      expect(preemptions).toBeGreaterThan(1000)
      expectTwins(marked, 50)
    })

    test('lexes to the same tokens', () => {
      const expected = show(marked.plain['lexer'](document.slice(0, 20_000)))
      expect(
        show(preemptEverywhere(marked.compiled['lexer'], [document.slice(0, 20_000)]).value) === expected,
      ).toBe(true)
    })
  })

  describe('js-yaml', () => {
    const yaml = loadPackage(fileOf('js-yaml', 'dist/js-yaml.mjs'), lowering)
    const value = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8')) as {
      packages: Record<string, unknown>
    }
    const some = Object.fromEntries(Object.entries(value.packages).slice(0, 200))
    const exotic = [
      'anchors: &a { x: 1, y: [2, 3] }',
      'merged: { <<: *a, z: 4 }',
      'folded: >-\n  one\n  two\n\n  three',
      'literal: |+\n  kept\n\n',
      'dates: [2001-12-14t21:59:43.10-05:00, 2002-12-14]',
      "\"quoted \\u263A\": 'it''s'",
      'numbers: [0o14, 0xC, 1.5e3, .inf, -.INF, .nan, ~, true]',
      'set: !!set { a, b }',
      'binary: !!binary R0lGODlhDAAMAIQ=',
    ].join('\n')

    test('dumps and loads a lock file, preempted at every safepoint', () => {
      const expected = yaml.plain['dump'](some)
      const dumped = preemptEverywhere(yaml.compiled['dump'], [some])
      expect(dumped.value === expected, 'the dump').toBe(true)
      const loaded = preemptEverywhere(yaml.compiled['load'], [expected])
      expect(show(loaded.value)).toBe(show(yaml.plain['load'](expected)))
      expect(dumped.preemptions + loaded.preemptions).toBeGreaterThan(10_000)
      expectTwins(yaml, 60)
    })

    test('loads anchors, merges, blocks, tags and dates to the same values', () => {
      for (const text of [
        exotic,
        ...exotic
          .split('\n')
          .slice(0, 2)
          .map(line => `${line}\n`),
      ]) {
        const expected = outcome(() => yaml.plain['load'](text))
        expect(outcome(() => preemptEverywhere(yaml.compiled['load'], [text]).value)).toBe(expected)
      }
    })

    test('refuses bad documents with the same messages', () => {
      for (const broken of [
        'a: [1, 2',
        'a: b: c',
        '- x\n y',
        '*missing',
        'a: 1\na: 2',
        '\t- x',
        '%YAML 9.9\n---\na',
      ]) {
        const expected = outcome(() => yaml.plain['load'](broken))
        expect(outcome(() => preemptEverywhere(yaml.compiled['load'], [broken]).value)).toBe(expected)
      }
    })
  })

  describe('fflate', () => {
    const fflate = loadPackage(fileOf('fflate', 'esm/browser.js'), lowering)
    const input = bytes(150_000)

    test('deflates and inflates the same bytes at every level, preempted at every safepoint', () => {
      let total = 0
      for (const level of [0, 1, 6, 9]) {
        const expected = fflate.plain['zlibSync'](input, { level })
        const packed = preemptEverywhere(fflate.compiled['zlibSync'], [input, { level }])
        expect(packed.value).toEqual(expected)
        const unpacked = preemptEverywhere(fflate.compiled['unzlibSync'], [expected])
        expect(unpacked.value).toEqual(input)
        total += packed.preemptions + unpacked.preemptions
      }
      expect(total).toBeGreaterThan(1000)
      expectTwins(fflate, 40)
    })

    test('zips and unzips a folder', () => {
      const folder = { 'a.txt': bytes(3000), b: { 'c.bin': bytes(500) } }
      const options = { mtime: new Date(2020, 1, 1) }
      const expected = fflate.plain['zipSync'](folder, options)
      const zipped = preemptEverywhere(fflate.compiled['zipSync'], [folder, options])
      expect(zipped.value).toEqual(expected)
      expect(preemptEverywhere(fflate.compiled['unzipSync'], [expected]).value).toEqual(
        fflate.plain['unzipSync'](expected),
      )
    })

    test('refuses damaged input with the same error', () => {
      const damaged = fflate.plain['gzipSync'](input).slice(0, 900)
      const expected = outcome(() => fflate.plain['gunzipSync'](damaged))
      expect(expected).toContain('threw')
      expect(outcome(() => preemptEverywhere(fflate.compiled['gunzipSync'], [damaged]).value)).toBe(expected)
    })
  })

  describe('pako', () => {
    const pako = loadPackage(fileOf('pako', 'dist/pako.mjs'), lowering)
    const input = bytes(120_000)

    test('deflates and inflates the same bytes, preempted at every safepoint', () => {
      const expected = pako.plain['deflate'](input, { level: 9 })
      const packed = preemptEverywhere(pako.compiled['deflate'], [input, { level: 9 }])
      expect(packed.value).toEqual(expected)
      const unpacked = preemptEverywhere(pako.compiled['inflate'], [expected])
      expect(unpacked.value).toEqual(input)
      expect(packed.preemptions + unpacked.preemptions).toBeGreaterThan(1000)
      expectTwins(pako, 30)
    })
  })

  describe('a JSON schema validator', () => {
    const validator = loadPackage(fileOf('@cfworker/json-schema', 'dist/esm/index.js'), lowering)
    const schemas = {
      oxlint: JSON.parse(textOf('oxlint', 'configuration_schema.json')),
      biome: JSON.parse(textOf('@biomejs/biome', 'configuration_schema.json')),
    }
    const instances = {
      oxlint: JSON.parse(readFileSync(`${root}.oxlintrc.json`, 'utf8')),
      biome: JSON.parse(readFileSync(`${root}biome.json`, 'utf8')),
    }

    test('reports the same for good and bad configurations, preempted at every safepoint', () => {
      let total = 0
      for (const name of ['oxlint', 'biome'] as const) {
        const bad = {
          ...instances[name],
          plugins: 5,
          rules: ['x'],
          files: { includes: 3 },
          formatter: { lineWidth: 'wide' },
        }
        for (const instance of [instances[name], bad, [], null, 7]) {
          const expected = validator.plain['validate'](instance, schemas[name], '7', undefined, false)
          const given = [instance, schemas[name], '7', undefined, false]
          const { value, preemptions } = preemptEverywhere(validator.compiled['validate'], given)
          expect(value).toEqual(expected)
          total += preemptions
        }
      }
      expect(total).toBeGreaterThan(2000)
      expectTwins(validator, 5)
    })
  })

  describe('image codecs', () => {
    const width = 160
    const height = 120
    const pixels = Buffer.alloc(width * height * 4)
    for (let i = 0; i < width * height; i++) pixels.set([i % 256, (i * 3) % 256, (i >> 3) % 256, 255], i * 4)

    test('jpeg-js encodes and decodes to the same bytes, preempted at every safepoint', () => {
      const encoder = loadPackage(fileOf('jpeg-js', 'lib/encoder.js'), lowering)
      const decoder = loadPackage(fileOf('jpeg-js', 'lib/decoder.js'), lowering)
      const image = { data: pixels, width, height }
      const expected = (encoder.plain as never as (image: unknown, quality: number) => { data: Buffer })(
        image,
        80,
      )
      const encoded = preemptEverywhere(encoder.compiled as never, [image, 80])
      expect(Buffer.compare(encoded.value.data, expected.data)).toBe(0)
      const options = { useTArray: true }
      const decodedPlain = (decoder.plain as never as (data: unknown, options: object) => unknown)(
        expected.data,
        options,
      )
      const decoded = preemptEverywhere(decoder.compiled as never, [expected.data, options])
      expect(decoded.value).toEqual(decodedPlain)
      expect(encoded.preemptions + decoded.preemptions).toBeGreaterThan(5000)
      expectTwins(decoder, 10)
    })

    test('omggif writes and reads frames to the same bytes, preempted at every safepoint', () => {
      const gif = loadPackage(fileOf('omggif', 'omggif.js'), lowering)
      const palette = Array.from({ length: 64 }, (_, i) => (i * 40_503) & 0xffffff)
      const indexed = Array.from({ length: width * height }, (_, i) => (i * i + (i >> 4)) % 64)
      const write = (namespace: any, call: (f: any, self: unknown, args: unknown[]) => unknown): Buffer => {
        const buffer = Buffer.alloc(60_000)
        const writer = new namespace.GifWriter(buffer, width, height, { palette, loop: 0 })
        call(writer.addFrame, writer, [0, 0, width, height, indexed, { delay: 10 }])
        call(writer.addFrame, writer, [4, 4, 16, 16, indexed.slice(0, 256)])
        return buffer.subarray(0, call(writer.end, writer, []) as number)
      }
      const read = (
        namespace: any,
        buffer: Buffer,
        call: (f: any, self: unknown, args: unknown[]) => unknown,
      ): Uint8Array => {
        const reader = new namespace.GifReader(buffer)
        const out = new Uint8Array(width * height * 4)
        for (let frame = 0; frame < reader.numFrames(); frame++)
          call(reader.decodeAndBlitFrameRGBA, reader, [frame, out])
        return out
      }
      let preemptions = 0
      const plainly = (f: any, self: unknown, args: unknown[]): unknown => f.apply(self, args)
      const preempted = (f: any, self: unknown, args: unknown[]): unknown => {
        // A brief function has no twin, and is called as it is.
        if (twinOf(f) === undefined) return plainly(f, self, args)
        const step = preemptEverywhere(f, args, self)
        preemptions += step.preemptions
        return step.value
      }
      const expected = write(gif.plain, plainly)
      expect(Buffer.compare(write(gif.compiled, preempted), expected)).toBe(0)
      expect(read(gif.compiled, expected, preempted)).toEqual(read(gif.plain, expected, plainly))
      expect(preemptions).toBeGreaterThan(50)
    })
  })
})
