/**
 * Compiled modules on disk, so that a second start compiles nothing. Each entry is one file, named by a hash
 * of everything that the output depends on. It is written under another name and renamed, so that no reader
 * sees an incomplete entry, and concurrent writers do not conflict. It begins with a hash of its content: a
 * damaged entry is deleted.
 */
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { textHash } from './texthash.ts'
import type { Translation } from './translate.ts'

export { cacheFolder } from '../../machine/node/node-cachefolder.ts'

/** The size limit of the cache in bytes. Beyond it, the least recently used entries are deleted. */
const limitBytes = 256 * 1024 * 1024
const DAY_MS = 24 * 3600 * 1000

export class DiskCache {
  readonly folder: string
  readonly #limit: number
  /** Bytes written since the last sweep. The first write sweeps. */
  #written = Infinity

  constructor(folder: string, limit: number = limitBytes) {
    this.folder = folder
    this.#limit = limit
  }

  /** The entry, or null if it is missing or damaged. */
  read(key: string): Translation | null {
    const body = this.readText(key)
    if (body === null) return null
    const end = body.indexOf('\n')
    const { has, ...rest } = JSON.parse(body.slice(0, end)) as Omit<Translation, 'code'> & { has: boolean }
    return { ...rest, code: has ? body.slice(end + 1) : null }
  }

  /** Writes an entry. */
  write(key: string, { code, ...rest }: Translation): void {
    this.writeText(key, `${JSON.stringify({ ...rest, has: code !== null })}\n${code ?? ''}`)
  }

  /** The text of an entry, or null if it is missing or damaged. */
  readText(key: string): string | null {
    const file = this.#file(key)
    let text: string
    try {
      text = readFileSync(file, 'utf8')
    } catch {
      return null
    }
    const body = text.slice(HASH_LENGTH + 1)
    if (body === '' || text.slice(0, HASH_LENGTH + 1) !== `${textHash(body)}\n`) {
      discard(file)
      return null
    }
    this.#use(file)
    return body
  }

  /** Writes a text that is not empty. Errors are ignored: without the cache, the start is only slower. */
  writeText(key: string, body: string): void {
    const file = this.#file(key)
    const temporary = `${file}.${process.pid}.${Math.random().toString(36).slice(2)}.tmp`
    try {
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(temporary, `${textHash(body)}\n${body}`, { flag: 'wx', mode: 0o600 })
      renameSync(temporary, file)
    } catch {
      discard(temporary)
      return
    }
    this.#written += body.length
    if (this.#written > this.#limit / 4) this.sweep()
  }

  /** Deletes entries until the cache is within its limit. Other processes may do the same concurrently. */
  sweep(): void {
    this.#written = 0
    const now = Date.now()
    const entries: { file: string; size: number; used: number }[] = []
    try {
      for (const name of readdirSync(this.folder, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(?:tmp|entry)$/.test(name)) continue
        const file = join(this.folder, name)
        const { size, mtimeMs: used } = statSync(file)
        // Its writer died: no write takes that long.
        if (name.endsWith('.tmp') && now - used > 3600_000) unlinkSync(file)
        else entries.push({ file, size, used })
      }
      let total = entries.reduce((sum, { size }) => sum + size, 0)
      if (total <= this.#limit) return
      entries.sort((left, right) => left.used - right.used)
      for (const { file, size } of entries) {
        if (total <= this.#limit * 0.75) break
        unlinkSync(file)
        total -= size
      }
    } catch {
      // Another process has deleted it, or it may not be deleted.
    }
  }

  #file(key: string): string {
    return join(this.folder, key.slice(0, 2), `${key}.entry`)
  }

  /** Marks an entry as used, once a day. */
  #use(file: string): void {
    try {
      if (Date.now() - statSync(file).mtimeMs > DAY_MS) utimesSync(file, new Date(), new Date())
    } catch {}
  }
}

function discard(file: string): void {
  try {
    unlinkSync(file)
  } catch {}
}

const HASH_LENGTH = 32

/** The name of an entry: a hash of everything that the output depends on. */
export function cacheKey(parts: readonly unknown[], source: string): string {
  return textHash(`${JSON.stringify(parts)}\n${source}`)
}

/** Changes with the compiler: its version, and in a source tree its files. */
export function compilerStamp(folder: string, version: string): string {
  let stamp = version
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!/\.[jt]s$/.test(name) || /\.d\.ts$|\.test\.ts$|^runtime\b/.test(name)) continue
    const { size, mtimeMs } = statSync(join(folder, name))
    stamp += `\n${name} ${size} ${mtimeMs}`
  }
  return textHash(stamp)
}
