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
  const home = await endpoint()
  await home.happen()
  const { id } = await onlyDelivery(home)
  const key = await home.addKey({ rateLimitPerMinute: 1 })
  const headers = { 'X-EV-Sandbox': 'true' }
  const place = path.replace('{id}', home.path).replace('{delivery}', id)
  const response = await home.request(place, { method, key, headers, ...(body && { body }) })
  expect(response.ok).toBe(true)
  const next = await home.request('/v1/webhooks', { key, headers })
  expect([next.status, await codeOf(next)]).toEqual([429, 'rate_limit'])
})
