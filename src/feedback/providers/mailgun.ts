import { createHmac } from 'node:crypto'
import { HOUR, SECOND } from '../../platform/clock.ts'
import type { FeedbackInput, FeedbackKind } from '../feedback.ts'
import { parseDiagnostic } from '../formats/diagnostic.ts'
import { parseTime } from '../formats/fields.ts'
import { checkAge, isEqualSecret, reject } from './checks.ts'
import { textAt, valueAt } from './json.ts'
import type { Provider } from './provider.ts'

/**
 * Mailgun repeats a request for eight hours. The token is stored for a day, so that it cannot be
 * used again while its time is accepted.
 */
const TOKEN_AGE_MAX_MS = 12 * HOUR

/**
 * Mailgun: one event per request, `{"signature": {…}, "event-data": {…}}`. Legacy webhooks send a
 * form instead, which has the fields of both.
 */
export const mailgun: Provider = {
  title: 'Mailgun',
  sendsForms: true,
  body: 'object',
  key: {
    name: 'HTTP webhook signing key',
    expected: '16 to 200 characters without spaces',
    parse: text => /^[!-~]{16,200}$/.exec(text.trim())?.[0] ?? null,
    isPublic: false,
  },
  receive(request, { now }) {
    const { body, key } = request
    const isForm = textAt(body, 'signature') !== undefined
    const token = checkSignature(isForm ? body : valueAt(body, 'signature'), key, now)
    return { items: parseEvent(isForm ? toEvent(body) : valueAt(body, 'event-data')), token }
  },
}

/**
 * Checks the HMAC-SHA256 of time and token. Their lengths are fixed, because the signed text does
 * not show where the time ends. Returns the token: the signature does not cover the event.
 */
function checkSignature(signed: unknown, key: string, now: number): string {
  const timestamp = textAt(signed, 'timestamp') ?? ''
  const token = textAt(signed, 'token') ?? ''
  const signature = textAt(signed, 'signature') ?? ''
  if (!/^\d{10}$/.test(timestamp) || !/^[\da-z]{20,100}$/i.test(token) || signature === '')
    reject('authentication', 'The signature is missing or incomplete.')
  const expected = createHmac('sha256', key).update(`${timestamp}${token}`).digest('hex')
  if (!isEqualSecret(signature, expected)) reject('authentication', 'The signature is wrong.')
  checkAge(Number(timestamp) * SECOND, now, TOKEN_AGE_MAX_MS)
  return token
}

/**
 * Converts the fields of a form. Mailgun sends `bounced` for a permanent failure, and `dropped` if
 * it stopped before, where a code of its own says that the address is suppressed.
 */
function toEvent(form: unknown): object {
  const event = textAt(form, 'event') ?? ''
  const code = textAt(form, 'code')
  return {
    recipient: textAt(form, 'recipient'),
    timestamp: textAt(form, 'timestamp'),
    event: ['bounced', 'dropped'].includes(event) ? 'failed' : event,
    severity: 'permanent',
    reason: SUPPRESSED.has(code ?? '') ? 'suppress' : undefined,
    'delivery-status': { code, message: textAt(form, 'error') || textAt(form, 'description') },
  }
}

/** A previous bounce, an unsubscription, a previous complaint. */
const SUPPRESSED: ReadonlySet<string> = new Set(['605', '606', '607'])

function parseEvent(event: unknown): FeedbackInput[] {
  const kind = KINDS.get(textAt(event, 'event') ?? '')
  const address = textAt(event, 'recipient')
  if (kind === undefined || address === undefined) return []
  const occurredAt = parseTime(textAt(event, 'timestamp'))
  const id = textAt(event, 'id')
  if (kind !== 'bounced') return [{ address, kind, occurredAt, id }]
  // A temporary failure is retried, and a suppressed address is not mailed at all.
  const isFinal = textAt(event, 'severity') === 'permanent'
  if (!isFinal || textAt(event, 'reason')?.startsWith('suppress')) return []
  const status = valueAt(event, 'delivery-status')
  const diagnostic = parseDiagnostic(
    textAt(status, 'message') || textAt(status, 'description') || '',
  )
  const code = Number(textAt(status, 'code') ?? diagnostic.code ?? Number.NaN)
  const enhancedCode = textAt(status, 'enhanced-code') ?? diagnostic.enhancedCode
  return [{ address, kind, text: diagnostic.text, code, enhancedCode, occurredAt, id }]
}

const KINDS: ReadonlyMap<string, FeedbackKind> = new Map([
  ['failed', 'bounced'],
  ['delivered', 'delivered'],
  ['complained', 'complained'],
])
