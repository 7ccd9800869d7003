import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { systemRandom } from '../../src/platform/random.ts'
import { newSigningSecret } from '../../src/webhooks/endpoint.ts'
import { signedHeaders } from '../../src/webhooks/signature.ts'

const BODY = '{"event":"batch.completed","event_id":"evt_1","data":{"name":"Grüße 🦊"}}'
const OLD = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const NEW = 'whsec_aaaabbbbccccddddeeeeffff00001111'

describe('the signature of the spec', () => {
  test('is the HMAC-SHA256 of the body in lower-case hex, keyed with the complete secret as shown', () => {
    const expected = createHmac('sha256', Buffer.from(OLD, 'utf8')).update(BODY).digest('hex')
    expect(headers([OLD])['X-EV-Signature']).toBe(expected)
    expect(expected).toMatch(/^[0-9a-f]{64}$/)
  })

  test('is a value that was computed by another program', () => {
    // printf %s '{"a":1}' | openssl dgst -sha256 -hmac whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
    const { 'X-EV-Signature': signature } = signedHeaders('{"a":1}', {
      eventId: 'evt_1',
      at: 0,
      secrets: [OLD],
    })
    expect(signature).toBe('45ec03b2b33403c8043a90de06bedad0827183927115fd7e448ef97eeb13c5be')
  })

  test('uses only the current secret while there are two', () => {
    expect(headers([NEW, OLD])['X-EV-Signature']).toBe(headers([NEW])['X-EV-Signature'])
  })
})

describe('the signature of Standard Webhooks', () => {
  test('verifies with its own package', () => {
    expect(new Webhook(OLD).verify(BODY, headers([OLD]))).toMatchObject({ event_id: 'evt_1' })
  })

  test('verifies with every secret that ev creates', () => {
    for (let n = 0; n < 100; n++) {
      const { text } = newSigningSecret(systemRandom)
      expect(() => new Webhook(text).verify(BODY, headers([text]))).not.toThrow()
    }
  })

  test('verifies with the old and the new secret while there are two', () => {
    const both = headers([NEW, OLD])
    expect(both['webhook-signature']).toMatch(/^v1,\S+ v1,\S+$/)
    for (const secret of [OLD, NEW]) {
      expect(() => new Webhook(secret).verify(BODY, both)).not.toThrow()
    }
  })

  test('does not verify with another secret, nor for another body, ID or time', () => {
    const { text } = newSigningSecret(systemRandom)
    expect(() => new Webhook(text).verify(BODY, headers([NEW, OLD]))).toThrow(/signature/)
    const receiver = new Webhook(OLD)
    expect(() => receiver.verify(`${BODY} `, headers([OLD]))).toThrow(/signature/)
    const moved = { ...headers([OLD]), 'webhook-id': 'evt_2' }
    expect(() => receiver.verify(BODY, moved)).toThrow(/signature/)
    const later = String(Number(headers([OLD])['webhook-timestamp']) + 1)
    expect(() => receiver.verify(BODY, { ...headers([OLD]), 'webhook-timestamp': later })).toThrow(
      /signature/,
    )
  })

  test('covers the event and the second of the attempt', () => {
    const signed = signedHeaders(BODY, { eventId: 'evt_1', at: 1_780_315_200_999, secrets: [OLD] })
    expect(signed).toMatchObject({ 'webhook-id': 'evt_1', 'webhook-timestamp': '1780315200' })
  })
})

/** Signed with the current time, because the package rejects signatures older than five minutes. */
const headers = (secrets: readonly [string, ...string[]]) =>
  signedHeaders(BODY, { eventId: 'evt_1', at: Date.now(), secrets })
