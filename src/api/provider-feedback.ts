import { createRoute, z } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import { findResponse, REPLAY_MS, saveResponse } from '../accounts/idempotency.ts'
import { write } from '../db/database.ts'
import { PROVIDER_NAMES, PROVIDERS } from '../feedback/providers/providers.ts'
import { SnsCertificates } from '../feedback/providers/sns-certificates.ts'
import { getSource, receiveFeedback } from '../feedback/receive-feedback.ts'
import type { Env } from './context.ts'
import { ApiError } from './errors/api-error.ts'
import { checkBodyHeaders, readJson } from './middleware/body.ts'
import { newRouter } from './route.ts'
import { json } from './schemas/answers.ts'
import { ANY_OPERATION, errorResponses } from './schemas/error.ts'
import { FEEDBACK_EXAMPLE, FeedbackAnswer } from './schemas/feedback.ts'
import { BASIC_CHALLENGE, responseHeaders } from './schemas/headers.ts'
import type { Service } from './service.ts'

/** SendGrid sends up to 768 KB, Amazon SNS 256 KB, and SparkPost some 1,000 events of 2 KB. */
const PROVIDER_BODY_MAX = 4 * 1024 * 1024

/** The route of requests of email providers, which have no API key. */
export function providerFeedbackRoutes(service: Service) {
  const { database, clock, secretBox, transport } = service
  const services = {
    ...{ database, clock, secretBox, certificates: new SnsCertificates() },
    getDocument: (url: string) => transport.get(url),
    bindToken: bindToken(service),
  }
  const receive = createRoute({
    ...{ method: 'post', path: '/v1/feedback/{provider}/{id}', operationId: 'receiveFeedback' },
    summary: 'Receive events of an email provider',
    description:
      'The URL of a feedback source, which email providers call: Amazon SES by Amazon SNS, SendGrid, Mailgun, Postmark and SparkPost, each with the body and the authentication that it documents. Bounces, deliveries and complaints are recorded, other events are left out. A repeated event has no further effect.',
    ...{ tags: ['Feedback'], security: [], middleware: [readEvents(service)] },
    request: {
      params: providerParams,
      body: {
        content: {
          'application/json': { schema: z.unknown(), example: EVENTS_EXAMPLE },
          // Amazon SNS.
          'text/plain': { schema: z.unknown(), example: JSON.stringify(SNS_EXAMPLE) },
        },
      },
    },
    responses: {
      200: {
        ...json(FeedbackAnswer, 'The numbers of recorded and repeated events', FEEDBACK_EXAMPLE),
        headers: responseHeaders(),
      },
      ...errorResponses([...ANY_OPERATION, ...ERRORS]),
    } as { readonly 200: ReturnType<typeof json<typeof FeedbackAnswer>> },
  } as const)
  return newRouter().openapi(receive, async c => {
    const data = await receiveFeedback(services, c.get('feedbackSource'), {
      header: name => c.req.header(name),
      bytes: c.get('body'),
      body: await c.req.json(),
    })
    service.feedback.refresh()
    return c.json({ success: true as const, data: { ...data, rejected: [...data.rejected] } }, 200)
  })
}

const ERRORS = [
  ...(['authentication_error', 'not_found', 'request_timeout', 'payload_too_large'] as const),
  ...(['unsupported_media_type', 'invalid_json'] as const),
] as const

/** An event of Postmark. */
const EVENTS_EXAMPLE = {
  ...{ RecordType: 'Delivery', MessageID: '883953f4-6105-42a2-a16a-77a8eac79483' },
  ...{ Recipient: 'bob@example.com', DeliveredAt: '2026-03-21T10:30:00Z' },
}

/** A message of Amazon SNS, shortened. */
const SNS_EXAMPLE = {
  ...{ Type: 'Notification', TopicArn: 'arn:aws:sns:us-east-1:123456789012:ses-feedback' },
  ...{ Message: '{"eventType":"Delivery"}', SignatureVersion: '1', Signature: 'EXAMPLE' },
}

const providerParams = z.object({
  provider: z.enum(PROVIDER_NAMES).openapi({ description: 'The email provider.' }),
  id: z
    .string()
    .max(100)
    .openapi({ description: 'ID of the source.', example: 'fbs_8f3a2c1d7b5e4096a1c3' }),
})

/** Reads the body if the path is that of a source. */
function readEvents(service: Service): MiddlewareHandler<Env> {
  const rule = { bytesMax: PROVIDER_BODY_MAX, kind: 'stream' } as const
  return async (c, next) => {
    if (service.isStopping())
      throw new ApiError('service_unavailable', 'The service is stopping.', { retryAfterS: 5 })
    const { provider, id } = c.req.param() as z.output<typeof providerParams>
    c.set('feedbackSource', await getSource(service, { provider, id }))
    // Some HTTP clients send a password only after this challenge.
    if (PROVIDERS[provider].key === null) c.set('challenge', BASIC_CHALLENGE)
    checkBodyHeaders(c, rule)
    await readJson(c, rule)
    await next()
  }
}

/** Stores tokens as Idempotency-Keys of their source, which are kept for `REPLAY_MS`. */
function bindToken({ database, clock, secretBox }: Service) {
  return async (sourceId: string, token: string, fingerprint: string): Promise<boolean> => {
    const since = clock.now() - REPLAY_MS
    const row = {
      ...{ key_id: sourceId, idempotency_key: token, fingerprint, status: 200 },
      ...{ answer: secretBox.encrypt(''), created_at: clock.now() },
    }
    if (await write(database, trx => saveResponse(trx, row, since))) return true
    const stored = await findResponse(database, { keyId: sourceId, key: token, since })
    return stored?.fingerprint === fingerprint
  }
}
