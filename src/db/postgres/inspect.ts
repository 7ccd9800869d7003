import pg from 'pg'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { migrationSource } from '../migrate.ts'
import { TABLES } from '../schema.ts'
import { serverRemedy } from '../unusable.ts'
import { connectionString } from './client.ts'
import { sharesProcess } from './suitability.ts'

/** State of a database on a PostgreSQL server. */
export type ServerInspection =
  | { readonly kind: 'unreachable'; readonly why: string; readonly remedy: string }
  | ({ readonly kind: 'reached' } & ServerFacts)

export type ServerFacts = {
  /** `server_version_num`, such as 180003 for 18.3. */
  readonly version: number
  /** Whether the server is a read-only standby. */
  readonly isStandby: boolean
  /** Whether the user may create tables in the current schema. */
  readonly canCreateTables: boolean
  /** Whether the schema of the queue exists or may be created. */
  readonly canCreateQueue: boolean
  /** Tables of ev that this user may not read or write, as another user created them. */
  readonly closedTables: readonly string[]
  /** Whether a newer version of ev created the tables. */
  readonly isNewer: boolean
  /** Server encoding, such as UTF8. */
  readonly encoding: string
  /** Whether a pooler shares its connections between transactions. */
  readonly isPooled: boolean
  /** The connection limit that is reached first. */
  readonly limit: ConnectionLimit
  /** How far the local clock is ahead of the server's, ms. */
  readonly clockAheadMs: number
  /** Median duration of a durable commit, ms. */
  readonly commitMs: number
}

/** A connection limit and its use. Only the server's limit applies to superusers. */
export type ConnectionLimit = {
  readonly of: 'role' | 'database' | 'server'
  /** Name of the role or the database; empty for the server. */
  readonly name: string
  /** Connections that count toward this limit, ours included. */
  readonly used: number
  readonly max: number
}

/** Time limit for a server that does not respond. */
const TIMEOUT_MS = 5 * SECOND
const COMMITS = 5

/** Inspects the database of a `postgres://…` URL without changing it: runs no migrations. */
export async function inspectServer(
  url: string,
  clock: Clock,
  timeoutMs = TIMEOUT_MS,
): Promise<ServerInspection> {
  const clients: pg.Client[] = []
  const connect = async () => {
    const client = new pg.Client({
      connectionString: connectionString(url),
      application_name: 'ev doctor',
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
    })
    // An error of an idle connection is reported by the next query.
    client.on('error', () => {})
    clients.push(client)
    await client.connect()
    return client
  }
  try {
    const client = await connect()
    const facts = await readFacts(client, clock)
    // If the server has no second connection left, nothing is known of a pooler.
    const other = await connect().catch(() => null)
    return {
      kind: 'reached',
      ...facts,
      isPooled:
        other !== null &&
        (await sharesProcess(
          text => client.query(text),
          text => other.query(text),
        )),
    }
  } catch (error) {
    return { kind: 'unreachable', why: errorMessage(error), remedy: serverRemedy(error) }
  } finally {
    // A server that does not respond does not close the connection either.
    for (const client of clients) void client.end().catch(() => {})
  }
}

async function readFacts(client: pg.Client, clock: Clock): Promise<Omit<ServerFacts, 'isPooled'>> {
  const clockAheadMs = await clockAhead(client, clock)
  const { rows } = await client.query<
    Omit<ServerFacts, 'limit' | 'clockAheadMs' | 'commitMs' | 'isNewer' | 'isPooled'>
  >(FACTS, [TABLES])
  const limits = await client.query<ConnectionLimit>(LIMITS)
  const [facts] = rows
  const [limit] = limits.rows
  if (facts === undefined || limit === undefined) {
    throw new Error('it returned no rows')
  }
  const isNewer = await hasNewerMigrations(client)
  return { ...facts, limit, isNewer, clockAheadMs, commitMs: await commitTime(client, clock) }
}

const FACTS = `select
  current_setting('server_version_num')::integer as version,
  pg_is_in_recovery() as "isStandby",
  current_schema() is not null and has_schema_privilege(current_schema(), 'CREATE') as "canCreateTables",
  case when to_regnamespace('ev_boss') is null then has_database_privilege(current_database(), 'CREATE')
    else has_schema_privilege('ev_boss', 'USAGE') end as "canCreateQueue",
  array(select tablename::text from pg_tables
    where schemaname = current_schema() and tablename = any($1) and not (
      has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'SELECT')
      and has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'INSERT')
      and has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'UPDATE')
      and has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'DELETE'))
    order by tablename) as "closedTables",
  current_setting('server_encoding') as encoding`

/**
 * The connection limits that apply to this user, the one with the fewest connections left first.
 * The server counts all sessions, a database those connected to it, a role its own (`rolconnlimit`,
 * `datconnlimit`; -1 is no limit). Limits of roles and databases and the reserve of
 * `superuser_reserved_connections` do not apply to superusers (PostgreSQL 18, CREATE ROLE, CREATE
 * DATABASE).
 */
const LIMITS = `
  with me as (select oid, rolname, rolsuper, rolconnlimit from pg_roles where rolname = current_user)
  select "of", name, used::integer, max from (
    select 'server' as "of", '' as name, (select sum(numbackends) from pg_stat_database) as used,
      current_setting('max_connections')::integer - case when me.rolsuper then 0 else
        current_setting('superuser_reserved_connections')::integer
        + coalesce(current_setting('reserved_connections', true)::integer, 0) end as max
    from me
    union all
    select 'database', datname, (select numbackends from pg_stat_database s where s.datid = d.oid),
      datconnlimit
    from pg_database d, me
    where datname = current_database() and datconnlimit >= 0 and not me.rolsuper
    union all
    select 'role', rolname, (select count(*) from pg_stat_activity where usesysid = me.oid),
      rolconnlimit
    from me where rolconnlimit >= 0 and not rolsuper
  ) l order by max - used, max`

/** Subtracts half of the round trip. */
async function clockAhead(client: pg.Client, clock: Clock): Promise<number> {
  const [now, started] = [clock.now(), clock.monotonicNow()]
  const { rows } = await client.query<{ at: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000)::float8 as at',
  )
  const waitedMs = clock.monotonicNow() - started
  return Math.round(now + waitedMs / 2 - (rows[0]?.at ?? now))
}

async function hasNewerMigrations(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ exists: boolean }>(
    `select to_regclass('kysely_migration') is not null
      and has_table_privilege('kysely_migration', 'SELECT') as "exists"`,
  )
  if (rows[0]?.exists !== true) return false
  const recorded = await client.query<{ name: string }>('select name from kysely_migration')
  return migrationSource(recorded.rows.map(({ name }) => name)) === 'newer'
}

/** Commits WAL messages, which change no table and wait for the disk like any commit. */
async function commitTime(client: pg.Client, clock: Clock): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < COMMITS; n++) {
    const started = clock.monotonicNow()
    await client.query("select pg_logical_emit_message(true, 'ev', 'doctor')")
    times.push(clock.monotonicNow() - started)
  }
  return times.sort((a, b) => a - b)[Math.floor(COMMITS / 2)] ?? 0
}
