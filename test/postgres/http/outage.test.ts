import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../../src/db/database.ts'
import { DEFAULT_POOL_TIMINGS, type PoolTimings } from '../../../src/db/postgres/pool-timings.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { documentOf, placesOf } from '../../api/contract/document.ts'
import {
  account,
  type ClusterService,
  createClusterService,
  page,
} from '../../support/cluster-service.ts'
import { cutProxy } from '../../support/cut-proxy.ts'
import { tempPostgres } from '../../support/database.ts'
import { giveResults, MIXED, seedJob } from '../../support/job-rows.ts'
import { tempRole } from '../../support/postgres-role.ts'
import { ask } from '../../support/postgres-server.ts'
import { waitUntil } from '../../support/wait.ts'
import { goodBody } from './bodies.ts'

/** A service that reaches an empty database through a line that can be cut. */
async function cuttable(pool?: PoolTimings) {
  const url = await tempPostgres()
  const proxy = await cutProxy(url)
  onTestFinished(() => proxy.close())
  const one = await createClusterService(proxy.url, pool && { pool })
  // Connections that are never cut, for the test itself.
  const database = await openDatabase(url, systemClock)
  onTestFinished(() => database.close())
  return { proxy, one, database }
}

/** Every operation of the API that needs a key, as it may be asked. */
const endpoints = ({ service, app }: ClusterService) =>
  placesOf(documentOf(service, app))
    .filter(({ path }) => path.startsWith('/v1/'))
    .map(({ method, path }) => ({
      ...{ name: `${method} ${path}`, method },
      path: path.replaceAll(/\{\w+\}/g, 'job_xyz'),
    }))

describe('while PostgreSQL is away', () => {
  test('every path of the API says 503, and all goes on by itself when it is there again', async () => {
    const { proxy, one } = await cuttable()
    const key = await account(one.database)
    proxy.refuse()
    for (const { name, method, path } of endpoints(one)) {
      const answer = await one.request(path, { method, key, body: goodBody(name) })
      const told = { name, status: answer.status, body: await answer.json() }
      expect(told).toMatchObject({
        ...{ name, status: 503 },
        body: { success: false, code: 'service_unavailable', request_id: expect.any(String) },
      })
      expect(answer.headers.get('Retry-After')).toMatch(/^\d+$/)
      expect(answer.headers.get('X-RateLimit-Limit')).toBe('100')
    }
    const failed = one.lines.filter(({ message }) => message === 'a request failed')
    expect(failed.length).toBeGreaterThan(0)
    // The text of the fault says all: no place in our code is to blame.
    for (const { fields } of failed) {
      expect(fields).toMatchObject({ code: 'service_unavailable', why: expect.stringMatching(/./) })
      expect(fields.stack).toBeUndefined()
    }
    proxy.accept()
    const answer = await one.request('/v1/verify/single', { key, body: { email: 'ann@a.test' } })
    expect(await answer.json()).toMatchObject({ valid: true })
  })
  test('it is told by /readyz and /health, while /livez and /metrics go on', async () => {
    const { proxy, one } = await cuttable()
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

  test('pages say so, and who was signed in still is afterwards', async () => {
    const { proxy, one } = await cuttable()
    const body = new URLSearchParams({ key: await account(one.database) })
    const signedIn = await page(one, '/sign-in', { method: 'POST', body })
    const Cookie = (signedIn.headers.get('Set-Cookie') ?? '').replace(/;.*$/s, '')
    expect((await page(one, '/usage', { headers: { Cookie } })).status).toBe(200)
    proxy.refuse()
    for (const path of ['/usage', '/lists', '/keys', '/webhooks', '/verify']) {
      const answer = await page(one, path, { headers: { Cookie } })
      const text = await answer.text()
      expect([path, answer.status, answer.headers.get('Retry-After')]).toEqual([path, 503, '5'])
      expect(text).toContain('you stay signed in')
      expect(answer.headers.get('Set-Cookie')).toBeNull()
    }
    proxy.accept()
    expect((await page(one, '/usage', { headers: { Cookie } })).status).toBe(200)
  })

  test('who follows a job hears no more for a while, and then goes on', async () => {
    const { proxy, one, database } = await cuttable()
    const key = await account(one.database)
    await seedJob(one.database, { texts: MIXED, done: 0 })
    const stream = await one.request('/v1/jobs/job_a/events', { key })
    const heard = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    const next = async () => (await heard?.read())?.value ?? ''
    expect(await next()).toContain('retry:')
    expect(await next()).toContain('event: progress')
    const later = next()
    proxy.refuse()
    const polled = await one.request('/v1/jobs/job_a?wait=30', { key })
    expect(polled.status).toBe(503)
    proxy.accept()
    await giveResults(database, 'job_a', MIXED.length)
    let told = await later
    while (!told.includes('event: end')) told += await next()
    expect(told).toContain('"status":"completed"')
  })
})

test('a server that says nothing is given up, and the client is told in time', async () => {
  const pool = { ...DEFAULT_POOL_TIMINGS, connectMs: 100, statementMs: 100, silenceMs: 50 }
  const { proxy, one } = await cuttable(pool)
  const key = await account(one.database)
  expect((await one.request('/v1/jobs', { key })).status).toBe(200)
  proxy.freeze()
  expect((await one.request('/v1/jobs', { key })).status).toBe(503)
  proxy.thaw()
  await waitUntil(async () => (await one.request('/v1/jobs', { key })).status === 200)
})

test('where its connections are used up, it is 503 too', async () => {
  const url = await tempPostgres()
  const narrow = await tempRole(url, 'connection limit 8')
  await ask(url, `grant all on all tables in schema public to ${narrow.name}`)
  const one = await createClusterService(narrow.url)
  const key = await account(one.database)
  const others = Array.from({ length: 8 }, () => new pg.Client(narrow.url))
  for (const client of others) client.on('error', () => {})
  await Promise.allSettled(others.map(client => client.connect()))
  const asked = Array.from({ length: 12 }, () => one.request('/v1/jobs', { key }))
  const answers = (await Promise.all(asked)).map(({ status }) => status)
  expect(answers.filter(status => status !== 200 && status !== 503)).toEqual([])
  await Promise.allSettled(others.map(client => client.end()))
  // Within two seconds a connection is tried again.
  await waitUntil(async () => (await one.request('/v1/jobs', { key })).status === 200)
})
