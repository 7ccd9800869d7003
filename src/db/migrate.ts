import { isDeepStrictEqual } from 'node:util'
import { type Kysely, sql, type Transaction } from 'kysely'
import { Migrator } from 'kysely/migration'
import { errorMessage } from '../platform/error.ts'
import {
  addFeedback,
  addFeedbackCounts,
  addFeedbackPieces,
  addFeedbackSources,
} from './feedback-schema.ts'
import { initial } from './initial-schema.ts'
import { addIdentities, addPeople, addRequiredSecondFactor } from './people-schema.ts'
import { type Schema, TABLES } from './schema.ts'
import { isPostgres } from './sql-dialect.ts'

/**
 * Runs the pending migrations in the transaction of the caller: of several processes that start at
 * once one migrates while the others wait, and a kill leaves no partial migration. A database of a
 * newer version is not changed.
 */
export async function migrate(trx: Transaction<Schema>): Promise<void> {
  const schema = isPostgres(trx) ? await selectSchema(trx) : null
  if (!(await hasAllMigrations(trx))) await runMigrations(trx, schema)
  if (isPostgres(trx)) await collateBinary(trx)
}

/**
 * Whether every migration is recorded, and no other. Kysely would read the columns of all tables
 * three times to find that out, which takes longer than the rest of opening a database.
 */
async function hasAllMigrations(trx: Transaction<Schema>): Promise<boolean> {
  const exists = isPostgres(trx)
    ? sql`select 1 where to_regclass('kysely_migration') is not null`
    : sql`select 1 from sqlite_master where type = 'table' and name = 'kysely_migration'`
  if ((await exists.execute(trx)).rows.length === 0) return false
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(trx)
  return isDeepStrictEqual(new Set(rows.map(({ name }) => name)), new Set(Object.keys(MIGRATIONS)))
}

async function runMigrations(trx: Transaction<Schema>, schema: string | null): Promise<void> {
  const provider = { getMigrations: async () => MIGRATIONS }
  const inSchema = schema === null ? {} : { migrationTableSchema: schema }
  const { error } = await new Migrator({ db: trx, provider, ...inSchema }).migrateToLatest()
  if (isUnknownMigration(error) && (await replaceDevelopmentMigrations(trx)))
    return runMigrations(trx, schema)
  if (error !== undefined) throw error
}

/**
 * Sets the search path to the schema that has our tables, or the one to create them in, and returns
 * its name. Tables of other schemas are ignored, whatever their names.
 */
async function selectSchema(trx: Transaction<Schema>): Promise<string | null> {
  const { rows } = await sql<{ name: string | null }>`
    select coalesce(
      (select nspname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
        where pg_class.oid = to_regclass('kysely_migration')),
      current_schema()) as name`.execute(trx)
  const name = rows[0]?.name ?? null
  if (name !== null) await sql`set local search_path to ${sql.id(name)}`.execute(trx)
  return name
}

/**
 * Records `0001_initial` in place of the development migrations. Returns false for a database of a
 * newer version.
 */
async function replaceDevelopmentMigrations(trx: Transaction<Schema>): Promise<boolean> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(trx)
  if (migrationSource(rows.map(({ name }) => name)) === 'newer') return false
  await sql`delete from kysely_migration where name <> '0001_lists'`.execute(trx)
  await sql`update kysely_migration set name = '0001_initial'`.execute(trx)
  return true
}

type Migrations = Record<string, { up(db: Kysely<unknown>): Promise<void> }>

/** Forward only: a released migration is never changed; changes are new migrations. */
export const MIGRATIONS: Migrations = {
  '0001_initial': { up: initial },
  '0002_webhook_headers': { up: addWebhookHeaders },
  '0003_event_account': { up: indexEvents },
  '0004_audit': { up: createAudit },
  '0005_feedback': { up: addFeedback },
  '0006_feedback_sources': { up: addFeedbackSources },
  '0008_job_webhooks': { up: addJobWebhooks },
  '0009_job_mails': { up: addJobMails },
  '0010_feedback_counts': { up: addFeedbackCounts },
  '0011_reverification': { up: addPreviousResults },
  '0011_schedules': { up: createSchedules },
  '0012_feedback_pieces': { up: addFeedbackPieces },
  '0013_item_storage': { up: reserveItemSpace },
  '0014_no_address': { up: addNoAddress },
  '0015_learned_replies': { up: createLearnedReplies },
  '0016_finish': { up: addFinish },
  '0017_short_results': { up: reduceItemSpace },
  '0018_people': { up: addPeople },
  '0019_job_numbers': { up: addJobNumbers },
  '0020_identities': { up: addIdentities },
  '0021_action_policy': { up: addActionPolicy },
  '0022_shares': { up: indexShares },
  '0023_two_factor': { up: addRequiredSecondFactor },
  '0024_less_log': { up: reduceLog },
  '0025_witnesses': { up: createWitnesses },
}

