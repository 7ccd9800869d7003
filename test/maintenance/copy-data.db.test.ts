import { join } from 'node:path'
import { sql } from 'kysely'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Database, isStorageError, openDatabase, write } from '../../src/db/database.ts'
import { recordFeedback } from '../../src/feedback/record-feedback.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import { createJob, type NewJob } from '../../src/jobs/job-store.ts'
import { COPIED, type CopyProgress, copyDatabase } from '../../src/maintenance/migrate.ts'
import { addAccount, verificationRow } from '../support/account-rows.ts'
import { fakeClock } from '../support/clock.ts'
import { cutProxy } from '../support/cut-proxy.ts'
import { addJob, fileAll, onPostgres, tempDatabase, tempFolder } from '../support/database.ts'
import { tempPostgres } from '../support/postgres-pool.ts'
import { addDelivery, addWebhook, attemptAt, record } from '../support/webhook-rows.ts'

/** A list of the service; lists of the command line are not copied. */
async function addList(database: Database, texts: readonly string[], id: string): Promise<void> {
  await addJob(database, texts, id)
  await database.db.updateTable('job').set({ account_id: 'acc_a' }).where('id', '=', id).execute()
}

const sqlite = () => tempDatabase({ file: join(tempFolder(), 'ev.sqlite') })

/** All rows of a table, in any order. */
async function rowsOf({ db }: Database, table: (typeof COPIED)[number]): Promise<string[]> {
  const { rows } = await sql<object>`select * from ${sql.table(table)}`.execute(db)
  return rows.map(row => JSON.stringify(Object.entries(row).sort())).sort()
}

async function countAll(database: Database): Promise<number> {
  const all = await Promise.all(COPIED.map(table => rowsOf(database, table)))
  return all.flat().length
}

/** Texts that are difficult for one of the databases or for JSON. */
const TEXTS = [
  'a\u0000b@x.test',
  '\u{10fffe}0@x.test',
  'é 漢 😀 "q" \\ \\u0000 \n\t@x.test',
  '["\\ud800","\\u0000"]',
  '',
]

