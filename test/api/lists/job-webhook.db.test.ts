import { expect, test } from 'vitest'
import { createUploadService, form } from '../../support/list-form.ts'

const EMAILS = Array.from({ length: 11 }, (_, n) => `user${n}@a.test`)
const webhook_url = 'https://8.8.8.8/hook?token=x'

type Body = Readonly<Record<string, unknown>>

/** A service with an endpoint of the account. */
async function service() {
  const fixture = await createUploadService({ works: true })
  const { json, request, send, settled, database } = fixture
  const events = ['batch.completed', 'batch.failed', 'verification.completed']
  const { data } = (await json('/v1/webhooks', {
    body: { url: 'https://8.8.4.4/', events },
  })) as { data: { id: string } }
  const ask = {
    instant: (body: Body) =>
      request('/v1/verify/bulk', { body: { emails: ['ann@a.test'], ...body } }),
    bulk: (body: Body) => request('/v1/verify/bulk', { body: { emails: EMAILS, ...body } }),
    batch: (body: Body) => request('/v1/verify/batch', { body: { emails: EMAILS, ...body } }),
    file: (body: Body) =>
      send(
        form([
          ['file', { file: 'ann@a.test\n' }],
          ['webhook_url', `${body.webhook_url ?? ''}`],
        ]),
      ),
    single: (body: Body) =>
      request('/v1/verify/single', { body: { email: 'ann@a.test', async: true, ...body } }),
  }
  const submit = async (kind: keyof typeof ask, body: Body = { webhook_url }) => {
    const response = await settled(ask[kind](body))
    expect([kind, response.status]).toEqual([kind, 200])
    const fields = (await response.json()) as Record<string, string>
    const { job_id, verification_id, webhook_id = '', webhook_secret = '' } = fields
    return { id: job_id ?? verification_id ?? '', webhook_id, webhook_secret }
  }
  const finish = (id: string) => fixture.finished(id)
  /** The jobs of the events that each endpoint gets. */
  const deliveries = async () => {
    const rows = await database.db
      .selectFrom('delivery')
      .innerJoin('event', 'event.id', 'delivery.event_id')
      .select(['webhook_id', 'body'])
      .execute()
    return rows.map(({ webhook_id, body }) => {
      const { job_id, verification_id } = JSON.parse(body).data
      return [webhook_id, job_id ?? verification_id]
    })
  }
  return { ...fixture, ask, submit, finish, deliveries, endpointId: data.id }
}

test.each(['bulk', 'batch', 'file', 'single'] as const)(
  'the events of a %s go to its URL and to the endpoints of the account',
  async kind => {
    const { submit, finish, deliveries, endpointId, json } = await service()
    const { id, webhook_id } = await submit(kind)
    const other = await submit('batch', {})
    expect((await json(`/v1/jobs/${id}`)).webhook_id).toBe(webhook_id)
    expect(await json(`/v1/jobs/${other.id}`)).not.toHaveProperty('webhook_id')
    await finish(id)
    await finish(other.id)
    expect((await deliveries()).sort()).toEqual(
      [
        [endpointId, id],
        [endpointId, other.id],
        [webhook_id, id],
      ].sort(),
    )
  },
)

test('a list answered at once sends its event to its URL only', async () => {
  const { submit, deliveries } = await service()
  const { id, webhook_id } = await submit('instant')
  await submit('instant', {})
  expect(await deliveries()).toEqual([[webhook_id, id]])
})

test('the endpoint has the secret of the response, and is not one of the account', async () => {
  const { submit, json, database, service: deps } = await service()
  const { id, webhook_id, webhook_secret } = await submit('batch')
  expect(webhook_secret).toMatch(/^whsec_[a-z0-9]{32}$/)
  const row = await database.db
    .selectFrom('webhook')
    .select('secret')
    .where('id', '=', webhook_id)
    .executeTakeFirstOrThrow()
  expect(deps.secretBox.decrypt(row.secret)).toBe(webhook_secret)
  const shown = (await json(`/v1/webhooks/${webhook_id}`)) as { data: Body }
  expect(shown.data).toMatchObject({
    id: webhook_id,
    job_id: id,
    url: webhook_url,
    active: true,
    events: ['batch.completed', 'batch.failed'],
  })
  expect(shown.data).not.toHaveProperty('secret')
  const listed = (await json('/v1/webhooks')) as { data: { webhooks: Body[] } }
  expect(listed.data.webhooks.map(item => item.url)).toEqual(['https://8.8.4.4/'])
  const audit = (await json('/v1/audit?action=webhook.created')) as { data: { items: Body[] } }
  expect(JSON.stringify(audit.data.items[0])).toContain(webhook_id)
  expect(JSON.stringify(audit)).not.toContain('token')
})

test('a repeated request gets the same secret', async () => {
  const { json } = await service()
  const o = { body: { emails: EMAILS, webhook_url }, headers: { 'Idempotency-Key': 'k' } }
  const [first, second] = [await json('/v1/verify/batch', o), await json('/v1/verify/batch', o)]
  expect(first.webhook_secret).toMatch(/^whsec_/)
  expect(second).toEqual(first)
})

test('the endpoint is deleted with its job', async () => {
  const { submit, request } = await service()
  const { id, webhook_id } = await submit('batch')
  expect((await request(`/v1/webhooks/${webhook_id}`)).status).toBe(200)
  expect((await request(`/v1/jobs/${id}`, { method: 'DELETE' })).status).toBe(204)
  expect((await request(`/v1/webhooks/${webhook_id}`)).status).toBe(404)
})

test.each<[string, unknown, string]>([
  ['plain HTTP', 'http://8.8.8.8/', 'invalid_webhook_url'],
  ['a private address', 'https://10.0.0.1/', 'invalid_webhook_url'],
  ['a text that is no URL', 'x', 'invalid_webhook_url'],
])('%s is refused, and nothing is stored', async (_, url, code) => {
  const { ask, job, database } = await service()
  for (const kind of ['instant', 'bulk', 'batch', 'file', 'single'] as const) {
    const response = await ask[kind]({ webhook_url: url })
    const body = (await response.json()) as Body
    expect([kind, response.status, body.code]).toEqual([kind, 400, code])
    expect(body.error).toMatch(/^"webhook_url" is "/)
  }
  expect(await job()).toBeUndefined()
  expect(await database.db.selectFrom('webhook').select('id').execute()).toHaveLength(1)
})

test('a value that is no string, and a URL without a job, are refused', async () => {
  const { ask, request } = await service()
  expect(await (await ask.batch({ webhook_url: 7 })).json()).toMatchObject({
    error: '"webhook_url" is 7; it must be a string.',
  })
  const body = { email: 'ann@a.test', webhook_url }
  expect((await request('/v1/verify/single', { body })).status).toBe(400)
})
