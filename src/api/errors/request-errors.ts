import { formatNumber, joinWords } from '../../platform/format.ts'
import type { OperationErrors } from '../../platform/operation-error.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type ApiCode, ApiError } from './api-error.ts'

// The errors that only the HTTP API has, as each module has its own in `errors.ts`. A sentence about
// one field of a request stands beside the check of the field, as in the schemas: see
// `invalidRequest`.

type RequestError = {
  readonly code: ApiCode
  /** Says what was given and what is allowed. */
  readonly sentence: string
  /** A sentence that tells the client what to do in terms of the HTTP API. */
  readonly remedy?: string | undefined
  /** Seconds after which a retry is useful. */
  readonly retryAfterS?: number | undefined
  readonly cause?: unknown
}

/** A full disk or a busy database usually recovers within seconds. */
const STORE_RETRY_S = 5

/** The error behind this one, for the log. */
type Cause = { readonly cause: unknown }

const ERRORS = {
  // Keys and permissions.
  key_missing: ({ header }: { readonly header: string | undefined }) => ({
    code: 'authentication_error',
    sentence: 'Missing or invalid API key.',
    remedy: `Send the header ${header ?? 'Authorization'}: ${header === undefined ? 'Bearer ' : ''}<API_KEY>.`,
  }),
  key_expired: () => ({
    code: 'key_expired',
    sentence: 'This API key has expired or was rotated.',
    remedy: 'Use a valid key.',
  }),
  key_revoked: () => ({
    code: 'key_revoked',
    sentence: 'This API key was revoked.',
    remedy: 'Use another key.',
  }),
  session_ended: () => ({
    code: 'authentication_error',
    sentence:
      'The API key of this session was revoked, has expired, or no longer has access to the dashboard. Sign in again.',
  }),
  second_factor_missing: () => ({
    code: 'insufficient_scope',
    sentence: 'The account requires a second factor, which you have not set up yet.',
  }),
  ip_not_allowed: ({ ip }: { readonly ip: string }) => ({
    code: 'ip_restricted',
    sentence: `This API key does not allow requests from the IP address ${ip}.`,
  }),
  domain_not_allowed: ({ site }: { readonly site: string | null }) => ({
    code: 'domain_restricted',
    sentence:
      site === null
        ? 'This API key only allows requests from its websites, and this request has no Origin or Referer header.'
        : `This API key does not allow requests from ${sanitizeText(site, 100)}.`,
  }),
  scope_missing: ({ scope, isPerson }: { readonly scope: string; readonly isPerson: boolean }) => ({
    code: 'insufficient_scope',
    sentence: `${isPerson ? 'Your role' : 'This API key'} does not have the scope ${scope}.`,
  }),
  test_key: ({ scope }: { readonly scope: string }) => ({
    code: 'insufficient_scope',
    sentence: `A test key cannot use the scope ${scope}. Use a live key.`,
  }),
  admin_required: () => ({
    code: 'insufficient_scope',
    sentence:
      'Only keys of an admin account can manage accounts. To make an account an admin, run "ev accounts set-admin".',
  }),
  origin_not_allowed: ({ origin, path, own }: OriginFacts) => ({
    code: 'domain_restricted',
    sentence: `Requests from pages of ${sanitizeText(origin, 100)} are not allowed at ${path}.`,
    remedy: `Send the request from a program, which has no Origin header, or from ${own}.`,
  }),
  link_invalid: () => ({
    code: 'authentication_error',
    sentence:
      'This link is not valid: it was changed, or its API key was rotated or revoked. Create a new one.',
  }),
  link_expired: () => ({
    code: 'key_expired',
    sentence: 'This link has expired. Create a new one.',
  }),
  metrics_token_invalid: () => ({
    code: 'authentication_error',
    sentence: 'Invalid metrics token.',
  }),
  metrics_not_allowed: () => ({
    code: 'ip_restricted',
    sentence: 'Metrics are available on this machine, or with EV_METRICS_TOKEN as a Bearer token',
  }),

  // The form of a request.
  request_not_http: () => ({
    code: 'invalid_request',
    sentence: 'This is not a valid HTTP request.',
  }),
  request_not_parsed: () => ({
    code: 'invalid_request',
    sentence: 'The request cannot be parsed.',
  }),
  https_required: () => ({
    code: 'ip_restricted',
    sentence: 'This service requires HTTPS.',
  }),
  host_invalid: () => ({
    code: 'invalid_request',
    sentence: 'A request must have exactly one Host header with a valid host name.',
  }),
  target_invalid: () => ({
    code: 'invalid_request',
    sentence: 'The request target must be a path, such as /v1/jobs.',
  }),
  path_unknown: ({ remedy }: { readonly remedy: string }) => ({
    code: 'not_found',
    sentence: 'Path not found.',
    remedy,
  }),
  method_not_allowed: ({ methods }: { readonly methods: readonly string[] }) => ({
    code: 'method_not_allowed',
    sentence: 'Method not allowed.',
    remedy: `Use ${joinWords(methods, 'or')}.`,
  }),
  connect_not_supported: () => ({
    code: 'method_not_allowed',
    sentence: 'Method not allowed. CONNECT is not supported.',
  }),
  expectation_not_supported: () => ({
    code: 'expectation_failed',
    sentence: 'Unsupported Expect header. Only 100-continue is supported.',
  }),
  too_many_headers: ({ headersMax }: { readonly headersMax: number }) => ({
    code: 'headers_too_large',
    sentence: `A request can have at most ${headersMax} headers.`,
  }),
  headers_too_large: () => ({
    code: 'headers_too_large',
    sentence: 'The request headers are too large.',
  }),
  chunk_extensions_too_large: () => ({
    code: 'payload_too_large',
    sentence: 'The chunk extensions are too large.',
  }),
  request_late: () => ({
    code: 'request_timeout',
    sentence: 'The request did not arrive in time.',
  }),
  body_late: () => ({
    code: 'request_timeout',
    sentence: 'The request body did not arrive in time.',
  }),
  body_slow: ({ received }: { readonly received: number }) => ({
    code: 'request_timeout',
    sentence: `The request body arrives too slowly: ${formatNumber(received)} bytes so far.`,
  }),
  client_disconnected: () => ({
    code: 'request_timeout',
    sentence: 'The client disconnected before the response was ready.',
  }),

  // Bodies.
  encoding_not_supported: ({ encoding, gzip }: EncodingFacts) => ({
    code: 'unsupported_media_type',
    sentence: `The Content-Encoding is ${sanitizeText(encoding, 100)}, which is not supported.`,
    remedy: `Send the body uncompressed${gzip ? ', or with gzip' : ''}.`,
  }),
  content_type_not_supported: ({ type, accepted }: TypeFacts) => ({
    code: 'unsupported_media_type',
    sentence:
      type === undefined
        ? 'The Content-Type is missing.'
        : `The Content-Type is ${sanitizeText(type, 100)}, which is not supported.`,
    remedy: `Send the body as ${joinWords(accepted, 'or')}, in UTF-8.`,
  }),
  body_too_large: ({ bytesMax }: { readonly bytesMax: number }) => ({
    code: 'payload_too_large',
    sentence: `The request body is larger than ${bytesMax} bytes, the limit of this endpoint.`,
  }),
  body_incomplete: ({ cause }: Cause) => ({
    code: 'invalid_request',
    sentence: 'The request body is incomplete.',
    cause,
  }),
  gzip_invalid: ({ cause }: Cause) => ({
    code: 'invalid_request',
    sentence: 'The request body is not valid gzip.',
    cause,
  }),
  form_invalid: ({ cause }: Cause) => ({
    code: 'invalid_request',
    sentence: 'The request body is not a valid form.',
    cause,
  }),
  form_fields_exceeded: ({ max }: Max) => ({
    code: 'payload_too_large',
    sentence: `The form has more than ${formatNumber(max)} fields, which is the maximum.`,
  }),
  utf8_invalid: ({ at }: { readonly at: number }) => ({
    code: 'invalid_json',
    sentence: `The request body is not valid UTF-8 at byte ${at}.`,
  }),
  json_invalid: ({ fault, at }: { readonly fault: string; readonly at: number }) => ({
    code: 'invalid_json',
    sentence: sanitizeText(`The request body is not valid JSON: ${fault} at byte ${at}.`),
  }),
  json_depth_exceeded: ({ max }: Max) => ({
    code: 'invalid_json',
    sentence: `The request body is nested deeper than ${formatNumber(max)} levels.`,
  }),
  json_fields_exceeded: ({ max }: Max) => ({
    code: 'payload_too_large',
    sentence: `The request body has an object with more than ${formatNumber(max)} fields, which is the maximum.`,
  }),
  json_values_exceeded: ({ max }: Max) => ({
    code: 'payload_too_large',
    sentence: `The request body has more than ${formatNumber(max)} values, the limit of this endpoint. Split it.`,
  }),
  json_token_too_long: ({ max }: Max) => ({
    code: 'payload_too_large',
    sentence: `The request body has a text or a number of more than ${formatNumber(max)} bytes, which is the maximum.`,
  }),

  // Repeated requests.
  request_in_progress: () => ({
    code: 'idempotency_in_progress',
    sentence: 'A request with this Idempotency-Key is in progress. Try again later.',
    retryAfterS: 1,
  }),
  request_finished_first: () => ({
    code: 'idempotency_in_progress',
    sentence: 'Another request with this Idempotency-Key finished first. Repeat the request.',
    retryAfterS: 1,
  }),
  idempotency_key_reused: () => ({
    code: 'idempotency_mismatch',
    sentence: 'This Idempotency-Key was used for another request. Use a new key for each request.',
  }),

  // The state and the limits of the service.
  internal_error: ({ cause }: Cause) => ({
    code: 'server_error',
    sentence: 'An internal error occurred. Try again later.',
    cause,
  }),
  database_unreachable: ({ cause }: Cause) => ({
    code: 'service_unavailable',
    sentence: 'The service cannot reach its database. Try again.',
    retryAfterS: STORE_RETRY_S,
    cause,
  }),
  data_not_stored: ({ cause }: Cause) => ({
    code: 'service_unavailable',
    sentence: 'The service cannot store data right now. Try again.',
    retryAfterS: STORE_RETRY_S,
    cause,
  }),
  service_starting: () => ({
    code: 'service_unavailable',
    sentence: 'The service is starting. Try again.',
    retryAfterS: 1,
  }),
  service_stopping: () => ({
    code: 'service_unavailable',
    sentence: 'The service is stopping. Try again.',
    retryAfterS: 5,
  }),
  database_not_responding: ({ cause }: Cause) => ({
    code: 'service_unavailable',
    sentence: 'The database does not respond.',
    retryAfterS: 5,
    cause,
  }),
  dns_failing: ({ detail }: { readonly detail: string }) => ({
    code: 'service_unavailable',
    sentence: `The DNS check fails: ${detail}`,
    // A failed check is repeated after half a minute.
    retryAfterS: 30,
  }),
  disk_full: () => ({
    code: 'insufficient_storage',
    sentence:
      'The disk of the service is almost full. New lists are refused until space is freed. Everything else works.',
    retryAfterS: 60,
  }),
  connections_exceeded: ({ max }: Max) => ({
    code: 'service_unavailable',
    sentence: `${max} connections are open. Try again.`,
    retryAfterS: 1,
  }),
  share_exceeded: ({ count, what, retryAfterS }: ShareFacts) => ({
    code: 'service_unavailable',
    sentence: `${count} ${what}. Try again.`,
    retryAfterS,
  }),
  account_share_exceeded: ({ count, what, retryAfterS }: ShareFacts) => ({
    code: 'rate_limit',
    sentence: `${count} ${what} for this account. Wait until one has finished.`,
    retryAfterS,
  }),
  streams_exceeded: ({ max }: Max) => ({
    code: 'service_unavailable',
    sentence: `${max} streams are open, which is the maximum.`,
    remedy: 'Poll the job instead.',
    retryAfterS: 5,
  }),
  account_streams_exceeded: ({ max }: Max) => ({
    code: 'rate_limit',
    sentence: `${max} streams of this account are open, which is the maximum.`,
    remedy: 'Close one, or poll the job instead.',
    retryAfterS: 5,
  }),
  rate_limit_exceeded: ({ limit, wait, setting, retryAfterS }: RateFacts) => ({
    code: 'rate_limit',
    sentence: `Rate limit exceeded: ${limit}. Try again in ${wait}.${setting === null ? '' : ` ${setting}`}`,
    retryAfterS,
  }),

  // Lists.
  address_not_valid: ({ fault }: { readonly fault: string }) => ({
    code: 'invalid_email',
    sentence: `Invalid email format: ${fault}`,
  }),
  emails_missing: ({ field, example }: { readonly field: string; readonly example: string }) => ({
    code: 'emails_required',
    sentence: `The body needs "${field}", an array, such as ${example}.`,
  }),
  no_address_given: ({ what }: { readonly what: string }) => ({
    code: 'empty_list',
    sentence: `${what} Give at least one address.`,
  }),
  /** The text of Reacher, in its API. */
  input_empty: () => ({ code: 'empty_list', sentence: 'Empty input' }),
  list_too_long: ({ count, max, endpoint }: LengthFacts) => ({
    code: 'too_many_emails',
    sentence: `The list has ${formatNumber(count)} addresses; this endpoint accepts at most ${formatNumber(max)}.`,
    remedy: endpoint === undefined ? 'Split the list.' : `Use ${endpoint}.`,
  }),
  file_rows_exceeded: ({ max }: Max) => ({
    code: 'too_many_emails',
    sentence: `The file has more than ${formatNumber(max)} rows, which is the maximum. Split it.`,
  }),
  file_cells_exceeded: ({ columns, rows }: CellFacts) => ({
    code: 'too_many_emails',
    sentence: `The file has ${formatNumber(columns)} columns and more than ${formatNumber(rows)} rows, which is the maximum for so many columns. Remove columns, or split it.`,
  }),
  file_copies_exceeded: ({ size }: { readonly size: string }) => ({
    code: 'payload_too_large',
    sentence: `With a row for each address, the file has more than ${size}. Split it, remove columns, or set all_addresses to false.`,
  }),
  file_too_large: ({ fault }: { readonly fault: string }) => ({
    code: 'payload_too_large',
    sentence: `${fault} Split it.`,
  }),
  file_not_stored: ({ cause }: Cause) => ({
    code: 'service_unavailable',
    sentence: 'The file cannot be stored right now. Try again.',
    retryAfterS: STORE_RETRY_S,
    cause,
  }),
  file_cut_off: () => ({
    code: 'request_timeout',
    sentence: 'The request body is incomplete.',
  }),
  file_form_required: () => ({
    code: 'unsupported_media_type',
    sentence: `Send the file as multipart/form-data${CURL_HINT}`,
  }),
  file_form_invalid: ({ fault, cause }: Cause & { readonly fault: string }) => ({
    code: 'invalid_request',
    sentence: `The form cannot be read: ${fault}. Send multipart/form-data${CURL_HINT}`,
    cause,
  }),
  s3_access_missing: () => ({
    code: 'invalid_list_url',
    sentence:
      '"url" begins with s3://, so the body needs "s3" with the region and the credentials of the bucket.',
  }),
  s3_url_required: () => ({
    code: 'invalid_list_url',
    sentence: 'The body has "s3", so "url" must have the form s3://bucket/key.',
  }),
  list_not_fetched: ({ kind, fault }: FetchFacts) => ({
    code: FETCH_CODES[kind],
    sentence:
      kind === 'not_public'
        ? `${fault} Lists are only fetched from public addresses; the admin can allow others with --list-allow-ranges.`
        : fault,
  }),
  notice_without_email: () => ({
    code: 'invalid_request',
    sentence: '"notify" is true, but the account has no email address.',
    remedy: 'Set one with PATCH /v1/account or "ev accounts set-email", or omit "notify".',
  }),

  // Results.
  row_not_found: ({ position, total }: { readonly position: number; readonly total: number }) => ({
    code: 'not_found',
    sentence: `There is no row ${position}. The rows are numbered from 1 to ${total}.`,
  }),
  results_incomplete: ({ state, partial }: NotReadyFacts) => ({
    code: 'job_not_ready',
    sentence:
      state === 'cancelled' || state === 'failed'
        ? `The job is ${state}, so its results are incomplete.`
        : `The job is ${state}. Its results are available when it is completed.`,
    remedy: `${partial} to get the existing ones.`,
  }),
} satisfies Readonly<Record<string, (facts: never) => RequestError>> & OtherReasons

