import { describe, expect, test } from 'vitest'
import { isoTime } from '../../../src/platform/format.ts'
import { rowsOf } from '../../support/csv.ts'
import { createUploadService } from '../../support/list-form.ts'

const KEEP = { keep_external: 'true' }

/** An export of ZeroBounce with these rows, each with the age of its result in days. */
async function services() {
  const fixture = await createUploadService({ plan: 'free' })
  const at = (days: number) => isoTime(fixture.clock.now() - days * 86_400_000)
  const list = (rows: readonly (readonly [email: string, status: string, days: number])[]) =>
    ['Email Address,ZB Status,ZB Sub Status,ZB Processed At']
      .concat(rows.map(([email, status, days]) => `${email},${status},,${at(days)}`))
      .join('\n')
  const upload = async (file: string, fields: Readonly<Record<string, string>>) => {
    const response = await fixture.upload(file, fields)
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const download = async (id: unknown, query = '') =>
    (await fixture.request(`/v1/jobs/${id}/download?partial=1${query}`)).text()
  return { ...fixture, at, list, send: upload, download }
}

describe('POST /v1/verify/file with keep_external', () => {
  test('keeps recent results, which cost no credits, and queues the rest', async () => {
    const { list, send, download, at, json, job } = await services()
    const file = list([
      ['a@x.test', 'valid', 10],
      ['b@x.test', 'invalid', 10],
      ['c@x.test', 'valid', 100],
      ['d@x.test', 'unknown', 40],
    ])
    const { body } = await send(file, KEEP)
    expect(body).toMatchObject({
      total_emails: 4,
      external_source: 'zerobounce',
      kept_external: 2,
      message: expect.stringContaining(
        '2 rows keep the result of ZeroBounce; ev has not tested them. 2 results are too old',
      ),
    })
    expect(await job()).toMatchObject({ state: 'queued', total: 4, done: 2, held: 2 })
    const rows = rowsOf(await download(body.job_id))
    expect(rows.map(row => [row.ev_email, row.ev_reason, row.ev_checked_by])).toEqual([
      ['a@x.test', 'external_deliverable', 'zerobounce'],
      ['b@x.test', 'external_undeliverable', 'zerobounce'],
    ])
    expect(rows[0]).toMatchObject({ ev_checked_at: at(10), ev_smtp_valid: 'false' })
    const [shown] = (await download(body.job_id, '&format=ndjson')).split('\n')
    expect(JSON.parse(shown ?? '')).toMatchObject({
      reason: 'external_deliverable',
      checked_by: 'zerobounce',
    })
    const row = await json(`/v1/jobs/${body.job_id}/results/1`)
    expect(row).toMatchObject({
      data: {
        result: {
          checked_by: 'zerobounce',
          evidence: {
            answer: null,
            external: {
              by: 'zerobounce',
              status: 'valid',
              summary: 'ZeroBounce says "valid". ev has not tested this address.',
            },
          },
        },
      },
    })
    const page = await json(`/v1/jobs/${body.job_id}/results`)
    expect(page).toMatchObject({ data: { items: [{ checked_by: 'zerobounce' }, {}, {}, {}] } })
  })

  test('completes a list at once of which every row keeps its result', async () => {
    const { list, send, job, worker, database, json } = await services()
    const url = { url: 'https://8.8.4.4/', events: ['batch.completed'] }
    await json('/v1/webhooks', { body: url })
    const { body } = await send(list([['a@x.test', 'valid', 1]]), KEEP)
    expect(await job()).toMatchObject({ state: 'completed', total: 1, done: 1, deliverable: 1 })
    expect(worker).toMatchObject({ taken: [] })
    const events = await database.db.selectFrom('event').select('kind').execute()
    expect(events).toEqual([{ kind: 'batch.completed' }])
    expect(await json(`/v1/jobs/${body.job_id}`)).toMatchObject({ status: 'completed' })
  })

  test('previews what it would keep and cost', async () => {
    const { list, send, rows } = await services()
    const file = list([
      ['a@x.test', 'valid', 10],
      ['c@x.test', 'valid', 100],
    ])
    const { body } = await send(file, { ...KEEP, dry_run: 'true' })
    expect(body).toMatchObject({
      external_source: 'zerobounce',
      kept_external: 1,
      credits_needed: 1,
    })
    expect(await rows()).toEqual([])
    const without = await send(file, { dry_run: 'true' })
    expect(without.body).toMatchObject({
      external_source: 'zerobounce',
      kept_external: 0,
      credits_needed: 2,
    })
  })

  test('lets own reports decide', async () => {
    const { list, send, download, json, at } = await services()
    const bounce = { kind: 'bounced', code: 550, enhanced_code: '5.1.1', occurred_at: at(1) }
    const body = { items: [{ email: 'a@x.test', ...bounce }] }
    await json('/v1/feedback', { body })
    const queued = await send(list([['a@x.test', 'valid', 10]]), KEEP)
    expect(rowsOf(await download(queued.body.job_id))).toMatchObject([
      { ev_class: 'undeliverable', ev_reason: 'rejected_email', ev_checked_by: 'zerobounce' },
    ])
  })

  test('keeps nothing of unknown age, and says so', async () => {
    const { send, job } = await services()
    const { body } = await send('email,email_status\na@x.test,valid\n', KEEP)
    expect(body).toMatchObject({ external_source: 'neverbounce', kept_external: 0 })
    expect(body.message).toContain('1 result has no date that ev can read')
    expect(await job()).toMatchObject({ state: 'queued', done: 0 })
  })

  test('refuses a date that has several readings, or that is without use', async () => {
    const { send } = await services()
    const file = 'email,email_status\na@x.test,valid\n'
    const wrong = await send(file, { ...KEEP, external_date: '03/04/2026' })
    expect(wrong).toMatchObject({ status: 400 })
    expect(wrong.body.error).toContain('it must be a date such as 2026-03-01')
    expect(await send(file, { external_date: '2026-03-01' })).toMatchObject({ status: 400 })
  })
})
