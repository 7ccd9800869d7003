import { describe, expect, test } from 'vitest'
import { EvApiError } from '../../../src/client/client.ts'
import { runEv } from '../../support/cli.ts'
import { rowsOf } from '../../support/csv.ts'
import { waitUntil } from '../../support/wait.ts'
import {
  client,
  collect,
  FREE_CREDITS,
  home,
  post,
  sendRequest,
  simulator,
  useService,
} from './session.ts'

useService()

describe('one address', () => {
  test.each([
    ['user1@polite.test', 'accepted_email', 'low'],
    ['nobody@polite.test', 'rejected_email', 'high'],
    ['user1@everything.test', 'catch_all', 'medium'],
    ['user1@no-mail.test', 'does_not_accept_mail', 'high'],
    ['user1@blocked.test', 'probe_blocked', 'unknown'],
    ['info@polite.test', 'role_account', 'medium'],
  ])('%s is %s', async (email, reason, risk_level) => {
    expect(await client().verify.single(email)).toMatchObject({ email, reason, risk_level })
  })

  test('returns its flags and evidence, and is cached from then on', async () => {
    const include = ['flags', 'evidence'] as const
    const verify = () => client().verify.single('user1@polite.test', { include })
    // Answers are stored in batches, after the response.
    await waitUntil(async () => (await verify()).cached)
    const result = await verify()
    expect(result).toMatchObject({ cached: true, class: 'deliverable', mx_host: 'mx.polite.test' })
    expect(JSON.stringify(result.evidence)).toContain('250')
  })

  test('requested as async becomes a job', async () => {
    const { verification_id } = await client().verify.later('user2@polite.test')
    expect(await client().waitForJob(verification_id)).toMatchObject({
      type: 'single',
      status: 'completed',
      data: { summary: { total: 1, valid: 1 } },
    })
  })
})

test('a short list is answered at once', async () => {
  const pending = await client().bulk(['user3@polite.test', 'gone3@polite.test', 'no address'])
  expect(pending).toMatchObject({
    instant: true,
    status: 'completed',
    total_emails: 3,
    valid_emails: 2,
    invalid_format_emails: 1,
    summary: { total: 3, valid: 1, invalid: 2 },
    results: [
      { reason: 'accepted_email' },
      { reason: 'rejected_email' },
      { email: 'no address', reason: 'invalid_email' },
    ],
  })
})

test('a file keeps its columns, and its address column can be selected', async () => {
  const list = 'name;old;mail\nZoë;a@b.test;user5@polite.test\n"A; B";c@d.test;gone5@polite.test\n'
  const queued = await client().file(list, { column: 'mail', name: 'A file', filename: 'a.csv' })
  expect(queued).toMatchObject({ column: 'mail', column_number: 3, header: true, rows: 2 })
  await client().waitForJob(queued.job_id)
  const text = await new Response(await client().jobs.download(queued.job_id)).text()
  expect(text).toMatch(/^name;old;mail;ev_class;/)
  expect(rowsOf(text, ';')).toMatchObject([
    { name: 'Zoë', old: 'a@b.test', mail: 'user5@polite.test', ev_reason: 'accepted_email' },
    { name: 'A; B', mail: 'gone5@polite.test', ev_reason: 'rejected_email' },
  ])
})

test('the history of an address is found regardless of upper and lower case', async () => {
  const rows = await collect(client().history({ email: 'USER5@polite.test' }))
  expect(rows).toMatchObject([{ source: 'file', reason: 'accepted_email' }])
})

