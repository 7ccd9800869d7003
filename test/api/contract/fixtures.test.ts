import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { mail, toRecipients } from '../../support/engine.ts'
import { failStoring, SANDBOX } from '../../support/list-service.ts'
import type { MxSession } from '../../support/mx.ts'
import { createTestService } from '../../support/service.ts'
import { endpoint } from '../../support/webhook-endpoint.ts'
import { answered } from '../../support/webhook-transport.ts'

// fixtures/api has every response of the interface as its description defines it.

const FOLDER = join(import.meta.dirname, '../../../fixtures/api')
const compared = new Set<string>()

/**
 * A service with mail servers for the addresses in the fixtures; they wait with their replies to two
 * of them until `release`.
 */
async function createApiService(plan = 'enterprise', works = false) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const answer = toRecipients(to => {
    if (to.startsWith('risky')) return '252 2.1.5 Cannot verify the user'
    return /^(anna|user|info|valid)/.test(to) ? '250 2.1.5 Ok' : '550 5.1.1 No'
  })
  const script = async (line: string, session: MxSession) => {
    if (session.to.ip === '192.0.2.2') await promise
    return answer(line, session)
  }
  const zone = {
    ...mail('example.com', '192.0.2.1'),
    ...mail('held.test', '192.0.2.2'),
    'app.example.com': { A: ['8.8.8.8'] },
  }
  const fixture = await createTestService({ plan, works, engine: { script, zone } })
  const ask = async (
    path: string,
    ...options: Parameters<typeof fixture.request> extends [string, ...infer Rest] ? Rest : never
  ) => (await fixture.settled(fixture.request(path, ...options))).text()
  return { ...fixture, ask, release: () => resolve() }
}

/**
 * Compares a response with its fixture: the same keys in the same order, and the same values except
 * those that always differ.
 */
function compare(name: string, given: string): void {
  compared.add(name)
  const text = readFileSync(join(FOLDER, name), 'utf8')
  if (!name.endsWith('.json')) return void expect(plain(given)).toBe(plain(text))
  const normalize = (json: string) => plain(JSON.stringify(JSON.parse(json), null, 2))
  expect(normalize(given)).toBe(normalize(text))
}

/**
 * Replaces values that always differ with placeholders: IDs, times of day, secrets, durations,
 * cursors, and texts for people.
 */
