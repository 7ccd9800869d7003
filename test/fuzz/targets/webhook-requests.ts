import { deepEqual, rejects } from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { EvWebhookError } from '../../../src/client/error.ts'
import { verifyWebhook } from '../../../src/client/webhook-signature.ts'
import { type FuzzTarget, readFixture } from '../target.ts'

const NOW = Date.UTC(2026, 0, 1)
const SECRET = `whsec_${Buffer.alloc(24, 1).toString('base64')}`
const options = { now: () => NOW }

/**
 * A signed body is an event or refused, a body with a changed byte is refused, and so are headers of
 * any content: the lines before an empty one.
 */
export const target: FuzzTarget = {
  async fuzz(bytes) {
    const [head = '', ...rest] = bytes.toString('latin1').split('\n\n')
    const body = Buffer.from(rest.join('\n\n'), 'latin1')
    const headers = Object.fromEntries(
      head.split('\n').map(line => line.split(/: ?(.*)/s).slice(0, 2)),
    )
    await rejects(verifyWebhook(body, headers, SECRET, options), EvWebhookError)
    for (const signed of [signEv(body), signStandard(body)]) {
      const event = await verify(body, signed)
      if (event !== null) deepEqual(event, JSON.parse(new TextDecoder().decode(body)))
      const changed = Buffer.concat([body, Buffer.of(0x20)])
      await rejects(verifyWebhook(changed, signed, SECRET, options), EvWebhookError)
    }
  },
  *seeds() {
    yield `X-EV-Signature: ${'0'.repeat(64)}\n\n${readFixture('api/event-webhook-test.json')}`
    yield `webhook-id: 1\nwebhook-timestamp: ${NOW / 1_000}\nwebhook-signature: v1,AA== v1a,x\n\n{"event":"a","event_id":"b"}`
    yield '\n\nnull'
  },
  lengthMax: 2_048,
}

async function verify(body: Buffer, headers: Readonly<Record<string, string>>) {
  try {
    return await verifyWebhook(body, headers, SECRET, options)
  } catch (error) {
    if (!(error instanceof EvWebhookError)) throw error
    return null
  }
}

const signEv = (body: Buffer) => ({
  'x-ev-signature': createHmac('sha256', SECRET).update(body).digest('hex'),
})

function signStandard(body: Buffer) {
  const timestamp = String(NOW / 1_000)
  const signature = createHmac('sha256', Buffer.alloc(24, 1))
    .update(`id.${timestamp}.`)
    .update(body)
    .digest('base64')
  return {
    'webhook-id': 'id',
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  }
}
