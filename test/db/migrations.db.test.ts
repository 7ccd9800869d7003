import { sql } from 'kysely'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Database, write } from '../../src/db/database.ts'
import {
  DEVELOPMENT_MIGRATIONS,
  MIGRATIONS,
  migrate,
  migrationSource,
  OldDevelopmentDatabase,
} from '../../src/db/migrate.ts'
import { TABLES } from '../../src/db/schema.ts'
import { createJob, readJob } from '../../src/jobs/job-store.ts'
import { onPostgres, tempDatabase } from '../support/database.ts'

describe('a database of a development version', () => {
  test('with all of its migrations is upgraded and keeps its data', async () => {
    const database = await tempDatabase()
    await createJob(database, { id: 'job_a', sourceKey: 'a', source: '{}' })
    await removeLaterSchema(database)
    await record(database, DEVELOPMENT_MIGRATIONS)
    await write(database, migrate)
    expect(await recorded(database)).toEqual(Object.keys(MIGRATIONS))
    const later = sql`select webhook.headers, daily_attempts, request_headers from webhook, attempt`
    expect((await later.execute(database.db)).rows).toEqual([])
    expect(await readJob(database, 'job_a')).toMatchObject({ id: 'job_a' })
    await write(database, migrate)
    expect(await recorded(database)).toEqual(Object.keys(MIGRATIONS))
  })

  test('with some of its migrations is refused', async () => {
    const database = await tempDatabase()
    const some = DEVELOPMENT_MIGRATIONS.slice(0, 7)
    onTestFinished(() => record(database, Object.keys(MIGRATIONS)))
    await record(database, some)
    await expect(write(database, migrate)).rejects.toThrow(
      'a development version of ev created it, with migrations up to 0007_retries; ' +
        'ev upgrades only databases with all migrations up to 0010_session_grace',
    )
    expect(await recorded(database)).toEqual(some)
  })
})

test.each([
  ['known', []],
  ['known', ['0001_initial']],
  ['development', DEVELOPMENT_MIGRATIONS],
  ['known', Object.keys(MIGRATIONS)],
  ['newer', ['0001_initial', '0003_later']],
  ['newer', [...DEVELOPMENT_MIGRATIONS, '0011_later']],
])('the migrations of a database are %s: %j', (source, names) => {
  expect(migrationSource(names)).toBe(source)
  expect(() => migrationSource(['0001_lists'])).toThrow(OldDevelopmentDatabase)
})

async function recorded({ db }: Database): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from kysely_migration order by name`.execute(db)
  return rows.map(({ name }) => name)
}

/** Removes what the migrations after `0001_initial` add. */
async function removeLaterSchema({ db }: Database): Promise<void> {
  await sql`alter table webhook drop column headers`.execute(db)
  await sql`alter table webhook drop column daily_attempts`.execute(db)
  await sql`alter table attempt drop column request_headers`.execute(db)
  await sql`alter table account drop column action_policy`.execute(db)
  await sql`alter table account drop column two_factor_required`.execute(db)
  if (onPostgres) {
    await sql`create index item_backup on item (job_id)`.execute(db)
    await sql`drop index item_due, item_waiting`.execute(db)
    await sql`create index item_probing on item (job_id)`.execute(db)
    await sql`alter table answer set logged`.execute(db)
  }
  await sql`drop index job_number`.execute(db)
  await sql`alter table job drop column number`.execute(db)
  await sql`drop index job_mail`.execute(db)
  await sql`drop index job_finish`.execute(db)
  await sql`alter table job drop column finish_requested_at`.execute(db)
  await sql`alter table item drop column latest_result`.execute(db)
  await sql`alter table job drop column mail_due_at`.execute(db)
  await sql`alter table job drop column no_address`.execute(db)
  await sql`alter table item drop column previous`.execute(db)
  await sql`drop table schedule`.execute(db)
  await sql`drop index webhook_account`.execute(db)
  await sql`alter table webhook drop column job_id`.execute(db)
  await sql`create index webhook_account on webhook (account_id)`.execute(db)
  await sql`drop index event_account`.execute(db)
  await sql`drop table audit`.execute(db)
  await sql`drop table person`.execute(db)
  await sql`drop table recovery_code`.execute(db)
  await sql`drop table learned_reply`.execute(db)
  await sql`drop table witness`.execute(db)
  for (const name of TABLES.filter(one => one.startsWith('feedback'))) {
    await sql`drop table ${sql.table(name)}`.execute(db)
  }
}

async function record({ db }: Database, names: readonly string[]): Promise<void> {
  await sql`delete from kysely_migration`.execute(db)
  for (const name of names) {
    await sql`insert into kysely_migration (name, timestamp)
      values (${name}, '2026-11-01T00:00:00.000Z')`.execute(db)
  }
}
