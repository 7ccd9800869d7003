import { expect, test } from 'vitest'
import { IP_LIMITS } from '../../../src/accounts/plan.ts'
import { write } from '../../../src/db/database.ts'
import { createWebhook } from '../../../src/webhooks/endpoint-store.ts'
import { emit } from '../../../src/webhooks/event-store.ts'
import { documentOf, type Place, placesOf } from '../../api/contract/document.ts'
import {
  account,
  addKey,
  type ClusterService,
  createClusterService,
} from '../../support/cluster-service.ts'
import { cutProxy } from '../../support/cut-proxy.ts'
import { MIXED, seedJob } from '../../support/job-rows.ts'
import { tempPostgres } from '../../support/postgres-pool.ts'
import { validBody } from './bodies.ts'

/**
 * Adds jobs, a webhook with a delivery, and a second key. Returns a function that puts their IDs
 * into a path.
 */
async function seedObjects({ database, service }: ClusterService) {
  const { clock, random, secretBox } = service
  const now = clock.now()
  await addKey(database, { id: 'key_2' })
  await seedJob(database, { id: 'job_done', texts: MIXED })
  await seedJob(database, { id: 'job_open', texts: MIXED, done: 0 })
  await write(database, async trx => {
    await createWebhook(trx, {
      id: 'wh_a',
      accountId: 'acc_1',
      url: 'https://hook.test/ev',
      active: true,
      events: ['quota.warning'] as const,
      description: null,
      createdAt: now,
      secret: secretBox.encrypt('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'),
      secretHint: 'LaSw',
    })
    await emit(trx, {
      accountId: 'acc_1',
      kind: 'quota.warning',
      data: {},
      sandbox: false,
      now,
      dueAt: now,
      random,
    })
  })
  const { id: delivery } = await database.db
    .selectFrom('delivery')
    .select('id')
    .executeTakeFirstOrThrow()
  return ({ method, path }: Place) => {
    const job = method === 'POST' || method === 'DELETE' ? 'job_open' : 'job_done'
    const id = path.startsWith('/v1/webhooks')
      ? 'wh_a'
      : path.startsWith('/v1/keys')
        ? 'key_2'
        : job
    return path.replace('{delivery_id}', delivery).replace('{id}', id)
  }
}

test('returns 503 if the database connection is lost at any statement of any request', async () => {
  const url = await tempPostgres()
  const proxy = await cutProxy(url)
  const one = await createClusterService(proxy.url, {
    engine: { zone: { 'hook.test': { A: ['8.8.8.8'] } } },
    settings: { ipLimits: { ...IP_LIMITS, singlePerMinute: 100_000, bulkPerHour: 100_000 } },
  })
  const key = await account(one.database)
  const pathOf = await seedObjects(one)
  // Deletions come last.
  const places = placesOf(documentOf(one.service, one.app))
    .filter(({ path }) => path.startsWith('/v1/'))
    .toSorted((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'))
  for (const place of places) {
    const name = `${place.method} ${place.path}`
    const send = () =>
      one.request(pathOf(place), { method: place.method, key, body: validBody(name) })
    for (let statement = 0; ; statement++) {
      let isCut = false
      void proxy.cutBeforeStatement(statement).then(() => {
        isCut = true
      })
      const response = await send()
      const { status } = response
      // A response that has started is aborted.
      const text = await response.text().catch(() => '')
      // A cut in a write that is not part of the response leaves the response complete.
      expect({ name, statement, fails: status >= 500 && status !== 503 }).toMatchObject({
        fails: false,
      })
      if (!isCut) {
        expect({ name, status: status < 500 }).toEqual({ name, status: true })
        break
      }
      if (status !== 503) continue
      expect(JSON.parse(text)).toMatchObject({ success: false, code: 'service_unavailable' })
      expect(response.headers.get('Retry-After')).toMatch(/^\d+$/)
      expect(response.headers.get('X-RateLimit-Limit')).not.toBeNull()
    }
  }
  await proxy.close()
}, 300_000)
