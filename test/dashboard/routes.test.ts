import { describe, expect, test } from 'vitest'
import { createTestDashboard } from '../support/dashboard.ts'
import { addOneOfEverything } from '../support/owned-rows.ts'

type TestDashboard = Awaited<ReturnType<typeof createTestDashboard>>
type Route = { readonly method: string; readonly path: string }

/** Public pages; all others require a session. */
const OPEN = ['/', '/sign-in', '/welcome/:token', '/assets/:version/:name']

/** All routes of the dashboard. */
function routesOf({ pages }: TestDashboard): readonly Route[] {
  const all = pages.routes.filter(({ method }) => method !== 'ALL')
  const known = new Map(all.map(({ method, path }) => [`${method} ${path}`, { method, path }]))
  return [...known.values()]
}

const closedOf = (services: TestDashboard) =>
  routesOf(services).filter(({ path }) => !OPEN.includes(path))

/** Fills a path with IDs of the first account. */
const filled = (path: string, ids: Readonly<Record<string, string>>) =>
  path
    .replace(':delivery', ids.delivery ?? '')
    .replace(/^\/([^/]+)\/:id/, (_, kind: string) => `/${kind}/${ids[kind]}`)

/** A dashboard whose first account has one of everything, with the IDs by path prefix. */
async function owning() {
  const services = await createTestDashboard()
  const delivery = await addOneOfEverything(services)
  const session = await services.database.db
    .selectFrom('session')
    .select('id')
    .executeTakeFirstOrThrow()
  const ids = {
    ...{ lists: 'job_a', webhooks: 'wh_a', keys: 'key_1', sessions: session.id, delivery },
  }
  return { services, ids }
}

/** The stored state, without last-used times. */
async function stateOf({ database }: TestDashboard): Promise<unknown> {
  const { db } = database
  const tables = ['job', 'item', 'webhook', 'delivery', 'verification', 'replay', 'event'] as const
  const rows = await Promise.all(tables.map(table => db.selectFrom(table).selectAll().execute()))
  const keys = await db.selectFrom('api_key').selectAll().execute()
  const sessions = await db.selectFrom('session').select(['id', 'key_id']).execute()
  return { rows, keys: keys.map(key => ({ ...key, last_used_at: null })), sessions }
}

describe('every path', () => {
  test('is known to this test, and few are public', async () => {
    const routes = routesOf(await createTestDashboard())
    expect(routes.length).toBeGreaterThan(45)
    const open = routes.filter(({ path }) => OPEN.includes(path))
    expect(open.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual([
      'GET /',
      'GET /assets/:version/:name',
      'GET /sign-in',
      'GET /welcome/:token',
      'POST /sign-in',
      'POST /welcome/:token',
    ])
    expect(new Set(routes.map(({ method }) => method))).toEqual(new Set(['GET', 'POST']))
  })

  test('redirects to the sign-in page without a session, however it is written', async () => {
    const { services, ids } = await owning()
    const before = await stateOf(services)
    services.cookies.clear()
    for (const { method, path } of closedOf(services)) {
      const plain = filled(path, ids)
      const written = [plain, `${plain}/`, encoded(plain), `${plain}?_csrf=x`]
      for (const one of written) {
        for (const cookie of ['', '__Host-ev_session=', '__Host-ev_session=x', 'ev_session=x']) {
          const headers = cookie === '' ? {} : { Cookie: cookie }
          const { status, headers: given } = await services.fetch(one, { method, headers })
          const where = given.get('Location') ?? ''
          expect([method, one, cookie, status, where.split('?')[0]]).toEqual([
            ...[method, one, cookie],
            ...[303, '/sign-in'],
          ])
        }
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
    const { services, ids } = await owning()
    const mine = await services.csrf()
    const kept = new Map(services.cookies)
    await services.signIn()
    const anothers = await services.csrf()
    expect(anothers).not.toBe(mine)
    services.cookies.clear()
    for (const [name, value] of kept) services.cookies.set(name, value)
    const before = await stateOf(services)
    const forms = closedOf(services).filter(({ method }) => method !== 'GET')
    expect(forms.length).toBeGreaterThan(20)
    for (const { method, path } of forms) {
      for (const [name, init] of forgeries(mine, anothers)) {
        const answer = await services.fetch(filled(path, ids) + (init.query ?? ''), {
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

type Forgery = RequestInit & { readonly query?: string }

function forgeries(mine: string, anothers: string): [name: string, init: Forgery][] {
  const ours = () => new URLSearchParams({ _csrf: mine, grace: '0', active: 'false' })
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
    ...multipart(mine),
    headers: {
      'Content-Type': 'application/x-www-form-urlencoded',
      'Sec-Fetch-Site': site,
      'X-CSRF-Token': mine,
    },
    body: ours(),
  })
  return [
    ['nothing', {}],
    ['no token', { body: new URLSearchParams({ grace: '0' }) }],
    ['an empty one', { body: new URLSearchParams({ _csrf: '' }) }],
    ['that of another session of the same key', { body: new URLSearchParams({ _csrf: anothers }) }],
    ['that one in the header', { headers: { 'X-CSRF-Token': anothers } }],
    ['a beginning', { headers: { 'X-CSRF-Token': mine.slice(0, -1) } }],
    ['one in the query', { query: `?_csrf=${mine}` }],
    ['a multipart form of another session', multipart(anothers)],
    ['a multipart form without one', multipart(null)],
    ['text', { body: `_csrf=${mine}`, headers: { 'Content-Type': 'text/plain' } }],
    ['another site', withSite('cross-site')],
    ['another host of this site', withSite('same-site')],
    ['an address that somebody typed', withSite('none')],
  ]
}

describe('data of another account', () => {
  test('is not accessible on any path', async () => {
    const { services, ids } = await owning()
    const named = closedOf(services).filter(({ path }) => path.includes('/:'))
    expect(named.length).toBeGreaterThan(20)
    const looks = named.filter(({ method }) => method === 'GET')
    for (const { path } of looks) {
      expect([path, (await services.get(filled(path, ids))).status]).toEqual([path, 200])
    }
    await services.addAccount('acc_2')
    const stranger = await services.addKey({ accountId: 'acc_2', id: 'key_stranger' })
    services.cookies.clear()
    await services.signIn(stranger)
    const before = await stateOf(services)
    for (const { method, path } of named) {
      const own = filled(path, ids)
      for (const one of [own, `${own}?column=1&tested=${ids.delivery}`]) {
        for (const headers of PARTS) {
          const { status, text } =
            method === 'GET'
              ? await services.get(one, headers)
              : await services.post(one, FIELDS, headers)
          const isTold = /valid@a|app\.test|ann@a/.test(text)
          expect([method, one, status, isTold]).toEqual([
            method,
            one,
            statusFor(path, headers),
            false,
          ])
        }
      }
    }
    expect(await stateOf(services)).toEqual(before)
  })
})

/** Fragments that htmx requests. */
const PARTS: readonly Record<string, string>[] = [
  {},
  { 'HX-Request': 'true', 'HX-Target': 'rows' },
  { 'HX-Request': 'true', 'HX-Target': 'log' },
]

/** Fields for every form. */
const FIELDS = {
  ...{ grace: '0', active: 'false', since: '2026-01-01T00:00', name: 'x' },
  ...{ url: 'https://8.8.8.8/', scopes: 'jobs:read', events: 'batch.completed' },
}

/** Rows of a missing list are rendered as an error. */
const statusFor = (path: string, headers: Record<string, string>) =>
  path === '/lists/:id' && headers['HX-Target'] === 'rows' ? 200 : 404
