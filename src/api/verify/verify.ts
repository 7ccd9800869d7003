import { createRoute, z } from '@hono/zod-openapi'
import { listRoutes } from '../lists/routes.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { errorResponsesWithSimulated, SECURITY } from '../schemas/error.ts'
import { HEADERS } from '../schemas/headers.ts'
import { RESULT_EXAMPLE, ScoredResult, SingleResult } from '../schemas/result.ts'
import { STEP_EXAMPLE, VerifyStep } from '../schemas/step.ts'
import { AsyncAccepted, ScoredRequest, SingleQuery, SingleRequest } from '../schemas/verify.ts'
import type { Service } from '../service.ts'
import { noKeyForEvents, wantsEvents } from './follow.ts'
import { followSingle, verifyScored, verifySingle } from './single.ts'
import { SINGLE_BODY, unchecked, verifyMiddleware } from './verify-middleware.ts'

/** Everything that verifies: one address, and lists. */
export const verifyRoutes = (service: Service) =>
  newRouter().route('/', singleRoutes(service)).route('/', listRoutes(service))

/** The paths for one address. */
function singleRoutes(service: Service) {
  const rule = { scope: 'verify:single', counts: 'single', ...SINGLE_BODY } as const
  const common = {
    method: 'post' as const,
    tags: ['Verification'],
    security: SECURITY,
    parameters: HEADERS,
  }
  const single = createRoute({
    ...{ ...common, path: '/v1/verify/single', operationId: 'verifySingle' },
    summary: 'Verify one address',
    description:
      'An address that does not exist is a result. Only what cannot be an address at all is refused, with 400 `invalid_email`. With `Accept: text/event-stream` it is told as it goes on, and that is a result too: events `step` with a `VerifyStep` each, then `result` with what `?include=flags,evidence` gives, or `error` with an `Error`.',
    middleware: verifyMiddleware(service, rule, noKeyForEvents),
    request: { body: bodyOf(SingleRequest), query: SingleQuery },
    responses: {
      200: asEventsToo(json(z.union([SingleResult, AsyncAccepted]), 'The result', RESULT_EXAMPLE)),
      ...errorResponsesWithSimulated(...SINGLE_FAULTS),
    },
  })
  const scored = createRoute({
    ...{ ...common, path: '/v1/verify', operationId: 'verify' },
    summary: 'Verify one address, with a status and a score',
    description:
      'With `X-EV-Sandbox: true` the result is simulated, as the prefix of the address says: valid, invalid, risky, catchall, disposable, role; error-auth, error-ratelimit, error-timeout, error-server.',
    middleware: verifyMiddleware(service, rule),
    request: { body: bodyOf(ScoredRequest), query: SingleQuery },
    responses: {
      200: json(ScoredResult, 'The result', SCORED_EXAMPLE),
      ...errorResponsesWithSimulated(...SINGLE_FAULTS),
    },
  })
  const router = newRouter()
  router.openAPIRegistry.register('VerifyStep', VerifyStep)
  return router
    .openapi(single, c => {
      const body = c.req.valid('json')
      if (wantsEvents(c)) return unchecked(followSingle(c, service, body))
      return unchecked(verifySingle(c, service, body, c.req.valid('query').include))
    })
    .openapi(scored, c =>
      unchecked(verifyScored(c, service, c.req.valid('json'), c.req.valid('query').include)),
    )
}

const bodyOf = <Schema extends z.ZodType>(schema: Schema) => ({
  required: true as const,
  content: { 'application/json': { schema, example: { email: 'user@example.com' } } },
})

/** The same answer, or what leads to it as server-sent events. */
const asEventsToo = <C extends object>({
  content,
  ...rest
}: {
  description: string
  content: C
}) => ({
  ...rest,
  content: { ...content, 'text/event-stream': { schema: z.string(), example: EVENTS_EXAMPLE } },
})

const SINGLE_FAULTS = [
  ...(['invalid_request', 'invalid_email', 'invalid_json'] as const),
  ...(['payload_too_large', 'unsupported_media_type'] as const),
  ...(['idempotency_in_progress', 'idempotency_mismatch', 'quota_exceeded', 'timeout'] as const),
  ...(['request_timeout', 'stored_rows_exceeded'] as const),
]

const EVENTS_EXAMPLE = [
  'retry: 3000',
  `event: step\ndata: ${JSON.stringify(STEP_EXAMPLE)}`,
  `event: result\ndata: ${JSON.stringify(RESULT_EXAMPLE)}`,
]
  .map(text => `${text}\n\n`)
  .join('')

const SCORED_EXAMPLE = {
  email: 'disposable-test@example.com',
  status: 'risky' as const,
  score: 30,
  is_disposable: true,
  is_role: false,
  is_catch_all: null,
  is_free: false,
  valid: true,
  deliverable: false,
  risk_level: 'high' as const,
  provider: 'example.com',
  response_time: 4,
  confidence: 90,
  details: { syntax_valid: true, domain_exists: true, mx_record: true, smtp_valid: true },
  reason: 'disposable_email' as const,
  cached: false,
  class: 'risky' as const,
  sandbox: true,
}
