import { expect, test } from 'vitest'
import { codeOf } from '../../support/guarded-route.ts'
import { endpoint, onlyDelivery } from '../../support/webhook-endpoint.ts'

const WEBHOOK = { url: 'https://app.test/hook', events: ['batch.completed'] }
const RECOVERY = { since: '2026-05-01T00:00:00Z' }

/** Webhooks are not simulated: uncounted requests could cause unlimited events and DNS queries. */
test.each<[method: string, path: string, body?: object]>([
  ['POST', '/v1/webhooks', WEBHOOK],
  ['PATCH', '{id}', { url: 'https://app.test/other' }],
  ['PUT', '{id}', WEBHOOK],
  ['DELETE', '{id}'],
  ['POST', '{id}/secret'],
  ['POST', '{id}/test'],
  ['POST', '{id}/deliveries/{delivery}/retry'],
  ['POST', '{id}/recover', RECOVERY],
])('%s %s of the sandbox counts like any other request', async (method, path, body) => {
  const fixture = await endpoint()
  await fixture.happen()
  const { id } = await onlyDelivery(fixture)
  const key = await fixture.addKey({ rateLimitPerMinute: 1 })
  const headers = { 'X-EV-Sandbox': 'true' }
  const place = path.replace('{id}', fixture.path).replace('{delivery}', id)
  const response = await fixture.request(place, { method, key, headers, ...(body && { body }) })
  expect(response.ok).toBe(true)
  const next = await fixture.request('/v1/webhooks', { key, headers })
  expect([next.status, await codeOf(next)]).toEqual([429, 'rate_limit'])
})
