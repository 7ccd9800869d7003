import { type Database, isStorageError, writeConcurrent } from '../db/database.ts'
import { Batcher } from '../platform/batcher.ts'
import { type Clock, MINUTE, SECOND } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, writeLog } from '../platform/log.ts'
import { retry } from '../platform/retry.ts'
import type { SecretBox } from '../platform/secret-box.ts'
import { type AttemptDetails, type NewAttempt, recordAttempts } from './attempt-store.ts'
import { type CustomHeaders, decryptHeaders, mapValues, redact } from './custom-headers.ts'
import { type DeliveryTransition, isDelivered, nextState, retryAfterMs } from './delivery-state.ts'
import type { DueDelivery } from './delivery-store.ts'
import type { Webhook } from './endpoint-store.ts'
import { isSandboxBody } from './event.ts'
import { signedHeaders } from './signature.ts'
import { WEBHOOK_LOG } from './telemetry.ts'
import type { TransportResult, WebhookRequest, WebhookTransport } from './transport.ts'

/** Intervals and timeouts of the delivery of events, in ms. */
export type DeliveryTimings = {
  /** Interval of the poll for due deliveries. */
  readonly duePollMs: number
  /** Wait after a failed query or commit; also the interval of its log line. */
  readonly retryMs: number
  /** Grace period for requests in flight at shutdown; those without a response are sent again. */
  readonly graceMs: number
  /** Duration of a run after which it starts no more requests while other webhooks wait. */
  readonly runMs: number
  /**
   * Backoff of a webhook after an error inside ev, which would otherwise resend the event in a
   * loop.
   */
  readonly failureBackoffMs: number
}

export const DEFAULT_DELIVERY_TIMINGS: DeliveryTimings = {
  duePollMs: SECOND / 2,
  retryMs: SECOND,
  graceMs: 5 * SECOND,
  runMs: 2 * SECOND,
  failureBackoffMs: MINUTE,
}

export type AttemptDeps = {
  readonly database: Pick<Database, 'steadyClock'>
  readonly transport: WebhookTransport
  readonly secretBox: SecretBox
  readonly clock: Clock
  /** Version of ev, sent in the User-Agent header. */
  readonly version: string
  /** Whether sandbox events are retried within seconds. */
  readonly fastSandboxRetries?: boolean
}

/** An attempt with the state of its delivery after it. */
export type Attempt = AttemptDetails & {
  /** The Retry-After of the receiver in ms; null if there is none. */
  readonly retryAfterMs: number | null
  readonly next: DeliveryTransition
}

type Sent = Pick<DueDelivery, 'eventId' | 'body' | 'trigger' | 'attempt' | 'webhook'>

/** Sends a delivery once. A request that cannot be signed is a failed attempt. */
export async function makeAttempt(deps: AttemptDeps, sent: Sent): Promise<Attempt> {
  const { clock, transport } = deps
  const startedAt = clock.now()
  const request = buildRequest(sent, { ...deps, at: startedAt })
  const result = 'fault' in request ? { ...request, ...UNSENT } : await transport.send(request)
  const { answer, durationMs } = result
  const hide = (text: string) => ('fault' in request ? text : redact(text, request.custom))
  const status = answer?.status ?? null
  const now = clock.now()
  const requestedMs = retryAfterMs(answer?.headers['retry-after'], now)
  const outcome = { status, retryAfterMs: requestedMs }
  return {
    startedAt,
    url: sent.webhook.url,
    durationMs,
    statusCode: status,
    // A receiver may repeat the request in its response.
    headers: answer === null ? null : mapValues(answer.headers, hide),
    excerpt: answer === null ? null : hide(answer.excerpt),
    requestHeaders: 'fault' in request ? null : mapValues(request.headers, hide),
    ...toError(result),
    retryAfterMs: requestedMs,
    next: nextState({
      attempt: sent.attempt,
      trigger: sent.trigger,
      outcome,
      now,
      steadyNow: deps.database.steadyClock.now(),
      sandbox: isSandboxBody(sent.body),
      fastSandboxRetries: deps.fastSandboxRetries,
    }),
  }
}

const UNSENT = { answer: null, durationMs: 0 }

function toError({
  answer,
  fault,
  faultCode,
}: TransportResult): Pick<AttemptDetails, 'error' | 'errorCode'> {
  if (answer === null) return { error: fault, errorCode: faultCode }
  const { status } = answer
  if (isDelivered(status)) return { error: null, errorCode: null }
  if (status >= 300 && status <= 399) {
    const error = `It answered ${status}. Redirects are not followed: use the final URL.`
    return { error, errorCode: 'redirect' }
  }
  const error = `It answered ${status}. Only a status from 200 to 299 confirms delivery.`
  return { error, errorCode: 'http_status' }
}

