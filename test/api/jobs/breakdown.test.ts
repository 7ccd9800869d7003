import { describe, expect, test } from 'vitest'
import type { Database } from '../../../src/db/database.ts'
import { CHUNK_ROWS } from '../../../src/db/paging.ts'
import { SECOND, sleep } from '../../../src/platform/clock.ts'
import { mail, toRecipients } from '../../support/engine.ts'
import { MIXED } from '../../support/job-rows.ts'
import { createSimulatedList } from '../../support/list-service.ts'
import type { MxSession } from '../../support/mx.ts'
import { createTestService } from '../../support/service.ts'

describe('the breakdown of a job', () => {
  test('counts its results by class, reason and operator', async () => {
    const { path, json } = await createSimulatedList([...MIXED, 'valid@a.example'])
    const classes = { deliverable: 2, risky: 2, undeliverable: 1, unknown: 2 }
    expect(await json(`${path}/breakdown`)).toEqual({
      success: true,
      data: {
        total: 7,
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
    const texts = ['valid1@a.example', 'valid2@a.example', 'role@a.example', 'invalid@a.example']
    const { path, json } = await createSimulatedList(texts)
    const projectionOf = async (query: string) => {
      const { data } = await json(`${path}/breakdown${query}`)
      return (data as { projection: Record<string, unknown> }).projection
    }
    const { before, after } = await projectionOf('')
    expect(await projectionOf('')).not.toHaveProperty('selected')
    expect(await projectionOf('?action=send,send_with_care')).toMatchObject({ selected: after })
    expect(await projectionOf('?action=send,send_with_care,suppress,retry_later')).toMatchObject({
      selected: before,
    })
    expect(await projectionOf('?action=suppress')).toMatchObject({ selected: { addresses: 1 } })
    expect(await json(`${path}/breakdown?action=mail`)).toMatchObject({ code: 'invalid_request' })
  })

  test('projects bounces by the reports of the account, and has its complaints', async () => {
    const { path, database, json } = await createSimulatedList([
      ...['valid1@a.example', 'valid2@a.example'],
    ])
    const rates = async () => {
      const { data } = await json(`${path}/breakdown`)
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
    const texts = [1, 2, 3].map(n => `catchall${n}@a.example`)
    const { path, database, json } = await createSimulatedList(texts)
    await database.db
      .updateTable('item')
      .set({ class: 'deliverable' })
      .where('position', '<', 3)
      .execute()
    expect((await json(`${path}/breakdown`)).data).toMatchObject({
      classes: { deliverable: 2, risky: 1 },
      reasons: [
        { reason: 'catch_all', class: 'deliverable', count: 2 },
        { reason: 'catch_all', class: 'risky', count: 1 },
      ],
    })
  })

  test('is cached when the job has finished', async () => {
    const { path, database, json } = await createSimulatedList(MIXED)
    const first = await json(`${path}/breakdown`)
    await database.db.deleteFrom('item').execute()
    expect(await json(`${path}/breakdown`)).toEqual(first)
  })

  /** A list whose rows get their results after these times. */
  async function createSlowList(...delaysMs: readonly number[]) {
    const knows = toRecipients(to => (to.startsWith('user') ? '250 Ok' : '550 5.1.1 No such user'))
    const domains = delaysMs.map((_, n) => `d${n}.test`)
    const zone = Object.assign({}, ...domains.map((name, n) => mail(name, `192.0.2.${n + 10}`)))
    const script = async (line: string, session: MxSession) => {
      if (line.startsWith('RCPT TO:<user')) {
        await sleep(service.clock, delaysMs[domains.indexOf(line.slice(14, -1))] ?? 0)
      }
      return knows(line, session)
    }
    const service = await createTestService({ works: true, engine: { script, zone } })
    const id = await service.submit(domains.map(domain => `user@${domain}`))
    const path = `/v1/jobs/${id}`
    await service.clock.advance(200)
    const counted = async () => {
      const response = await service.request(`${path}/breakdown`)
      return ((await response.json()) as { data: { done: number } }).data.done
    }
    return { ...service, path, counted }
  }

  test('of a running job is recounted after a second, and when it finishes', async () => {
    const { counted, clock } = await createSlowList(0, 700, 1_500)
    expect(await counted()).toBe(1)
    await clock.advance(900)
    expect(await counted()).toBe(1)
    await clock.advance(100)
    expect(await counted()).toBe(2)
    await clock.advance(700)
    expect(await counted()).toBe(3)
  })

  test('of a running job is recounted less often if counting takes long', async () => {
    const { counted, clock, service } = await createSlowList(0, 1_000, 30 * SECOND)
    const reader = service.database.reader as Database['db']
    const slow = reader.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => {
        if (result.rows.some(row => 'count' in row)) await clock.advance(100)
        return result
      },
    })
    Object.assign(service.database, { reader: slow })
    expect(await counted()).toBe(1)
    await clock.advance(4_900)
    expect(await counted()).toBe(1)
    await clock.advance(100)
    expect(await counted()).toBe(2)
  })

  test('is counted once for concurrent requests', async () => {
    const texts = Array.from({ length: 2_500 }, (_, n) => `valid${n}@a.example`)
    const { path, json, service } = await createSimulatedList(texts)
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
    const [one, two] = await Promise.all([json(`${path}/breakdown`), json(`${path}/breakdown`)])
    expect(one).toEqual(two)
    expect(one.data).toMatchObject({ done: 2_500 })
    expect(counted).toBe(2_500 / CHUNK_ROWS)
  })

  test('of a job that is deleted meanwhile returns 404', async () => {
    const texts = Array.from({ length: 2_500 }, (_, n) => `v${n}@a.example`)
    const { path, request } = await createSimulatedList(texts)
    const [counted] = await Promise.all([
      request(`${path}/breakdown`),
      request(path, { method: 'DELETE' }),
    ])
    expect(counted.status).toBe(404)
  })

  test('is shown to a key that may read jobs, and to no other', async () => {
    const { path, request, addKey } = await createSimulatedList(MIXED)
    const reader = await addKey({ scopes: ['jobs:read'] })
    const other = await addKey({ scopes: ['jobs:write', 'account:read'] })
    expect((await request(`${path}/breakdown`, { key: reader })).status).toBe(200)
    expect((await request(`${path}/breakdown`, { key: other })).status).toBe(403)
    expect((await request('/v1/jobs/job_none/breakdown')).status).toBe(404)
  })
})