/** Fills every table, with unusual texts in all free-text columns. */
async function fill(database: Database): Promise<void> {
  const { db } = database
  await addAccount(database, 'acc_a')
  await db
    .updateTable('account')
    .set({ name: TEXTS[0] ?? '', email: null })
    .execute()
  await db
    .insertInto('api_key')
    .values({
      id: 'key_a',
      account_id: 'acc_a',
      name: TEXTS[2] ?? '',
      scopes: '["verify"]',
      allowed_ips: '[]',
      allowed_domains: '[]',
      rate_limit_per_minute: null,
      created_at: 1,
    })
    .execute()
  const secret = { hash: 'h', key_id: 'key_a', prefix: 'ev_', hint: 'abcd', created_at: 1 }
  await db.insertInto('key_secret').values(secret).execute()
  await db
    .insertInto('session')
    .values({
      id: 'ses_a',
      hash: 'h',
      key_id: 'key_a',
      account_id: 'acc_a',
      created_at: 1,
      last_seen_at: 2,
      expires_at: 3,
      ip: '192.0.2.1',
      agent: TEXTS[2] ?? '',
    })
    .execute()
  await addCredit(database, 0)
  await db
    .insertInto('usage')
    .values({
      account_id: 'acc_a',
      key_id: 'key_a',
      day: 1,
      class: 'risky',
      verifications: 2 ** 40,
      cached: 0,
      credits: 1,
    })
    .execute()
  await db
    .insertInto('replay')
    .values({
      key_id: 'key_a',
      idempotency_key: 'one',
      fingerprint: 'f',
      status: 200,
      answer: 'sealed',
      created_at: 1,
    })
    .execute()
  await addWebhook(database)
  await addDelivery(database, 'dlv_a', { at: 100 })
  await record(database, [attemptAt('dlv_a', { excerpt: TEXTS[0] ?? '', headers: { a: '\0' } })])
  const notice = { webhook_id: 'wh_a', account_id: 'acc_a', failed_events: 1, due_at: 7 }
  await db.insertInto('notice').values(notice).execute()
  await db
    .insertInto('verification')
    .values(
      verificationRow({
        id: 'ver_a',
        account_id: 'acc_a',
        key_id: 'key_a',
        email: TEXTS[0] ?? '',
        deliverable: 0,
        reason: 'x',
        class: 'risky',
      }),
    )
    .execute()
  await db
    .insertInto('answer')
    .values({ address_key: TEXTS[0] ?? '', remembered: '{"a":"\\u0000"}', keep_until: 9 })
    .execute()
  await db
    .insertInto('audit')
    .values({
      id: 'aud_a',
      account_id: 'acc_a',
      action: 'key.created',
      actor: 'key',
      key_id: 'key_a',
      person_id: null,
      person_name: null,
      session_id: null,
      ip: null,
      target_id: 'key_b',
      target_name: TEXTS[0] ?? '',
      changed: null,
      created_at: 1,
    })
    .execute()
  await db
    .insertInto('person')
    .values({
      id: 'per_a',
      account_id: 'acc_a',
      name: TEXTS[0] ?? '',
      email: 'ann@shop.example',
      role: 'admin',
      created_at: 1,
      invitation_hash: 'a'.repeat(64),
      invitation_expires_at: 2,
      password: null,
      totp_secret: null,
      totp_step: 3,
      oidc_issuer: null,
      oidc_subject: null,
      last_signed_in_at: null,
    })
    .execute()
  await db
    .insertInto('recovery_code')
    .values({ person_id: 'per_a', hash: 'b'.repeat(64) })
    .execute()
  await db
    .insertInto('feedback_count')
    .values({
      account_id: 'acc_a',
      period: 0,
      reason: 'accepted_email',
      operator: TEXTS[0] ?? '',
      confidence: 95,
      correct: 1,
      wrong: 2,
    })
    .execute()
  await db
    .insertInto('feedback_source')
    .values({
      id: 'fbs_a',
      account_id: 'acc_a',
      provider: 'ses',
      secret: 'x',
      key_hint: 'y',
      created_at: 1,
      last_received_at: null,
    })
    .execute()
  await db
    .insertInto('schedule')
    .values({
      id: 'sch_a',
      account_id: 'acc_a',
      key_id: 'key_a',
      sandbox: 0,
      notify: 1,
      job_id: 'job_a',
      latest_job_id: 'job_b',
      every_days: 30,
      classes: 'risky,unknown',
      older_than_days: 90,
      next_run_at: 2,
      claimed_until: 3,
      last_run_at: 1,
      last_error: 'nothing_to_verify',
      created_at: 1,
    })
    .execute()
  await db
    .insertInto('feedback_reply')
    .values({
      account_id: 'acc_a',
      period: 0,
      operator: '',
      reply: TEXTS[0] ?? '',
      confirmed: 1,
      contradicted: 2,
    })
    .execute()
  const text = TEXTS[0] ?? ''
  const item = { address: 'ann@example.com', kind: 'bounced' as const, text, code: 550 }
  await recordFeedback(
    { database },
    { accountId: 'acc_a', plan: null, source: 'api', items: [{ ...item, occurredAt: null }] },
  )
  await addList(database, TEXTS, 'job_a')
  await db
    .updateTable('item')
    .set({ cells: JSON.stringify(TEXTS) })
    .execute()
}

const addCredit = ({ db }: Database, held: number) =>
  db
    .insertInto('credit')
    .values({ account_id: 'acc_a', period_start: 0, used: 5, held, warned: 0 })
    .execute()

