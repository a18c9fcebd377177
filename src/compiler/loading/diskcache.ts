/**
 * What modules have become, on disk: a second start compiles nothing. An entry is one file, named by a hash
 * of all that the output depends on. It is written under another name and renamed, so no reader sees half of
 * one, and writers of the same entry do not disturb each other. It begins with a hash of the rest: a damaged
 * one is deleted, and counts as none.
 */
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { textHash } from './texthash.ts'
import type { Translation } from './translate.ts'

/** HEDDLE_CACHE: a folder; 'off': nothing is kept. */
const CACHE_VARIABLE = 'HEDDLE_CACHE'
/** Bytes that the cache may take. Above, the entries that were not used for longest go. */
const limitBytes = 256 * 1024 * 1024
const DAY_MS = 24 * 3600 * 1000

export class DiskCache {
  readonly folder: string
  readonly #limit: number
  /** Bytes written since the last sweep; the first write sweeps. */
  #written = Infinity

  constructor(folder: string, limit: number = limitBytes) {
    this.folder = folder
    this.#limit = limit
  }

  /** The entry, or null: there is none, or it is damaged. */
  read(key: string): Translation | null {
    const body = this.readText(key)
    if (body === null) return null
    const end = body.indexOf('\n')
    const { has, ...rest } = JSON.parse(body.slice(0, end)) as Omit<Translation, 'code'> & { has: boolean }
    return { ...rest, code: has ? body.slice(end + 1) : null }
  }

  /** Keeps an entry, if the disk lets it: a cache that cannot be written is only slower. */
  write(key: string, { code, ...rest }: Translation): void {
    this.writeText(key, `${JSON.stringify({ ...rest, has: code !== null })}\n${code ?? ''}`)
  }

  /** The text of an entry, or null: there is none, or it is damaged. */
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

  /** Keeps a text that is not empty, if the disk lets it. */
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

  /** Makes the cache small enough again. Another process may do the same meanwhile. */
  sweep(): void {
    this.#written = 0
    const now = Date.now()
    const entries: { file: string; size: number; used: number }[] = []
    try {
      for (const name of readdirSync(this.folder, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(?:tmp|entry)$/.test(name)) continue
        const file = join(this.folder, name)
        const { size, mtimeMs: used } = statSync(file)
        // Its writer died: nothing takes that long to write.
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
      // What is missing here has been swept by another process; what may not be deleted stays.
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

/** The name of what a text becomes: everything that the output depends on goes into it. */
export function cacheKey(parts: readonly unknown[], source: string): string {
  return textHash(`${JSON.stringify(parts)}\n${source}`)
}

/**
 * Where a program's cache is: what HEDDLE_CACHE names; else in the node_modules next to the program or above
 * it; else in the temporary folder, in a folder that belongs to this user alone. Null: there is to be none.
 */
export function cacheFolder(program: string | undefined): string | null {
  const asked = process.env[CACHE_VARIABLE]
  if (asked === 'off' || asked === '0') return null
  if (asked !== undefined && asked !== '') return resolve(asked)
  for (let at = program === undefined ? process.cwd() : dirname(resolve(program)); ; at = dirname(at)) {
    const modules = join(at, 'node_modules')
    try {
      if (statSync(modules).isDirectory()) return join(modules, '.cache', 'heddle')
    } catch {}
    if (dirname(at) === at) break
  }
  const user = process.getuid?.()
  const own = join(tmpdir(), `heddle-cache-${user ?? 'user'}`)
  try {
    mkdirSync(own, { recursive: true, mode: 0o700 })
    const { uid, mode } = lstatSync(own)
    // Code is run from here: a folder that somebody else may write is no cache.
    if (user !== undefined && (uid !== user || (mode & 0o022) !== 0)) return null
  } catch {
    return null
  }
  return own
}

/** Changes whenever the compiler does: its version, and in a source tree that is worked on, its files. */
export function compilerStamp(folder: string, version: string): string {
  let stamp = version
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!/\.[jt]s$/.test(name) || /\.d\.ts$|\.test\.ts$|^runtime\b/.test(name)) continue
    const { size, mtimeMs } = statSync(join(folder, name))
    stamp += `\n${name} ${size} ${mtimeMs}`
  }
  return textHash(stamp)
}
