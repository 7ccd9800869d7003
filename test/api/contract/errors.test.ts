import { afterAll, expect, test } from 'vitest'
import { STATUS } from '../../../src/api/errors/api-error.ts'
import { openHttpServer, parseAnswer } from '../../support/http-server.ts'
import { MIXED, seedJob } from '../../support/job-rows.ts'
import { failingDownload } from '../../support/list-download.ts'
import { FORM, form } from '../../support/list-form.ts'
import { sampled } from '../../support/property.ts'
import type { RequestOptions } from '../../support/service.ts'
import { contractOf } from './contract.ts'
import { bareApi, examplesOf, isOfInterface, type Place, placesOf } from './document.ts'
import {
  bodiesOf,
  createExampleService,
  type ExampleService,
  KEY,
  pathOf,
} from './example-requests.ts'

// The service returns each error of each operation in the document, and its documented message.

const { document } = bareApi()
const places = placesOf(document).filter(isOfInterface)

/** Errors that no operation documents. */
const UNDOCUMENTED = ['method_not_allowed']

/** The examples of errors of an operation: their names are codes, or `simulated_…`. */
const errorsOf = ({ operation }: Place) =>
  Object.entries(operation.responses)
    .filter(([status]) => Number(status) >= 400)
    .flatMap(([, { content = {} }]) => Object.values(content).flatMap(examplesOf))

const hasError = (place: Place, code: string) => errorsOf(place).some(([name]) => name === code)

/** Messages that the service returned, by code. */
const messages = new Map<string, Set<string>>()

async function expectError(code: string, response: Response, name: string): Promise<void> {
  const text = await response.text()
  expect([name, response.status, text]).toEqual([
    ...[name, STATUS[code as keyof typeof STATUS]],
    expect.stringContaining(`"code":"${code}"`),
  ])
  const { error } = JSON.parse(text) as { error: string }
  messages.set(code, (messages.get(code) ?? new Set()).add(error))
}

afterAll(() => {
  const errors = new Map(
    places.flatMap(errorsOf).filter(([name]) => !name.startsWith('simulated_')),
  )
  const invented = [...errors].filter(
    ([code, value]) => !messages.get(code)?.has((value as { error: string }).error),
  )
  expect(invented.map(([code]) => [code, [...(messages.get(code) ?? [])]])).toEqual([])
  expect([...errors.keys(), ...UNDOCUMENTED].toSorted()).toEqual(Object.keys(STATUS).toSorted())
})

type Ask = (place: Place, options?: RequestOptions, query?: string) => Promise<Response>

/** Sends the example of an operation, for a resource that does not exist. */
const askOf =
  ({ request }: ExampleService): Ask =>
  async (place, options = {}, query = '') => {
    const path = place.path.replace('{row}', '1').replace(/\{\w+\}/g, 'job_xyz789') + query
    const [body = {}] = await bodiesOf(place)
    const headers = { ...body.headers, ...options.headers }
    return request(path, { method: place.method, ...body, ...options, headers })
  }

/** Errors that all operations return in the same way: prepares the service, then sends a request. */
const GENERAL: Readonly<Record<string, (fixture: ExampleService) => Promise<Ask> | Ask>> = {
  invalid_request: fixture => place => askOf(fixture)(place, {}, '?limit=1000'),
  invalid_json: fixture => place =>
    askOf(fixture)(place, { body: '{"email":', headers: { 'Content-Type': 'application/json' } }),
  authentication_error: fixture => place => askOf(fixture)(place, { key: null }),
  key_expired: async fixture => {
    const key = await fixture.addKey({ expiresAt: fixture.clock.now() - 1 })
    return place => askOf(fixture)(place, { key })
  },
  key_revoked: async fixture => {
    const key = await fixture.addKey({ id: 'key_revoked' })
    await fixture.request('/v1/keys/key_revoked', { method: 'DELETE' })
    return place => askOf(fixture)(place, { key })
  },
  ip_restricted: async fixture => {
    const key = await fixture.addKey({ allowedIps: ['203.0.113.0/24'] })
    return place => askOf(fixture)(place, { key })
  },
  domain_restricted: async fixture => {
    const key = await fixture.addKey({ allowedDomains: ['shop.example'] })
    return place => askOf(fixture)(place, { key })
  },
  insufficient_scope: async fixture => {
    const key = await fixture.addKey({ scopes: ['dashboard'] })
    return place => askOf(fixture)(place, { key })
  },
  rate_limit: async fixture => {
    await fixture.addAccount('acc_2', 'free', true)
    const key = await fixture.addKey({ accountId: 'acc_2' })
    for (let n = 0; n < 10; n++) await fixture.request('/v1/credits', { key })
    await fixture.clock.advance(18_000)
    return place => askOf(fixture)(place, { key })
  },
  not_found: fixture => place => askOf(fixture)(place),
  payload_too_large: fixture => place =>
    askOf(fixture)(place, { body: 'x', headers: { 'Content-Length': '200000000' } }),
  unsupported_media_type: fixture => place =>
    askOf(fixture)(place, { body: 'x', headers: { 'Content-Type': 'text/plain' } }),
  idempotency_in_progress: fixture => {
    fixture.service.keysInFlight.start('key_1', 'used')
    return place => askOf(fixture)(place, { headers: { 'Idempotency-Key': 'used' } })
  },
  idempotency_mismatch: async fixture => {
    const headers = { 'Idempotency-Key': 'used' }
    await fixture.request('/v1/verify/bulk', { headers, body: { emails: ['valid@example.com'] } })
    return place => askOf(fixture)(place, { headers })
  },
  server_error: fixture => {
    Object.assign(fixture.service.limits, { charge: () => Promise.reject(new Error('a fault')) })
    return place => askOf(fixture)(place)
  },
  service_unavailable: fixture => {
    const full = Object.assign(new Error('the disk is full'), { code: 'SQLITE_FULL' })
    Object.assign(fixture.service.limits, { charge: () => Promise.reject(full) })
    return place => askOf(fixture)(place)
  },
}

