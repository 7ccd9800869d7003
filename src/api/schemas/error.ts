import { z } from '@hono/zod-openapi'
import { accountError } from '../../accounts/errors.ts'
import { jobError } from '../../jobs/errors.ts'
import type { OperationError } from '../../platform/operation-error.ts'
import { webhookError } from '../../webhooks/errors.ts'
import { EVENT_KINDS } from '../../webhooks/event-types.ts'
import { type ApiCode, ApiError, STATUS } from '../errors/api-error.ts'
import { errorBody } from '../errors/errors.ts'
import { answerOperation } from '../errors/operations.ts'
import { invalidRequest, requestError } from '../errors/request-errors.ts'
import { SIMULATED_ERRORS } from '../verify/sandbox.ts'
import { ErrorBody } from './answers.ts'
import { type ResponseHeader, responseHeaders } from './headers.ts'

const Problem = z
  .object({
    type: z.literal('about:blank'),
    title: ErrorBody.shape.code,
    status: z.number().int().openapi({ example: 404 }),
    detail: ErrorBody.shape.error,
    ...ErrorBody.shape,
  })
  .openapi({ description: 'Sent to clients that accept application/problem+json (RFC 9457).' })

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
  .openapi({ description: 'Response of the sandbox for an address that simulates an error.' })

/** Schemas of error bodies. Responses refer to them by name. */
export const ERROR_SCHEMAS = { Error: ErrorBody, Problem, SimulatedError }

const schemaRef = (name: keyof typeof ERROR_SCHEMAS) => ({ $ref: `#/components/schemas/${name}` })

type Reference = ReturnType<typeof schemaRef>

const anyOf = (refs: readonly Reference[]) =>
  refs.length === 1 ? (refs[0] as Reference) : { anyOf: [...refs] }

/** Errors of every operation, some of them before the operation is known. */
export const ANY_OPERATION = [
  ...(['invalid_request', 'ip_restricted', 'expectation_failed'] as const),
  ...(['headers_too_large', 'server_error', 'service_unavailable'] as const),
] as const satisfies readonly ApiCode[]

/** Errors of every operation that needs a key. */
export const ANY_WITH_KEY = [
  ...(['authentication_error', 'key_expired', 'key_revoked', 'domain_restricted'] as const),
  ...(['insufficient_scope', 'rate_limit'] as const),
  ...ANY_OPERATION,
] as const satisfies readonly ApiCode[]

/** Responses of many operations: components with their codes, in the order of `STATUS`. */
const SHARED: Readonly<Record<string, readonly ApiCode[]>> = {
  InvalidRequest: ['invalid_request'],
  InvalidBody: ['invalid_request', 'invalid_json'],
  AuthenticationFailed: ['authentication_error', 'key_expired', 'key_revoked'],
  HttpsRequired: ['ip_restricted'],
  PermissionDenied: ['ip_restricted', 'domain_restricted', 'insufficient_scope'],
  NotFound: ['not_found'],
  RequestTimeout: ['request_timeout'],
  RequestInProgress: ['idempotency_in_progress'],
  BodyTooLarge: ['payload_too_large'],
  UnsupportedContentType: ['unsupported_media_type'],
  UnsupportedExpectation: ['expectation_failed'],
  IdempotencyKeyMismatch: ['idempotency_mismatch'],
  RateLimitExceeded: ['rate_limit'],
  HeadersTooLarge: ['headers_too_large'],
  InternalError: ['server_error'],
  ServiceUnavailable: ['service_unavailable'],
  DiskAlmostFull: ['insufficient_storage'],
}

/**
 * Error responses of an operation by status. With `isSimulated`, they include the errors that the
 * sandbox simulates.
 */
export function errorResponses(codes: readonly ApiCode[], { isSimulated = false } = {}) {
  const simulated = isSimulated ? SIMULATED_ERRORS.map(({ status }) => status) : []
  const byStatus = Map.groupBy(inOrder(codes), (code): number => STATUS[code])
  const responses = [...new Set([...byStatus.keys(), ...simulated])].map(status => {
    const ofStatus = byStatus.get(status) ?? []
    const hasSimulated = simulated.some(one => one === status)
    const shared = hasSimulated ? undefined : sharedName(ofStatus)
    const response =
      shared === undefined
        ? errorResponse(status, ofStatus, hasSimulated)
        : { $ref: `#/components/responses/${shared}` }
    return [status, response] as const
  })
  return Object.fromEntries(responses)
}

