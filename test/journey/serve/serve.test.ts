import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ClientOptions, EvApiError, EvClient, type Job } from '../../../src/client/client.ts'
import { selfSigned } from '../../../src/world/host/certificate.ts'
import type { Scenario } from '../../../src/world/scenario/scenario.ts'
import { startWorldProcess, type WorldProcess } from '../../../src/world/world-process.ts'
import { rowsOf } from '../../support/csv.ts'
import { emptyFolder, runEv, towards } from '../../support/ev-process.ts'
import { type ServiceProcess, startService } from '../../support/service-process.ts'

// A whole session with the service as it runs, over TLS, with the mail world in place of the internet.

let world: WorldProcess
let service: ServiceProcess
let key: string
const home = emptyFolder()

beforeAll(async () => {
  writeFileSync(join(home, 'world.json'), JSON.stringify(SCENARIO))
  world = await startWorldProcess(join(home, 'world.json'))
  const certificate = selfSigned('localhost')
  for (const part of ['cert', 'key'] as const) writeFileSync(join(home, part), certificate[part])
  writeFileSync(join(home, 'ev.config.json'), JSON.stringify(CONFIG))
  // As NODE_EXTRA_CA_CERTS would, which only counts at the start of a process.
  setDefaultCACertificates([certificate.cert])
  service = await startService(home, args())
  key = service.key
}, 60_000)

afterAll(async () => {
  const ended = await service.end('SIGTERM')
  await world.close()
  expect(ended.code, ended.stderr).toBe(0)
}, 60_000)

const args = () => [
  ...towards(world),
  ...['--tls-cert', 'cert', '--tls-key', 'key', '--webhook-allow-ranges', '127.0.0.0/8'],
]

/** By the name in its certificate. */
const baseUrl = () => service.url.replace('127.0.0.1', 'localhost')

const client = (o: Partial<ClientOptions> = {}) =>
  new EvClient({ apiKey: key, baseUrl: baseUrl(), ...o })

/** Without a client, which would not send what is wrong, and would try again. */
const ask = (path: string, { headers, ...init }: RequestInit = {}) =>
  fetch(`${baseUrl()}${path}`, {
    ...init,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
  })

const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  ask(path, { method: 'POST', body: JSON.stringify(body), headers })

async function gathered<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

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

  test('is told with its flags and its evidence, and known from then on', async () => {
    const include = ['flags', 'evidence'] as const
    const result = await client().verify.single('user1@polite.test', { include })
    expect(result).toMatchObject({ cached: true, class: 'deliverable', mx_host: 'mx.polite.test' })
    expect(JSON.stringify(result.evidence)).toContain('250')
  })

  test('that nobody waits for becomes a job', async () => {
    const { verification_id } = await client().verify.later('user2@polite.test')
    expect(await client().waitForJob(verification_id)).toMatchObject({
      ...{ type: 'single', status: 'completed' },
      data: { summary: { total: 1, valid: 1 } },
    })
  })
})

test('a short list is answered at once', async () => {
  const answer = await client().bulk(['user3@polite.test', 'gone3@polite.test', 'no address'])
  expect(answer).toMatchObject({
    ...{ instant: true, status: 'completed' },
    ...{ total_emails: 3, valid_emails: 2, invalid_format_emails: 1 },
    summary: { total: 3, valid: 1, invalid: 2 },
    results: [
      { reason: 'accepted_email' },
      { reason: 'rejected_email' },
      { email: 'no address', reason: 'invalid_email' },
    ],
  })
})

