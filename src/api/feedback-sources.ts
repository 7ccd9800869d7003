import { z } from '@hono/zod-openapi'
import { PROVIDER_NAMES } from '../feedback/providers/providers.ts'
import { listSources } from '../feedback/source-store.ts'
import {
  type CreatedSource,
  createSource,
  deleteSource,
  presentCreatedSource,
  presentSource,
} from '../feedback/sources.ts'
import type { ApiDeps } from './api-deps.ts'
import { answerWith, type IdempotencyDeps } from './middleware/idempotency.ts'
import { withOrigin } from './request-context.ts'
import { newRouter, route } from './route.ts'
import { json, successBody } from './schemas/answers.ts'
import { idParams, time, total } from './schemas/fields.ts'

type FeedbackSourceDeps = Pick<ApiDeps, 'database' | 'guard' | 'random' | 'settings'> &
  IdempotencyDeps

// Schemas of feedback sources.

const provider = z
  .enum(PROVIDER_NAMES)
  .openapi({ description: 'The email provider.', example: 'ses' })

const TOPIC = 'arn:aws:sns:us-east-1:123456789012:ses-feedback'

/** Fits the longest key, an RSA key in PEM by mistake. */
const KEY_LENGTH_MAX = 4_000

const NewFeedbackSourceRequest = z
  .strictObject({
    provider,
    key: z.string().max(KEY_LENGTH_MAX).optional().openapi({
      example: TOPIC,
      description:
        'Key that authenticates the provider. `ses`: the ARN of the SNS topic. `sendgrid`: the verification key of the Event Webhook. `mailgun`: the HTTP webhook signing key. Omit it for `postmark` and `sparkpost`: the response contains a password instead.',
    }),
  })
  .openapi('NewFeedbackSource')

const fields = {
  id: z.string().openapi({ example: 'fbs_8f3a2c1d7b5e4096a1c3' }),
  provider,
  url: z.string().openapi({
    description: 'The URL to set at the provider.',
    example: 'https://ev.example.com/v1/feedback/ses/fbs_8f3a2c1d7b5e4096a1c3',
  }),
}
const rest = {
  created_at: time,
  last_received_at: time.nullable().openapi({
    example: null,
    description: 'When the provider last sent a valid request. Null if it never did.',
  }),
}
const key_hint = z.string().openapi({
  description: 'For `ses` the ARN of the topic, otherwise the last characters of the key.',
  example: TOPIC,
})

const SourceSchema = z.object({ ...fields, key_hint, ...rest }).openapi('FeedbackSource')

const CreatedFeedbackSource = successBody(
  z.object({
    ...fields,
    key_hint,
    basic_auth: z
      .object({
        username: z.string().openapi({ example: 'ev' }),
        password: z.string().openapi({ example: '7pQ3vX…' }),
      })
      .nullable()
      .openapi({
        example: null,
        description:
          'HTTP Basic credentials to set at the provider. Null if the provider signs its requests. Returned only once.',
      }),
    ...rest,
  }),
).openapi('CreatedFeedbackSource')

const FeedbackSourceList = successBody(z.object({ sources: z.array(SourceSchema), total })).openapi(
  'FeedbackSourceList',
)

/** Fits the longest key. */
const SOURCE_BODY_MAX = 16 * 1024

/** Routes of feedback sources. */
export function feedbackSourceRoutes(service: FeedbackSourceDeps) {
  const { baseUrl } = service.settings
  const router = newRouter()

  const list = route(service, 'GET /v1/feedback/sources', {
    id: 'listFeedbackSources',
    summary: 'List feedback sources',
    description: 'Oldest first.',
    scope: 'feedback:read',
    answer: json(FeedbackSourceList, 'The sources'),
  })
  router.handle(list, async c => {
    const all = await listSources(service.database.reader, c.get('caller').account.id)
    const data = { sources: all.map(one => presentSource(one, baseUrl)), total: all.length }
    return c.json({ success: true as const, data }, 200)
  })

  const create = route(service, 'POST /v1/feedback/sources', {
    id: 'createFeedbackSource',
    summary: 'Create a feedback source',
    description:
      "Returns a URL for your email provider, which sends bounces, deliveries and complaints to it. The source belongs to the account: deleting the API key that created it doesn't delete the source.",
    scope: 'feedback:write',
    idempotent: true,
    body: {
      schema: NewFeedbackSourceRequest,
      example: { key: TOPIC },
      max: SOURCE_BODY_MAX,
    },
    answer: json(CreatedFeedbackSource, 'The source'),
    status: 201,
  })
  router.handle(create, c => {
    const input = { ...c.req.valid('json'), accountId: c.get('caller').account.id }
    return answerWith<CreatedSource>(
      c,
      service,
      beforeCommit => createSource(withOrigin(c, service), input, beforeCommit),
      created => ({
        status: 201,
        body: { success: true, data: presentCreatedSource(created, baseUrl) },
      }),
    )
  })

  const remove = route(service, 'DELETE /v1/feedback/sources/{id}', {
    id: 'deleteFeedbackSource',
    summary: 'Delete a feedback source',
    description: 'Requests to its URL are rejected. The feedback it received is kept.',
    scope: 'feedback:write',
    params: sourceParams,
    answer: { description: 'The source is deleted' },
    status: 204,
  })
  router.handle(remove, async c => {
    const target = { id: c.req.valid('param').id, accountId: c.get('caller').account.id }
    await deleteSource(withOrigin(c, service), target)
    return c.body(null, 204)
  })

  return router
}

const sourceParams = idParams('ID of the source.', 'fbs_8f3a2c1d7b5e4096a1c3')
