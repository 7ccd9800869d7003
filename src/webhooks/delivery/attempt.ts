import type { Clock } from '../../platform/clock.ts'
import type { SecretBox } from '../../platform/secret-box.ts'
import type { TriedDelivery } from '../attempt-store.ts'
import { type DeliveryTransition, isDelivered, nextState, retryAfterMs } from '../delivery-state.ts'
import type { DueDelivery } from '../delivery-store.ts'
import type { Webhook } from '../endpoint-store.ts'
import { isSandboxBody } from '../event.ts'
import { signedHeaders } from '../signature.ts'
import type { TransportResult, WebhookRequest, WebhookTransport } from '../transport/transport.ts'

export type AttemptDeps = {
  readonly transport: WebhookTransport
  readonly secretBox: SecretBox
  readonly clock: Clock
  /** Of ev, for receivers to see. */
  readonly version: string
}

/** A request that was made, what came of it, and how it goes on with its delivery. */
export type Attempt = TriedDelivery & {
  /** How long the receiver asks us to wait; null: it does not say. */
  readonly retryAfterMs: number | null
  readonly next: DeliveryTransition
}

export type Sent = Pick<DueDelivery, 'eventId' | 'body' | 'trigger' | 'attempt' | 'webhook'>

/** Sends a delivery once. A letter that cannot be signed is an attempt that failed. */
export async function makeAttempt(deps: AttemptDeps, sent: Sent): Promise<Attempt> {
  const { clock, transport } = deps
  const startedAt = clock.now()
  const request = buildRequest(sent, { ...deps, at: startedAt })
  const result = 'fault' in request ? { ...request, ...UNSENT } : await transport.send(request)
  const { answer, durationMs } = result
  const status = answer?.status ?? null
  const now = clock.now()
  const askedMs = retryAfterMs(answer?.headers['retry-after'], now)
  const outcome = { status, retryAfterMs: askedMs }
  return {
    ...{ startedAt, url: sent.webhook.url, durationMs, statusCode: status },
    ...{ headers: answer?.headers ?? null, excerpt: answer?.excerpt ?? null },
    ...{ ...errorOf(result), retryAfterMs: askedMs },
    next: nextState({
      ...{ attempt: sent.attempt, trigger: sent.trigger, outcome, now },
      sandbox: isSandboxBody(sent.body),
    }),
  }
}

const UNSENT = { answer: null, durationMs: 0 }

function errorOf({
  answer,
  fault,
  faultCode,
}: TransportResult): Pick<TriedDelivery, 'error' | 'errorCode'> {
  if (answer === null) return { error: fault, errorCode: faultCode }
  const { status } = answer
  if (isDelivered(status)) return { error: null, errorCode: null }
  if (status >= 300 && status <= 399) {
    const error = `It answered ${status}: redirects are not followed, so the URL must be the one that answers.`
    return { error, errorCode: 'redirect' }
  }
  const error = `It answered ${status}: only an answer from 200 to 299 says that an event has arrived.`
  return { error, errorCode: 'http_status' }
}

type EventToSend = {
  readonly webhook: Pick<Webhook, 'url' | 'secret' | 'previousSecret'>
  readonly eventId: string
  /** The JSON of the event, sent as it is. */
  readonly body: string
}

type SigningContext = {
  readonly secretBox: SecretBox
  /** When it is sent, epoch ms. */
  readonly at: number
  /** Of ev, for receivers to see. */
  readonly version: string
}

/** A request for an event as it goes out now, signed with the secrets that hold now; or why it cannot be signed. */
function buildRequest(
  { webhook, eventId, body }: EventToSend,
  { secretBox, at, version }: SigningContext,
): WebhookRequest | Pick<TransportResult, 'fault' | 'faultCode'> {
  const secret = opened(secretBox, webhook.secret)
  if (secret === null) return { fault: LOST_SECRET, faultCode: 'secret_unreadable' }
  const before = webhook.previousSecret
  const previous = before !== null && before.until > at ? opened(secretBox, before.secret) : null
  const secrets = previous === null ? ([secret] as const) : ([secret, previous] as const)
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': `ev/${version}`,
    ...signedHeaders(body, { eventId, at, secrets }),
  }
  return { url: webhook.url, headers, body }
}

const LOST_SECRET =
  'The signing secret cannot be read: it was sealed with another EV_SECRET. Put that one back, or rotate the secret of this webhook.'

function opened(secretBox: SecretBox, encrypted: string): string | null {
  try {
    return secretBox.decrypt(encrypted)
  } catch {
    return null
  }
}
