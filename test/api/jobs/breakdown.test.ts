import { describe, expect, test } from 'vitest'
import type { Database } from '../../../src/db/database.ts'
import { write } from '../../../src/db/database.ts'
import { CHUNK_ROWS } from '../../../src/db/paging.ts'
import { recordResults } from '../../../src/jobs/item-store.ts'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { SECOND } from '../../../src/platform/clock.ts'
import { MIXED, ofJob, seedJob } from '../../support/job-rows.ts'
import { createTestService } from '../../support/service.ts'

describe('the breakdown of a job', () => {
  const BREAKDOWN = '/v1/jobs/job_a/breakdown'

  test('counts its results by class, reason and operator', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: [...MIXED, 'valid@a.example', 'later@a.example'], done: 7 })
    const classes = { deliverable: 2, risky: 2, undeliverable: 1, unknown: 2 }
    expect(await json(BREAKDOWN)).toEqual({
      success: true,
      data: {
        total: 8,
        done: 7,
        classes,
        reasons: [
          { reason: 'accepted_email', class: 'deliverable', count: 2 },
          { reason: 'low_deliverability', class: 'risky', count: 1 },
          { reason: 'rejected_email', class: 'undeliverable', count: 1 },
          { reason: 'role_account', class: 'risky', count: 1 },
          { reason: 'timeout', class: 'unknown', count: 1 },
          { reason: 'unexpected_error', class: 'unknown', count: 1 },
        ],
        operators: [{ operator: null, count: 7, classes }],
        operators_left: 0,
        actions: { send: 2, send_with_care: 2, retry_later: 2, suppress: 1 },
        projection: {
          before: {
            addresses: 7,
            bounce_rate: expect.any(Number),
            bounce_rate_min: expect.any(Number),
            bounce_rate_max: expect.any(Number),
          },
          after: expect.objectContaining({ addresses: 4 }),
          reports: 0,
          complaint_rate: null,
          limits: { ses_bounce_review: 0.05, ses_bounce_pause: 0.1, gmail_complaints: 0.003 },
        },
      },
    })
  })

  test('projects the bounces of mail to the rows with the actions of the query', async () => {
    const { database, json } = await createTestService()
    const texts = ['valid1@a.example', 'valid2@a.example', 'role@a.example', 'invalid@a.example']
    await seedJob(database, { texts })
    const projectionOf = async (query: string) => {
      const { data } = await json(`${BREAKDOWN}${query}`)
      return (data as { projection: Record<string, unknown> }).projection
    }
    const { before, after } = await projectionOf('')
    expect(await projectionOf('')).not.toHaveProperty('selected')
    expect(await projectionOf('?action=send,send_with_care')).toMatchObject({ selected: after })
    expect(await projectionOf('?action=send,send_with_care,suppress,retry_later')).toMatchObject({
      selected: before,
    })
    expect(await projectionOf('?action=suppress')).toMatchObject({ selected: { addresses: 1 } })
    expect(await json(`${BREAKDOWN}?action=mail`)).toMatchObject({ code: 'invalid_request' })
  })

  test('projects bounces by the reports of the account, and has its complaints', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: ['valid1@a.example', 'valid2@a.example'] })
    const rates = async () => {
      const { data } = await json(BREAKDOWN)
      return (data as { projection: { reports: number; after: { bounce_rate: number } } })
        .projection
    }
    expect(await rates()).toMatchObject({ reports: 0, after: { bounce_rate: 0.02 } })
    const report = (kind: string, n: number) => ({ email: `user${n}@b.example`, kind })
    const reported = Array.from({ length: 40 }, (_, n) =>
      report(n === 0 ? 'complained' : 'delivered', n),
    )
    await json('/v1/feedback', { body: { items: reported } })
    await database.db
      .insertInto('feedback_count')
      .values({
        account_id: 'acc_1',
        period: database.clock.now(),
        reason: 'accepted_email',
        operator: '',
        confidence: 95,
        correct: 0,
        wrong: 300,
      })
      .execute()
    const after = await rates()
    expect(after).toMatchObject({ reports: 300, complaint_rate: 0.0256 })
    expect(after.after.bounce_rate).toBeGreaterThan(0.8)
  })

  test('counts a reason by the classes of its rows, which feedback may have changed', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: [1, 2, 3].map(n => `catchall${n}@a.example`) })
    await database.db
      .updateTable('item')
      .set({ class: 'deliverable' })
      .where('position', '<', 3)
      .execute()
    expect((await json(BREAKDOWN)).data).toMatchObject({
      classes: { deliverable: 2, risky: 1 },
      reasons: [
        { reason: 'catch_all', class: 'deliverable', count: 2 },
        { reason: 'catch_all', class: 'risky', count: 1 },
      ],
    })
  })

  test('is cached when the job has finished', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED })
    const first = await json(BREAKDOWN)
    await database.db.deleteFrom('item').execute()
    expect(await json(BREAKDOWN)).toEqual(first)
  })

  test('of a running job is recounted after a second, and when it finishes', async () => {
    const { database, json, clock } = await createTestService()
    await seedJob(database, { texts: ['valid@a.example', 'b@a.example', 'c@a.example'], done: 1 })
    const done = async () => ((await json(BREAKDOWN)).data as { done: number }).done
    expect(await done()).toBe(1)
    const more = (position: number) =>
      write(database, trx =>
        recordResults(trx, ofJob('job_a', [{ position, result: 'null', class: 'risky' }])),
      )
    await more(2)
    expect(await done()).toBe(1)
    await clock.advance(1_000)
    expect(await done()).toBe(2)
    await more(3)
    await cancelJob(database, 'job_a')
    expect(await done()).toBe(3)
  })

  test('of a running job is recounted less often if counting takes long', async () => {
    const { database, json, clock, service } = await createTestService()
    await seedJob(database, { texts: ['valid@a.example', 'b@a.example'], done: 1 })
    const done = async () => ((await json(BREAKDOWN)).data as { done: number }).done
    const reader = service.database.reader as Database['db']
    const slow = reader.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => {
        if (result.rows.some(row => 'count' in row)) await clock.advance(SECOND)
        return result
      },
    })
    Object.assign(service.database, { reader: slow })
    expect(await done()).toBe(1)
    await write(database, trx =>
      recordResults(trx, ofJob('job_a', [{ position: 2, result: 'null', class: 'risky' }])),
    )
    await clock.advance(49 * SECOND)
    expect(await done()).toBe(1)
    await clock.advance(SECOND)
    expect(await done()).toBe(2)
  })

  test('is counted once for concurrent requests', async () => {
    const { database, json, service } = await createTestService()
    const texts = Array.from({ length: 2_500 }, (_, n) => `valid${n}@a.example`)
    await seedJob(database, { texts })
    let counted = 0
    const reader = service.database.reader as Database['db']
    const counting = reader.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => {
        if (result.rows.some(row => 'count' in row)) counted++
        return result
      },
    })
    Object.assign(service.database, { reader: counting })
    const [one, two] = await Promise.all([json(BREAKDOWN), json(BREAKDOWN)])
    expect(one).toEqual(two)
    expect(one.data).toMatchObject({ done: 2_500 })
    expect(counted).toBe(2_500 / CHUNK_ROWS)
  })

  test('of a job that is deleted meanwhile returns 404', async () => {
    const { database, request } = await createTestService()
    await seedJob(database, { texts: Array.from({ length: 2_500 }, (_, n) => `v${n}@a.example`) })
    const [counted] = await Promise.all([
      request(BREAKDOWN),
      database.db.updateTable('job').set({ state: 'loading', finished_at: null }).execute(),
    ])
    expect(counted.status).toBe(404)
  })

  test('is shown to a key that may read jobs, and to no other', async () => {
    const { database, request, addKey } = await createTestService()
    await seedJob(database, { texts: MIXED })
    const reader = await addKey({ scopes: ['jobs:read'] })
    const other = await addKey({ scopes: ['jobs:write', 'account:read'] })
    expect((await request(BREAKDOWN, { key: reader })).status).toBe(200)
    expect((await request(BREAKDOWN, { key: other })).status).toBe(403)
    expect((await request('/v1/jobs/job_none/breakdown')).status).toBe(404)
  })
})