/** Adds custom headers and daily counts to webhooks, and the sent headers to attempts. */
async function addWebhookHeaders(db: Kysely<unknown>): Promise<void> {
  await sql`alter table webhook add column headers text`.execute(db)
  await sql`alter table webhook add column daily_attempts text`.execute(db)
  await sql`alter table attempt add column request_headers text`.execute(db)
}

/** Adds webhooks of single jobs. With the job in the index, those of other jobs are not read. */
async function addJobWebhooks(db: Kysely<unknown>): Promise<void> {
  await sql`alter table webhook add column job_id text`.execute(db)
  await sql`drop index webhook_account`.execute(db)
  await sql`create index webhook_account on webhook (account_id, job_id)`.execute(db)
}

/** Adds the numbers of jobs, which are unique within an account. */
async function addJobNumbers(db: Kysely<unknown>): Promise<void> {
  await sql`alter table job add column number bigint`.execute(db)
  await sql`create unique index job_number on job (account_id, number) where number is not null`.execute(
    db,
  )
}

/** Adds the policies of accounts that decide about the actions of results. */
async function addActionPolicy(db: Kysely<unknown>): Promise<void> {
  await sql`alter table account add column action_policy text`.execute(db)
}

/** Adds the mails about finished jobs. */
async function addJobMails(db: Kysely<unknown>): Promise<void> {
  await sql`alter table job add column mail_due_at bigint`.execute(db)
  await sql`create index job_mail on job (mail_due_at) where mail_due_at is not null`.execute(db)
}

/** Adds the previous results of items that are verified again. */
async function addPreviousResults(db: Kysely<unknown>): Promise<void> {
  await sql`alter table item add column previous text`.execute(db)
}

/**
 * Leaves space in each page for the later versions of its rows: with its result a row is six times as
 * long. PostgreSQL then logs only what has changed in a row, and the table does not grow.
 */
async function reserveItemSpace(db: Kysely<unknown>): Promise<void> {
  if (isPostgres(db)) await sql`alter table item set (fillfactor = 15)`.execute(db)
}

/**
 * Results are stored without what is not determined, and keys of addresses only if they differ from
 * the text, so with its result a row is about five times as long. An older version cannot read
 * them, and does not start on a database with this migration.
 */
async function reduceItemSpace(db: Kysely<unknown>): Promise<void> {
  if (isPostgres(db)) await sql`alter table item set (fillfactor = 20)`.execute(db)
}

/** Adds the number of rows without an address; in older jobs they are malformed. */
async function addNoAddress(db: Kysely<unknown>): Promise<void> {
  await sql`alter table job add column no_address bigint default 0 not null`.execute(db)
}

/** Adds the replies of servers to random recipients. */
async function createLearnedReplies(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table learned_reply (
      network text not null,
      domain text not null,
      reply text not null,
      operator text not null,
      software text,
      subnet text not null,
      refuted integer not null,
      learned_at bigint not null,
      constraint learned_reply_key primary key (network, domain, reply)
    )`.execute(db)
  await sql`create index learned_reply_age on learned_reply (learned_at)`.execute(db)
}

/** Adds the last accepted recipients of servers. */
async function createWitnesses(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table witness (
      network text not null,
      server text not null,
      recipient text not null,
      accepted_at bigint not null,
      constraint witness_key primary key (network, server)
    )`.execute(db)
  await sql`create index witness_age on witness (accepted_at)`.execute(db)
}

