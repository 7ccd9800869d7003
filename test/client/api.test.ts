import { describe, expect, test } from 'vitest'
import { type EvClient, verifyWebhook } from '../../src/client/client.ts'
import { createInProcessClient } from '../support/in-process-client.ts'
import { fakeDownload } from '../support/list-download.ts'
import { createScriptedClient, failureOf } from '../support/scripted-client.ts'
import { createTestService } from '../support/service.ts'
import { textRow, workbookOf } from '../support/workbook.ts'

/** URL of the webhooks in these tests. */
const LOCAL_ADDRESS = { webhookAllowRanges: ['192.0.2.0/24'] }
/** The same file by another URL. */
const LEFT_OUT = ['GET /v1/verify/bulk/download/{id}', 'POST /v1/feedback/{provider}/{id}']

test('each path of the API has a method, and each method a path', async () => {
  const { client, asked } = createScriptedClient([{ json: { data: { items: [] } } }])
  const { verify, jobs, keys, accounts, webhooks, events, feedback } = client
  const webhook = { url: 'https://app.example.com/', events: ['batch.completed' as const] }
  await Promise.all([
    ...[verify('a'), verify.single('a'), verify.later('a')],
    verify.form('a'),
    client.url('https://a.example/'),
    ...[client.bulk([]), client.bulkStatus('{id}'), client.batch([]), client.file('a')],
    ...[jobs.get('{id}'), jobs.list().page(), jobs.cancel('{id}'), jobs.delete('{id}')],
    jobs.finish('{id}'),
    ...[jobs.rows('{id}').page(), jobs.breakdown('{id}'), jobs.resume('{id}')],
    // The path of the document in place of a number.
    jobs.row('{id}', '{row}' as never),
    ...[jobs.reverify('{id}'), jobs.changes('{id}')],
    ...[client.schedules.list().page(), client.schedules.get('{id}')],
    client.schedules.create({ job_id: 'a', every_days: 30 }),
    ...[client.schedules.update('{id}', {}), client.schedules.delete('{id}')],
    failureOf(all(jobs.events('{id}'))),
    jobs.downloadUrl('{id}'),
    ...[jobs.download('{id}'), client.history().page(), client.credits(), client.stats()],
    client.domain('{domain}'),
    ...[client.limits(), client.account.get(), client.account.update({})],
    ...[
      keys.list(),
      keys.get('{id}'),
      keys.create({ name: 'a', scopes: ['*'] }),
      keys.update('{id}', {}),
    ],
    ...[keys.rotate('{id}'), keys.delete('{id}'), webhooks.list(), webhooks.get('{id}')],
    ...[webhooks.create(webhook), webhooks.update('{id}', {}), webhooks.replace('{id}', webhook)],
    ...[webhooks.delete('{id}'), webhooks.events(), webhooks.test('{id}')],
    ...[webhooks.rotateSecret('{id}'), webhooks.deliveries('{id}').page()],
    ...[webhooks.delivery('{id}', '{delivery_id}'), webhooks.retry('{id}', '{delivery_id}')],
    webhooks.recover('{id}', { since: '2026-03-21T00:00:00Z' }),
    ...[events.list().page(), events.get('{id}'), client.audit().page()],
    ...[
      accounts.list().page(),
      accounts.get('{id}'),
      accounts.update('{id}', {}),
      accounts.plans(),
    ],
    accounts.create({ name: 'a', plan: 'free' }),
    accounts.createKey('{id}', { name: 'a', scopes: ['*'] }),
    ...[client.people.list(), client.people.update('{id}', {}), client.people.link('{id}')],
    client.people.invite({ name: 'a', email: 'a@b.example', role: 'admin' }),
    ...[client.people.resetTwoFactor('{id}'), client.people.delete('{id}')],
    feedback.submit([{ email: 'a', kind: 'delivered' }]),
    ...[feedback.sources.list(), feedback.sources.create({ provider: 'postmark' })],
    ...[feedback.sources.delete('{id}'), feedback.report()],
  ])
  const { json } = await createTestService()
  const { paths } = (await json('/openapi.json')) as { paths: Record<string, object> }
  const known = Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`),
    )
    .filter(one => one.includes(' /v1/') && !LEFT_OUT.includes(one))
  const used = asked.map(({ method, path }) => `${method} ${decodeURI(path).replace(/\?.*/, '')}`)
  expect(new Set(used)).toEqual(new Set(known))
})

test('the options of each method are known to the API', async () => {
  const resources = await createTestService({
    settings: LOCAL_ADDRESS,
    deps: { download: fakeDownload },
  })
  const { client } = createInProcessClient(resources, { sandbox: true })
  const how = { email: 'valid@example.com', check_smtp: false, force_refresh: true }
  const include = ['flags', 'evidence'] as const
  await client.verify(how, { include })
  await client.verify.single(how, { include })
  await client.verify.single(how, { onStep: () => {} })
  const { job_id } = await client.bulk(['valid@example.com'])
  const asked = { check_smtp: false, force_refresh: true }
  await client.bulk({ emails: ['valid@example.com'], ...asked })
  const items = [{ email: 'valid@example.com', id: '1' }]
  await client.batch({ items, name: 'March', deduplicate: false, ...asked })
  const file = { column: 'email', header: true, name: 'March', deduplicate: false, ...asked }
  await client.file('email\nvalid@example.com\n', file)
  await client.preview('email\nvalid@example.com\n', file)
  const options = { ...file, encoding: 'utf-8', metadata: { a: 'b' }, notify: false }
  await client.url('https://files.example.com/a.csv', options)
  const s3 = { region: 'us-east-1', access_key_id: 'a', secret_access_key: 'b' }
  const bucket = { ...s3, endpoint: 'https://s3.example.com', session_token: 'c' }
  const preview = await client.previewUrl('s3://lists/a.csv', { s3: bucket, column: 1 })
  expect(preview).toMatchObject({ dry_run: true, rows: 2 })
  await client.bulkStatus(job_id, { partial: true, wait: 0 })
  await client.jobs.get(job_id, { include: 'results', partial: true, wait: 0 })
  await client.jobs.list({ limit: 1, status: 'completed' }).page()
  const rows = { class: ['deliverable'], reason: ['accepted_email'] } as const
  await client.jobs.rows(job_id, { ...rows, limit: 1, after: 0, search: 'a' }).page()
  await client.jobs.rows(job_id, { sort: 'email', order: 'desc', count: true }).page()
  const filter = ['deliverable'] as const
  const download = { format: 'csv', filter, partial: true, raw: true } as const
  expect(await new Response(await client.jobs.download(job_id, download)).text()).toContain('@')
  await client.history({ limit: 1, search: 'valid', source: 'bulk' }).page()
  await client.stats({ period: 'week' })
})

test('a workbook is sent with its sheet, and downloaded as a workbook', async () => {
  const resources = await createTestService({ settings: LOCAL_ADDRESS })
  const { client } = createInProcessClient(resources, { sandbox: true })
  const sheets = { Notes: textRow('a note'), List: textRow('email') + textRow('valid@example.com') }
  const file = new Blob([await workbookOf({ sheets })])
  expect(await client.preview(file, { sheet: 'List' })).toMatchObject({
    format: 'xlsx',
    sheet: 'List',
    sheets: ['Notes', 'List'],
    rows: 1,
  })
  const { job_id, sheet } = await client.file(file, { sheet: 'List' })
  expect(sheet).toBe('List')
  const bytes = await client.jobs.download(job_id, { format: 'xlsx', partial: true })
  expect((await new Response(bytes).text()).slice(0, 2)).toBe('PK')
})

describe('a request whose response was lost is applied once', () => {
  const EMAILS = Array.from({ length: 11 }, (_, index) => `valid${index}@example.com`)
  const webhook = { url: 'https://192.0.2.7/hook', events: ['batch.completed' as const] }
  const NOTHING = { jobs: 0, keys: 0, webhooks: 0 }

  test.each<[string, (client: EvClient) => Promise<unknown>, Partial<typeof NOTHING>]>([
    ['an asynchronous address', ({ verify }) => verify.later('user@example.com'), {}],
    ['a short list', ({ bulk }) => bulk(['valid@example.com']), { jobs: 1 }],
    ['a long list', ({ bulk }) => bulk(EMAILS), { jobs: 1 }],
    ['a batch', ({ batch }) => batch({ emails: EMAILS, name: 'March' }), { jobs: 1 }],
    ['a file', ({ file }) => file(`email\n${EMAILS.join('\n')}\n`, { name: 'April' }), { jobs: 1 }],
    ['a key', ({ keys }) => keys.create({ name: 'CI', scopes: ['jobs:read'] }), { keys: 1 }],
    ['a new secret of a key', ({ keys }) => keys.rotate('key_1', { grace_period_seconds: 60 }), {}],
    ['a webhook', ({ webhooks }) => webhooks.create(webhook), { webhooks: 1 }],
  ])('%s', async (_, call, made) => {
    const resources = await createTestService({ settings: LOCAL_ADDRESS })
    const { client, seen } = createInProcessClient(resources, { lose: 2, sandbox: true })
    await call(client)
    // The first two responses were lost before the client saw them.
    expect(seen.map(({ attempt, replayed }) => [attempt, replayed])).toEqual([[2, true]])
    const { client: other } = createInProcessClient(resources, { sandbox: true })
    expect({
      jobs: (await other.jobs.list().page()).items.length,
      // The calling key existed before.
      keys: (await other.keys.list()).length - 1,
      webhooks: (await other.webhooks.list()).length,
    }).toEqual({ ...NOTHING, ...made })
  })
})

describe('a webhook operation whose response was lost', () => {
  const url = 'https://192.0.2.7/hook'

  test('is applied once', async () => {
    const resources = await createTestService({ settings: LOCAL_ADDRESS })
    const { id } = await createInProcessClient(resources).client.webhooks.create({
      url,
      events: ['batch.completed'],
    })
    const { client, seen } = createInProcessClient(resources, { lose: 2 })
    expect(await client.webhooks.test(id)).toMatchObject({ status: 'delivered' })
    expect(seen.map(({ attempt, replayed }) => [attempt, replayed])).toEqual([[2, true]])
    expect(resources.post.sent).toHaveLength(1)
  })

  test('signs with the returned secret', async () => {
    const resources = await createTestService({ settings: LOCAL_ADDRESS })
    const { id } = await createInProcessClient(resources).client.webhooks.create({
      url,
      events: ['batch.completed'],
    })
    const { client } = createInProcessClient(resources, { lose: 2 })
    const { secret } = await client.webhooks.rotateSecret(id, { grace_period_seconds: 0 })
    await createInProcessClient(resources).client.webhooks.test(id)
    const [{ body = '', headers = {} } = {}] = resources.post.sent
    const { now } = resources.clock
    expect(await verifyWebhook(body, headers, secret, { now })).toMatchObject({
      event: 'webhook.test',
      data: { webhook_id: id },
    })
  })
})

test('a webhook test waits for the receiver and the service', async () => {
  const { client, waits } = createScriptedClient([{ json: { data: {} } }])
  await client.webhooks.test('wh_1', { event: 'batch.failed' })
  await client.webhooks.retry('wh_1', 'dlv_1')
  expect(waits).toEqual([45_000])
})

describe('with the service', () => {
  test('verifies one address, and scores it in the sandbox', async () => {
    const { client, seen } = createInProcessClient(await createTestService(), { sandbox: true })
    expect(await client.verify.single('role@example.com')).toMatchObject({
      email: 'role@example.com',
      reason: 'role_account',
      sandbox: true,
    })
    const verified = await client.verify.single('valid@example.com', { include: ['flags'] })
    expect(verified.flags?.is_role).toBe(false)
    expect(await client.verify({ email: 'disposable@example.com' })).toMatchObject({
      status: 'risky',
      score: 30,
      is_disposable: true,
    })
    expect(seen.map(({ rateLimit }) => rateLimit === null)).toEqual([false, false, false])
    expect(seen[0]?.requestId).toMatch(/^req_/)
  })

  test.each([
    ['error-auth', 401, 'authentication_error', null],
    ['error-ratelimit', 429, 'rate_limit', 60_000],
    ['error-timeout', 504, 'timeout', null],
    ['error-server', 500, 'server_error', null],
  ])('throws a simulated error: %s', async (prefix, status, code, retryAfterMs) => {
    const { client } = createInProcessClient(await createTestService(), {
      sandbox: true,
      retries: 0,
    })
    const error = await failureOf(client.verify.single(`${prefix}@example.com`))
    expect(error).toMatchObject({ name: 'EvApiError', status, code, retryAfterMs })
  })

  test('a refused call has the reason', async () => {
    const resources = await createTestService()
    const { client } = createInProcessClient(resources)
    const error = await failureOf(client.verify.single('a b@example.com'))
    expect(error).toMatchObject({ status: 400, code: 'invalid_email' })
    expect(error).toMatchObject({ requestId: expect.stringMatching(/^req_/) })
    expect(await failureOf(client.jobs.get('job_none'))).toMatchObject({ code: 'not_found' })
    const withUnknownKey = createInProcessClient(resources, { apiKey: 'ev_live_none' }).client
    expect(await failureOf(withUnknownKey.credits())).toMatchObject({
      status: 401,
      code: 'authentication_error',
    })
  })

  test('an instant list can be downloaded in every format', async () => {
    const { client } = createInProcessClient(await createTestService(), { sandbox: true })
    const bulk = await client.bulk(['valid@example.com', 'invalid@example.com', 'no address'])
    if (!('instant' in bulk)) throw new Error('It is not answered at once.')
    expect(bulk.results.map(({ reason }) => reason)).toEqual([
      'accepted_email',
      'rejected_email',
      'invalid_email',
    ])
    const { jobs } = client
    const rows = await all(jobs.results(bulk.job_id, { filter: ['undeliverable'] }))
    expect(rows.map(({ row, email }) => `${row} ${email}`)).toEqual([
      '2 invalid@example.com',
      '3 no address',
    ])
    const unwanted = jobs.rows(bulk.job_id, { class: ['undeliverable'], limit: 1, after: 1 })
    expect((await all(unwanted)).map(({ row, reason }) => `${row} ${reason}`)).toEqual([
      '2 rejected_email',
      '3 invalid_email',
    ])
    const found = jobs.rows(bulk.job_id, { search: 'VALID@', reason: ['accepted_email'] })
    expect((await all(found)).map(({ row }) => row)).toEqual([1])
    expect((await jobs.breakdown(bulk.job_id)).classes).toMatchObject({ undeliverable: 2 })
    const records = await all(jobs.csv(bulk.job_id))
    expect(records[0]).toMatch(/^email,valid,deliverable,risk_level,reason,cached,/)
    expect(records).toHaveLength(4)
    const file = await jobs.download(bulk.job_id, { format: 'json' })
    expect(await new Response(file).json()).toHaveLength(3)
    const { data } = await client.bulkStatus(bulk.job_id)
    expect(data.results).toHaveLength(3)
    expect((await jobs.get(bulk.job_id)).data.results).toBeUndefined()
    expect((await jobs.get(bulk.job_id, { include: 'results' })).data.results).toHaveLength(3)
  })

  test('a batch is found, finished, cancelled, waited for, resumed and deleted', async () => {
    const { client } = createInProcessClient(await createTestService())
    const { job_id } = await client.batch(['a@example.com', 'b@example.com'])
    expect(await client.jobs.get(job_id)).toMatchObject({ status: 'queued', total_emails: 2 })
    expect((await all(client.jobs.list())).map(job => job.job_id)).toEqual([job_id])
    expect(await all(client.jobs.list({ metadata: { customer: '42' } }))).toEqual([])
    expect(await failureOf(client.jobs.download(job_id))).toMatchObject({ code: 'job_not_ready' })
    expect(await client.jobs.finish(job_id)).toMatchObject({
      status: 'queued',
      finish_requested_at: expect.stringMatching(/Z$/),
    })
    expect(await client.jobs.cancel(job_id)).toMatchObject({ status: 'cancelled' })
    expect(await client.waitForJob(job_id)).toMatchObject({ status: 'cancelled' })
    expect(await all(client.jobs.events(job_id))).toMatchObject([{ status: 'cancelled' }])
    expect(await client.jobs.resume(job_id)).toMatchObject({ status: 'queued' })
    expect(await failureOf(client.jobs.resume(job_id))).toMatchObject({ code: 'job_not_resumable' })
    await client.jobs.cancel(job_id)
    expect(await client.jobs.delete(job_id)).toBeUndefined()
    expect(await failureOf(client.jobs.get(job_id))).toMatchObject({ status: 404 })
  })

  test('keys are created, updated, rotated and deleted', async () => {
    const resources = await createTestService()
    const { client } = createInProcessClient(resources)
    const made = await client.keys.create({ name: 'CI', scopes: ['account:read'] })
    const ofCi = createInProcessClient(resources, { apiKey: made.key }).client
    expect(await ofCi.credits()).toMatchObject({ api_key_name: 'CI' })
    expect(await failureOf(ofCi.keys.list())).toMatchObject({ code: 'insufficient_scope' })
    expect(await client.keys.update(made.id, { name: 'CI 2' })).toMatchObject({ name: 'CI 2' })
    expect(await client.keys.get(made.id)).toMatchObject({ name: 'CI 2' })
    const rotated = await client.keys.rotate(made.id, { grace_period_seconds: 60 })
    expect(rotated.key).not.toBe(made.key)
    await client.keys.delete(made.id)
    expect(await failureOf(ofCi.credits())).toMatchObject({ status: 401 })
    expect(await failureOf(client.keys.delete('key_1'))).toMatchObject({ code: 'last_key' })
    await client.keys.delete('key_1', { force: true })
    expect(await failureOf(client.keys.list())).toMatchObject({ code: 'key_revoked' })
  })

  test('webhooks are created, updated and deleted', async () => {
    const { client } = createInProcessClient(await createTestService({ settings: LOCAL_ADDRESS }))
    const made = await client.webhooks.create({
      url: 'https://192.0.2.7/hook',
      events: ['batch.completed'],
    })
    expect(made.secret).toMatch(/^whsec_/)
    expect(await client.webhooks.update(made.id, { active: false })).toMatchObject({
      active: false,
    })
    expect(await client.webhooks.list()).toHaveLength(1)
    await client.webhooks.delete(made.id)
    expect(await failureOf(client.webhooks.get(made.id))).toMatchObject({ code: 'not_found' })
    expect((await client.webhooks.events()).map(({ event }) => event)).toContain('quota.warning')
  })

  test('webhooks are tested, and deliveries are listed and retried', async () => {
    const resources = await createTestService({ settings: LOCAL_ADDRESS })
    const { webhooks } = createInProcessClient(resources).client
    const url = 'https://192.0.2.7/hook'
    const { id, secret } = await webhooks.create({ url, events: ['batch.completed'] })
    resources.post.answer(500)
    const tried = await webhooks.test(id)
    expect(tried).toMatchObject({ event: 'webhook.test', status: 'failed', status_code: 500 })
    await webhooks.test(id)
    const ids = (await all(webhooks.deliveries(id, { status: 'failed', limit: 1 }))).map(
      delivery => delivery.id,
    )
    expect(ids).toHaveLength(2)
    expect(ids[1]).toBe(tried.delivery_id)
    expect((await webhooks.deliveries(id, { event: 'batch.failed' }).page()).items).toEqual([])
    expect(await webhooks.delivery(id, tried.delivery_id)).toMatchObject({
      request: { url },
      response: { status_code: 500 },
      attempts: [{ number: 1 }],
    })
    expect(await webhooks.retry(id, tried.delivery_id)).toMatchObject({ status: 'pending' })
    expect(await webhooks.recover(id, { since: '2026-03-21T00:00:00Z' })).toEqual({ recovered: 0 })
    const rotated = await webhooks.rotateSecret(id)
    expect(rotated.secret).not.toBe(secret)
    expect((await webhooks.get(id)).previous_secret_expires_at).toBe(
      rotated.previous_secret_expires_at,
    )
    expect(await failureOf(webhooks.delivery(id, 'dlv_none'))).toMatchObject({ code: 'not_found' })
  })

  test('account statistics are returned', async () => {
    const { client } = createInProcessClient(await createTestService({ plan: 'free' }))
    expect(await client.credits()).toMatchObject({ plan: 'free', credits_balance: 100 })
    expect((await client.limits()).map(({ name }) => name)).toContain('credits')
    expect(await client.stats({ period: 'week' })).toMatchObject({ period: 'week' })
    expect(await all(client.history({ limit: 1 }))).toEqual([])
  })
})

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const got: T[] = []
  for await (const item of items) got.push(item)
  return got
}
