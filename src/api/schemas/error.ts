import { z } from '@hono/zod-openapi'
import { type ApiCode, STATUS } from '../errors/api-error.ts'
import { ErrorBody } from './answers.ts'
import { LAST_KEY } from './key.ts'

const Problem = z
  .object({
    type: z.literal('about:blank'),
    title: ErrorBody.shape.code,
    status: z.number().int(),
    detail: z.string(),
    ...ErrorBody.shape,
  })
  .openapi('Problem', {
    description: 'Sent to clients that accept application/problem+json (RFC 9457).',
  })

const SimulatedError = z
  .object({
    error: z.enum(['authentication_error', 'rate_limit', 'server_error', 'timeout']),
    message: z.string().optional(),
    retry_after: z
      .number()
      .int()
      .optional()
      .openapi({ description: 'Seconds to wait before a retry.' }),
  })
  .openapi('SimulatedError', {
    description: 'Response of the sandbox for an address that simulates an error.',
  })

/**
 * Error responses of an operation with a key: the common ones and those of `codes`. With
 * `isSimulated`, they include the bodies of errors that the sandbox simulates.
 */
export function errorResponses(codes: readonly ApiCode[], o: { readonly isSimulated: boolean }) {
  const byStatus: Record<number, ReturnType<typeof errorResponse>> = {}
  const all = [...new Set<ApiCode>(['invalid_request', ...codes, ...ALWAYS])]
  for (const status of new Set(all.map(code => STATUS[code]))) {
    const documented = all.filter(code => STATUS[code] === status)
    const isSimulated = o.isSimulated && SIMULATED.includes(status)
    byStatus[status] = errorResponse(status, documented, isSimulated ? ANY_ERROR : ErrorBody)
  }
  return byStatus
}

/** Statuses of errors that the sandbox simulates. */
const SIMULATED: readonly number[] = [401, 429, 500, 504]

const ANY_ERROR = z.union([ErrorBody, SimulatedError])

const ALWAYS: readonly ApiCode[] = [
  'authentication_error',
  'key_expired',
  'key_revoked',
  'ip_restricted',
  'domain_restricted',
  'insufficient_scope',
  'rate_limit',
  'server_error',
  'service_unavailable',
]

function errorResponse(status: number, codes: readonly ApiCode[], schema: z.ZodType) {
  const examples = Object.fromEntries(codes.map(code => [code, { value: errorExample(code) }]))
  return {
    description: `${TITLES[status]}: ${codes.map(code => `\`${code}\``).join(', ')}`,
    content: {
      'application/json': { schema, examples },
      'application/problem+json': { schema: Problem },
    },
  }
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Invalid request',
  401: 'Authentication failed',
  403: 'Permission denied',
  404: 'Not found',
  408: 'Request timeout',
  409: 'Conflict',
  413: 'Body too large',
  415: 'Unsupported content type',
  422: 'Idempotency-Key mismatch',
  429: 'Limit exceeded',
  500: 'Internal error',
  503: 'Service unavailable',
  504: 'Timeout',
  507: 'Disk almost full',
}

const errorExample = (code: ApiCode) => ({
  success: false as const,
  error: EXAMPLES[code] ?? 'A description of the error.',
  code,
  request_id: 'req_01hx',
})

const EXAMPLES: Partial<Record<ApiCode, string>> = {
  invalid_request: '"limit" in the query is "1000"; it must be at most 200.',
  invalid_json: 'The request body is not valid JSON: Unexpected end of JSON input',
  invalid_email: 'Invalid email format',
  authentication_error:
    'Missing or invalid API key. Send the header Authorization: Bearer <API_KEY>.',
  key_expired: 'This API key has expired or was rotated. Use a valid key.',
  key_revoked: 'This API key was revoked. Use another key.',
  insufficient_scope: 'This API key does not have the scope verify:single.',
  ip_restricted: 'This API key does not allow requests from this IP address.',
  domain_restricted: 'This API key does not allow requests from this domain.',
  not_found: 'Job not found.',
  last_key: LAST_KEY,
  job_not_ready:
    'The job is processing. Its results are available when it is completed. Add ?partial=true to get the existing ones.',
  job_not_cancellable: 'The job is already completed.',
  job_not_resumable: 'The job is completed. Only a cancelled or failed job can be resumed.',
  idempotency_in_progress: 'A request with this Idempotency-Key is in progress. Try again later.',
  idempotency_mismatch:
    'This Idempotency-Key was used for another request. Use a new key for each request.',
  payload_too_large: 'The request body is larger than 16384 bytes, the limit of this endpoint.',
  unsupported_media_type: 'Unsupported Content-Type. Send the body as application/json.',
  rate_limit: 'Rate limit exceeded: 10 requests a minute in your plan. Try again in 42 s.',
  quota_exceeded: 'All 100 daily verifications are used up. They reset at midnight UTC.',
  concurrent_jobs_exceeded:
    '10 lists of the account are not finished, and the plan free allows 10 at a time. Wait for one to finish, or cancel one with POST /v1/jobs/{id}/cancel.',
  stored_rows_exceeded:
    'The account stores 95,000 rows of lists, this list has 10,000, and the plan free allows 100,000. Delete lists with DELETE /v1/jobs/{id}, or wait until old lists are removed.',
  server_error: 'An internal error occurred. Try again later.',
  service_unavailable: 'The service is stopping. Try again.',
  insufficient_storage:
    'The disk of the service is almost full. New lists are refused until space is freed. Everything else works.',
}