const sharedName = (codes: readonly ApiCode[]) => SHARED_NAMES.get(String(codes))

const SHARED_NAMES = new Map(Object.entries(SHARED).map(([name, codes]) => [String(codes), name]))

/** Returns each code once, in the order of `STATUS`. */
function inOrder(codes: readonly ApiCode[]): ApiCode[] {
  const given = new Set(codes)
  return CODES.filter(code => given.has(code))
}

const CODES = Object.keys(STATUS) as ApiCode[]

function errorResponse(status: number, codes: readonly ApiCode[], isSimulated: boolean) {
  const simulated = isSimulated ? SIMULATED_ERRORS.filter(one => one.status === status) : []
  const names = [...codes, ...simulated.map(simulatedName)]
  const schemas = [
    ...(codes.length === 0 ? [] : [schemaRef('Error')]),
    ...(simulated.length === 0 ? [] : [schemaRef('SimulatedError')]),
  ]
  const shown = [
    ...codes.map(code => `\`${code}\``),
    ...simulated.map(() => 'simulated by the sandbox'),
  ]
  return {
    description: `${TITLES[status]}: ${shown.join(', ')}`,
    headers: errorHeaders(status, codes),
    content: {
      'application/json': {
        schema: anyOf(schemas),
        examples: Object.fromEntries(
          names.map(name => [name, { $ref: `#/components/examples/${name}` }]),
        ),
      },
      ...(codes.length === 0
        ? {}
        : { 'application/problem+json': { schema: schemaRef('Problem') } }),
    },
  }
}

function errorHeaders(status: number, codes: readonly ApiCode[]) {
  if (status === 401) return responseHeaders(['WWW-Authenticate'])
  const retried = codes.filter(code => RETRIED.includes(code))
  const header: ResponseHeader[] = retried.length === 0 ? [] : ['Retry-After']
  return retried.length === codes.length ? responseHeaders(header) : responseHeaders([], header)
}

/** Errors with a Retry-After. */
const RETRIED: readonly ApiCode[] = [
  ...([
    'rate_limit',
    'quota_exceeded',
    'concurrent_jobs_exceeded',
    'stored_rows_exceeded',
  ] as const),
  ...(['idempotency_in_progress', 'service_unavailable', 'insufficient_storage'] as const),
]

const TITLES: Readonly<Record<number, string>> = {
  400: 'Invalid request',
  401: 'Authentication failed',
  403: 'Permission denied',
  404: 'Not found',
  408: 'Request timeout',
  409: 'Conflict',
  413: 'Body too large',
  415: 'Unsupported content type',
  417: 'Unsupported expectation',
  422: 'Idempotency-Key mismatch',
  429: 'Limit exceeded',
  431: 'Headers too large',
  500: 'Internal error',
  503: 'Service unavailable',
  504: 'Timeout',
  507: 'Disk almost full',
}

const simulatedName = ({ body }: (typeof SIMULATED_ERRORS)[number]) => `simulated_${body.error}`

const errorExample = (error: ApiError | OperationError) => ({
  value: errorBody(error instanceof ApiError ? error : answerOperation(error), 'req_01hx'),
})

const ANY_JOB = 'job_xyz789'

