import { type Database, SCHEMA, type Sql } from './database.ts'

/**
 * The tables of heddle/durable. pg-boss has tables of its own, in another schema.
 *
 *   run       one row a run: its state, and what was started. Hot: it has no large columns but the arguments
 *             and the outcome, which are written once
 *   image     the last state of a run, compressed
 *   journal   results of `once`, deadlines of sleeps, messages that a run has received
 *   message   messages that no run has received
 *   event     the history of runs
 */
const migrations: readonly string[] = [
  `
  create table ${SCHEMA}.run (
    id text primary key,
    queue text not null,
    job uuid,
    state text not null default 'queued',
    fn_module text not null,
    fn_name text not null,
    name text not null,
    args bytea not null,
    priority int not null,
    options jsonb not null default '{}',
    group_key text,
    epoch int not null default 0,
    attempts int not null default 0,
    failures int not null default 0,
    worker text,
    blocked text,
    wake_at timestamptz,
    waits_for text,
    progress jsonb,
    cancel_reason text,
    outcome bytea,
    error jsonb,
    image_seq int not null default 0,
    image_bytes int,
    image_raw_bytes int,
    image_at timestamptz,
    trace jsonb,
    created_at timestamptz not null default clock_timestamp(),
    started_at timestamptz,
    ended_at timestamptz
  );
  create index run_state on ${SCHEMA}.run (state, queue, priority);
  create index run_worker on ${SCHEMA}.run (worker) where state = 'running';
  create index run_ended on ${SCHEMA}.run (ended_at) where ended_at is not null;
  create table ${SCHEMA}.image (
    run text primary key references ${SCHEMA}.run (id) on delete cascade,
    epoch int not null,
    bytes bytea not null,
    at timestamptz not null default clock_timestamp()
  );
  alter table ${SCHEMA}.image alter column bytes set storage external;
  create table ${SCHEMA}.journal (
    run text not null references ${SCHEMA}.run (id) on delete cascade,
    key text not null,
    value bytea,
    at timestamptz not null default clock_timestamp(),
    deadline timestamptz,
    epoch int not null,
    primary key (run, key)
  );
  create table ${SCHEMA}.message (
    id bigint generated always as identity primary key,
    run text not null references ${SCHEMA}.run (id) on delete cascade,
    name text not null,
    value bytea not null,
    key text not null,
    is_taken bool not null default false,
    at timestamptz not null default clock_timestamp(),
    unique (run, key)
  );
  create index message_run on ${SCHEMA}.message (run, name, id) where not is_taken;
  create table ${SCHEMA}.event (
    id bigint generated always as identity primary key,
    run text not null references ${SCHEMA}.run (id) on delete cascade,
    at timestamptz not null default clock_timestamp(),
    kind text not null,
    epoch int not null,
    detail jsonb
  );
  create index event_run on ${SCHEMA}.event (run, id);
  `,
]

/** Any number; processes that open a new database at the same time wait for each other by it. */
const MIGRATION_LOCK = 0x6864_6c31

/** As `server_version_num` of PostgreSQL has it. */
const SERVER_MIN = 140_000

async function checkServer(database: Database): Promise<void> {
  const [row] = await database.query(
    "select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding",
  )
  const { version, encoding } = row as { version: number; encoding: string }
  if (version < SERVER_MIN)
    throw new Error(
      `heddle/durable: the server is PostgreSQL ${Math.trunc(version / 10_000)}, and ${SERVER_MIN / 10_000} or later is needed; use a later one`,
    )
  // Another encoding refuses texts of programs, or mixes them up.
  if (encoding !== 'UTF8')
    throw new Error(
      `heddle/durable: the database has the encoding ${encoding}, and UTF8 is needed; use one that was made with encoding 'UTF8'`,
    )
}

/** Makes the tables, or brings them up to date. A user that may not create schemas can use those that are. */
export async function migrate(database: Database): Promise<void> {
  await checkServer(database)
  if (await isMade(database)) return
  await database.transaction(async sql => {
    await sql.query('select pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
    await sql.script(
      `create schema if not exists ${SCHEMA};
       create table if not exists ${SCHEMA}.version (version int not null)`,
    )
    const version = await versionOf(sql)
    if (version > migrations.length) {
      throw new Error(
        `heddle/durable: the database has version ${version} of the tables, and this heddle knows ${migrations.length}; use the newest version of heddle`,
      )
    }
    for (const script of migrations.slice(version)) await sql.script(script)
    await sql.query(`delete from ${SCHEMA}.version`)
    await sql.query(`insert into ${SCHEMA}.version values ($1)`, [migrations.length])
  })
}

async function isMade(database: Database): Promise<boolean> {
  const [row] = await database.query('select to_regclass($1) is not null as there', [`${SCHEMA}.version`])
  return (row!.there as boolean) && (await versionOf(database)) === migrations.length
}

async function versionOf(sql: Sql): Promise<number> {
  const rows = await sql.query(`select version from ${SCHEMA}.version`)
  return (rows[0]?.version as number | undefined) ?? 0
}
