import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import { expect, test } from 'vitest'
import { claimItems, nextDueAt } from '../../src/store/job/claims.ts'
import { startJob } from '../../src/store/job/course.ts'
import { MIGRATIONS } from '../../src/store/migrations.ts'
import type { Schema } from '../../src/store/schema.ts'
import { tempDatabase, tempFolder } from './temp-database.ts'

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
