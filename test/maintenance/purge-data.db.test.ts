import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openWitnesses } from '../../src/cluster/witnesses.ts'
import { compact, type Database, secureDelete, write } from '../../src/db/database.ts'
import { getStoredPieces } from '../../src/feedback/feedback-store.ts'
import { recordFeedback } from '../../src/feedback/record-feedback.ts'
import { deleteJob } from '../../src/jobs/delete-job.ts'
import { cancelJob } from '../../src/jobs/job-state.ts'
import { markWritten, readJob } from '../../src/jobs/job-store.ts'
import {
  countAnswersUntil,
  countBefore,
  countSpentDeliveries,
  erasePersonalData,
  findPersonalData,
  NO_PERSONAL_DATA,
} from '../../src/maintenance/purge-data.ts'
import { silentLog } from '../../src/platform/log.ts'
import { deleteWebhook } from '../../src/webhooks/endpoint-store.ts'
import { addJob, tempDatabase, tempFolder } from '../support/database.ts'
import { addDelivery, addWebhook } from '../support/webhook-rows.ts'

const ANN = { key: 'ann@example.com', text: 'ann@example.com' }

/** Creates a written job whose results contain these texts. */
async function writtenJob(database: Database, texts: readonly string[], id = 'job_a') {
  await addJob(database, texts, id)
  await database.db
    .updateTable('item')
    .set(eb => ({ state: 'done', class: 'risky', result: eb.ref('text') }))
    .where('job_id', '=', id)
    .where('state', '=', 'queued')
    .execute()
  await markWritten(database, id)
}

const addAnswer = (database: Database, address_key: string, keep_until = 0) =>
  database.db.insertInto('answer').values({ address_key, remembered: '{}', keep_until }).execute()

describe('the data of an address', () => {
  test.each([
    ['its own row', 'ann@example.com', true],
    ['a row in another case', 'Ann@Example.COM', true],
    ['a cell with more text', 'Ann (ann@example.com), home', true],
    ['a sentence that ends with the address', 'write to ann@example.com.', true],
    ['a longer address that ends with it', 'joann@example.com', false],
    ['an address with a prefix and a tag', 'x+ann@example.com', false],
    ['an address with a prefix and a dot', 'b.ann@example.com', false],
    ['an address that starts with it', 'ann@example.community', false],
    ['an address with a longer domain', 'ann@example.com.au', false],
    ['a partial and a whole occurrence', 'joann@example.com ann@example.com', true],
  ])('in %s are found: %s', async (_, text, found) => {
    const database = await tempDatabase()
    await writtenJob(database, ['first@example.com', text])
    const { items } = await findPersonalData(database, ANN)
    expect(items).toEqual(
      found ? [{ jobId: 'job_a', position: 2, finished: true, ofService: false }] : [],
    )
  })

  test('includes cached answers, ignoring case', async () => {
    const database = await tempDatabase()
    for (const key of ['ann@example.com', 'Ann@example.com', 'joann@example.com']) {
      await addAnswer(database, key)
    }
    const { answers } = await findPersonalData(database, ANN)
    expect([...answers].sort()).toEqual(['Ann@example.com', 'ann@example.com'])
  })

  test('includes the cached answers of all accounts', async () => {
    const database = await tempDatabase()
    const keys = ['acc_1 ann@example.com', 'acc_2 Ann@example.com']
    const others = ['acc_1 joann@example.com', 'acc_2 ann@example.com.au', '"b ann"@example.com']
    for (const key of [...keys, ...others]) await addAnswer(database, key)
    const data = await findPersonalData(database, ANN)
    expect([...data.answers].sort()).toEqual(keys)
    await erasePersonalData(database, data)
    const left = await database.db.selectFrom('answer').select('address_key').execute()
    expect(left.map(row => row.address_key).sort()).toEqual(others.toSorted())
  })

  test('includes cached answers of a quoted local part with a space', async () => {
    const database = await tempDatabase()
    const keys = ['"ann b"@example.com', 'acc_1 "ann b"@example.com']
    for (const key of keys) await addAnswer(database, key)
    const quoted = { key: '"ann b"@example.com', text: '"ann b"@example.com' }
    const { answers } = await findPersonalData(database, quoted)
    expect([...answers].sort()).toEqual(keys)
  })

  test('includes recipients that mail servers accepted, ignoring case', async () => {
    const database = await tempDatabase()
    const stored = openWitnesses({ database, log: silentLog, network: null })
    const recipients = ['ann@example.com', 'Ann@example.com', 'joann@example.com']
    const acceptedAt = database.clock.now()
    for (const [n, recipient] of recipients.entries())
      stored.put({ server: `mx${n}.test`, recipient, acceptedAt })
    await stored.close()
    const data = await findPersonalData(database, ANN)
    expect([...data.witnesses].sort()).toEqual(['Ann@example.com', 'ann@example.com'])
    await erasePersonalData(database, data)
    expect(await stored.load()).toMatchObject([{ recipient: 'joann@example.com' }])
  })

  test('tells whether its job is finished: written or cancelled', async () => {
    const database = await tempDatabase()
    await addJob(database, ['ann@example.com'], 'open')
    await addJob(database, ['ann@example.com'], 'cancelled')
    await cancelJob(database, 'cancelled')
    const { items } = await findPersonalData(database, ANN)
    expect(items.map(({ jobId, finished }) => [jobId, finished]).sort()).toEqual([
      ['cancelled', true],
      ['open', false],
    ])
  })
})