type EventToSend = {
  readonly webhook: Pick<Webhook, 'url' | 'secret' | 'previousSecret' | 'headers'>
  readonly eventId: string
  /** The JSON of the event, sent unchanged. */
  readonly body: string
}

type SigningContext = {
  readonly secretBox: SecretBox
  /** Time of sending, epoch ms. */
  readonly at: number
  /** Version of ev, sent in the User-Agent header. */
  readonly version: string
}

type SignedRequest = WebhookRequest & {
  /** The custom headers among `headers`. */
  readonly custom: CustomHeaders
}

/**
 * Builds the request for an event, signed with the secrets valid now. Returns a fault if a secret
 * or a custom header cannot be decrypted.
 */
function buildRequest(
  { webhook, eventId, body }: EventToSend,
  { secretBox, at, version }: SigningContext,
): SignedRequest | Pick<TransportResult, 'fault' | 'faultCode'> {
  const secret = decryptOrNull(secretBox, webhook.secret)
  const custom = decryptHeaders(secretBox, webhook.headers)
  if (secret === null || custom === null) {
    return { fault: secret === null ? LOST_SECRET : LOST_HEADERS, faultCode: 'secret_unreadable' }
  }
  const old = webhook.previousSecret
  const previous = old !== null && old.until > at ? decryptOrNull(secretBox, old.secret) : null
  const secrets = previous === null ? ([secret] as const) : ([secret, previous] as const)
  const headers = {
    ...custom,
    'Content-Type': 'application/json',
    'User-Agent': `ev/${version}`,
    ...signedHeaders(body, { eventId, at, secrets }),
  }
  return { url: webhook.url, headers, body, custom }
}

const LOST_SECRET =
  'The signing secret cannot be decrypted: it was encrypted with another EV_SECRET. Restore that EV_SECRET, or rotate the secret of this webhook.'

const LOST_HEADERS =
  'The custom headers cannot be decrypted: they were encrypted with another EV_SECRET. Restore that EV_SECRET, or set the headers of this webhook again.'

function decryptOrNull(secretBox: SecretBox, encrypted: string): string | null {
  try {
    return secretBox.decrypt(encrypted)
  } catch {
    return null
  }
}

export type AttemptWriter = {
  /**
   * Resolves to true once the attempt is durable, and to false if it was dropped because of `stop`.
   * Rejects if it can never be written.
   */
  record(attempt: NewAttempt): Promise<boolean>
  /** Writes the attempts so far, if that succeeds at once, and nothing that arrives later. */
  stop(): Promise<void>
}

type AttemptWriterDeps = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly timings?: Pick<DeliveryTimings, 'retryMs'>
}

/** A larger transaction would make other writers wait too long. */
const BATCH_MAX = 200

/**
 * Records attempts in batches, which grow as long as each turn of the event loop brings more: a
 * commit of many costs little more than a commit of one.
 */
export function createAttemptWriter(deps: AttemptWriterDeps): AttemptWriter {
  const { database, clock, log, timings = DEFAULT_DELIVERY_TIMINGS } = deps
  const stopping = new AbortController()
  const { signal } = stopping
  const batcher = new Batcher<NewAttempt, boolean>({
    clock,
    sizeMax: BATCH_MAX,
    quietTurns: 1,
    async run(attempts) {
      const write = () =>
        writeConcurrent(database, trx =>
          recordAttempts(trx, attempts, {
            now: clock.now(),
            steadyNow: database.steadyClock.now(),
          }),
        )
      const onRetry = (error: unknown) => {
        const fields = { attempts: attempts.length, why: errorMessage(error) }
        writeLog(log, WEBHOOK_LOG.attemptsNotWritten, fields)
      }
      const o = { clock, signal, isRetryable: isStorageError, delayMs: timings.retryMs, onRetry }
      const isDurable = await retry(write, o).then(
        () => true,
        error => {
          if (isStorageError(error)) return false
          throw error
        },
      )
      return attempts.map(() => isDurable)
    },
    // A failure of one attempt must not fail the others.
    onFailure: (_, { length }) => (length > 1 ? 'split' : 'reject'),
  })
  return {
    // An attempt that ends after the stop was aborted by it, which says nothing about the endpoint.
    record: async attempt => !signal.aborted && batcher.add(attempt),
    async stop() {
      stopping.abort()
      await batcher.close()
    },
  }
}
