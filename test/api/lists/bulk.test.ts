import { describe, expect, test } from 'vitest'
import { REASONS } from '../../../src/engine/verdict/reason.ts'
import { mail, toRecipients } from '../../support/engine.ts'
import { createTestService } from '../../support/service.ts'
import { drainEventLoop } from '../../support/wait.ts'

const PATH = '/v1/verify/bulk'
const emailsOf = (count: number) => Array.from({ length: count }, (_, n) => `user${n}@a.test`)

describe('POST /v1/verify/bulk with at most 10 addresses', () => {
  test('answers at once, with the fields of the interface and a class for each row', async () => {
    const { request, settled } = await createTestService()
    const emails = ['ann@a.test', 'zoe@a.test', 'nonsense', 'info@a.test']
    const response = await settled(request(PATH, { body: { emails } }))
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      success: true,
      instant: true,
      job_id: expect.stringMatching(/^job_[a-z0-9]{20}$/),
      status: 'completed',
      total_emails: 4,
      valid_emails: 3,
      invalid_format_emails: 1,
      results: [
        row('ann@a.test', true, true, 'low', 'accepted_email'),
        row('zoe@a.test', false, false, 'high', 'rejected_email'),
        row('nonsense', false, false, 'high', 'invalid_email'),
        row('info@a.test', true, true, 'medium', 'role_account'),
      ],
      summary: { total: 4, valid: 2, invalid: 2 },
      message: 'Verified 4 addresses',
    })
  })

  test('counts unknown results as invalid, so that its summary adds up', async () => {
    const { json } = await createTestService({
      engine: { script: toRecipients(() => '451 4.3.0 Busy') },
    })
    const body = await json(PATH, { body: { emails: ['ann@a.test', 'bob@a.test'] } })
    expect(body.summary).toEqual({ total: 2, valid: 0, invalid: 2 })
  })

  test('waits at most 10 seconds: missing results are unknown by timeout', async () => {
    const { request, clock, settled } = await createTestService({
      engine: { script: toRecipients(to => (to.startsWith('slow') ? null : '250 2.1.5 Ok')) },
    })
    const startedAt = clock.monotonicNow()
    const emails = ['ann@a.test', 'slow@a.test', 'slow2@a.test']
    const response = await settled(request(PATH, { body: { emails } }))
    expect(clock.monotonicNow() - startedAt).toBeLessThanOrEqual(10_100)
    const { results } = (await response.json()) as { results: { reason: string }[] }
    expect(results).toHaveLength(3)
    expect(results.slice(1)).toEqual([
      row('slow@a.test', false, false, 'unknown', 'timeout'),
      row('slow2@a.test', false, false, 'unknown', 'timeout'),
    ])
  })

  test('does not wait for the connections of lists', async () => {
    const { json, service } = await createTestService({
      engine: {
        script: toRecipients(to => {
          if (to.endsWith('@slow.test')) return null
          return to.startsWith('ann') ? '250 2.1.5 Ok' : '550 5.1.1 No such user'
        }),
        zone: mail('slow.test', '192.0.2.9'),
        engine: { concurrency: 1 },
      },
    })
    const list = service.engine.verifyMany(['ann@slow.test'])[Symbol.asyncIterator]()
    void list.next().catch(() => {})
    await drainEventLoop()
    const body = await json(PATH, { body: { emails: ['ann@a.test'] } })
    expect(body.results).toEqual([row('ann@a.test', true, true, 'low', 'accepted_email')])
  })

  test('does not wait for greylisting', async () => {
    const { request, clock, settled } = await createTestService({
      engine: { script: toRecipients(() => '450 4.2.0 Greylisted') },
    })
    const startedAt = clock.monotonicNow()
    const response = await settled(request(PATH, { body: { emails: ['ann@a.test'] } }))
    expect(clock.monotonicNow() - startedAt).toBeLessThan(5_000)
    expect(await response.json()).toMatchObject({ results: [{ reason: 'greylisted' }] })
  })

  test('verifies an address once, however often it occurs, and returns a result for each row', async () => {
    const { json, mx } = await createTestService()
    const emails = ['ann@a.test', 'ann@A.test', ' ann@a.test', 'Ann@a.test']
    const { results } = await json(PATH, { body: { emails } })
    expect((results as { email: string; reason: string }[]).map(({ reason }) => reason)).toEqual([
      ...['accepted_email', 'accepted_email', 'accepted_email', 'rejected_email'],
    ])
    expect(mx.lines().filter(line => line === 'RCPT TO:<ann@a.test>')).toHaveLength(1)
  })

  test('is stored as a completed job, with its rows and its history', async () => {
    const { json, database } = await createTestService()
    const { job_id } = await json(PATH, { body: { emails: ['ann@a.test', 'zoe@a.test', ''] } })
    const job = await database.db.selectFrom('job').selectAll().executeTakeFirstOrThrow()
    expect(job).toMatchObject({
      id: job_id,
      state: 'completed',
      type: 'bulk',
      account_id: 'acc_1',
      total: 3,
      done: 3,
      deliverable: 1,
      undeliverable: 1,
      unknown: 1,
      malformed: 0,
      no_address: 1,
      sandbox: 0,
    })
    const items = await database.db.selectFrom('item').selectAll().orderBy('position').execute()
    expect(items.map(({ text, state }) => [text, state])).toEqual([
      ...[
        ['ann@a.test', 'done'],
        ['zoe@a.test', 'done'],
        ['', 'done'],
      ],
    ])
    const history = await database.db.selectFrom('verification').selectAll().execute()
    expect(history.map(one => [one.email, one.job_id, one.source]).toSorted()).toEqual([
      ...[
        ['', job_id, 'bulk'],
        ['ann@a.test', job_id, 'bulk'],
        ['zoe@a.test', job_id, 'bulk'],
      ],
    ])
  })

  test('emits no event', async () => {
    const { json, database } = await createTestService()
    await json(PATH, { body: { emails: ['ann@a.test'] } })
    expect(await database.db.selectFrom('event').selectAll().execute()).toEqual([])
  })

  test('creates one job for an Idempotency-Key, answered twice with the same bytes', async () => {
    const { request, settled, database } = await createTestService()
    const headers = { 'Idempotency-Key': 'one' }
    const send = () => settled(request(PATH, { body: { emails: ['ann@a.test'] }, headers }))
    const [first, second] = [await send(), await send()]
    expect(await second.text()).toBe(await first.text())
    expect(await database.db.selectFrom('job').selectAll().execute()).toHaveLength(1)
  })
})