function plain(text: string): string {
  return text
    .replace(/\b(job_sbx|job|wh|evt|dlv|ver|key|acc|req)_(?!id\b)[A-Za-z0-9]+\b(?=["/\\])/g, '$1_…')
    .replace(/\b2026-06-01T\d\d:\d\d:\d\d\.\d{3}Z/g, '<now>')
    .replace(/\b([0-9a-f]{64}|v1,[\w+/]{43}=)(?=")/g, '<signature>')
    .replace(/"ev_live_\w{38}"/g, '"<key>"')
    .replace(/"ev_live_\w{4}"/g, '"<prefix>"')
    .replace(/"whsec_[\w+/]{32}"/g, '"<secret>"')
    .replace(/("(?:secret_)?hint": )"[\w+/]{4}"/g, '$1"<hint>"')
    .replace(/("response_time": )\d+/g, '$1<ms>')
    .replace(/("estimated_time": )"\d+ (second|minute|hour)s?"/g, '$1"<duration>"')
    .replace(/("next_cursor": )"[\w-]+"/g, '$1"<cursor>"')
    .replace(/("error": )"[A-Z](?:[^"\\]|\\.)+"/g, '$1"<sentence>"')
}

afterAll(() => {
  expect([...compared].toSorted()).toEqual(readdirSync(FOLDER).toSorted())
})

describe('one address', () => {
  const body = { email: 'anna@example.com' }

  test('is answered as the interface defines it', async () => {
    const { ask } = await createApiService()
    compare('single.json', await ask('/v1/verify/single', { body }))
    const info = { email: 'info@example.com' }
    compare('single-flags.json', await ask('/v1/verify/single?include=flags', { body: info }))
    const later = await ask('/v1/verify/single', { body: { ...body, async: true } })
    compare('single-queued.json', later)
  })

  test('is answered with a status and a score', async () => {
    const { ask } = await createApiService()
    compare('verify.json', await ask('/v1/verify', { body }))
  })
})

describe('a list', () => {
  test('that is short is answered at once', async () => {
    const { ask } = await createApiService()
    const emails = ['anna@example.com', 'gone@example.com', 'not-an-email']
    compare('bulk-instant.json', await ask('/v1/verify/bulk', { body: { emails } }))
  })

  test('that is longer, or large, is queued', async () => {
    const { ask } = await createApiService()
    const emails = ['no address', ...Array.from({ length: 11 }, (_, n) => `user${n}@example.com`)]
    compare('bulk-queued.json', await ask('/v1/verify/bulk', { body: { emails } }))
    const twice = ['anna@example.com', 'user2@example.com', 'anna@EXAMPLE.com']
    const batch = await ask('/v1/verify/batch', { body: { emails: twice } })
    compare('batch-queued.json', batch)
  })

  test('that is a file is queued, or previewed', async () => {
    const { ask } = await createApiService('free')
    const send = async (fields: Readonly<Record<string, string>> = {}) => {
      const form = new FormData()
      for (const [name, value] of Object.entries(fields)) form.append(name, value)
      form.append('file', new Blob(['name,email\nAnn,user1@example.com\nBob,user2@example.com\n']))
      const sent = new Response(form)
      const headers = { 'Content-Type': sent.headers.get('Content-Type') ?? '' }
      const body = new Uint8Array(await sent.arrayBuffer())
      return ask('/v1/verify/file', { body, headers })
    }
    compare('file-dry-run.json', await send({ dry_run: 'true' }))
    compare('file-queued.json', await send())
  })
})

const events = [
  ...['batch.completed', 'batch.failed', 'verification.completed'],
  ...['quota.warning', 'quota.exceeded'],
]
const NAME = { name: 'March list' }
const HALFWAY = ['valid@example.com', 'risky@example.com', 'a@held.test', 'b@held.test']
const SIMULATED = ['valid', 'risky', 'invalid', 'timeout'].map(local => `${local}@example.com`)

/** A service that has stopped halfway through a list. */
async function createHalfway() {
  const service = await createApiService('enterprise', true)
  const { submit, json, clock } = service
  await service.ask('/v1/webhooks', { body: { url: 'https://app.example.com/hook', events } })
  const id = await submit(HALFWAY, NAME)
  while ((await json(`/v1/jobs/${id}`)).processed_emails !== 2) await clock.advance(100)
  /** Lets the list fail. */
  const fail = async () => {
    failStoring(service)
    service.release()
    await service.finished(id)
  }
  return { ...service, id, fail }
}

/** A service with a finished list, whose results are simulated. */
async function createSimulated() {
  const service = await createApiService('enterprise', true)
  await service.ask('/v1/webhooks', { body: { url: 'https://app.example.com/hook', events } })
  const id = await service.submit(SIMULATED, { ...NAME, ...SANDBOX })
  await service.finished(id)
  return { ...service, id }
}

/** The same text without the marks of the sandbox. */
const withoutSandbox = (text: string) =>
  text
    .replaceAll('"sandbox":true,', '')
    .replaceAll('job_sbx_', 'job_')
    .replaceAll('ver_sbx_', 'ver_')

describe('a job', () => {
  test.each<[string, () => Promise<{ id: string; ask: (path: string) => Promise<string> }>]>([
    [
      'queued',
      async () => {
        const service = await createApiService()
        return { ...service, id: await service.submit(HALFWAY, NAME) }
      },
    ],
    ['processing', createHalfway],
    ['completed', createSimulated],
    [
      'failed',
      async () => {
        const service = await createHalfway()
        await service.fail()
        return service
      },
    ],
    [
      'cancelled',
      async () => {
        const service = await createHalfway()
        await service.ask(`/v1/jobs/${service.id}/cancel`, { method: 'POST' })
        return service
      },
    ],
  ])('that is %s has the same fields as in every state', async (state, create) => {
    const { ask, id } = await create()
    const status = await ask(`/v1/verify/bulk/status/${id}`)
    compare(`status-${state}.json`, withoutSandbox(status))
    compare(`job-${state}.json`, withoutSandbox(await ask(`/v1/jobs/${id}`)))
  })

  test('is listed, and downloaded as CSV', async () => {
    const { ask, id } = await createSimulated()
    compare('jobs.json', withoutSandbox(await ask('/v1/jobs', SANDBOX)))
    compare('download.csv', await ask(`/v1/jobs/${id}/download?filter=deliverable`))
  })
})

describe('the sandbox', () => {
  const headers = { 'X-EV-Sandbox': 'true' }

  test.each([
    ['sandbox-verify.json', '/v1/verify', 'disposable-test'],
    ['sandbox-single.json', '/v1/verify/single', 'valid'],
    ['sandbox-error-auth.json', '/v1/verify', 'error-auth'],
    ['sandbox-error-ratelimit.json', '/v1/verify', 'error-ratelimit'],
    ['sandbox-error-timeout.json', '/v1/verify', 'error-timeout'],
    ['sandbox-error-server.json', '/v1/verify', 'error-server'],
  ])('answers %s', async (name, path, local) => {
    const { ask } = await createApiService()
    compare(name, await ask(path, { headers, body: { email: `${local}@example.com` } }))
  })
})

describe('webhooks', () => {
  const url = 'https://app.example.com/hook'
  const createWebhookService = () =>
    endpoint({ url }, { engine: { zone: { 'app.example.com': { A: ['8.8.8.8'] } } } })
  type WebhookService = Awaited<ReturnType<typeof createWebhookService>>
  const requestTo =
    ({ request, path }: WebhookService) =>
    async (below: string, options = {}) =>
      (await request(`${path}${below}`, options)).text()

  test('webhook endpoints are shown with their secret once', async () => {
    const { ask } = await createApiService()
    const body = { url, events: ['batch.completed'], active: true }
    compare('webhook-created.json', await ask('/v1/webhooks', { body }))
    compare('webhooks.json', await ask('/v1/webhooks'))
  })

  test('a rotated secret is shown once', async () => {
    const ask = requestTo(await createWebhookService())
    compare('webhook-rotated.json', await ask('/secret', { method: 'POST' }))
  })

  test('a test event is sent to an endpoint', async () => {
    const fixture = await createWebhookService()
    compare('webhook-tested.json', await requestTo(fixture)('/test', { method: 'POST' }))
    compare('event-webhook-test.json', fixture.post.sent[0]?.body ?? '')
  })

  test('an endpoint lists its deliveries, and they can be resent', async () => {
    const fixture = await createWebhookService()
    const ask = requestTo(fixture)
    fixture.post.answer(answered(500, { 'content-type': 'text/plain' }, 'Internal Server Error'))
    await fixture.happen('batch.completed', { job_id: 'job_xyz789' })
    const id = await fixture.attempt()
    compare('webhook-deliveries.json', await ask('/deliveries'))
    compare('webhook-delivery.json', await ask(`/deliveries/${id}`))
    const retried = await ask(`/deliveries/${id}/retry`, { method: 'POST' })
    compare('webhook-delivery-retried.json', retried)
    await fixture.attempt({ last: true })
    const body = { since: '2026-06-01T00:00:00Z' }
    compare('webhook-recovered.json', await ask('/recover', { body }))
  })
})

/** The bodies of the stored events, by type. */
async function bodiesIn({
  database,
}: Pick<Awaited<ReturnType<typeof createApiService>>, 'database'>) {
  const rows = await database.db.selectFrom('event').select(['kind', 'body']).execute()
  return new Map(rows.map(({ kind, body }) => [kind as string, body]))
}

describe('an event', () => {
  test('is stored exactly as it is sent', async () => {
    const halfway = await createHalfway()
    await halfway.fail()
    compare('event-batch-failed.json', (await bodiesIn(halfway)).get('batch.failed') ?? '')
    const simulated = await createSimulated()
    const body = { email: 'valid@example.com', async: true }
    const { verification_id } = await simulated.json('/v1/verify/single', { body, ...SANDBOX })
    await simulated.finished(String(verification_id))
    const bodies = await bodiesIn(simulated)
    for (const kind of ['batch.completed', 'verification.completed']) {
      const stored = withoutSandbox(bodies.get(kind) ?? '')
      compare(`event-${kind.replace('.', '-')}.json`, stored)
    }
  })

  test('of credits is stored with the credits that caused it', async () => {
    const fixture = await createApiService('free')
    await fixture.ask('/v1/webhooks', { body: { url: 'https://app.example.com/hook', events } })
    for (let list = 0; list < 10; list++) {
      const emails = Array.from({ length: 10 }, (_, n) => `user${list}x${n}@example.com`)
      await fixture.clock.advance(60_000)
      await fixture.ask('/v1/verify/bulk', { body: { emails } })
      if (list === 7) compare('credits.json', named(await fixture.ask('/v1/credits')))
    }
    const bodies = await bodiesIn(fixture)
    compare('event-quota-warning.json', await firstOf(fixture, 'quota.warning'))
    compare('event-quota-exceeded.json', bodies.get('quota.exceeded') ?? '')
    compare(
      'error-quota.json',
      await fixture.ask('/v1/verify/single', { body: { email: 'anna@example.com' } }),
    )
  })

  const firstOf = async (
    { database }: Awaited<ReturnType<typeof createApiService>>,
    kind: string,
  ) => {
    const rows = database.db.selectFrom('event').select('body').where('kind', '=', kind)
    return (await rows.orderBy('created_at').executeTakeFirstOrThrow()).body
  }

  /** Uses the key name of the fixture. */
  const named = (json: string) => json.replace('"api_key_name":"test"', '"api_key_name":"CI"')
})

test('the history is returned in pages', async () => {
  const fixture = await createApiService()
  for (const email of ['user2@example.com', 'anna@example.com']) {
    await fixture.ask('/v1/verify/single', { body: { email } })
    await fixture.ledger.flushed()
    await fixture.clock.advance(1_000)
  }
  compare('history.json', await fixture.ask('/v1/history?limit=1'))
})

test('keys are shown with their secret once', async () => {
  const { ask } = await createApiService()
  const [scopes, allowed_ips] = [['verify:single', 'verify:bulk'], ['203.0.113.0/24']]
  compare('key-created.json', await ask('/v1/keys', { body: { name: 'CI', scopes, allowed_ips } }))
  const all = JSON.parse(await ask('/v1/keys'))
  const made = all.data.keys.filter(({ name }: { name: string }) => name === 'CI')
  compare('keys.json', JSON.stringify({ ...all, data: { keys: made, total: made.length } }))
})

test('errors have one body', async () => {
  const fixture = await createApiService()
  const { ask, addKey } = fixture
  const verify = (email: string, key?: string | null) =>
    ask('/v1/verify/single', { body: { email }, ...(key === undefined ? {} : { key }) })
  compare('error-invalid-email.json', await verify('not-an-email'))
  compare('error-authentication.json', await verify('anna@example.com', null))
  compare('error-not-found.json', await ask('/v1/jobs/job_none'))
  const id = await fixture.submit(HALFWAY)
  compare('error-job-not-ready.json', await ask(`/v1/jobs/${id}/download`))
  const limitedKey = await addKey({ scopes: ['verify:single'], rateLimitPerMinute: 1 })
  compare('error-insufficient-scope.json', await ask('/v1/credits', { key: limitedKey }))
  await verify('anna@example.com', limitedKey)
  compare('error-rate-limit.json', await verify('anna@example.com', limitedKey))
})