describe('the sandbox', () => {
  test.each([
    ['valid', 'deliverable'],
    ['invalid', 'undeliverable'],
    ['risky', 'risky'],
    ['catchall', 'risky'],
    ['disposable', 'risky'],
    ['role', 'risky'],
  ])('simulates %s@…', async (prefix, status) => {
    const result = await client({ sandbox: true }).verify(`${prefix}@example.com`)
    expect(result).toMatchObject({ status, sandbox: true })
  })

  test.each([
    ['error-auth', 401, { error: 'authentication_error' }],
    ['error-ratelimit', 429, { error: 'rate_limit', retry_after: 60 }],
    ['error-timeout', 504, { error: 'timeout' }],
    ['error-server', 500, { error: 'server_error' }],
  ])('simulates %s@…', async (prefix, status, body) => {
    const request = client({ sandbox: true, retries: 0 }).verify.single(`${prefix}@example.com`)
    const error = await request.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(EvApiError)
    expect(error).toMatchObject({ status, body })
  })

  test('has separate lists and history, and contacts no mail server', async () => {
    const before = simulator.counters().total.connections
    const sandbox = client({ sandbox: true })
    const { job_id } = await sandbox.batch(['valid@polite.test', 'invalid@polite.test'])
    expect(job_id).toMatch(/^job_sbx_/)
    const job = await sandbox.waitForJob(job_id)
    expect(job).toMatchObject({ sandbox: true, data: { summary: { valid: 1, invalid: 1 } } })
    expect((await collect(sandbox.history())).map(({ job_id: of }) => of)).toContain(job_id)
    expect((await collect(client().jobs.list())).map(one => one.job_id)).not.toContain(job_id)
    expect(simulator.counters().total.connections).toBe(before)
  })
})

