import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { cacheKey, DiskCache } from './diskcache.ts'
import { textHash } from './texthash.ts'
import type { Translation } from './translate.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'heddle-cache-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const files = (): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name =>
    statSync(join(folder, name)).isFile(),
  )

const made = (code: string | null): Translation => ({ code, commonjs: false, diagnostics: [] })

test('returns what was written: code with any character, and unchanged text', () => {
  const cache = new DiskCache(folder)
  for (const code of ['', 'let a = "\u2028😀\n\n"\r\n//# x', null]) {
    const key = cacheKey(['v'], String(code))
    expect(cache.read(key)).toBeNull()
    cache.write(key, made(code))
    expect(new DiskCache(folder).read(key)).toEqual(made(code))
  }
})

test('texts that differ in one character, or in order, have different hashes, whose bits are all used', () => {
  const hashes = new Set<string>()
  const ones = new Array<number>(32).fill(0)
  const texts = Array.from({ length: 20_000 }, (_, n) => `${'x'.repeat(n % 50)}${n.toString(36)}`)
  for (const text of [...texts, 'ab', 'ba', '', '\0', '\0\0']) {
    const hash = textHash(text)
    expect(hash).toMatch(/^[\da-f]{32}$/)
    hashes.add(hash)
    for (const [at, digit] of [...hash].entries()) ones[at]! += Number.parseInt(digit, 16) & 1
  }
  expect(hashes.size).toBe(texts.length + 5)
  for (const count of ones) expect(Math.abs(count / hashes.size - 0.5)).toBeLessThan(0.03)
  expect(new Set(texts.map(text => textHash(text).slice(0, 16))).size).toBe(texts.length)
  expect(new Set(texts.map(text => textHash(text).slice(16))).size).toBe(texts.length)
})

test('a key depends on the text, and on every other part', () => {
  const keys = [
    cacheKey(['1', 'a.js', true], 'x'),
    cacheKey(['2', 'a.js', true], 'x'),
    cacheKey(['1', 'b.js', true], 'x'),
    cacheKey(['1', 'a.js', false], 'x'),
    cacheKey(['1', 'a.js', true], 'y'),
  ]
  expect(new Set(keys).size).toBe(keys.length)
})

test('an entry with any byte changed, a truncated or an empty one is deleted', () => {
  const cache = new DiskCache(folder)
  const key = cacheKey([], 'x')
  cache.write(key, made('some code'))
  const [name] = files()
  const whole = readFileSync(join(folder, name!))
  for (let at = 0; at < whole.length; at++) {
    const damaged = Buffer.from(whole)
    damaged[at]! ^= 1
    writeFileSync(join(folder, name!), damaged)
    expect(cache.read(key), `byte ${at}`).toBeNull()
    expect(files()).toEqual([])
  }
  for (const length of [0, 10, 32, 33, whole.length - 1]) {
    writeFileSync(join(folder, name!), whole.subarray(0, length))
    expect(cache.read(key), `${length} bytes`).toBeNull()
  }
})

test('the least recently used entries are deleted beyond the limit, and files of dead writers', () => {
  const cache = new DiskCache(folder, 10_000)
  const keys = Array.from({ length: 20 }, (_, n) => cacheKey([], String(n)))
  for (const [n, key] of keys.entries()) {
    cache.write(key, made('x'.repeat(1000)))
    const name = files().find(file => file.includes(key))
    if (name !== undefined) utimesSync(join(folder, name), n, n)
  }
  writeFileSync(join(folder, 'left.tmp'), 'x')
  utimesSync(join(folder, 'left.tmp'), 1, 1)
  cache.sweep()
  const total = files().reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
  expect(total).toBeLessThanOrEqual(10_000)
  expect(total).toBeGreaterThan(2_000)
  expect(files()).not.toContain('left.tmp')
  expect(cache.read(keys[0]!)).toBeNull()
  expect(cache.read(keys[19]!)).not.toBeNull()
})

test('a folder that cannot be written is no error', () => {
  writeFileSync(join(folder, 'file'), '')
  const cache = new DiskCache(join(folder, 'file', 'cache'))
  cache.write('00', made('x'))
  expect(cache.read('00')).toBeNull()
})