/** Adds the schedules that verify lists again. */
async function createSchedules(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table schedule (
      id text primary key,
      account_id text not null,
      key_id text not null,
      sandbox integer not null,
      job_id text not null,
      latest_job_id text not null,
      every_days integer not null,
      classes text,
      older_than_days integer,
      notify integer not null,
      next_run_at bigint,
      claimed_until bigint,
      last_run_at bigint,
      last_error text,
      created_at bigint not null
    )`.execute(db)
  await sql`create index schedule_account on schedule (account_id, created_at, id)`.execute(db)
  await sql`create index schedule_latest on schedule (latest_job_id)`.execute(db)
  await sql`
    create index schedule_due on schedule (next_run_at) where next_run_at is not null`.execute(db)
}

/** Adds the index of a page of events. With kind in the index, a filter by kind reads no rows. */
async function indexEvents(db: Kysely<unknown>): Promise<void> {
  await sql`create index event_account on event (account_id, created_at, id, kind)`.execute(db)
}

/**
 * Adds the request to finish a job without its retries, and the results that its rows have until
 * then. Few jobs are being finished, so a poll reads an index that is nearly always empty.
 */
async function addFinish(db: Kysely<unknown>): Promise<void> {
  await sql`alter table job add column finish_requested_at bigint`.execute(db)
  await sql`alter table item add column latest_result text`.execute(db)
  await sql`create index job_finish on job (id)
    where finish_requested_at is not null and finished_at is null`.execute(db)
}

/**
 * Adds the indexes by which the members of a cluster claim rows: those of a domain together, due ones,
 * and those that wait for room at an operator. On SQLite a process claims nothing, and
 * `item_backup`, which nothing fills any more, stays: without it the file would have a free page.
 */
async function indexShares(db: Kysely<unknown>): Promise<void> {
  if (!isPostgres(db)) return
  await sql`drop index item_backup, item_queued`.execute(db)
  await sql`
    create index item_queued on item
      (job_id, left(md5(split_part(reverse(lower(text)), '@', 1)), 8), position)
      where state = 'queued'`.execute(db)
  await sql`create index item_due on item (job_id, due_at) where state = 'routed'`.execute(db)
  await sql`
    create index item_waiting on item (job_id, operator, domain, position)
      where state = 'routed' and due_at = 0`.execute(db)
}

/**
 * Reduces what an address adds to the log of PostgreSQL. `item_holder` has the rows of `item_probing`:
 * each claim has a holder, and a row without one is released here. A crash empties the cache of
 * answers: they can be asked for again, and nothing else reads them.
 * Tables are locked in the order in which a batch of results writes them.
 */
async function reduceLog(db: Kysely<unknown>): Promise<void> {
  if (!isPostgres(db)) return
  await sql`
    update item set state = case when operator is null then 'queued' else 'routed' end
    where state = 'probing' and holder is null`.execute(db)
  await sql`drop index item_probing`.execute(db)
  await sql`alter table answer set unlogged`.execute(db)
}

/** Adds the audit log. With action in the index, a filter by action reads no rows. */
async function createAudit(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table audit (
      id text primary key,
      account_id text,
      action text not null,
      actor text not null,
      key_id text,
      session_id text,
      ip text,
      target_id text,
      target_name text,
      changed text,
      created_at bigint not null
    )`.execute(db)
  await sql`create index audit_account on audit (account_id, created_at, id, action)`.execute(db)
  await sql`create index audit_age on audit (created_at, id, action)`.execute(db)
}

/** Migrations of the development versions. Together they create the tables of `0001_initial`. */
export const DEVELOPMENT_MIGRATIONS = [
  ...['0001_lists', '0002_egresses', '0003_service', '0004_deliveries', '0005_sessions'],
  ...['0006_cluster', '0007_retries', '0008_stored_rows', '0009_error_codes', '0010_session_grace'],
]

/** A database that has only some of the development migrations. */
export class OldDevelopmentDatabase extends Error {
  constructor(recorded: readonly string[]) {
    super(
      `a development version of ev created it, with migrations up to ${[...recorded].sort().at(-1)}; ` +
        `ev upgrades only databases with all migrations up to ${DEVELOPMENT_MIGRATIONS.at(-1)}`,
    )
  }
}

/**
 * Tells which version of ev ran the recorded migrations; `development` if all migrations of the
 * development versions are recorded. Throws OldDevelopmentDatabase if some of them are missing.
 */
export function migrationSource(recorded: readonly string[]): 'known' | 'development' | 'newer' {
  if (recorded.every(name => name in MIGRATIONS)) return 'known'
  if (!recorded.every(name => DEVELOPMENT_MIGRATIONS.includes(name))) return 'newer'
  if (recorded.length < DEVELOPMENT_MIGRATIONS.length) throw new OldDevelopmentDatabase(recorded)
  return 'development'
}

/** Whether Kysely refused a database for a recorded migration that is not in MIGRATIONS. */
export const isUnknownMigration = (error: unknown): boolean =>
  /previously executed migration .* is missing/.test(errorMessage(error))

/**
 * Sets the collation of all text columns to "C", so that texts compare by bytes as in SQLite,
 * whatever the locale of the database: pages continue after the last ID, and need an index in that
 * order. Skips columns that have it already, without locking their tables.
 */
async function collateBinary(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ table: string; column: string }>`
    select relname as "table", attname as "column"
    from pg_attribute join pg_class on pg_class.oid = attrelid
    where relnamespace = cast(current_schema() as regnamespace) and relname in (${sql.join(TABLES)})
      and attnum > 0 and not attisdropped and atttypid = cast('text' as regtype)
      and relkind = 'r' and attcollation <> cast('pg_catalog."C"' as regcollation)`.execute(db)
  for (const { table, column } of rows) {
    const name = sql.ref(column)
    await sql`alter table ${sql.table(table)} alter column ${name} type text collate "C"`.execute(
      db,
    )
  }
}