describe('a long list', () => {
  const ROWS = 10_000
  const emails = Array.from({ length: ROWS }, (_, n) => addressOf(n))
  const gone = emails.filter((_, n) => reasonOf(n) === 'rejected_email').length
  let job: Job

  test('is worked on while its progress can be seen', async () => {
    const queued = await client().batch({ emails, name: 'Ten thousand' })
    expect(queued).toMatchObject({ status: 'queued', total_emails: ROWS, duplicates: 0 })
    const seen: number[] = []
    const onProgress = ({ progress }: Job) => void seen.push(progress)
    job = await client().waitForJob(queued.job_id, { onProgress })
    expect(seen).toEqual(seen.toSorted((a, b) => a - b))
    expect(seen.at(-1)).toBe(100)
    expect(seen.length).toBeGreaterThan(2)
    expect(job).toMatchObject({
      ...{ status: 'completed', name: 'Ten thousand', type: 'batch', processed_emails: ROWS },
      data: { summary: { total: ROWS, valid: ROWS - gone, invalid: gone, unknown: 0, failed: 0 } },
    })
  }, 120_000)

  test('can be downloaded as CSV, NDJSON and JSON, whole or in part', async () => {
    const all = client().jobs
    const verdicts = emails.map((email, n) => ({ email, reason: reasonOf(n) }))
    const csv = rowsOf(await new Response(await all.download(job.job_id)).text())
    expect(csv.map(({ email, reason }) => ({ email, reason }))).toEqual(verdicts)
    const rows = await gathered(all.results(job.job_id))
    expect(rows.map(({ email, reason }) => ({ email, reason }))).toEqual(verdicts)
    expect(rows.map(({ row }) => row)).toEqual(emails.map((_, n) => n + 1))
    const json = await all.download(job.job_id, { format: 'json' })
    expect(await new Response(json).json()).toEqual(rows)
    const bad = await gathered(all.csv(job.job_id, { filter: ['undeliverable'] }))
    expect(bad.length - 1).toBe(gone)
    const whole = await client().bulkStatus(job.job_id)
    expect(whole.data.results.map(({ email, reason }) => ({ email, reason }))).toEqual(verdicts)
    const { data } = job
    expect(data.download_url).toBe(`${service.url}/v1/jobs/${job.job_id}/download`)
  }, 60_000)

  test('can be cancelled, and deleted', async () => {
    const { job_id } = await client().batch(emails.map(email => `user-b${email}`))
    await partOf(job_id)
    const cancelled = await client().jobs.cancel(job_id)
    const { summary } = cancelled.data
    expect(cancelled.status).toBe('cancelled')
    expect(summary.valid + summary.invalid + summary.unknown + summary.failed).toBe(ROWS)
    expect(await gathered(client().jobs.results(job_id, { partial: true }))).toHaveLength(
      cancelled.processed_emails,
    )
    await client().jobs.delete(job_id)
    await expect(client().jobs.get(job_id)).rejects.toMatchObject({ code: 'not_found' })
  }, 60_000)
})

test('a file keeps its columns, and has the column of its addresses chosen', async () => {
  const list = 'name;old;mail\nZoë;a@b.test;user5@polite.test\n"A; B";c@d.test;gone5@polite.test\n'
  const queued = await client().file(list, { column: 'mail', name: 'A file', filename: 'a.csv' })
  expect(queued).toMatchObject({ column: 'mail', column_number: 3, header: true, rows: 2 })
  await client().waitForJob(queued.job_id)
  const text = await new Response(await client().jobs.download(queued.job_id)).text()
  expect(text).toMatch(/^name;old;mail;ev_email;/)
  expect(rowsOf(text, ';')).toMatchObject([
    { name: 'Zoë', old: 'a@b.test', mail: 'user5@polite.test', ev_reason: 'accepted_email' },
    { name: 'A; B', mail: 'gone5@polite.test', ev_reason: 'rejected_email' },
  ])
})

test('the history tells of each address once, page after page', async () => {
  const rows = await gathered(client().history({ source: 'batch', limit: 200 }))
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
  // Those of the deleted list went with it.
  expect(rows.length).toBe(10_000)
  const of = await gathered(client().history({ email: 'USER5@polite.test' }))
  expect(of).toMatchObject([{ source: 'file', reason: 'accepted_email' }])
}, 60_000)

describe('keys', () => {
  test('that are rotated work both, until the grace period is over', async () => {
    const made = await client().keys.create({ name: 'CI', scopes: ['verify:single'] })
    const rotated = await client().keys.rotate(made.id, { grace_period_seconds: 2 })
    for (const apiKey of [made.key, rotated.key]) {
      expect(await client({ apiKey }).verify.single('user1@polite.test')).toMatchObject({
        reason: 'accepted_email',
      })
    }
    await setTimeout(Math.max(0, Date.parse(rotated.previous_key_expires_at) - Date.now()) + 50)
    await expect(client({ apiKey: made.key }).credits()).rejects.toMatchObject({ status: 401 })
    await expect(client({ apiKey: rotated.key }).credits()).rejects.toMatchObject({
      code: 'insufficient_scope',
    })
    await client().keys.delete(made.id)
    await expect(client({ apiKey: rotated.key }).credits()).rejects.toMatchObject({ status: 401 })
  })
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
    const asked = client({ sandbox: true, retries: 0 }).verify.single(`${prefix}@example.com`)
    const error = await asked.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(EvApiError)
    expect(error).toMatchObject({ status, body })
  })

  test('answers within 50 ms where the machine has time', async () => {
    const tookMs: number[] = []
    for (let n = 0; n < 30; n++) {
      const begunAt = performance.now()
      await client({ sandbox: true }).verify(`valid${n}@example.com`)
      tookMs.push(performance.now() - begunAt)
    }
    // The fastest: others may work on this machine at the same time.
    expect(Math.min(...tookMs)).toBeLessThan(50)
  })

  test('has lists and a history of its own, and asks nobody', async () => {
    const before = (await world.counters()).total.connections
    const sandbox = client({ sandbox: true })
    const { job_id } = await sandbox.batch(['valid@polite.test', 'invalid@polite.test'])
    expect(job_id).toMatch(/^job_sbx_/)
    const job = await sandbox.waitForJob(job_id)
    expect(job).toMatchObject({ sandbox: true, data: { summary: { valid: 1, invalid: 1 } } })
    expect((await gathered(sandbox.history())).map(({ job_id: of }) => of)).toContain(job_id)
    expect((await gathered(client().jobs.list())).map(one => one.job_id)).not.toContain(job_id)
    expect((await world.counters()).total.connections).toBe(before)
  })
})