describe.runIf(onPostgres)('a copy to PostgreSQL', () => {
  test('has each row unchanged, to the last byte, and counts them', async () => {
    const [from, to] = [await sqlite(), await tempDatabase()]
    await fill(from)
    const { rows, loadingJobs, probingItems } = await copyDatabase(from, to)
    for (const table of COPIED) {
      const there = await rowsOf(to, table)
      expect([table, there]).toEqual([table, await rowsOf(from, table)])
      expect([table, rows[table]]).toEqual([table, there.length])
      expect(there.length).toBeGreaterThan(0)
    }
    expect([loadingJobs, probingItems]).toEqual([0, 0])
  })

  test('is made in pages, and reports its progress', async () => {
    const [from, to] = [await sqlite(), await tempDatabase()]
    await addList(
      from,
      Array.from({ length: 4_500 }, (_, n) => `u${n}@x.test`),
      'job_a',
    )
    const reported: CopyProgress[] = []
    const { rows } = await copyDatabase(from, to, progress => reported.push(progress))
    expect(rows.item).toBe(4_500)
    expect(reported.filter(({ table }) => table === 'item')).toEqual(
      [2_000, 4_000, 4_500].map(copied => ({ table: 'item', copied, all: 4_500 })),
    )
    expect(await rowsOf(to, 'item')).toEqual(await rowsOf(from, 'item'))
  })

  test('of long rows has shorter pages', async () => {
    const [from, to] = [await sqlite(), await tempDatabase()]
    await addList(from, ['a@x.test', 'b@x.test', 'c@x.test', 'd@x.test'], 'job_a')
    await from.db
      .updateTable('item')
      .set({ cells: JSON.stringify('x'.repeat(700_000)) })
      .execute()
    const reported: number[] = []
    await copyDatabase(from, to, ({ table, copied }) => table === 'item' && reported.push(copied))
    expect(reported).toEqual([2, 4])
  })

  test('requeues items in flight, and leaves out partially imported lists', async () => {
    const [from, to] = [await sqlite(), await tempDatabase()]
    await addList(from, ['a@x.test', 'b@x.test'], 'job_a')
    await fileAll(from, 'job_a')
    await from.db
      .updateTable('item')
      .set({ state: 'probing', holder: 'mem_a' })
      .where('position', '=', 2)
      .execute()
    const owner = { accountId: 'acc_a', keyId: 'key_a', type: 'file', name: null, sandbox: false }
    await createJob(from, { id: 'job_half', sourceKey: 'half', source: '{}', owner } as NewJob)
    await addItems(from, 'job_half', [{ position: 1, text: 'x', dedupeKey: 'x' }])
    const { rows, loadingJobs, probingItems } = await copyDatabase(from, to)
    expect([rows.job, rows.item, loadingJobs, probingItems]).toEqual([1, 2, 1, 1])
    const items = to.db.selectFrom('item').select(['job_id', 'state', 'holder']).execute()
    expect(await items).toEqual([
      { job_id: 'job_a', state: 'routed', holder: null },
      { job_id: 'job_a', state: 'routed', holder: null },
    ])
  })

  test('leaves out lists of the command line, which read files of this machine', async () => {
    const [from, to] = [await sqlite(), await tempDatabase()]
    await addJob(from, ['a@x.test'], 'job_own')
    await addList(from, ['b@x.test'], 'job_a')
    expect(await copyDatabase(from, to)).toMatchObject({ rows: { job: 1, item: 1 }, ownJobs: 1 })
    const jobs = to.db.selectFrom('item').select('job_id').execute()
    expect(await jobs).toEqual([{ job_id: 'job_a' }])
  })

  test('keeps the reservations of open jobs, and releases those of requests', async () => {
    const [from, to] = [await sqlite(), await tempDatabase()]
    await addCredit(from, 9)
    await addList(from, ['a@x.test'], 'job_a')
    await from.db
      .updateTable('job')
      .set({ account_id: 'acc_a', credit_period: 0, held: 4 })
      .execute()
    await copyDatabase(from, to)
    const credit = await to.db.selectFrom('credit').selectAll().execute()
    expect(credit).toMatchObject([{ used: 5, held: 4 }])
  })

  test('has no members', async () => {
    const [from, to] = [await sqlite(), await tempDatabase()]
    const pace = { operator: 'op', egress: 'a', state: '{}', changed_at: 1 }
    await from.db.insertInto('pace').values(pace).execute()
    const bucket = { key: 'k', used: 1, per_ms: 1, ends_at: 1 }
    await from.db.insertInto('bucket').values(bucket).execute()
    await copyDatabase(from, to)
    expect(await to.db.selectFrom('pace').selectAll().execute()).toEqual([])
    expect(await to.db.selectFrom('bucket').selectAll().execute()).toEqual([])
  })
})