/** In `npm test` each code is expected of a third of its operations, the next code of others. */
const PLACES_SHARE = 3

test.each(Object.entries(GENERAL))('%s', async (code, prepare) => {
  const fixture = await createExampleService()
  const ask = await prepare(fixture)
  const documented = places.filter(one => hasError(one, code))
  const first = Object.keys(GENERAL).indexOf(code)
  for (const place of sampled(documented, PLACES_SHARE, first)) {
    await expectError(code, await ask(place), `${place.method} ${place.path}`)
  }
})

const OTHER_JOB = 'job_other'
const rows = (count: number) => Array.from({ length: count }, (_, n) => `valid${n}@example.com`)
const file = (text: string): RequestOptions => ({
  body: form([['file', { file: text }]]),
  headers: { 'Content-Type': FORM },
})
function list(id: string, emails: readonly string[]): RequestOptions {
  if (id === 'verifyFile') return file(`email\n${emails.join('\n')}\n`)
  return {
    body: id === 'verifyUrl' ? { url: `https://a.example/${emails.length}.csv` } : { emails },
  }
}

const FETCH = 'The list cannot be fetched from files.example.com.'

/** The download of a list fails. */
const download = (
  code: string,
  kind: Parameters<typeof failingDownload>[0],
  message: string,
): Scenario => ({
  code,
  prepare: ({ service }) => Object.assign(service, { download: failingDownload(kind, message) }),
})

type Scenario = {
  readonly code: string
  readonly plan?: string
  readonly prepare?: (fixture: ExampleService, operationId: string) => unknown
  /** Whether this test is about the operation; true if omitted. */
  readonly isTested?: (operationId: string) => boolean
  /** ID in the path; if omitted, that of the example. */
  readonly target?: string
  readonly options?: (operationId: string) => RequestOptions
}

