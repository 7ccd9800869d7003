import { describe, expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { HOUR, SECOND } from '../../src/platform/clock.ts'
import { rotateSecret } from '../../src/webhooks/endpoint-store.ts'
import type { WebhookRequest } from '../../src/webhooks/transport.ts'
import { waitUntil } from '../support/wait.ts'
import {
  createTestDelivery,
  SECRET,
  slowTransport,
  type TestDelivery,
} from '../support/webhook-delivery.ts'
import { verify } from '../support/webhook-signature.ts'

describe('the secret', () => {
  test('can be rotated under load: each request verifies with the old or the new one, and none is lost', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    const secrets = [SECRET]
    await h.addEvents(40)
    const post = slowTransport()
    const deliveries = h.start({ transport: post })
    for (const letter of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']) {
      await waitUntil(() => post.inFlight === 4)
      const last = secrets.slice(-2)
      for (const one of post.sent.slice(-4))
        expect(last.map(text => verify(one, text))).toEqual(last.map(() => true))
      const next = `whsec_${letter.repeat(32)}`
      secrets.push(next)
      await rotate(h, next)
      post.answer(200)
    }
    await waitUntil(() => post.inFlight === 4)
    post.answer(200)
    await waitUntil(() => deliveries.status().delivered === 40)
    expect(new Set(post.sent.map(({ headers }) => headers['webhook-id'])).size).toBe(40)
    expect(post.sent).toHaveLength(40)
  })

  test('before is not used after its grace period', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    const next = `whsec_${'n'.repeat(32)}`
    await rotate(h, next)
    h.start()
    await h.addEvents()
    await h.clock.advance(SECOND)
    await h.sent(1)
    await h.clock.advance(HOUR)
    await h.addEvents()
    await h.clock.advance(SECOND)
    await h.sent(2)
    const [during, after] = h.transport.sent as [WebhookRequest, WebhookRequest]
    expect([verify(during, SECRET), verify(during, next)]).toEqual([true, true])
    expect([verify(after, SECRET), verify(after, next)]).toEqual([false, true])
  })

  test('that cannot be decrypted is a failed attempt with an error; nothing is sent', async () => {
    const h = await createTestDelivery()
    await h.addWebhook({ secret: h.secretBox.encrypt(SECRET).replace(/^1\../, '1.!') })
    await h.addWebhook({ id: 'wh_b' })
    await h.addEvents()
    const deliveries = h.start()
    await waitUntil(() => deliveries.status().retried === 1 && deliveries.status().delivered === 1)
    expect(h.transport.sent.map(({ url }) => url)).toEqual(['https://wh-b.test/hook'])
    const [lost] = (await h.attempts()).filter(({ url }) => url.includes('wh-a'))
    expect(lost).toMatchObject({ status_code: null, error: expect.stringMatching(/EV_SECRET/) })
  })
})

const rotate = ({ database, secretBox, clock }: TestDelivery, secret: string) =>
  write(database, trx =>
    rotateSecret(trx, 'acc_1', 'wh_a', {
      secret: secretBox.encrypt(secret),
      secretHint: secret.slice(-4),
      graceMs: HOUR,
      now: clock.now(),
    }),
  )