describe.runIf(onPostgres)('a copy is refused', () => {
  test('if the target is not empty, which is not changed', async () => {
    const [from, to] = [await sqlite(), await tempDatabase()]
    await fill(from)
    await addAccount(to, 'acc_b')
    await addJob(to, ['a@x.test', 'b@x.test'], 'job_b')
    await expect(copyDatabase(from, to)).rejects.toThrow(
      'The PostgreSQL database is not empty: it has 1 of job, 2 of item, 1 of account. Nothing was copied.',
    )
    expect(await countAll(to)).toBe(4)
  })

  test('if the target is in use', async () => {
    const [from, to] = [await sqlite(), await tempDatabase()]
    await to.db
      .insertInto('member')
      .values({
        id: 'mem_a',
        role: 'worker',
        name: 'n',
        version: '1',
        egresses: '[]',
        joined_at: 1,
        seen_at: 1,
      })
      .execute()
    await expect(copyDatabase(from, to)).rejects.toThrow('it has 1 of member')
  })

  test('if it was already made', async () => {
    const [from, to] = [await sqlite(), await tempDatabase()]
    await fill(from)
    await copyDatabase(from, to)
    const before = await countAll(to)
    await expect(copyDatabase(from, to)).rejects.toThrow('is not empty')
    expect(await countAll(to)).toBe(before)
  })
})

describe.runIf(onPostgres)('an aborted copy', () => {
  test('leaves nothing behind, and can be repeated', async () => {
    const [from, to] = [await sqlite(), await tempDatabase()]
    await fill(from)
    const full = (progress: CopyProgress) => {
      if (progress.table === 'item') throw new Error('the power went off')
    }
    await expect(copyDatabase(from, to, full)).rejects.toThrow('the power went off')
    expect(await countAll(to)).toBe(0)
    const { rows } = await copyDatabase(from, to)
    expect(rows.item).toBe(TEXTS.length)
  })

  test('leaves nothing behind after a lost connection, and the file can be written again', async () => {
    const from = await sqlite()
    await fill(from)
    const proxy = await cutProxy(await tempPostgres())
    onTestFinished(() => proxy.close())
    const to = await openDatabase(proxy.url, fakeClock())
    onTestFinished(() => to.close())
    const cut = ({ table }: CopyProgress) => {
      if (table === 'verification') proxy.reset()
    }
    const fault: unknown = await copyDatabase(from, to, cut).catch(error => error)
    expect(isStorageError(fault), String(fault)).toBe(true)
    expect(await countAll(to)).toBe(0)
    await addList(from, ['a@x.test'], 'job_b')
    await copyDatabase(from, to)
    expect(await rowsOf(to, 'job')).toHaveLength(2)
  })

  test('is discarded if a row is missing', async () => {
    const [from, to] = [await sqlite(), await tempDatabase()]
    await fill(from)
    await sql`create function drop_row() returns trigger language plpgsql as 'begin return null; end'`.execute(
      to.db,
    )
    await sql`create trigger loses before insert on item for each row
      when (new.position = 3) execute function drop_row()`.execute(to.db)
    try {
      await expect(copyDatabase(from, to)).rejects.toThrow(
        'The copy is incomplete: it has 4 of 5 rows of item. Nothing was copied.',
      )
    } finally {
      await sql`drop function drop_row cascade`.execute(to.db)
    }
    expect(await countAll(to)).toBe(0)
  })
})

test.runIf(onPostgres)(
  'both databases are locked for writes until the copy is complete',
  async () => {
    const [from, to] = [await sqlite(), await tempDatabase()]
    await fill(from)
    const done: string[] = []
    const late: Promise<unknown>[] = []
    await copyDatabase(from, to, ({ table }) => {
      if (table !== 'account') return
      const ofFile = write(from, trx => trx.deleteFrom('item').execute())
      late.push(ofFile.then(() => done.push('file')))
      late.push(addAccount(to, 'acc_late').then(() => done.push('server')))
    })
    done.push('copied')
    await Promise.all(late)
    expect(done[0]).toBe('copied')
    expect(await rowsOf(to, 'item')).toHaveLength(TEXTS.length)
    expect(await rowsOf(to, 'account')).toHaveLength(2)
  },
)

test('nothing is copied into a file', async () => {
  const [from, to] = [await sqlite(), await sqlite()]
  await expect(copyDatabase(from, to)).rejects.toMatchObject({ code: 'usage' })
})
