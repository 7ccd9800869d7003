import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import { expect, test } from 'vitest'
import { findAccount, listAccounts } from '../../../src/store/account/accounts.ts'
import { accountLoad } from '../../../src/store/account/stored-rows.ts'
import { dueWebhooks, nextDeliveries } from '../../../src/store/event/deliveries.ts'
import { claimItems, nextDueAt } from '../../../src/store/job/claims.ts'
import { startJob } from '../../../src/store/job/course.ts'
import { MIGRATIONS } from '../../../src/store/migration/migrations.ts'
import type { Schema } from '../../../src/store/schema.ts'
import { tempDatabase, tempFolder } from '../../support/database.ts'

test('a list that an ev without egresses left half done goes on: any egress may ask', async () => {
  const file = join(tempFolder(), 'ev.sqlite')
  const earlier = await databaseAsOf('0001_lists', file)
  await sql`
    insert into job (id, state, source_key, source, total, done, duplicates,
      deliverable, risky, undeliverable, unknown, created_at)
    values ('job_a', 'processing', 's', '{}', 3, 1, 0, 1, 0, 0, 0, 0)`.execute(earlier)
  await sql`
    insert into item (job_id, position, text, dedupe_key, state, copies, operator, domain, route,
      due_at, tries, result) values
    ('job_a', 1, 'a@x.test', 'a', 'routed', 1, 'op', 'x.test', '{}', 7, 1, null),
    ('job_a', 2, 'b@x.test', 'b', 'probing', 1, 'op', 'x.test', '{}', 9, 0, null),
    ('job_a', 3, 'c@x.test', 'c', 'done', 1, 'op', 'x.test', null, 0, 1, '{}')`.execute(earlier)
  await earlier.destroy()

  const database = await tempDatabase({ file })
  await startJob(database, 'job_a')
  const share = { jobId: 'job_a', operator: 'op', egress: 'a' }
  expect(await nextDueAt(database, share)).toBe(7)
  expect(await claimItems(database, { ...share, max: 9, now: 9 })).toMatchObject([
    { position: 1, tries: 1, egress: null, refused_by: null },
    { position: 2, tries: 0, egress: null, refused_by: null },
  ])
})

test('what an ev that sent nothing wrote down is sent: an event that waits is of its kind, and due as it was', async () => {
  const file = join(tempFolder(), 'ev.sqlite')
  const earlier = await databaseAsOf('0003_service', file)
  await sql`
    insert into account (id, name, plan, created_at) values ('acc_a', 'A', 'free', 1)`.execute(
    earlier,
  )
  await sql`
    insert into webhook (id, account_id, url, events, active, secret, secret_hint, created_at,
      updated_at) values ('wh_a', 'acc_a', 'https://app.example/', '["batch.completed"]', 1,
      'sealed', 'LaSw', 1, 2)`.execute(earlier)
  await sql`
    insert into event (id, account_id, kind, body, created_at) values
    ('evt_a', 'acc_a', 'batch.completed', 'a', 5), ('evt_b', 'acc_a', 'quota.warning', 'b', 6)`.execute(
    earlier,
  )
  await sql`
    insert into delivery (id, event_id, webhook_id, state, attempt, due_at, created_at) values
    ('dlv_a', 'evt_a', 'wh_a', 'pending', 0, 5, 5),
    ('dlv_b', 'evt_b', 'wh_a', 'pending', 0, 6, 6)`.execute(earlier)
  await earlier.destroy()

  const database = await tempDatabase({ file })
  const rows = await database.db.selectFrom('delivery').selectAll().orderBy('id').execute()
  const waiting = { webhook_id: 'wh_a', state: 'pending', trigger: 'scheduled', attempt: 0 }
  const nothing = { status_code: null, duration_ms: null, error: null, expires_at: null }
  expect(rows).toEqual([
    {
      ...{ ...waiting, ...nothing, id: 'dlv_a', event_id: 'evt_a' },
      ...{ kind: 'batch.completed', due_at: 5, created_at: 5 },
    },
    {
      ...{ ...waiting, ...nothing, id: 'dlv_b', event_id: 'evt_b' },
      ...{ kind: 'quota.warning', due_at: 6, created_at: 6 },
    },
  ])
  expect(await dueWebhooks(database, 5)).toMatchObject([{ id: 'wh_a' }])
  expect(await nextDeliveries(database, 'wh_a', { now: 5, except: [], max: 4 })).toMatchObject([
    {
      ...{ id: 'dlv_a', body: 'a', trigger: 'scheduled' },
      webhook: { active: true, previousSecret: null, failingSince: null, disabledReason: null },
    },
  ])
  expect(await findAccount(database, 'acc_a')).toMatchObject({ name: 'A', email: null })
})

test('the oldest account of an ev without a dashboard is that of whoever runs the service, and no other is', async () => {
  const file = join(tempFolder(), 'ev.sqlite')
  const earlier = await databaseAsOf('0004_deliveries', file)
  await sql`
    insert into account (id, name, plan, created_at) values
    ('acc_c', 'C', 'free', 1), ('acc_a', 'A', 'free', 2), ('acc_b', 'B', 'free', 1)`.execute(
    earlier,
  )
  await earlier.destroy()

  const database = await tempDatabase({ file })
  expect((await listAccounts(database)).map(({ id, operator }) => [id, operator])).toEqual([
    ['acc_b', 1],
    ['acc_c', 0],
    ['acc_a', 0],
  ])
})

test('rows that an ev without a limit of them stored are counted for their accounts', async () => {
  const file = join(tempFolder(), 'ev.sqlite')
  const earlier = await databaseAsOf('0007_retries', file)
  await sql`
    insert into account (id, name, plan, created_at) values
    ('acc_a', 'A', 'free', 1), ('acc_b', 'B', 'free', 2)`.execute(earlier)
  await sql`
    insert into job (id, account_id, state, type, source_key, source, total, done, duplicates,
      deliverable, risky, undeliverable, unknown, created_at)
    values ('job_a', 'acc_a', 'queued', 'batch', 'a', '{}', 30, 0, 0, 0, 0, 0, 0, 0),
      ('job_b', 'acc_a', 'processing', 'single', 'b', '{}', 1, 0, 0, 0, 0, 0, 0, 0),
      ('job_c', 'acc_a', 'loading', 'batch', 'c', '{}', 7, 0, 0, 0, 0, 0, 0, 0),
      ('job_d', null, 'queued', 'list', 'd', '{}', 5, 0, 0, 0, 0, 0, 0, 0)`.execute(earlier)
  await earlier.destroy()

  const { db } = await tempDatabase({ file })
  expect(await accountLoad(db, 'acc_a')).toEqual({ storedRows: 31, openLists: 1 })
  expect(await accountLoad(db, 'acc_b')).toEqual({ storedRows: 0, openLists: 0 })
})

/** A database as it was when a migration was the last. */
async function databaseAsOf(last: string, file: string): Promise<Kysely<Schema>> {
  const db = new Kysely<Schema>({
    dialect: new SqliteDialect({ database: new SqliteDatabase(file) }),
  })
  const provider = { getMigrations: async () => MIGRATIONS }
  const { error } = await new Migrator({ db, provider }).migrateTo(last)
  if (error !== undefined) throw error
  return db
}