describe('every error', () => {
  const SEEN = new Set<string>()

  /** The code of an answer, which has a sentence, the id of its request and the headers of limits. */
  async function codeOf(answer: Response | Promise<Response>): Promise<[number, string]> {
    const response = await answer
    const body = (await response.json()) as Record<string, unknown>
    expect(body).toMatchObject({ success: false, error: expect.stringMatching(/\w/) })
    expect(body.request_id).toBe(response.headers.get('X-Request-Id'))
    for (const name of ['Limit', 'Remaining', 'Reset']) {
      expect(response.headers.get(`X-RateLimit-${name}`), name).toMatch(/^\d+$/)
    }
    if (response.status === 429) expect(response.headers.get('Retry-After')).toMatch(/^[1-9]\d*$/)
    SEEN.add(String(body.code))
    return [response.status, String(body.code)]
  }

  const as = (text: string) => ({ Authorization: `Bearer ${text}` })
  const newKey = (o: object = {}) =>
    client().keys.create({ name: 'errors', scopes: ['verify:single'], ...o })
  const single = (headers: Record<string, string> = {}) =>
    post('/v1/verify/single', { email: 'user1@polite.test' }, headers)

  test.each<[string, number, () => Response | Promise<Response>]>([
    ['invalid_request', 400, () => ask('/v1/jobs?limit=0')],
    ['invalid_json', 400, () => ask('/v1/verify/single', { method: 'POST', body: '{' })],
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
      async () => ask('/v1/credits', { headers: as((await newKey()).key) }),
    ],
    ['not_found', 404, () => ask('/v1/jobs/job_none')],
    ['method_not_allowed', 405, () => ask('/v1/verify/single')],
    ['job_not_ready', 409, async () => ask(`/v1/jobs/${await unfinished()}/download`)],
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
  ])('%s is told with %d', async (code, status, provoke) => {
    expect(await codeOf(provoke())).toEqual([status, code])
  })

  async function unfinished(): Promise<string> {
    return (await client().verify.later('user1@later.test')).verification_id
  }

  async function finished(): Promise<string> {
    const { job_id } = await client().batch(['user1@polite.test'])
    await client().waitForJob(job_id)
    return job_id
  }

  /** The second of two, while the first waits for its mail server. */
  async function inProgress(): Promise<Response> {
    const headers = { 'Idempotency-Key': 'two at once' }
    const first = post('/v1/verify/single', { email: 'user1@slow.test' }, headers)
    await setTimeout(500)
    const second = await post('/v1/verify/single', { email: 'user1@slow.test' }, headers)
    expect((await first).status).toBe(200)
    return second
  }

  async function mismatch(): Promise<Response> {
    const headers = { 'Idempotency-Key': 'two bodies' }
    await post('/v1/verify/single', { email: 'user1@polite.test' }, headers)
    return post('/v1/verify/single', { email: 'user2@polite.test' }, headers)
  }

  test('quota_exceeded is told with 429: the free plan has its credits a day', async () => {
    const free = await freeKey()
    const verify = (n: number) =>
      post('/v1/verify/single', { email: `user-free${n}@polite.test` }, as(free))
    for (let n = 0; n < FREE_CREDITS; n++) expect((await verify(n)).status).toBe(200)
    const refused = await verify(FREE_CREDITS)
    const midnight = Math.ceil((Date.now() + 1) / 86_400_000) * 86_400
    expect(Number(refused.headers.get('Retry-After'))).toBeCloseTo(midnight - Date.now() / 1000, -2)
    expect(await codeOf(refused)).toEqual([429, 'quota_exceeded'])
    // What was used is written soon after its answer; until then it is set aside.
    const used = { plan: 'free', credits_balance: 0, credits_consumed: FREE_CREDITS }
    const credits = () => client({ apiKey: free }).credits()
    await expect.poll(credits).toMatchObject({ ...used, credits_held: 0 })
    expect(await codeOf(post('/v1/verify/bulk', { emails: ['a@polite.test'] }, as(free)))).toEqual([
      429,
      'quota_exceeded',
    ])
  })
})

