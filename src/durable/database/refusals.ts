/** Why a server cannot be used, in words with a fix. */

const fixes: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'no server listens there; start it, or check host and port',
  ECONNRESET: 'the server ended the connection; check that it is a PostgreSQL server, and try again',
  ENOTFOUND: 'no host has this name; check the URL',
  EAI_AGAIN: 'the name of the host cannot be resolved now; check the network',
  ETIMEDOUT: 'the host does not answer; check host, port and firewall',
  '28P01': 'check user and password in the URL',
  '28000': 'check user and password in the URL, and the pg_hba.conf of the server',
  '3D000': 'create the database, or check its name in the URL',
  '25006': 'the server takes no writes; give the URL of the primary server, and a user that may write',
  '42P07': 'the schema heddle has tables of another program; use another database',
  '42501': 'heddle keeps its tables in schemas of its own; the user needs the right to create them',
  '53300': 'the server has no connection left; raise its max_connections, or end other clients',
  '57P03': 'the server starts; try again',
}

export interface Refusal {
  readonly why: string
  /** What to do; null: the error says all that is known. */
  readonly fix: string | null
}

export function refusalOf(error: unknown): Refusal {
  const { code, message, errors } = (error ?? {}) as {
    readonly code?: string
    readonly message?: string
    readonly errors?: readonly unknown[]
  }
  // A name with several addresses has one error for each, and no message of its own.
  const first = (errors?.[0] as Error | undefined)?.message
  const why = message || first || String(error)
  return { why, fix: fixes[code ?? ''] ?? (/timeout/i.test(why) ? fixes.ETIMEDOUT! : null) }
}

export function isPostgresUrl(url: unknown): url is string {
  return typeof url === 'string' && /^postgres(ql)?:\/\//.test(url) && URL.canParse(url)
}

/** The URL without its password and options, for messages. Null: it is no PostgreSQL URL. */
export function shownUrl(url: string): string | null {
  if (!isPostgresUrl(url)) return null
  const shown = new URL(url)
  shown.password = ''
  shown.search = ''
  return shown.href
}
