import { describe, expect, test } from 'vitest'
import { createTestDashboard } from '../support/dashboard.ts'
import { addOneOfEverything } from '../support/owned-rows.ts'
import { sampled } from '../support/property.ts'

type TestDashboard = Awaited<ReturnType<typeof createTestDashboard>>
type Route = { readonly method: string; readonly path: string }

/** Public pages; all others require a session. */
const PUBLIC_PATHS = [
  '/form.js',
  '/',
  '/sign-in',
  '/sign-in/code',
  '/sign-in/oidc',
  '/sign-in/oidc/callback',
  '/sign-in/oidc/account',
  '/invitation/:token',
  '/invitation/:token/oidc',
  '/welcome/:token',
  '/assets/:version/:name',
  '/docs',
  '/docs/:page{.+}',
]

/** All routes of the dashboard. */
function routesOf({ pages }: TestDashboard): readonly Route[] {
  const all = pages.routes.filter(({ method }) => method !== 'ALL')
  const known = new Map(all.map(({ method, path }) => [`${method} ${path}`, { method, path }]))
  return [...known.values()]
}

const protectedRoutes = (services: TestDashboard) =>
  routesOf(services).filter(({ path }) => !PUBLIC_PATHS.includes(path))

/** Fills a path with IDs of the first account. */
const fillPath = (path: string, ids: Readonly<Record<string, string>>) =>
  path
    .replace(':delivery', ids.delivery ?? '')
    .replace(/\/([^/]+)\/:id/, (_, kind: string) => `/${kind}/${ids[kind]}`)

/** A dashboard whose first account has one of everything, with the IDs by path prefix. */
async function createOwner() {
  const services = await createTestDashboard({ works: true })
  const owned = await addOneOfEverything(services)
  const session = await services.database.db
    .selectFrom('session')
    .select('id')
    .executeTakeFirstOrThrow()
  const ids = {
    lists: owned.job,
    webhooks: owned.webhook,
    keys: 'key_1',
    sessions: session.id,
    delivery: owned.delivery,
    sources: owned.source,
    people: owned.person,
  }
  return { services, ids }
}

/** The stored state, without last-used times. */
async function stateOf({ database }: TestDashboard): Promise<unknown> {
  const { db } = database
  const tables = [
    ...(['job', 'item', 'webhook', 'delivery', 'verification', 'replay', 'event'] as const),
    ...(['feedback_source', 'schedule', 'person'] as const),
  ]
  const rows = await Promise.all(tables.map(table => db.selectFrom(table).selectAll().execute()))
  const keys = await db.selectFrom('api_key').selectAll().execute()
  const sessions = await db.selectFrom('session').select(['id', 'key_id']).execute()
  return { rows, keys: keys.map(key => ({ ...key, last_used_at: null })), sessions }
}