/** Errors that depend on the operation. */
const SPECIAL: readonly Scenario[] = [
  { code: 'invalid_email', options: notAnAddress },
  { code: 'emails_required', options: () => ({ body: {} }) },
  {
    code: 'empty_list',
    options: id => (id === 'reverifyJob' ? { body: { older_than_days: 3_650 } } : list(id, [])),
  },
  {
    code: 'too_many_emails',
    options: id => list(id, rows(id === 'verifyBulk' ? 10_001 : 50_001)),
    // A file of a million rows is in file.slow.test.ts.
    isTested: id => id !== 'verifyFile' && id !== 'verifyUrl',
  },
  {
    code: 'quota_exceeded',
    plan: 'free',
    prepare: ({ service }) => {
      const plan = service.settings.plans.get('free')
      return plan && service.ledger.reserve('acc_1', plan, 100)
    },
  },
  {
    code: 'concurrent_jobs_exceeded',
    plan: 'free',
    prepare: async ({ database }) => {
      for (let n = 0; n < 10; n++)
        await seedJob(database, { id: `job_${n}`, texts: MIXED, done: 0 })
    },
    options: id => (/^(resume|reverify)Job$/.test(id) ? {} : list(id, rows(11))),
  },
  {
    code: 'stored_rows_exceeded',
    plan: 'free',
    prepare: ({ database }, id) => {
      if (id === 'submitFeedback') {
        const full = { account_id: 'acc_1', created_at: 0, pieces: 100_000 }
        return database.db.insertInto('feedback_account').values(full).execute()
      }
      const stored_rows = /^(verifySingle|reverifyJob)$/.test(id) ? 100_000 : 95_000
      return database.db.updateTable('account').set({ stored_rows }).execute()
    },
    options(id) {
      if (id === 'reverifyJob') return {}
      if (id === 'submitFeedback')
        return { body: { items: [{ email: 'ann@a.test', kind: 'delivered' }] } }
      const { body, headers } =
        id === 'verifySingle'
          ? { body: { email: 'valid@example.com', async: true }, headers: {} }
          : list(id, rows(10_000))
      // The sandbox needs no credits.
      return { body, headers: { ...headers, 'X-EV-Sandbox': 'true' } }
    },
  },
  {
    code: 'insufficient_storage',
    prepare: ({ service }) =>
      Object.assign(service, { disk: async () => ({ freeBytes: 0, isLow: true }) }),
  },
  {
    code: 'invalid_webhook_url',
    options: id => ({ body: invalidUrlBody(id) }),
    isTested: id => id !== 'verifyFile',
  },
  download(
    'invalid_list_url',
    'invalid_url',
    'The URL of the list is not allowed. It must begin with https://.',
  ),
  download('list_unreachable', 'unreachable', `${FETCH} No data arrived for 30 s.`),
  download(
    'list_access_denied',
    'denied',
    `${FETCH} The server answered with 403. Use a URL that needs no sign-in, such as a presigned one that has not expired.`,
  ),
  download('list_http_error', 'status', `${FETCH} The server answered with 404. Check the URL.`),
  { code: 'invalid_event', options: () => ({ body: { ...HOOK, events: ['batch.done'] } }) },
  {
    code: 'last_key',
    prepare: ({ request }) => request(`/v1/keys/${KEY}`, { method: 'DELETE' }),
    target: 'key_1',
  },
  {
    code: 'account_exists',
    prepare: async ({ addAccount, json }) => {
      await addAccount('acc_02')
      await json('/v1/accounts/acc_02', { method: 'PATCH', body: { name: 'Shop' } })
    },
    options: id => (id === 'createAccount' ? {} : { body: { name: 'Shop' } }),
  },
  { code: 'job_not_ready', prepare: seedOther(1), target: OTHER_JOB },
  { code: 'job_not_cancellable', prepare: seedOther(MIXED.length), target: OTHER_JOB },
  {
    code: 'job_not_finishable',
    prepare: async fixture => {
      await seedOther(1)(fixture)
      await fixture.request(`/v1/jobs/${OTHER_JOB}/cancel`, { method: 'POST' })
    },
    target: OTHER_JOB,
  },
  { code: 'job_not_resumable', prepare: seedOther(MIXED.length), target: OTHER_JOB },
  {
    code: 'job_not_reverifiable',
    prepare: seedOther(1),
    target: OTHER_JOB,
    // A schedule takes any list.
    isTested: id => id !== 'createSchedule',
  },
]

// The functions below are hoisted, so that the table can use them.

function invalidUrlBody(id: string): object {
  const url = 'http://a.example'
  if (id === 'verifySingle') return { email: 'a@example.com', async: true, webhook_url: url }
  if (id === 'verifyUrl') return { url: 'https://a.example/2.csv', webhook_url: url }
  if (id === 'reverifyJob') return { webhook_url: url }
  return id.startsWith('verify')
    ? { emails: ['a@example.com'], webhook_url: url }
    : { ...HOOK, url }
}

/** For a form, text that is not an address has a result. */
function notAnAddress(id: string): RequestOptions {
  return { body: { email: id === 'verifyForm' ? null : 'not an address' } }
}

function seedOther(done: number) {
  return ({ database }: ExampleService) => seedJob(database, { id: OTHER_JOB, texts: MIXED, done })
}

const HOOK = { url: 'https://app.example.com/hook', events: ['batch.completed'] }

test.each(SPECIAL)('$code', async scenario => {
  const { code, plan, prepare, target, options, isTested = () => true } = scenario
  for (const place of places.filter(one => hasError(one, code))) {
    const id = place.operation.operationId
    if (!isTested(id)) continue
    const fixture = await createExampleService(plan === undefined ? {} : { plan })
    const path = await pathOf(fixture, place)
    await prepare?.(fixture, id)
    const [body = {}] = await bodiesOf(place)
    const given = { ...body, ...options?.(id) }
    const exact = target === undefined ? path : path.replace(/(job|key)_\w+/, target)
    const response = await fixture.request(exact, { method: place.method, ...given })
    await expectError(code, response, id)
  }
})

test.each([
  ['expectation_failed', 'GET /ok HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n'],
  ['headers_too_large', `GET /ok HTTP/1.1\r\nHost: a\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`],
  ['request_timeout', 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx'],
])('%s, sent before the operation is known', async (code, sent) => {
  const { headers } = await createExampleService()
  const { send } = await openHttpServer({ limits: { bodyMs: 50 }, headers })
  const { json, ...answer } = parseAnswer(await send(sent))
  const response = new Response(JSON.stringify(json), answer)
  await contractOf(document)('POST', '/v1/keys', response)
  await expectError(code, response, code)
})
