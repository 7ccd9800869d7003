import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../fake/postgres-server.ts'
import { documentOf, placesOf } from '../../http/contract/document.ts'
import { account, type Server, server } from './house.ts'

let postgres: PostgresServer
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres.stop())

/** Longer than a connection is waited for, and than that anybody should wait for an answer. */
const PATIENCE_MS = 6_000

const EMAILS = Array.from({ length: 12 }, (_, n) => `u${n}@a.test`)

/** Bodies that are good, so that it is the database which is asked. */
const BODIES: Readonly<Record<string, unknown>> = {
  'POST /v1/verify/single': { email: 'ann@a.test' },
  'POST /v1/verify': { email: 'ann@a.test' },
  'POST /v1/verify/bulk': { emails: EMAILS },
  'POST /v1/verify/batch': { emails: EMAILS },
  'POST /v1/keys': { name: 'new', scopes: ['jobs:read'] },
  'PATCH /v1/keys/{id}': { name: 'another' },
  'POST /v1/keys/{id}/rotate': {},
  'POST /v1/webhooks': { url: 'https://hook.test/ev', events: ['batch.completed'], active: true },
  'PATCH /v1/webhooks/{id}': { active: false },
  'POST /v1/webhooks/{id}/rotate': {},
}

/** Every operation of the API that needs a key, as it may be asked. */
const endpoints = ({ service, app }: Server) =>
  placesOf(documentOf(service, app))
    .filter(({ path }) => path.startsWith('/v1/'))
    .map(({ method, path }) => ({
      ...{ name: `${method} ${path}`, method },
      path: path.replaceAll(/\{\w+\}/g, 'job_xyz'),
    }))

function bodyOf(name: string): { body?: unknown } {
  if (name === 'POST /v1/verify/file') {
    const form = new FormData()
    form.set('file', new File([EMAILS.join('\n')], 'list.csv'))
    return { body: form }
  }
  return name in BODIES ? { body: BODIES[name] } : {}
}

describe('while PostgreSQL is away', () => {
  test('every path of the API says 503 in time, and all goes on by itself when it is there again', async () => {
    const one = await server(await postgres.create('every_path'))
    const key = await account(one.database)
    await postgres.down()
    for (const { name, method, path } of endpoints(one)) {
      const begun = performance.now()
      const answer = await one.request(path, { method, key, ...bodyOf(name) })
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
})
