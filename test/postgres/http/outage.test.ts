import { sql } from 'kysely'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { DEFAULT_POOL_TIMINGS, type PoolTimings } from '../../../src/db/postgres/connect-backoff.ts'
import { documentOf, placesOf } from '../../api/contract/document.ts'
import {
  account,
  type ClusterService,
  createClusterService,
  page,
} from '../../support/cluster-service.ts'
import { cutProxy } from '../../support/cut-proxy.ts'
import { FAST_TIMINGS } from '../../support/fast-timings.ts'
import { giveResults, MIXED, seedJob } from '../../support/job-rows.ts'
import { openServer, tempPostgres } from '../../support/postgres-pool.ts'
import { tempRole } from '../../support/postgres-role.ts'
import { ask } from '../../support/postgres-server.ts'
import { waitUntil } from '../../support/wait.ts'
import { validBody } from './bodies.ts'

/** Starts a service that reaches an empty database through a proxy that can cut connections. */
async function startBehindProxy(pool?: PoolTimings) {
  const url = await tempPostgres()
  const proxy = await cutProxy(url)
  onTestFinished(() => proxy.close())
  const one = await createClusterService(proxy.url, pool && { pool })
  // The test itself uses connections that are never cut.
  const database = await openServer(url)
  onTestFinished(() => database.close())
  return { proxy, one, database }
}

/** Returns every operation of the API that needs a key, with a sample path. */
const endpoints = ({ service, app }: ClusterService) =>
  placesOf(documentOf(service, app))
    .filter(({ path }) => path.startsWith('/v1/'))
    .map(({ method, path }) => ({
      name: `${method} ${path}`,
      method,
      path: path.replaceAll(/\{\w+\}/g, 'job_xyz'),
    }))