describe('every error', () => {
  /** Returns the status and code of an error, and checks its message, request ID and headers. */
  async function checkError(pending: Response | Promise<Response>): Promise<[number, string]> {
    const response = await pending
    const body = (await response.json()) as Record<string, unknown>
    expect(body).toMatchObject({ success: false, error: expect.stringMatching(/\w/) })
    expect(body.request_id).toBe(response.headers.get('X-Request-Id'))
    for (const name of ['Limit', 'Remaining', 'Reset']) {
      expect(response.headers.get(`X-RateLimit-${name}`), name).toMatch(/^\d+$/)
    }
    if (response.status === 429) expect(response.headers.get('Retry-After')).toMatch(/^[1-9]\d*$/)
    return [response.status, String(body.code)]
  }

  const as = (text: string) => ({ Authorization: `Bearer ${text}` })
  const newKey = (o: object = {}) =>
    client().keys.create({ name: 'errors', scopes: ['verify:single'], ...o })
  const single = (headers: Record<string, string> = {}) =>
    post('/v1/verify/single', { email: 'user1@polite.test' }, headers)

  test.each<[string, number, () => Response | Promise<Response>]>([
    ['invalid_request', 400, () => sendRequest('/v1/jobs?limit=0')],
    ['invalid_json', 400, () => sendRequest('/v1/verify/single', { method: 'POST', body: '{' })],
    ['invalid_email', 400, () => post('/v1/verify/single', { email: 'no address' })],
    ['emails_required', 400, () => post('/v1/verify/bulk', {})],
    ['empty_list', 400, () => post('/v1/verify/bulk', { emails: [] })],
    ['too_many_emails', 400, () => post('/v1/verify/batch', { emails: Array(50_001).fill('a') })],
    [
      'invalid_webhook_url',
      400,
      () => post('/v1/webhooks', { url: 'http://a.test', events: ['batch.failed'] }),
    ],
    [
      'invalid_event',
      400,
      () => post('/v1/webhooks', { url: 'https://127.0.0.1:8443/', events: ['batch'] }),
    ],
    ['authentication_error', 401, () => single(as('ev_live_none'))],
    [
      'ip_restricted',
      403,
      async () => single(as((await newKey({ allowed_ips: ['192.0.2.1'] })).key)),
    ],
    [
      'domain_restricted',
      403,
      async () => single(as((await newKey({ allowed_domains: ['app.test'] })).key)),
    ],
    [
      'insufficient_scope',
      403,
      async () => sendRequest('/v1/credits', { headers: as((await newKey()).key) }),
    ],
    ['not_found', 404, () => sendRequest('/v1/jobs/job_none')],
    ['method_not_allowed', 405, () => sendRequest('/v1/verify/single')],
    ['job_not_ready', 409, async () => sendRequest(`/v1/jobs/${await unfinished()}/download`)],
    ['job_not_cancellable', 409, async () => post(`/v1/jobs/${await finished()}/cancel`, {})],
    ['idempotency_in_progress', 409, inProgress],
    ['payload_too_large', 413, () => post('/v1/verify/single', { email: 'a'.repeat(20_000) })],
    ['unsupported_media_type', 415, () => single({ 'Content-Type': 'text/plain' })],
    ['idempotency_mismatch', 422, mismatch],
    [
      'rate_limit',
      429,
      async () => {
        const headers = as((await newKey({ rate_limit_per_minute: 1 })).key)
        await single(headers)
        return single(headers)
      },
    ],
  ])('%s is returned with %d', async (code, status, provoke) => {
    expect(await checkError(provoke())).toEqual([status, code])
  })

  async function unfinished(): Promise<string> {
    return (await client().verify.later('user1@later.test')).verification_id
  }

  async function finished(): Promise<string> {
    const { job_id } = await client().batch(['user1@polite.test'])
    await client().waitForJob(job_id)
    return job_id
  }

  /** Returns the second of two responses, while the first request waits for its mail server. */
  async function inProgress(): Promise<Response> {
    const headers = { 'Idempotency-Key': 'two at once' }
    const connections = () => simulator.counters().hosts['mx.slow.test']?.connections ?? 0
    const before = connections()
    const first = post('/v1/verify/single', { email: 'user1@slow.test' }, headers)
    await waitUntil(() => connections() > before)
    const second = await post('/v1/verify/single', { email: 'user1@slow.test' }, headers)
    expect((await first).status).toBe(200)
    return second
  }

  async function mismatch(): Promise<Response> {
    const headers = { 'Idempotency-Key': 'two bodies' }
    await post('/v1/verify/single', { email: 'user1@polite.test' }, headers)
    return post('/v1/verify/single', { email: 'user2@polite.test' }, headers)
  }

  test('quota_exceeded is returned with 429: the free plan has daily credits', async () => {
    const free = await freeKey()
    const verify = (n: number) =>
      post('/v1/verify/single', { email: `user-free${n}@polite.test` }, as(free))
    for (let n = 0; n < FREE_CREDITS; n++) expect((await verify(n)).status).toBe(200)
    const refused = await verify(FREE_CREDITS)
    const midnight = Math.ceil((Date.now() + 1) / 86_400_000) * 86_400
    expect(Number(refused.headers.get('Retry-After'))).toBeCloseTo(midnight - Date.now() / 1000, -2)
    expect(await checkError(refused)).toEqual([429, 'quota_exceeded'])
    // Used credits are stored soon after the response; until then they are reserved.
    const used = { plan: 'free', credits_balance: 0, credits_consumed: FREE_CREDITS }
    const credits = () => client({ apiKey: free }).credits()
    await expect.poll(credits).toMatchObject({ ...used, credits_held: 0 })
    expect(
      await checkError(post('/v1/verify/bulk', { emails: ['a@polite.test'] }, as(free))),
    ).toEqual([429, 'quota_exceeded'])
  })
})

test('webhooks are created, listed, changed and deleted', async () => {
  const url = 'https://127.0.0.1:8443/hook'
  const { secret, ...created } = await client().webhooks.create({
    url,
    events: ['batch.completed'],
  })
  expect(secret).toMatch(/^whsec_/)
  expect(await client().webhooks.list()).toMatchObject([{ id: created.id, url, active: true }])
  expect(await client().webhooks.update(created.id, { active: false })).toMatchObject({
    active: false,
  })
  await client().webhooks.delete(created.id)
  expect(await client().webhooks.list()).toEqual([])
})

/** Creates another account on the free plan, and returns its key. */
async function freeKey(): Promise<string> {
  const data = ['--data-dir', 'data']
  const account = await runEv(['accounts', 'create', '--name', 'Free', '--plan', 'free', ...data], {
    home,
  })
  expect(account.code, account.stderr).toBe(0)
  const created = await runEv(
    ['keys', 'create', '--name', 'free', '--account', 'Free', '--json', ...data],
    { home },
  )
  expect(created.code, created.stderr).toBe(0)
  return (JSON.parse(created.stdout) as { key: string }).key
}