/** Reasons in responses are also the codes of operation errors: these have other names. */
type OtherReasons = { readonly [Code in keyof OperationErrors]?: never }

type Max = { readonly max: number }

/** `type` is the Content-Type of the request; undefined if it has none. */
type TypeFacts = { readonly type: string | undefined; readonly accepted: readonly string[] }
type EncodingFacts = { readonly encoding: string; readonly gzip: boolean }

type OriginFacts = { readonly origin: string; readonly path: string; readonly own: string }

type ShareFacts = {
  readonly count: number
  /** Names what is in progress: `downloads are running`. */
  readonly what: string
  readonly retryAfterS: number
}

type RateFacts = {
  /** The limit, and what counts toward it. */
  readonly limit: string
  /** The time until the next request is accepted, in words. */
  readonly wait: string
  /** How the limit can be changed, as a sentence; null if it cannot. */
  readonly setting: string | null
  readonly retryAfterS: number
}

type LengthFacts = {
  readonly count: number
  readonly max: number
  /** Method and path of an endpoint that accepts so many. */
  readonly endpoint: string | undefined
}

/** A file with so many columns may have so many rows. */
type CellFacts = { readonly columns: number; readonly rows: number }

const FETCH_CODES = {
  invalid_url: 'invalid_list_url',
  not_public: 'invalid_list_url',
  unreachable: 'list_unreachable',
  denied: 'list_access_denied',
  status: 'list_http_error',
} as const

type FetchFacts = {
  readonly kind: keyof typeof FETCH_CODES
  /** The problem, as a sentence. */
  readonly fault: string
}

type NotReadyFacts = {
  readonly state: string
  /** How to request partial results: `Add ?partial=true`. */
  readonly partial: string
}

const CURL_HINT = ', as curl does with -F file=@list.csv.'

type Errors = typeof ERRORS

/** Creates an error that only the API has: `throw requestError('body_too_large', { bytesMax })`. */
export function requestError<Reason extends keyof Errors>(
  reason: Reason,
  ...facts: Parameters<Errors[Reason]>
): ApiError {
  const describe = ERRORS[reason] as (...facts: Parameters<Errors[Reason]>) => RequestError
  const { code, sentence, ...options } = describe(...facts)
  return new ApiError(code, sentence, { reason, ...options })
}

/**
 * Creates an error about a field, parameter or header of a request. The sentence says what was given
 * and what is allowed.
 */
export const invalidRequest = (sentence: string): ApiError =>
  new ApiError('invalid_request', sentence)
