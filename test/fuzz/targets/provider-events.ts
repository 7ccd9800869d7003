import { fail } from 'node:assert/strict'
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { type FeedbackInput, parseFeedback } from '../../../src/feedback/feedback.ts'
import { PROVIDERS, type ProviderName } from '../../../src/feedback/providers/providers.ts'
import { OperationError } from '../../../src/platform/operation-error.ts'
import type { FuzzTarget } from '../target.ts'

const NOW = Date.UTC(2026, 0, 1)
const SECONDS = String(NOW / 1_000)
const KEY = 'a-key-of-16-signs'
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const SENDGRID_KEY = publicKey.export({ format: 'der', type: 'spki' }).toString('base64')

/** An authentic body of any content gives feedback or a refusal. The first byte is the provider. */
export const target: FuzzTarget = {
  async fuzz(bytes) {
    const name = NAMES[(bytes[0] ?? 0) % NAMES.length] ?? 'ses'
    const body = parse(bytes.subarray(1).toString())
    // `receiveFeedback` refuses other bodies.
    if (typeof body !== 'object' || body === null) return
    if (Array.isArray(body) !== (PROVIDERS[name].body === 'array')) return
    try {
      const { items } = await receive(name, body)
      for (const item of items) checkItem(item)
    } catch (error) {
      if (!(error instanceof OperationError)) throw error
    }
  },
  *seeds() {
    for (const [name, body] of Object.entries(BODIES)) {
      yield `${NAMES.indexOf(name as ProviderName)}${JSON.stringify(body)}`
    }
  },
  lengthMax: 2_048,
}

const BODIES: Readonly<Record<ProviderName, object>> = {
  ses: { Type: 'Notification', Message: '{}', SignatureVersion: '2', Signature: 'AA==' },
  sendgrid: [
    { email: 'a@b.test', event: 'bounce', status: '5.1.1', reason: '550 x', timestamp: 1 },
  ],
  mailgun: {
    'event-data': {
      event: 'failed',
      recipient: 'a@b.test',
      severity: 'permanent',
      timestamp: 1.5,
      'delivery-status': { code: 550, message: '5.1.1 no', 'enhanced-code': '5.1.1' },
    },
  },
  postmark: {
    RecordType: 'Bounce',
    Email: 'a@b.test',
    Type: 'HardBounce',
    Details: '550 x',
    ID: 1,
  },
  sparkpost: [
    { msys: { message_event: { type: 'bounce', rcpt_to: 'a@b.test', bounce_class: '10' } } },
  ],
}
// The digits of the first byte of a seed are the numbers of the providers.
const NAMES = (Object.keys(PROVIDERS) as ProviderName[]).toSorted()

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

async function receive(name: ProviderName, parsed: object) {
  const token = 't'.repeat(50)
  const signature = createHmac('sha256', KEY).update(`${SECONDS}${token}`).digest('hex')
  const signed = { timestamp: SECONDS, token, signature }
  const body = name === 'mailgun' ? { ...parsed, signature: signed } : parsed
  const bytes = Buffer.from(JSON.stringify(body))
  const headers: Readonly<Record<string, string>> = {
    Authorization: `Basic ${Buffer.from(`ev:${KEY}`).toString('base64')}`,
    'X-Twilio-Email-Event-Webhook-Timestamp': SECONDS,
    'X-Twilio-Email-Event-Webhook-Signature': sign(
      'sha256',
      Buffer.concat([Buffer.from(SECONDS), bytes]),
      privateKey,
    ).toString('base64'),
  }
  const key = name === 'sendgrid' ? SENDGRID_KEY : KEY
  return await PROVIDERS[name].receive(
    { header: field => headers[field], bytes, body, key },
    {
      now: NOW,
      certificates: { getKey: () => fail('no key is fetched for a wrong topic') } as never,
      getDocument: () => fail('no document is fetched for a wrong topic'),
    },
  )
}

function checkItem(item: FeedbackInput): void {
  const feedback = parseFeedback(item, NOW)
  if (typeof feedback === 'string') return
  const { code } = feedback
  if (code !== null && !(code >= 200 && code <= 599)) fail(`code ${code}`)
}