test('erasing keeps the counts of the job, and position and class of each row', async () => {
  const database = await tempDatabase()
  await writtenJob(database, ['ben@example.com', 'ann@example.com', 'ann@example.com'])
  await addAnswer(database, 'ann@example.com')
  const before = await readJob(database, 'job_a')
  await erasePersonalData(database, await findPersonalData(database, ANN))
  expect(await findPersonalData(database, ANN)).toEqual(NO_PERSONAL_DATA)
  expect(await readJob(database, 'job_a')).toEqual(before)
  const rows = await database.db.selectFrom('item').selectAll().orderBy('position').execute()
  expect(rows.map(({ text, state, class: klass }) => [text, state, klass])).toEqual([
    ['ben@example.com', 'done', 'risky'],
    ['', 'done', 'risky'],
    ['', 'same', null],
  ])
  expect(JSON.stringify(rows)).not.toContain('ann@')
})

/** Data of the service: a verification, an event, and a list with more columns than the address. */
async function serviceKeeps(database: Database, address: string, n: number) {
  const { db } = database
  const origin = {
    account_id: 'acc_a',
    key_id: 'key_a',
    source: 'file',
    job_id: `job_${n}`,
  } as const
  const verdict = { valid: 1, deliverable: 0, risk_level: 'medium', reason: 'catch_all' }
  const row = { ...origin, ...verdict, class: 'risky', cached: 0, sandbox: 0, created_at: n }
  await db
    .insertInto('verification')
    .values({ ...row, id: `ver_${n}`, email: address })
    .execute()
  const event = { account_id: 'acc_a', kind: 'verification.completed', created_at: n }
  const body = JSON.stringify({ data: { email: address } })
  await db
    .insertInto('event')
    .values({ ...event, id: `evt_${n}`, body })
    .execute()
  const delivery = { event_id: `evt_${n}`, webhook_id: 'wh_a', state: 'pending' as const }
  const why = { kind: 'batch.completed', trigger: 'scheduled' as const }
  const due = { ...why, attempt: 0, due_at: n, created_at: n }
  await db
    .insertInto('delivery')
    .values({ ...delivery, ...due, id: `dlv_${n}` })
    .execute()
  const attempt = { trigger: 'scheduled', url: 'https://app.example/', started_at: n } as const
  await db
    .insertInto('attempt')
    .values({ ...attempt, delivery_id: `dlv_${n}`, number: 1, duration_ms: 9, excerpt: address })
    .execute()
  await addJob(database, ['', 'other@x.test'], `job_${n}`)
  const done = { type: 'file', state: 'completed', finished_at: n } as const
  await db.updateTable('job').set(done).where('id', '=', `job_${n}`).execute()
  const cells = JSON.stringify(['Somebody', `Home: ${address}`, ''])
  const first = db.updateTable('item').where('job_id', '=', `job_${n}`).where('position', '=', 1)
  await first.set({ cells }).execute()
}

