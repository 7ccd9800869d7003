import pg from 'pg'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { migrationSource } from '../migrate.ts'
import { TABLES } from '../schema.ts'

/** What there is at the place of a database on a server. */
export type ServerInspection =
  | { readonly kind: 'unreachable'; readonly why: string }
  | ({ readonly kind: 'reached' } & ServerFacts)

export type ServerFacts = {
  /** Such as 180003 for 18.3. */
  readonly version: number
  /** It takes no changes, as it only follows another server. */
  readonly isStandby: boolean
  /** Whether we may make tables in the schema that we would make them in. */
  readonly mayMakeTables: boolean
  /** Whether there is the schema that our queue has its tables in, or we may make it. */
  readonly mayMakeQueue: boolean
  /** Tables of ours that we may not read or write, as another user made them. */
  readonly closedTables: readonly string[]
  /** Whether a newer ev made the tables. */
  readonly isNewer: boolean
  /** Of the texts of the database, such as UTF8. */
  readonly encoding: string
  /** The limit of connections that is reached first. */
  readonly limit: ConnectionLimit
  /** How far our clock is ahead, ms. */
  readonly clockAheadMs: number
  /** Of some commits that wait for the disk the one in the middle, ms. */
  readonly commitMs: number
}

/** How many connections may be open at once, and how many are. A superuser is held to the one of the server alone. */
export type ConnectionLimit = {
  readonly of: 'role' | 'database' | 'server'
  /** Of the role or the database; empty for the server. */
  readonly name: string
  /** Those that count for this limit, ours included. */
  readonly used: number
  readonly max: number
}

/** However silent a server is, it is given up by then. */
const TIMEOUT_MS = 5 * SECOND
const COMMITS = 5

/** Looks at the database of a `postgres://…` URL and changes nothing: its tables are neither made nor brought up to date. */
export async function inspectServer(
  url: string,
  clock: Clock,
  timeoutMs = TIMEOUT_MS,
): Promise<ServerInspection> {
  const client = new pg.Client({
    ...{ connectionString: url, application_name: 'ev doctor' },
    ...{ connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs },
  })
  // What ends a connection that nobody asks anything of is told by the next question.
  client.on('error', () => {})
  try {
    await client.connect()
    return { kind: 'reached', ...(await factsOf(client, clock)) }
  } catch (error) {
    return { kind: 'unreachable', why: errorMessage(error) }
  } finally {
    // A server that is silent does not say goodbye either.
    void client.end().catch(() => {})
  }
}

async function factsOf(client: pg.Client, clock: Clock): Promise<ServerFacts> {
  const clockAheadMs = await clockAhead(client, clock)
  const { rows } = await client.query<
    Omit<ServerFacts, 'limit' | 'clockAheadMs' | 'commitMs' | 'isNewer'>
  >(FACTS, [TABLES])
  const limits = await client.query<ConnectionLimit>(LIMITS)
  const [facts] = rows
  const [limit] = limits.rows
  if (facts === undefined || limit === undefined) {
    throw new Error('it does not answer what it is asked')
  }
  const isNewer = await isOfNewer(client)
  return { ...facts, limit, isNewer, clockAheadMs, commitMs: await commitTime(client, clock) }
}

const FACTS = `select
  current_setting('server_version_num')::integer as version,
  pg_is_in_recovery() as "isStandby",
  current_schema() is not null and has_schema_privilege(current_schema(), 'CREATE') as "mayMakeTables",
  case when to_regnamespace('ev_boss') is null then has_database_privilege(current_database(), 'CREATE')
    else has_schema_privilege('ev_boss', 'USAGE') end as "mayMakeQueue",
  array(select tablename::text from pg_tables
    where schemaname = current_schema() and tablename = any($1) and not (
      has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'SELECT')
      and has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'INSERT')
      and has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'UPDATE')
      and has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'DELETE'))
    order by tablename) as "closedTables",
  current_setting('server_encoding') as encoding`

/**
 * The limits that hold for this user, the one with the fewest connections left first. The server counts all sessions, a
 * database those in it, a role those of its own (`rolconnlimit`, `datconnlimit`; -1 is no limit). Neither a limit of a
 * role or a database nor the reserve of `superuser_reserved_connections` holds for superusers (PostgreSQL 18, CREATE
 * ROLE, CREATE DATABASE).
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

/** Half of the way there and back is taken off. */
async function clockAhead(client: pg.Client, clock: Clock): Promise<number> {
  const [now, started] = [clock.now(), clock.monotonicNow()]
  const { rows } = await client.query<{ at: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000)::float8 as at',
  )
  const waitedMs = clock.monotonicNow() - started
  return Math.round(now + waitedMs / 2 - (rows[0]?.at ?? now))
}

async function isOfNewer(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ there: boolean }>(
    `select to_regclass('kysely_migration') is not null
      and has_table_privilege('kysely_migration', 'SELECT') as there`,
  )
  if (rows[0]?.there !== true) return false
  const made = await client.query<{ name: string }>('select name from kysely_migration')
  return migrationSource(made.rows.map(({ name }) => name)) === 'newer'
}

/** A message in the journal, which nobody reads: a commit waits for it as for anything else. */
async function commitTime(client: pg.Client, clock: Clock): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < COMMITS; n++) {
    const started = clock.monotonicNow()
    await client.query("select pg_logical_emit_message(true, 'ev', 'doctor')")
    times.push(clock.monotonicNow() - started)
  }
  return times.sort((a, b) => a - b)[Math.floor(COMMITS / 2)] ?? 0
}
