import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createJob } from '../../src/jobs/job-store.ts'
import { startRetentionJob } from '../../src/maintenance/retention-job.ts'
import { DAY, HOUR } from '../../src/platform/clock.ts'
import { type LogFields, silentLog } from '../../src/platform/log.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase, tempFolder } from '../support/database.ts'
import { queueJob } from '../support/queue-job.ts'
import { drainEventLoop } from '../support/wait.ts'

async function services() {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  const logged: LogFields[] = []
  const log = {
    ...silentLog,
    info: (_: string, fields: LogFields = {}) => void logged.push(fields),
  }
  const begin = () =>
    startRetentionJob({
      database,
      clock,
      log,
      dataDir: tempFolder(),
      keepResultsMs: 30 * DAY,
      keepHistoryMs: 90 * DAY,
    })
  const count = async (table: string) => {
    const { rows } = await sql<{ n: number }>`select count(*) as n from ${sql.ref(table)}`.execute(
      database.db,
    )
    return rows[0]?.n
  }
  return { clock, database, logged, begin, count }
}

const TABLES = ['verification', 'replay', 'event', 'delivery', 'attempt', 'answer', 'credit']

test('expired data is deleted, and nothing younger', async () => {
  const { clock, database, logged, begin, count } = await services()
  const { db } = database
  const now = clock.now()
  for (const [name, ageMs] of [
    ['old', 1],
    ['young', -HOUR],
  ] as const) {
    const at = (keptMs: number) => now - keptMs - ageMs
    await sql`insert into verification values (${name}, 'acc', 'key', 'a@x.example', 1, 1, 'low',
      'accepted_email', 'deliverable', 0, 'single', null, 0, ${at(90 * DAY)})`.execute(db)
    await sql`insert into replay values ('key', ${name}, 'f', 200, 'a', ${at(DAY)})`.execute(db)
    await sql`insert into event values (${name}, 'acc', 'batch.completed', '{}', ${at(9 * DAY)})`.execute(
      db,
    )
    await sql`insert into delivery
      (id, event_id, webhook_id, state, attempt, due_at, created_at, expires_at)
      values (${name}, ${name}, 'wh', 'failed', 6, 0, 0, ${at(0)})`.execute(db)
    await sql`insert into attempt (delivery_id, number, trigger, url, started_at, duration_ms)
      values (${name}, 1, 'scheduled', 'https://app.example/', 0, 9)`.execute(db)
    await sql`insert into answer values (${name}, '{}', ${at(0)})`.execute(db)
    await sql`insert into credit values ('acc', ${at(40 * DAY)}, 5, 0, 0)`.execute(db)
  }
  await createJob(database, { id: 'job_a', sourceKey: 'job_a', source: '{}' })
  await queueJob(database, 'job_a')
  await sql`update job set finished_at = ${now - 30 * DAY - 1}`.execute(db)
  const retentionJob = begin()
  await clock.advance(1_000)
  await drainEventLoop()
  while (logged.length === 0) await drainEventLoop()
  for (const table of TABLES) expect(await count(table), table).toBe(1)
  expect(await count('job')).toBe(0)
  expect(logged).toEqual([
    {
      jobs: 1,
      sessions: 0,
      history: 1,
      sandboxHistory: 0,
      replays: 1,
      credits: 1,
      answers: 1,
      witnesses: 0,
      feedback: 0,
      feedbackAddresses: 0,
      feedbackReplies: 0,
      deliveries: 1,
      stranded: 0,
      webhooks: 0,
      events: 0,
      secrets: 0,
      audit: 0,
    },
  ])
  for (let passes = 0; passes < 2; passes++) {
    await clock.advance(HOUR)
    // A run sets the timer of the next one when it ends.
    while (clock.pending === 0) await drainEventLoop()
  }
  for (const table of TABLES) expect(await count(table), table).toBe(0)
  await retentionJob.stop()
  expect(clock.pending).toBe(0)
})

test('abandoned imports are deleted, and running ones are not', async () => {
  const { clock, database, begin } = await services()
  const owner = {
    accountId: 'acc',
    keyId: 'key',
    type: 'batch',
    name: null,
    sandbox: false,
  } as const
  const load = (id: string) => createJob(database, { id, sourceKey: id, source: '{}', owner })
  await load('left')
  await clock.advance(HOUR + 1)
  await load('under_way')
  await createJob(database, { id: 'list', sourceKey: 'list', source: '{}' })
  await sql`update job set created_at = 0 where id = 'list'`.execute(database.db)
  const retentionJob = begin()
  await clock.advance(1_000)
  await drainEventLoop()
  const ids = await database.db.selectFrom('job').select('id').orderBy('id').execute()
  expect(ids).toEqual([{ id: 'list' }, { id: 'under_way' }])
  await retentionJob.stop()
})

test('many rows are deleted in steps, with pauses', async () => {
  const { clock, database, begin, count } = await services()
  await sql`insert into answer
    with recursive n(i) as (select 1 union all select i + 1 from n where i < 2500)
    select i, '{}', 0 from n`.execute(database.db)
  const retentionJob = begin()
  await clock.advance(0)
  const left: (number | undefined)[] = []
  for (let steps = 0; steps < 5; steps++) {
    left.push(await count('answer'))
    await clock.advance(20)
  }
  expect(left).toEqual([2_375, 2_125, 1_625, 625, 0])
  await retentionJob.stop()
})

test('nothing is deleted after a clock jump', async () => {
  const { clock, database, begin, count } = await services()
  await createJob(database, { id: 'job_a', sourceKey: 'job_a', source: '{}' })
  await queueJob(database, 'job_a')
  await sql`update job set finished_at = ${clock.now()}`.execute(database.db)
  const retentionJob = begin()
  for (let passes = 0; passes < 3; passes++) {
    while (clock.pending === 0) await drainEventLoop()
    clock.jump(passes === 0 ? 40 * DAY : 0)
    await clock.advance(HOUR)
  }
  expect(await count('job')).toBe(1)
  await retentionJob.stop()
})