function row(email: string, valid: boolean, deliverable: boolean, risk: string, reason: string) {
  expect(REASONS).toContain(reason)
  return {
    email,
    valid,
    deliverable,
    risk_level: risk,
    reason,
    cached: false,
    class: CLASS[reason],
    action: ACTION[reason],
  }
}

const ACTION: Readonly<Record<string, string>> = {
  accepted_email: 'send',
  role_account: 'send_with_care',
  rejected_email: 'suppress',
  invalid_email: 'suppress',
  timeout: 'retry_later',
}

const CLASS: Readonly<Record<string, string>> = {
  accepted_email: 'deliverable',
  role_account: 'risky',
  rejected_email: 'undeliverable',
  invalid_email: 'undeliverable',
  timeout: 'unknown',
}

describe('POST /v1/verify/bulk with more than 10 addresses', () => {
  test('creates a job, and returns the queued form only', async () => {
    const { request, settled, worker, mx } = await createTestService()
    const emails = [...emailsOf(12), 'nonsense', '']
    const response = await settled(request(PATH, { body: { emails } }))
    expect(response.status).toBe(200)
    const body = (await response.json()) as { job_id: string }
    expect(body).toEqual({
      success: true,
      job_id: expect.stringMatching(/^job_[a-z0-9]{20}$/),
      status: 'queued',
      total_emails: 14,
      valid_emails: 12,
      invalid_format_emails: 2,
      estimated_time: '10 seconds',
      message: `Queued. Check GET /v1/verify/bulk/status/${body.job_id}`,
    })
    expect(worker).toMatchObject({ taken: [body.job_id] })
    expect(mx.lines()).toEqual([])
  })

  test('has stored all its rows in their order when it is answered', async () => {
    const { json, database } = await createTestService()
    const emails = emailsOf(1_234)
    const { job_id } = await json(PATH, { body: { emails } })
    const job = await database.db.selectFrom('job').selectAll().executeTakeFirstOrThrow()
    expect(job).toMatchObject({ id: job_id, state: 'queued', total: 1_234, account_id: 'acc_1' })
    const items = await database.db
      .selectFrom('item')
      .select(['position', 'text'])
      .orderBy('position')
      .execute()
    expect(items).toEqual(emails.map((text, n) => ({ position: n + 1, text })))
  })

  test('is instant up to ten addresses, and queued from eleven on', async () => {
    const { json } = await createTestService()
    expect(await json(PATH, { body: { emails: emailsOf(10) } })).toHaveProperty('instant', true)
    expect(await json(PATH, { body: { emails: emailsOf(11) } })).toHaveProperty('status', 'queued')
  })

  test('creates one job for an Idempotency-Key; the same key with another list is refused', async () => {
    const { request, database, worker } = await createTestService()
    const headers = { 'Idempotency-Key': 'one' }
    const send = (emails: string[]) => request(PATH, { body: { emails }, headers })
    const first = await send(emailsOf(11))
    const second = await send(emailsOf(11))
    expect(await second.text()).toBe(await first.text())
    expect((await send(emailsOf(12))).status).toBe(422)
    expect(await database.db.selectFrom('job').selectAll().execute()).toHaveLength(1)
    expect(worker.status().jobs).toBe(1)
  })
})

