import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { write } from '../../../src/db/database.ts'
import { sandboxResult } from '../../../src/engine/sandbox.ts'
import { emitJobEvent } from '../../../src/jobs/job-events.ts'
import { cancelJob, failJob } from '../../../src/jobs/job-state.ts'
import type { Job } from '../../../src/jobs/job-store.ts'
import { mail, toRecipients } from '../../support/engine.ts'
import { type Seed, seedJob } from '../../support/job-rows.ts'
import { createTestService } from '../../support/service.ts'
import { endpoint } from '../../support/webhook-endpoint.ts'
import { answered } from '../../support/webhook-transport.ts'

// fixtures/api has every response of the interface as its description defines it.

const FOLDER = join(import.meta.dirname, '../../../fixtures/api')
const compared = new Set<string>()

/** A service with simulated mail servers for the addresses in the fixtures. */
async function createApiService(plan = 'enterprise') {
  const script = toRecipients(to =>
    /^(anna|user|info)/.test(to) ? '250 2.1.5 Ok' : '550 5.1.1 No',
  )
  const zone = { ...mail('example.com', '192.0.2.1'), 'app.example.com': { A: ['8.8.8.8'] } }
  const fixture = await createTestService({ plan, engine: { script, zone } })
  const ask = async (
    path: string,
    ...options: Parameters<typeof fixture.request> extends [string, ...infer Rest] ? Rest : never
  ) => (await fixture.settled(fixture.request(path, ...options))).text()
  return { ...fixture, ask }
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

const TEXTS = ['valid', 'risky', 'invalid', 'timeout'].map(local => `${local}@example.com`)
const SEED: Seed = { id: 'job_xyz789', name: 'March list', texts: TEXTS }

describe('a job', () => {
  test.each<
    [string, number, (fixture: Awaited<ReturnType<typeof createApiService>>) => Promise<unknown>]
  >([
    ['queued', 0, async () => {}],
    ['processing', 2, async ({ clock }) => clock.advance(1_000)],
    ['completed', 4, async () => {}],
    ['failed', 2, ({ database }) => write(database, trx => failed(trx, database.clock.now()))],
    ['cancelled', 2, ({ database }) => cancelJob(database, 'job_xyz789')],
  ])('that is %s has the same fields as in every state', async (state, done, reachState) => {
    const fixture = await createApiService()
    await seedJob(fixture.database, { ...SEED, done })
    await reachState(fixture)
    const status = await fixture.ask('/v1/verify/bulk/status/job_xyz789')
    compare(`status-${state}.json`, status)
    compare(`job-${state}.json`, await fixture.ask('/v1/jobs/job_xyz789'))
  })

  test('is listed, and downloaded as CSV', async () => {
    const { ask, database } = await createApiService()
    await seedJob(database, SEED)
    compare('jobs.json', await ask('/v1/jobs'))
    const csv = await ask('/v1/jobs/job_xyz789/download?filter=deliverable')
    compare('download.csv', csv)
  })
})

const failed = (trx: Parameters<typeof failJob>[0], now: number): Promise<Job> =>
  failJob(trx, 'job_xyz789', 'server_error', now)

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

describe('an event', () => {
  const events = [
    ...['batch.completed', 'batch.failed', 'verification.completed'],
    ...['quota.warning', 'quota.exceeded'],
  ]

  async function createSubscriber(plan?: string) {
    const fixture = await createApiService(plan)
    await fixture.ask('/v1/webhooks', { body: { url: 'https://app.example.com/hook', events } })
    const bodies = async () => {
      const rows = await fixture.database.db.selectFrom('event').select(['kind', 'body']).execute()
      return new Map(rows.map(({ kind, body }) => [kind, body]))
    }
    return { ...fixture, bodies }
  }

  test.each(['batch.completed', 'batch.failed', 'verification.completed'])(
    '%s is stored exactly as it is sent',
    async kind => {
      const { database, clock, random, bodies } = await createSubscriber()
      const done = kind === 'batch.failed' ? 2 : 4
      const job =
        kind === 'verification.completed'
          ? await seedJob(database, { id: 'ver_01', type: 'single', texts: ['valid@example.com'] })
          : await seedJob(database, { ...SEED, done })
      const result = sandboxResult(clock, 'valid@example.com')
      await write(database, async trx => {
        const ended = kind === 'batch.failed' ? await failed(trx, clock.now()) : job
        const o = {
          now: clock.now(),
          dueAt: clock.now(),
          random,
          baseUrl: 'https://ev.test',
          verified: { result, policy: 'balanced' as const },
        }
        await emitJobEvent(trx, ended, o)
      })
      compare(`event-${kind.replace('.', '-')}.json`, (await bodies()).get(kind) ?? '')
    },
  )

  test('of credits is stored with the credits that caused it', async () => {
    const fixture = await createSubscriber('free')
    for (let list = 0; list < 10; list++) {
      const emails = Array.from({ length: 10 }, (_, n) => `user${list}x${n}@example.com`)
      await fixture.clock.advance(60_000)
      await fixture.ask('/v1/verify/bulk', { body: { emails } })
      if (list === 7) compare('credits.json', named(await fixture.ask('/v1/credits')))
    }
    const bodies = await fixture.bodies()
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
  await seedJob(fixture.database, { ...SEED, done: 0 })
  compare('error-job-not-ready.json', await ask('/v1/jobs/job_xyz789/download'))
  const limitedKey = await addKey({ scopes: ['verify:single'], rateLimitPerMinute: 1 })
  compare('error-insufficient-scope.json', await ask('/v1/credits', { key: limitedKey }))
  await verify('anna@example.com', limitedKey)
  compare('error-rate-limit.json', await verify('anna@example.com', limitedKey))
})
