/** Where `heddle work` and `heddle runs` find the database of durable runs. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { SCHEMA } from '../durable/database/database.ts'
import { openPostgres } from '../durable/database/node-postgres.ts'
import { refusalOf, shownUrl } from '../durable/database/refusals.ts'
import { Durable } from '../durable/durable.ts'
import { DatabaseBusyError } from '../durable/errors.ts'
import type { DurableOptions } from '../durable/options.ts'
import { CommandError, EXIT_USAGE } from './failure.ts'

export interface DatabaseFlags {
  database?: string
  folder?: string
}

/** One of the two, and its text for people: a URL without its password. */
export interface Place {
  readonly database?: string
  readonly folder?: string
  readonly text: string
}

const DEFAULT_FOLDER = '.heddle/runs'
export const databaseHelp: string =
  'the URL of a PostgreSQL server; without it DATABASE_URL, else an embedded database'
export const folderHelp: string = `the folder of an embedded database (default: ${DEFAULT_FOLDER})`

/** The database that the options name. A URL that cannot be one ends the command. */
export function placeOf({ database, folder }: DatabaseFlags, env: NodeJS.ProcessEnv = process.env): Place {
  if (database !== undefined && folder !== undefined) {
    throw new CommandError('--database and --folder exclude each other', {
      exitCode: EXIT_USAGE,
      hint: '--database names a server, --folder an embedded database',
    })
  }
  if (folder === '')
    throw new CommandError('--folder is empty', { exitCode: EXIT_USAGE, hint: 'give a path' })
  const isFromEnvironment = database === undefined && folder === undefined && Boolean(env.DATABASE_URL)
  const url = isFromEnvironment ? env.DATABASE_URL : database
  if (url === undefined) {
    const path = resolve(folder ?? DEFAULT_FOLDER)
    return { folder: path, text: `the folder ${path}` }
  }
  const text = shownUrl(url)
  if (text === null) {
    throw new CommandError(
      `${isFromEnvironment ? 'DATABASE_URL' : '--database'} is not the URL of a PostgreSQL server`,
      {
        exitCode: EXIT_USAGE,
        hint: `give one as in postgres://user:password@host/name${isFromEnvironment ? ', or --folder for an embedded database' : ''}`,
      },
    )
  }
  return { database: url, text }
}

/** Opens the database, and makes its tables if they are not there. */
export async function openPlace(place: Place, options: DurableOptions = {}): Promise<Durable> {
  const { database, folder } = place
  try {
    return await Durable.open({
      ...options,
      ...(database !== undefined && { database }),
      ...(folder !== undefined && { folder }),
    })
  } catch (error) {
    throw databaseError(place, error)
  }
}

/** Opens a database that has runs. One without is left as it is, and ends the command. */
export async function openRuns(place: Place): Promise<Durable> {
  const isThere = place.database === undefined ? isFolder(place.folder!) : await hasTables(place)
  if (!isThere) {
    throw new CommandError(`${place.text} has no durable runs`, {
      hint: `a program makes them by Durable.open and durable.start; ${place.database === undefined ? 'name their database by --database, DATABASE_URL or --folder' : 'check the name of the database in the URL'}`,
    })
  }
  return await openPlace(place)
}

/** PostgreSQL has this file in each of its folders. */
function isFolder(folder: string): boolean {
  return existsSync(join(folder, 'PG_VERSION'))
}

async function hasTables(place: Place): Promise<boolean> {
  try {
    const database = await openPostgres({ url: place.database!, connections: 1, onError: () => undefined })
    try {
      const rows = await database.query('select to_regclass($1) is not null as there', [`${SCHEMA}.run`])
      return rows[0]!.there as boolean
    } finally {
      await database.close()
    }
  } catch (error) {
    throw databaseError(place, error)
  }
}

/** Why a database does not serve, in words. */
export function databaseError(place: Place, failure: unknown): CommandError {
  if (failure instanceof CommandError) return failure
  // `Durable.open` puts the URL and the fix into one line; a command has its own place for them.
  const { cause } = failure as { readonly cause?: unknown }
  const error = cause !== undefined && refusalOf(cause).fix !== null ? cause : failure
  if (error instanceof DatabaseBusyError) {
    return new CommandError(error.message.replace(/: an embedded.*/, ''), {
      hint: 'an embedded database belongs to one process at a time: end that one, or give both the URL of a PostgreSQL server',
    })
  }
  const { message } = error as { message?: string }
  // A wrong option, a missing package, or an old Node: the message has the fix.
  if (error instanceof TypeError || error instanceof RangeError)
    return new CommandError(message!, { exitCode: EXIT_USAGE })
  if (message?.startsWith('heddle/durable')) return new CommandError(message)
  const { why, fix } = refusalOf(error)
  return new CommandError(`cannot use ${place.text}: ${why}`, fix === null ? {} : { hint: fix })
}
