import { createRoute, z } from '@hono/zod-openapi'
import { newRouter } from '../router.ts'
import { json } from '../schema/answers.ts'
import { errorResponsesWithSimulated, SECURITY } from '../schema/error.ts'
import { HEADERS } from '../schema/headers.ts'
import { RESULT_EXAMPLE, SingleResult } from '../schema/result.ts'
import { AsyncAccepted, ScoredResult, SingleQuery, SingleRequest } from '../schema/verify.ts'
import type { Service } from '../service.ts'
import { gate, SINGLE_BODY_MAX, unchecked } from './gate.ts'
import { verifyScored, verifySingle } from './single.ts'

/** The paths for one address. */
export function singleRoutes(service: Service) {
  const common = {
    method: 'post' as const,
    tags: ['Verification'],
    security: SECURITY,
    parameters: HEADERS,
    middleware: gate(service, {
      scope: 'verify:single',
      counts: 'single',
      bodyMax: SINGLE_BODY_MAX,
    }),
  }
  const body = {
    required: true,
    content: {
      'application/json': { schema: SingleRequest, example: { email: 'user@example.com' } },
    },
  }
  const single = createRoute({
    ...{ ...common, path: '/v1/verify/single', operationId: 'verifySingle' },
    summary: 'Verify one address',
    description:
      'An address that does not exist is a result. Only what cannot be an address at all is refused, with 400 `invalid_email`.',
    request: { body, query: SingleQuery },
    responses: {
      200: json(z.union([SingleResult, AsyncAccepted]), 'The result', RESULT_EXAMPLE),
      ...errorResponsesWithSimulated(...SINGLE_FAULTS),
    },
  })
  const scored = createRoute({
    ...{ ...common, path: '/v1/verify', operationId: 'verify' },
    summary: 'Verify one address, with a status and a score',
    description:
      'With `X-EV-Sandbox: true` the result is simulated, as the prefix of the address says: valid, invalid, risky, catchall, disposable, role; error-auth, error-ratelimit, error-timeout, error-server.',
    request: { body },
    responses: {
      200: json(ScoredResult, 'The result', SCORED_EXAMPLE),
      ...errorResponsesWithSimulated(...SINGLE_FAULTS),
    },
  })
  return newRouter()
    .openapi(single, c => {
      const { include } = c.req.valid('query')
      return unchecked(verifySingle(c, service, c.req.valid('json'), include))
    })
    .openapi(scored, c => unchecked(verifyScored(c, service, c.req.valid('json'))))
}

const SINGLE_FAULTS = [
  ...(['invalid_request', 'invalid_email', 'invalid_json'] as const),
  ...(['payload_too_large', 'unsupported_media_type'] as const),
  ...(['idempotency_in_progress', 'idempotency_mismatch', 'quota_exceeded', 'timeout'] as const),
  'request_timeout' as const,
]

const SCORED_EXAMPLE = {
  email: 'disposable-test@example.com',
  status: 'risky' as const,
  score: 30,
  is_disposable: true,
  is_role: false,
  is_catch_all: false,
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
  sandbox: true as const,
}