describe('every path', () => {
  test('is known to this test, and few are public', async () => {
    const routes = routesOf(await createTestDashboard())
    expect(routes.length).toBeGreaterThan(45)
    const open = routes.filter(({ path }) => PUBLIC_PATHS.includes(path))
    expect(open.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual([
      'GET /',
      'GET /assets/:version/:name',
      'GET /docs',
      'GET /docs/:page{.+}',
      'GET /form.js',
      'GET /invitation/:token',
      'GET /invitation/:token/oidc',
      'GET /sign-in',
      'GET /sign-in/oidc',
      'GET /sign-in/oidc/callback',
      'GET /welcome/:token',
      'POST /invitation/:token',
      'POST /sign-in',
      'POST /sign-in/code',
      'POST /sign-in/oidc/account',
      'POST /welcome/:token',
    ])
    expect(new Set(routes.map(({ method }) => method))).toEqual(new Set(['GET', 'POST']))
  })

  test('redirects to the sign-in page without a session, however it is written', async () => {
    const { services, ids } = await createOwner()
    const before = await stateOf(services)
    services.cookies.clear()
    for (const { method, path } of protectedRoutes(services)) {
      const plain = fillPath(path, ids)
      const requests = [
        ...[plain, `${plain}/`, encoded(plain), `${plain}?_csrf=x`].map(one => [one, ''] as const),
        ...['__Host-ev_session=', '__Host-ev_session=x', 'ev_session=x'].map(
          cookie => [plain, cookie] as const,
        ),
      ]
      for (const [one, cookie] of requests) {
        const headers = cookie === '' ? {} : { Cookie: cookie }
        const { status, headers: given } = await services.fetch(one, { method, headers })
        const where = given.get('Location') ?? ''
        expect([method, one, cookie, status, where.split('?')[0]]).toEqual([
          ...[method, one, cookie],
          ...[303, '/sign-in'],
        ])
      }
    }
    expect(await stateOf(services)).toEqual(before)
  })
})

/** The second letter in percent-encoding, which means the same (RFC 3986 §2.3). */
const encoded = (path: string) =>
  path.replace(/^\/(.)(.)/, (_, a: string, b: string) => `/${a}%${b.charCodeAt(0).toString(16)}`)

describe('every form', () => {
  test('is rejected without the token of this session, from another site, and with another content type', async () => {
    const { services, ids } = await createOwner()
    const ownToken = await services.csrf()
    const kept = new Map(services.cookies)
    await services.signIn()
    const foreignToken = await services.csrf()
    expect(foreignToken).not.toBe(ownToken)
    services.cookies.clear()
    for (const [name, value] of kept) services.cookies.set(name, value)
    const before = await stateOf(services)
    const forms = protectedRoutes(services).filter(({ method }) => method !== 'GET')
    expect(forms.length).toBeGreaterThan(20)
    const all = forgeries(ownToken, foreignToken)
    for (const [n, { method, path }] of forms.entries()) {
      const tried = path === OWN_CHECK ? all : sampled(all, FORGERIES_SHARE, n)
      for (const [name, init] of tried) {
        const answer = await services.fetch(fillPath(path, ids) + (init.query ?? ''), {
          method,
          ...init,
        })
        const text = await answer.text()
        const seen = [path, name, answer.status, text.includes('does not belong to your session')]
        // A file without a form is rejected like a missing token.
        expect(seen).toEqual([path, name, 403, true])
        expect(answer.headers.get('Cache-Control')).toBe('no-store')
      }
    }
    expect(await stateOf(services)).toEqual(before)
  })
})

/** A path whose handler checks the token; the others share a middleware. */
const OWN_CHECK = '/lists/new'
/** In `npm test` each form gets three or four forgeries, the next one others. */
const FORGERIES_SHARE = 4

type Forgery = RequestInit & { readonly query?: string }

function forgeries(ownToken: string, foreignToken: string): [name: string, init: Forgery][] {
  const validFields = () => new URLSearchParams({ _csrf: ownToken, grace: '0', active: 'false' })
  const multipart = (token: string | null) => {
    const deps = token === null ? [] : [['_csrf', token]]
    const text = [...deps, ['rows', 'ann@a.test']].map(
      ([name, value]) =>
        `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    )
    return {
      body: `${text.join('')}--b--\r\n`,
      headers: { 'Content-Type': 'multipart/form-data; boundary=b' },
    }
  }
  const withSite = (site: string) => ({
    ...multipart(ownToken),
    headers: {
      'Content-Type': 'application/x-www-form-urlencoded',
      'Sec-Fetch-Site': site,
      'X-CSRF-Token': ownToken,
    },
    body: validFields(),
  })
  return [
    ['nothing', {}],
    ['no token', { body: new URLSearchParams({ grace: '0' }) }],
    ['an empty token', { body: new URLSearchParams({ _csrf: '' }) }],
    [
      'that of another session of the same key',
      { body: new URLSearchParams({ _csrf: foreignToken }) },
    ],
    ['the same in the header', { headers: { 'X-CSRF-Token': foreignToken } }],
    ['a prefix of it', { headers: { 'X-CSRF-Token': ownToken.slice(0, -1) } }],
    ['a token in the query', { query: `?_csrf=${ownToken}` }],
    ['a multipart form of another session', multipart(foreignToken)],
    ['a multipart form without a token', multipart(null)],
    ['text', { body: `_csrf=${ownToken}`, headers: { 'Content-Type': 'text/plain' } }],
    ['another site', withSite('cross-site')],
    ['another host of this site', withSite('same-site')],
    ['an address typed by the user', withSite('none')],
  ]
}

describe('data of another account', () => {
  test('is not accessible on any path', async () => {
    const { services, ids } = await createOwner()
    const named = protectedRoutes(services).filter(({ path }) => path.includes('/:'))
    expect(named.length).toBeGreaterThan(20)
    const reads = named.filter(({ method }) => method === 'GET')
    for (const { path } of reads) {
      expect([path, (await services.get(fillPath(path, ids))).status]).toEqual([path, 200])
    }
    await services.addAccount('acc_2')
    const stranger = await services.addKey({ accountId: 'acc_2', id: 'key_stranger' })
    services.cookies.clear()
    await services.signIn(stranger)
    const before = await stateOf(services)
    for (const { method, path } of named) {
      const own = fillPath(path, ids)
      for (const one of [own, `${own}?column=1&tested=${ids.delivery}`]) {
        for (const headers of FRAGMENT_HEADERS) {
          const { status, text } =
            method === 'GET'
              ? await services.get(one, headers)
              : await services.post(one, FIELDS, headers)
          const isLeaked = /valid@a|app\.test|ann@a/.test(text)
          expect([method, one, status, isLeaked]).toEqual([method, one, 404, false])
        }
      }
    }
    expect(await stateOf(services)).toEqual(before)
  })
})

/** Fragments that htmx requests. */
const FRAGMENT_HEADERS: readonly Record<string, string>[] = [
  {},
  { 'HX-Request': 'true', 'HX-Target': 'rows' },
  { 'HX-Request': 'true', 'HX-Target': 'log' },
]

/** Fields for every form. */
const FIELDS = {
  grace: '0',
  active: 'false',
  since: '2026-01-01T00:00',
  name: 'x',
  url: 'https://8.8.8.8/',
  scopes: 'jobs:read',
  events: 'batch.completed',
}