describe('a list is refused', () => {
  test.each<[string, unknown, string, RegExp]>([
    ['that is missing', {}, 'emails_required', /needs "emails", an array/],
    ['that is null', { emails: null }, 'emails_required', /needs "emails"/],
    ['that is a string', { emails: 'ann@a.test' }, 'emails_required', /needs "emails"/],
    ['that is empty', { emails: [] }, 'empty_list', /at least one address/],
    [
      'with more than 10,000',
      { emails: emailsOf(10_001) },
      'too_many_emails',
      /10,001 addresses; .*at most 10,000\. Use POST \/v1\/verify\/batch/,
    ],
    [
      'with more than the limit of a batch',
      { emails: Array(50_001).fill('') },
      'too_many_emails',
      /POST \/v1\/verify\/file/,
    ],
    [
      'that contains null',
      { emails: ['ann@a.test', null] },
      'invalid_request',
      /^"emails\[1\]" is null/,
    ],
    [
      'that contains a number',
      { emails: [7] },
      'invalid_request',
      /^"emails\[0\]" is 7; it must be a string/,
    ],
  ])('%s', async (_, body, code, error) => {
    const { request, database } = await createTestService()
    const response = await request(PATH, { body })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code, error: expect.stringMatching(error) })
    expect(await database.db.selectFrom('job').selectAll().execute()).toEqual([])
  })

  test('if its key lacks the scope', async () => {
    const { request, addKey } = await createTestService()
    const key = await addKey({ scopes: ['verify:single'] })
    expect((await request(PATH, { key, body: { emails: ['ann@a.test'] } })).status).toBe(403)
  })
})

test('a failure after the rows were stored leaves nothing behind', async () => {
  const fixture = await createTestService()
  const { database, ledger, service } = fixture
  const broken = {
    ...fixture,
    service: Object.assign(service, {
      secretBox: {
        ...service.secretBox,
        encrypt: () => {
          throw new Error('no seal')
        },
      },
    }),
  }
  const headers = { 'Idempotency-Key': 'one' }
  const response = await broken.request(PATH, { body: { emails: emailsOf(11) }, headers })
  expect(response.status).toBe(500)
  await ledger.flushed()
  expect(await database.db.selectFrom('job').selectAll().execute()).toEqual([])
  expect(await database.db.selectFrom('item').selectAll().execute()).toEqual([])
  expect(
    (await database.db.selectFrom('credit').select('held').execute()).map(c => c.held),
  ).toEqual([])
})