describe('while PostgreSQL is unavailable', () => {
  test('every path of the API returns 503, and works again after recovery', async () => {
    const { proxy, one } = await startBehindProxy()
    const key = await account(one.database)
    proxy.refuse()
    for (const { name, method, path } of endpoints(one)) {
      const response = await one.request(path, { method, key, body: validBody(name) })
      const received = { name, status: response.status, body: await response.json() }
      expect(received).toMatchObject({
        name,
        status: 503,
        body: { success: false, code: 'service_unavailable', request_id: expect.any(String) },
      })
      expect(response.headers.get('Retry-After')).toMatch(/^\d+$/)
      expect(response.headers.get('X-RateLimit-Limit')).toBe('100')
    }
    const failed = one.lines.filter(({ message }) => message === 'a request failed')
    expect(failed.length).toBeGreaterThan(0)
    // The message of the error is enough: a stack trace would point at no defect.
    for (const { fields } of failed) {
      expect(fields).toMatchObject({ code: 'service_unavailable', why: expect.stringMatching(/./) })
      expect(fields.stack).toBeUndefined()
    }
    proxy.accept()
    const response = await one.request('/v1/verify/single', { key, body: { email: 'ann@a.test' } })
    expect(await response.json()).toMatchObject({ valid: true })
  })
  test('a read-only server, as in a failover, returns 503 for what has to be stored, and holds no credits', async () => {
    const url = await tempPostgres()
    // With connections of its own, as read-only ones would fail later tests.
    const one = await createClusterService(url, { pool: FAST_TIMINGS.pool })
    const key = await account(one.database)
    const verify = () => one.request('/v1/verify/single', { key, body: { email: 'ann@a.test' } })
    const admin = new URL(url)
    const name = admin.pathname.slice(1)
    admin.pathname = '/postgres'
    /** Applies to new connections, so the open ones are ended. */
    const alter = async (change: string, statement = 'select pg_terminate_backend(pid)') => {
      await ask(admin.href, `alter database "${name}" ${change}`)
      await ask(admin.href, `${statement} from pg_stat_activity where datname = '${name}'`)
    }
    expect((await verify()).status).toBe(200)
    await alter('set default_transaction_read_only = on')
    try {
      for (let n = 0; n < 3; n++) {
        const response = await verify()
        expect([response.status, response.headers.get('Retry-After')]).toEqual([503, '5'])
      }
    } finally {
      await alter('reset default_transaction_read_only', 'select pid')
    }
    // The pool drops connections to a server that is read-only.
    await waitUntil(async () => (await verify()).status === 200)
    await one.service.ledger.flushed()
    const { rows } = await sql<{ held: number }>`select held from credit`.execute(one.database.db)
    expect(rows.every(({ held }) => held === 0)).toBe(true)
    expect(one.lines.filter(({ message }) => /lost/.test(message))).toEqual([])
  })
  test('/readyz and /health report it, while /livez and /metrics keep working', async () => {
    const { proxy, one } = await startBehindProxy()
    const status = async (path: string) => (await one.request(path, { ip: '127.0.0.1' })).status
    const database = async () =>
      ((await (await one.request('/health')).json()) as { database: string }).database
    expect([await status('/readyz'), await database()]).toEqual([200, 'ok'])
    proxy.refuse()
    expect(await status('/livez')).toBe(200)
    const [ready, health] = [await one.request('/readyz'), await one.request('/health')]
    expect([ready.status, ready.headers.get('Retry-After')]).toEqual([503, '5'])
    expect(health.status).toBe(200)
    expect(await health.json()).toMatchObject({ status: 'failing', database: 'failing' })
    const metrics = await (await one.request('/metrics', { ip: '127.0.0.1' })).text()
    expect(metrics).toContain('ev_http_requests_total{method="GET",route="/readyz",status="503"} 1')
    expect(metrics).not.toMatch(/^ev_webhook_deliveries_open /m)
    proxy.accept()
    expect([await status('/readyz'), await database()]).toEqual([200, 'ok'])
  })

  test('pages return 503 and keep the dashboard session', async () => {
    const { proxy, one } = await startBehindProxy()
    const body = new URLSearchParams({ key: await account(one.database) })
    const signedIn = await page(one, '/sign-in', { method: 'POST', body })
    const Cookie = (signedIn.headers.get('Set-Cookie') ?? '').replace(/;.*$/s, '')
    expect((await page(one, '/usage', { headers: { Cookie } })).status).toBe(200)
    proxy.refuse()
    for (const path of ['/usage', '/lists', '/keys', '/webhooks', '/verify']) {
      const response = await page(one, path, { headers: { Cookie } })
      const text = await response.text()
      expect([path, response.status, response.headers.get('Retry-After')]).toEqual([path, 503, '5'])
      expect(text).toContain('you stay signed in')
      expect(response.headers.get('Set-Cookie')).toBeNull()
    }
    proxy.accept()
    expect((await page(one, '/usage', { headers: { Cookie } })).status).toBe(200)
  })

  test('the event stream of a job pauses and continues after recovery', async () => {
    const { proxy, one, database } = await startBehindProxy()
    const key = await account(one.database)
    await seedJob(one.database, { texts: MIXED, done: 0 })
    const stream = await one.request('/v1/jobs/job_a/events', { key })
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    const next = async () => (await reader?.read())?.value ?? ''
    expect(await next()).toContain('retry:')
    expect(await next()).toContain('event: progress')
    const later = next()
    proxy.refuse()
    const polled = await one.request('/v1/jobs/job_a?wait=30', { key })
    expect(polled.status).toBe(503)
    proxy.accept()
    await giveResults(database, 'job_a', MIXED.length)
    let received = await later
    while (!received.includes('event: end')) received += await next()
    expect(received).toContain('"status":"completed"')
  })
})

test('returns 503 in time if the database stops responding', async () => {
  const pool = { ...DEFAULT_POOL_TIMINGS, connectMs: 5000, statementMs: 500, silenceMs: 50 }
  const { proxy, one } = await startBehindProxy(pool)
  const key = await account(one.database)
  expect((await one.request('/v1/jobs', { key })).status).toBe(200)
  proxy.freeze()
  expect((await one.request('/v1/jobs', { key })).status).toBe(503)
  proxy.thaw()
  await waitUntil(async () => (await one.request('/v1/jobs', { key })).status === 200)
})

test('returns 503 if the database has no connections left', async () => {
  const url = await tempPostgres()
  const limitedRole = await tempRole(url, 'connection limit 8')
  await ask(url, `grant all on all tables in schema public to ${limitedRole.name}`)
  const one = await createClusterService(limitedRole.url)
  const key = await account(one.database)
  const others = Array.from({ length: 8 }, () => new pg.Client(limitedRole.url))
  for (const client of others) client.on('error', () => {})
  await Promise.allSettled(others.map(client => client.connect()))
  const requests = Array.from({ length: 12 }, () => one.request('/v1/jobs', { key }))
  const statuses = (await Promise.all(requests)).map(({ status }) => status)
  expect(statuses.filter(status => status !== 200 && status !== 503)).toEqual([])
  await Promise.allSettled(others.map(client => client.end()))
  // The pool reconnects within two seconds.
  await waitUntil(async () => (await one.request('/v1/jobs', { key })).status === 200)
})
