import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { codeOf } from '../../support/guarded-route.ts'
import { type Created, endpoint } from '../../support/webhook-endpoint.ts'

const NEXT_DAY = '2026-06-02T12:00:00.000Z'

describe('a rotated secret', () => {
  test('is shown once, with the expiry of the previous one', async () => {
    const { request, json, path, id, secret, clock, service, database } = await endpoint()
    await clock.advance(60_000)
    const response = await request(`${path}/secret`, { method: 'POST' })
    expect(response.status).toBe(200)
    const { data } = (await response.json()) as { data: Created }
    expect(data).toEqual({
      id,
      url: 'https://app.test/hook',
      events: ['batch.completed'],
      active: true,
      description: null,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32}$/),
      created_at: '2026-06-01T12:00:00.000Z',
      updated_at: '2026-06-01T12:01:00.000Z',
      disabled_reason: null,
      disabled_code: null,
      failing_since: null,
      previous_secret_expires_at: '2026-06-02T12:01:00.000Z',
      header_names: [],
      success_rate: null,
      daily_attempts: [],
    })
    expect(data.secret).not.toBe(secret)
    const { secret: shown, ...kept } = data
    expect((await json(path)).data).toEqual({ ...kept, secret_hint: shown.slice(-4) })
    const row = await database.db.selectFrom('webhook').selectAll().executeTakeFirstOrThrow()
    expect(JSON.stringify(row)).not.toContain(shown)
    expect(service.secretBox.decrypt(row.secret)).toBe(shown)
  })

  test.each([
    [0, '2026-06-01T12:00:00.000Z', undefined],
    [3_600, '2026-06-01T13:00:00.000Z', '2026-06-01T13:00:00.000Z'],
    [604_800, '2026-06-08T12:00:00.000Z', '2026-06-08T12:00:00.000Z'],
  ])('keeps the previous one valid for %i seconds', async (grace_period_seconds, end, shown) => {
    const { json, path } = await endpoint()
    const { data } = await json(`${path}/secret`, { body: { grace_period_seconds } })
    expect(data).toMatchObject({ previous_secret_expires_at: end })
    const { previous_secret_expires_at } = (await json(path)).data as Created
    expect(previous_secret_expires_at).toBe(shown)
  })

  test('signs together with the previous one, until the grace period ends', async () => {
    const { json, request, path, secret, post, clock } = await endpoint()
    const { data } = (await json(`${path}/secret`, { method: 'POST' })) as { data: Created }
    expect(data.previous_secret_expires_at).toBe(NEXT_DAY)
    const holds = async () => {
      await request(`${path}/test`, { method: 'POST' })
      const { body = '', headers = {} } = post.sent.at(-1) ?? {}
      return [data.secret, secret].map(one => isSignedBy(one, body, headers))
    }
    expect(await holds()).toEqual([true, true])
    await clock.advance(24 * 3_600_000 - 1)
    expect(await holds()).toEqual([true, true])
    await clock.advance(1)
    expect(await holds()).toEqual([true, false])
  })

  test('is the only one at once without a grace period', async () => {
    const { request, path, secret, post } = await endpoint()
    await request(`${path}/secret`, { body: { grace_period_seconds: 0 } })
    await request(`${path}/test`, { method: 'POST' })
    const { body = '', headers = {} } = post.sent.at(-1) ?? {}
    expect(isSignedBy(secret, body, headers)).toBe(false)
  })

  test('is created once for an Idempotency-Key', async () => {
    const { request, json, path, secret } = await endpoint()
    const headers = { 'Idempotency-Key': 'one' }
    const ask = () => request(`${path}/secret`, { body: {}, headers })
    const [first, again] = [await ask(), await ask()]
    const { data } = (await first.json()) as { data: Created }
    expect(await again.json()).toEqual({ success: true, data })
    expect((await json(path)).data).toMatchObject({ secret_hint: data.secret.slice(-4) })
    expect(data.secret).not.toBe(secret)
  })

  test.each<[object, RegExp]>([
    [{ grace_period_seconds: -1 }, /"grace_period_seconds" is -1; it must be at least 0/],
    [{ grace_period_seconds: 604_801 }, /at most 604800/],
    [{ grace_period_seconds: 1.5 }, /whole number/],
    [{ grace_period_seconds: '3600' }, /number/],
    [
      { grace_seconds: 3_600 },
      /"grace_seconds" is not a known field\. The body takes grace_period_seconds\./,
    ],
  ])('is refused for %j', async (body, sentence) => {
    const { request, json, path, secret } = await endpoint()
    const response = await request(`${path}/secret`, { body })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      error: expect.stringMatching(sentence),
    })
    expect((await json(path)).data).toMatchObject({ secret_hint: secret.slice(-4) })
  })

  test('needs the scope for writing, and an existing endpoint', async () => {
    const { request, path, addKey } = await endpoint()
    const reader = await addKey({ scopes: ['webhooks:read'] })
    const refused = await request(`${path}/secret`, { method: 'POST', key: reader })
    expect([refused.status, await codeOf(refused)]).toEqual([403, 'insufficient_scope'])
    const missing = await request('/v1/webhooks/wh_none/secret', { method: 'POST' })
    expect([missing.status, await codeOf(missing)]).toEqual([404, 'not_found'])
    await request(path, { method: 'DELETE' })
    expect((await request(`${path}/secret`, { method: 'POST' })).status).toBe(404)
  })
})

/** Verified with the package of Standard Webhooks, which uses the real clock. */
function isSignedBy(
  secret: string,
  body: string,
  headers: Readonly<Record<string, string>>,
): boolean {
  const at = new Date(Number(headers['webhook-timestamp']) * 1_000)
  const signature = new Webhook(secret).sign(headers['webhook-id'] ?? '', at, body)
  return headers['webhook-signature']?.split(' ').includes(signature) ?? false
}