test('webhooks are registered, listed, changed and removed', async () => {
  const url = 'https://127.0.0.1:8443/hook'
  const { secret, ...made } = await client().webhooks.create({ url, events: ['batch.completed'] })
  expect(secret).toMatch(/^whsec_/)
  expect(await client().webhooks.list()).toMatchObject([{ id: made.id, url, active: true }])
  expect(await client().webhooks.update(made.id, { active: false })).toMatchObject({
    active: false,
  })
  await client().webhooks.delete(made.id)
  expect(await client().webhooks.list()).toEqual([])
})

test('SIGTERM with lists under way ends it quietly, and the next start goes on', async () => {
  const emails = Array.from({ length: 5_000 }, (_, n) => `user-t${n}@d${n % DOMAINS}.test`)
  const { job_id } = await client().batch(emails)
  const { processed_emails: done } = await partOf(job_id)
  const ended = await service.end('SIGTERM')
  expect(ended.code, ended.stderr).toBe(0)
  service = await startService(home, args())
  expect(service.key).toBe('')
  expect((await client().jobs.get(job_id)).processed_emails).toBeGreaterThanOrEqual(done)
  const job = await client().waitForJob(job_id)
  expect(job.data.summary).toMatchObject({ total: 5_000, valid: 5_000 })
  const rows = await gathered(client().jobs.results(job_id))
  expect(rows.map(({ email }) => email)).toEqual(emails)
  expect(await client().credits()).toMatchObject({ credits_held: 0 })
}, 120_000)

/** Resolves when some of a job is done, and not all. */
async function partOf(jobId: string): Promise<Job> {
  for (;;) {
    const job = await client().jobs.get(jobId)
    if (job.processed_emails > 0) {
      expect(job.status).toBe('processing')
      return job
    }
    await setTimeout(20)
  }
}

/** A key of another account, with the smallest plan. */
async function freeKey(): Promise<string> {
  const data = ['--data-dir', 'data']
  const account = await runEv(['accounts', 'create', '--name', 'Free', '--plan', 'free', ...data], {
    home,
  })
  expect(account.code, account.stderr).toBe(0)
  const made = await runEv(
    ['keys', 'create', '--name', 'free', '--account', 'Free', '--json', ...data],
    { home },
  )
  expect(made.code, made.stderr).toBe(0)
  return (JSON.parse(made.stdout) as { key: string }).key
}

const FREE_CREDITS = 5
const DOMAINS = 20

const CONFIG = {
  'ip-limits': { 'single-per-minute': 10_000, 'bulk-per-hour': 1_000 },
  plans: { free: { requests: 100, per: 'second', 'credits-per-day': FREE_CREDITS } },
}

const domainsOfList = Array.from({ length: DOMAINS }, (_, n) => `d${n}.test`)
const isGone = (row: number) => row % 9 === 4
const isOpen = (row: number) => row % DOMAINS === 7

function addressOf(row: number): string {
  return `${isGone(row) ? 'gone' : 'user'}-a${row}@d${row % DOMAINS}.test`
}

/** What the world would say. */
function reasonOf(row: number): string {
  if (isOpen(row)) return 'catch_all'
  return isGone(row) ? 'rejected_email' : 'accepted_email'
}

const mx = (name: string) => ({ [name]: { mx: [[10, `mx.${name}`]] as const } })

const SCENARIO: Scenario = {
  mailboxes: ['user*', 'info'],
  domains: Object.assign(
    { 'no-mail.test': { mx: 'null' } },
    ...[
      'polite.test',
      'everything.test',
      'blocked.test',
      'later.test',
      'slow.test',
      ...domainsOfList,
    ].map(mx),
  ),
  hosts: {
    'mx.polite.test': { temper: 'polite' },
    'mx.everything.test': { temper: 'catch-all' },
    'mx.blocked.test': { temper: 'blocks-us' },
    'mx.slow.test': { temper: 'slow', ms: 400 },
    'mx.later.test': { temper: 'greylist', seconds: 3_600 },
    ...Object.fromEntries(
      domainsOfList.map((name, n) => [
        `mx.${name}`,
        { temper: isOpen(n) ? 'catch-all' : 'polite' },
      ]),
    ),
  },
}