describe('data of the service about an address', () => {
  test('is found in the history, in events and in the rows of finished lists', async () => {
    const database = await tempDatabase()
    await serviceKeeps(database, 'Ann@Example.com', 1)
    await serviceKeeps(database, 'joann@example.com', 2)
    expect(await findPersonalData(database, ANN)).toEqual({
      answers: [],
      witnesses: [],
      items: [{ jobId: 'job_1', position: 1, finished: true, ofService: true }],
      verifications: [{ account_id: 'acc_a', sandbox: 0, created_at: 1, id: 'ver_1' }],
      events: ['evt_1'],
      feedback: { pieces: [], addresses: [] },
    })
  })

  test('is found and erased in feedback, also in its text', async () => {
    const database = await tempDatabase()
    const text = (address: string) => `550 5.1.1 ${address} unknown`
    const items = ['Ann@example.com', 'ben@example.com', 'joann@example.com'].map(address => ({
      address,
      kind: 'bounced' as const,
      code: 550,
      text: text(address),
      occurredAt: null,
    }))
    const forwarded = { ...items[1], address: 'cy@example.com', text: text('ann@example.com') }
    await recordFeedback(
      { database },
      {
        accountId: 'acc_a',
        plan: null,
        source: 'api',
        items: [...items, forwarded as (typeof items)[0]],
      },
    )
    await erasePersonalData(database, await findPersonalData(database, ANN))
    const left = await database.db.selectFrom('feedback').select('address_key').execute()
    const states = await database.db.selectFrom('feedback_address').select('address_key').execute()
    expect(await getStoredPieces(database.db, 'acc_a')).toBe(left.length)
    for (const rows of [left, states]) {
      expect(rows.map(row => row.address_key).sort()).toEqual([
        'ben@example.com',
        'joann@example.com',
      ])
    }
  })

  test('is erased, and the history keeps its verdict, a row its number of cells', async () => {
    const database = await tempDatabase()
    await serviceKeeps(database, 'ann@example.com', 1)
    await serviceKeeps(database, 'ben@example.com', 2)
    await erasePersonalData(database, await findPersonalData(database, ANN))
    expect(await findPersonalData(database, ANN)).toEqual(NO_PERSONAL_DATA)
    const { db } = database
    const rows = await db.selectFrom('verification').selectAll().orderBy('id').execute()
    expect(rows.map(({ email, reason }) => [email, reason])).toEqual([
      ['', 'catch_all'],
      ['ben@example.com', 'catch_all'],
    ])
    const events = await db.selectFrom('event').select('id').execute()
    const deliveries = await db.selectFrom('delivery').select('event_id').execute()
    expect([events, deliveries]).toEqual([[{ id: 'evt_2' }], [{ event_id: 'evt_2' }]])
    const attempts = await db.selectFrom('attempt').select('delivery_id').execute()
    expect(attempts).toEqual([{ delivery_id: 'dlv_2' }])
    const items = db.selectFrom('item').select('cells').where('position', '=', 1).orderBy('job_id')
    expect((await items.execute()).map(({ cells }) => JSON.parse(cells ?? ''))).toEqual([
      ['', '', ''],
      ['Somebody', 'Home: ben@example.com', ''],
    ])
  })

  test('is counted by its age', async () => {
    const database = await tempDatabase()
    for (const n of [1, 2, 3]) await serviceKeeps(database, 'ann@example.com', n)
    expect(await countBefore(database, 'verification', 3)).toBe(2)
    expect(await countBefore(database, 'replay', 9)).toBe(0)
  })

  test('is counted, for deliveries that retention would delete', async () => {
    const database = await tempDatabase()
    await addWebhook(database, { id: 'wh_a' })
    await addWebhook(database, { id: 'wh_off', active: false })
    await addWebhook(database, { id: 'wh_deleted' })
    await write(database, trx => deleteWebhook(trx, 'acc_a', 'wh_deleted', 1))
    const ended = { state: 'delivered' as const, at: 1 }
    await addDelivery(database, 'dlv_a', { ...ended, expires_at: 10 })
    await addDelivery(database, 'dlv_b', { ...ended, expires_at: 11 })
    await addDelivery(database, 'dlv_c', { ...ended, expires_at: 11, webhook_id: 'wh_off' })
    await addDelivery(database, 'dlv_d', { at: 5, webhook_id: 'wh_off' })
    await addDelivery(database, 'dlv_e', { at: 6, webhook_id: 'wh_off' })
    await addDelivery(database, 'dlv_f', { at: 5 })
    const before = { expiredBy: 9, dueBy: 4 }
    expect(await countSpentDeliveries(database, before)).toBe(0)
    await addDelivery(database, 'dlv_g', { at: 99, webhook_id: 'wh_deleted' })
    expect(await countSpentDeliveries(database, before)).toBe(1)
    expect(await countSpentDeliveries(database, { ...before, expiredBy: 10 })).toBe(2)
    expect(await countSpentDeliveries(database, { ...before, dueBy: 5 })).toBe(2)
  })
})

test('answers that expire by a time are counted', async () => {
  const database = await tempDatabase()
  await addAnswer(database, 'a@x.test', 10)
  await addAnswer(database, 'b@x.test', 20)
  expect(await countAnswersUntil(database, 9)).toBe(0)
  expect(await countAnswersUntil(database, 10)).toBe(1)
  expect(await countAnswersUntil(database, 20)).toBe(2)
})

describe('the file', () => {
  const bytesOf = (file: string) =>
    ['', '-wal']
      .map(end => `${file}${end}`)
      .filter(path => statSync(path, { throwIfNoEntry: false }) !== undefined)
      .map(path => readFileSync(path, 'latin1'))
      .join('')
  const found = (file: string, ...texts: string[]) =>
    texts.map(text => bytesOf(file).includes(text))

  test('contains no byte of erased data, and is smaller, after compaction', async () => {
    const file = join(tempFolder(), 'ev.sqlite')
    const database = await tempDatabase({ file })
    const texts = Array.from({ length: 6_000 }, (_, n) => `user${n}@somewhere.example`)
    await writtenJob(database, texts, 'big')
    await writtenJob(database, ['ann@example.com', 'ben@example.com'], 'small')
    expect(await compact(database)).toBe(true)
    const size = statSync(file).size
    expect(found(file, 'user2999@somewhere', 'ann@example')).toEqual([true, true])
    await secureDelete(database)
    await deleteJob(database, 'big')
    await erasePersonalData(database, await findPersonalData(database, ANN))
    expect(await compact(database)).toBe(true)
    expect(found(file, 'somewhere', 'ann@example', 'ben@example')).toEqual([false, false, true])
    expect(statSync(file).size).toBeLessThan(size / 2)
  })
})
