import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { documentOf, placesOf } from '../../http/contract/document.ts'
import {
  account,
  type ClusterService,
  createClusterService,
  page,
} from '../../support/cluster-service.ts'
import { giveResults, MIXED, seedJob } from '../../support/job-rows.ts'
import { type PostgresServer, startPostgres } from '../../support/postgres-server.ts'
import { goodBody } from './bodies.ts'

let postgres: PostgresServer
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres.stop())

/** Longer than a connection is waited for, and than that anybody should wait for an answer. */
const PATIENCE_MS = 6_000

/** Every operation of the API that needs a key, as it may be asked. */
const endpoints = ({ service, app }: ClusterService) =>
  placesOf(documentOf(service, app))
    .filter(({ path }) => path.startsWith('/v1/'))
    .map(({ method, path }) => ({
      ...{ name: `${method} ${path}`, method },
      path: path.replaceAll(/\{\w+\}/g, 'job_xyz'),
    }))

describe('while PostgreSQL is away', () => {
  test('every path of the API says 503 in time, and all goes on by itself when it is there again', async () => {
    const one = await createClusterService(await postgres.create('every_path'))
    const key = await account(one.database)
    await postgres.down()
    for (const { name, method, path } of endpoints(one)) {
      const begun = performance.now()
      const answer = await one.request(path, { method, key, body: goodBody(name) })
      const told = { name, status: answer.status, body: await answer.json() }
      expect(told).toMatchObject({
        ...{ name, status: 503 },
        body: { success: false, code: 'service_unavailable', request_id: expect.any(String) },
      })
      expect(answer.headers.get('Retry-After')).toMatch(/^\d+$/)
      expect(answer.headers.get('X-RateLimit-Limit')).toBe('100')
      expect(performance.now() - begun).toBeLessThan(PATIENCE_MS)
    }
    await postgres.up()
    const answer = await one.request('/v1/verify/single', { key, body: { email: 'ann@a.test' } })
    expect(await answer.json()).toMatchObject({ valid: true })
  })
  test('it is told by /readyz and /health, while /livez and /metrics go on', async () => {
    const one = await createClusterService(await postgres.create('watched'))
    const status = async (path: string) => (await one.request(path, { ip: '127.0.0.1' })).status
    const database = async () =>
      ((await (await one.request('/health')).json()) as { database: string }).database
    expect([await status('/readyz'), await database()]).toEqual([200, 'ok'])
    await postgres.down()
    expect(await status('/livez')).toBe(200)
    const [ready, health] = [await one.request('/readyz'), await one.request('/health')]
    expect([ready.status, ready.headers.get('Retry-After')]).toEqual([503, '5'])
    expect(health.status).toBe(200)
    expect(await health.json()).toMatchObject({ status: 'failing', database: 'failing' })
    const metrics = await (await one.request('/metrics', { ip: '127.0.0.1' })).text()
    expect(metrics).toContain('ev_http_requests_total{method="GET",route="/readyz",status="503"} 1')
    expect(metrics).not.toMatch(/^ev_webhook_deliveries_open /m)
    await postgres.up()
    expect([await status('/readyz'), await database()]).toEqual([200, 'ok'])
  })

  test('pages say so, and who was signed in still is afterwards', async () => {
    const one = await createClusterService(await postgres.create('pages'))
    const body = new URLSearchParams({ key: await account(one.database) })
    const signedIn = await page(one, '/sign-in', { method: 'POST', body })
    const Cookie = (signedIn.headers.get('Set-Cookie') ?? '').replace(/;.*$/s, '')
    expect((await page(one, '/usage', { headers: { Cookie } })).status).toBe(200)
    await postgres.down()
    for (const path of ['/usage', '/lists', '/keys', '/webhooks', '/verify']) {
      const answer = await page(one, path, { headers: { Cookie } })
      const text = await answer.text()
      expect([path, answer.status, answer.headers.get('Retry-After')]).toEqual([path, 503, '5'])
      expect(text).toContain('you stay signed in')
      expect(answer.headers.get('Set-Cookie')).toBeNull()
    }
    await postgres.up()
    expect((await page(one, '/usage', { headers: { Cookie } })).status).toBe(200)
  })

  test('who follows a job hears no more for a while, and then goes on', async () => {
    const one = await createClusterService(await postgres.create('followed'))
    const key = await account(one.database)
    await seedJob(one.database, { texts: MIXED, done: 0 })
    const stream = await one.request('/v1/jobs/job_a/events', { key })
    const heard = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    const next = async () => (await heard?.read())?.value ?? ''
    expect(await next()).toContain('retry:')
    expect(await next()).toContain('event: progress')
    const later = next()
    await postgres.down()
    const polled = await one.request('/v1/jobs/job_a?wait=30', { key })
    expect(polled.status).toBe(503)
    await postgres.up()
    await giveResults(one.database, 'job_a', MIXED.length)
    expect(await later).toContain('event: end')
  })
})

test('a restart under load is answered by 503 alone, in time, and then all is as before', async () => {
  const one = await createClusterService(await postgres.create('restarted'), {
    settings: { ipLimits: { singlePerMinute: 1_000_000, bulkPerHour: 1_000_000 } },
  })
  const key = await account(one.database)
  const statuses = new Map<number, number>()
  let isOver = false
  let longestMs = 0
  const client = async () => {
    while (!isOver) {
      const begun = performance.now()
      const { status } = await one.request('/v1/verify/single', {
        key,
        body: { email: 'ann@a.test' },
      })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      longestMs = Math.max(longestMs, performance.now() - begun)
    }
  }
  const clients = Array.from({ length: 8 }, client)
  for (let n = 0; n < 3; n++) await postgres.restart()
  isOver = true
  await Promise.all(clients)
  expect([...statuses.keys()].filter(status => ![200, 429, 503].includes(status))).toEqual([])
  expect(statuses.get(503)).toBeGreaterThan(0)
  expect(longestMs).toBeLessThan(PATIENCE_MS)
  const after = await one.request('/v1/jobs', { key })
  expect(after.status).toBe(200)
})

test('where its connections are used up, it is 503 too, and soon', async () => {
  const narrow = await startPostgres({ settings: { max_connections: '8' } })
  onTestFinished(() => narrow.stop())
  const one = await createClusterService(narrow.url())
  const key = await account(one.database)
  const others = Array.from({ length: 8 }, () => new pg.Client(narrow.url()))
  for (const client of others) client.on('error', () => {})
  await Promise.allSettled(others.map(client => client.connect()))
  const asked = Array.from({ length: 12 }, () => one.request('/v1/jobs', { key }))
  const answers = (await Promise.all(asked)).map(({ status }) => status)
  expect(answers.filter(status => status !== 200 && status !== 503)).toEqual([])
  await Promise.allSettled(others.map(client => client.end()))
  expect((await one.request('/v1/jobs', { key })).status).toBe(200)
})
