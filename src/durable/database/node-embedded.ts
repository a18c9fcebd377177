import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PGlite, Transaction } from '@electric-sql/pglite'
import { DatabaseBusyError } from '../errors.ts'
import { packageError } from '../packages.ts'
import type { Database, Row, Sql } from './database.ts'

/**
 * A PostgreSQL of this process, in a folder (PGlite). A folder belongs to one process at a time: its lock
 * file has the process number. A process that was killed leaves the file; the number then names no process.
 */
export async function openEmbedded(folder: string): Promise<Database> {
  const { PGlite } = await loadPglite()
  const unlock = folder.startsWith('memory:') ? () => undefined : lockFolder(folder)
  try {
    const pglite = await PGlite.create(folder)
    return new Embedded(pglite, unlock)
  } catch (error) {
    unlock()
    throw error
  }
}

async function loadPglite(): Promise<typeof import('@electric-sql/pglite')> {
  try {
    return await import('@electric-sql/pglite')
  } catch (error) {
    throw packageError(
      '@electric-sql/pglite',
      "heddle/durable: the embedded database needs the package '@electric-sql/pglite'; run npm install @electric-sql/pglite, or give the URL of a PostgreSQL server: Durable.open({ database })",
      error,
    )
  }
}

/** The folders that this process has open: in a container that starts again, its number is that of before. */
const openHere = new Set<string>()

/** A lock file that stays empty for so long is that of a process that died before it wrote its number. */
const EMPTY_MS = 500

function lockFolder(folder: string): () => void {
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'heddle.lock')
  let emptySince = Infinity
  for (;;) {
    try {
      writeFileSync(file, String(process.pid), { flag: 'wx' })
      openHere.add(folder)
      return () => {
        openHere.delete(folder)
        rmSync(file, { force: true })
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const text = contentOf(file)
    if (text === null) continue
    if (text === '') {
      emptySince = Math.min(emptySince, performance.now())
      if (performance.now() - emptySince < EMPTY_MS) continue
    }
    const owner = Number(text)
    if (owner === process.pid ? openHere.has(folder) : isAlive(owner))
      throw new DatabaseBusyError(folder, owner)
    removeStale(file, text)
  }
}

/** Null: there is no such file. */
function contentOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return null
  }
}

/** Another process may have removed it as well, and made its own: then that one is put back. */
function removeStale(file: string, text: string): void {
  const aside = `${file}.${process.pid}`
  try {
    renameSync(file, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return
  }
  if (contentOf(aside) === text) rmSync(aside, { force: true })
  else renameSync(aside, file)
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

class Embedded implements Database {
  readonly kind = 'embedded'
  readonly url = null
  private readonly pglite: PGlite
  private readonly unlock: () => void

  constructor(pglite: PGlite, unlock: () => void) {
    this.pglite = pglite
    this.unlock = unlock
  }

  async query(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return (await this.pglite.query(text, values as unknown[])).rows as Row[]
  }

  /** One connection: a script that fails inside its own transaction must not leave that open. */
  async script(text: string): Promise<readonly Row[]> {
    try {
      return await scriptOn(this.pglite, text)
    } catch (error) {
      await this.pglite.exec('rollback').catch(() => undefined)
      throw error
    }
  }

  async transaction<T>(body: (sql: Sql) => Promise<T>): Promise<T> {
    return (await this.pglite.transaction(
      async tx =>
        await body({
          query: async (text, values = []) => (await tx.query(text, values as unknown[])).rows as Row[],
          script: text => scriptOn(tx, text),
        }),
    )) as T
  }

  async listen(
    channel: string,
    listener: (payload: string) => void,
    gap: () => void,
  ): Promise<() => Promise<void>> {
    const stop = await this.pglite.listen(channel, listener)
    gap()
    return async () => await stop()
  }

  async close(): Promise<void> {
    try {
      await this.pglite.close()
    } finally {
      this.unlock()
    }
  }
}

async function scriptOn(on: PGlite | Transaction, text: string): Promise<readonly Row[]> {
  return (await on.exec(text)).flatMap(({ rows }) => rows as Row[])
}