/** An error for each code that operations document. Tests get the same from the service. */
const EXAMPLES = {
  invalid_request: invalidRequest('"limit" in the query is "1000"; it must be at most 200.'),
  invalid_json: requestError('json_invalid', { fault: 'unexpected end', at: 9 }),
  invalid_email: requestError('address_not_valid', {
    fault: 'There is no @: write the address as name@domain.',
  }),
  emails_required: requestError('emails_missing', {
    field: 'emails',
    example: '{"emails": ["user@example.com"]}',
  }),
  empty_list: requestError('no_address_given', { what: '"emails" is empty.' }),
  too_many_emails: requestError('list_too_long', {
    count: 10_001,
    max: 10_000,
    endpoint: 'POST /v1/verify/batch',
  }),
  invalid_webhook_url: webhookError('webhook_url_rejected', {
    field: 'url',
    url: 'http://a.example',
    fault: 'It must begin with https://.',
    isPrivate: false,
  }),
  invalid_list_url: requestError('list_not_fetched', {
    kind: 'invalid_url',
    fault: 'The URL of the list is not allowed. It must begin with https://.',
  }),
  list_unreachable: requestError('list_not_fetched', {
    kind: 'unreachable',
    fault: 'The list cannot be fetched from files.example.com. No data arrived for 30 s.',
  }),
  list_access_denied: requestError('list_not_fetched', {
    kind: 'denied',
    fault:
      'The list cannot be fetched from files.example.com. The server answered with 403. Use a URL that needs no sign-in, such as a presigned one that has not expired.',
  }),
  list_http_error: requestError('list_not_fetched', {
    kind: 'status',
    fault:
      'The list cannot be fetched from files.example.com. The server answered with 404. Check the URL.',
  }),
  invalid_event: new ApiError(
    'invalid_event',
    `"events" has "batch.done"; it takes ${EVENT_KINDS.join(', ')}.`,
  ),
  authentication_error: requestError('key_missing', { header: undefined }),
  key_expired: requestError('key_expired'),
  key_revoked: requestError('key_revoked'),
  insufficient_scope: requestError('scope_missing', { scope: 'verify:single', isPerson: false }),
  ip_restricted: requestError('ip_not_allowed', { ip: '192.0.2.1' }),
  domain_restricted: requestError('domain_not_allowed', { site: null }),
  not_found: jobError('job_not_found', { id: ANY_JOB }),
  request_timeout: requestError('body_late'),
  last_key: accountError('last_key', { id: 'key_1', accountName: 'acc_1' }),
  account_exists: accountError('account_exists', { id: 'acc_02', name: 'Shop' }),
  job_not_ready: requestError('results_incomplete', {
    state: 'processing',
    partial: 'Add ?partial=true',
  }),
  job_not_cancellable: jobError('job_not_cancellable', { id: ANY_JOB, state: 'completed' }),
  job_not_finishable: jobError('job_not_finishable', { id: ANY_JOB, state: 'cancelled' }),
  job_not_resumable: jobError('job_not_resumable', { id: ANY_JOB, state: 'completed' }),
  job_not_reverifiable: jobError('job_not_reverifiable', {
    id: ANY_JOB,
    state: 'processing',
  }),
  idempotency_in_progress: requestError('request_in_progress'),
  idempotency_mismatch: requestError('idempotency_key_reused'),
  payload_too_large: requestError('body_too_large', { bytesMax: 16_384 }),
  unsupported_media_type: requestError('content_type_not_supported', {
    type: 'text/plain',
    accepted: ['application/json'],
  }),
  expectation_failed: requestError('expectation_not_supported'),
  headers_too_large: requestError('headers_too_large'),
  rate_limit: requestError('rate_limit_exceeded', {
    limit: '10 requests a minute in your plan',
    wait: '42 seconds',
    setting:
      'The admin of this service can change the plan with ev accounts set-plan, or the limit in "plans" of the config file.',
    retryAfterS: 42,
  }),
  quota_exceeded: accountError('credits_used_up', { limit: 100, resetAt: 0, now: 0 }),
  concurrent_jobs_exceeded: jobError('concurrent_jobs_exceeded', {
    plan: 'free',
    openLists: 10,
    max: 10,
  }),
  stored_rows_exceeded: jobError('stored_rows_exceeded', {
    plan: 'free',
    storedRows: 95_000,
    rows: 10_000,
    isMore: false,
    max: 100_000,
  }),
  server_error: requestError('internal_error', { cause: undefined }),
  service_unavailable: requestError('data_not_stored', { cause: undefined }),
  insufficient_storage: requestError('disk_full'),
} satisfies Record<Exclude<ApiCode, 'method_not_allowed'>, ApiError | OperationError>

/** The examples that error responses refer to. */
export const EXAMPLE_COMPONENTS = [
  ...Object.entries(EXAMPLES).map(([code, error]) => [code, errorExample(error)] as const),
  ...SIMULATED_ERRORS.map(one => [simulatedName(one), { value: one.body }] as const),
]

/** The components that `errorResponses` refers to. */
export const RESPONSE_COMPONENTS = Object.entries(SHARED).map(
  ([name, codes]) => [name, errorResponse(STATUS[codes[0] as ApiCode], codes, false)] as const,
)
