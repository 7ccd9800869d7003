// Headers of requests and responses, as components of the OpenAPI document.

/** Challenge of the URL of a feedback source with a password (RFC 7617). */
export const BASIC_CHALLENGE = 'Basic realm="ev"'

type Header = {
  readonly description: string
  readonly required?: boolean
  readonly schema: Schema
  readonly example?: string | number
}

type Schema = {
  readonly type: 'string' | 'integer'
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly format?: string
  readonly const?: string
  readonly enum?: string[]
}

type Reference = { readonly $ref: string }

/** Request headers that operations take as parameters. Middleware reads them. */
export const REQUEST_HEADERS = {
  'Idempotency-Key': {
    description:
      'A unique value that makes it safe to retry this request. For 24 hours, another request with the same value and API key returns the first response and does nothing else. If its method, path, query, body or `X-EV-Sandbox` differ, it returns 422 `idempotency_mismatch`; while the first request is in progress, 409 `idempotency_in_progress`. Errors are not stored, so you can retry with the same value. A value is valid for one API key and all paths.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
  'X-EV-Sandbox': {
    description:
      'Set to `true` to simulate verifications. The prefix of the address selects the result, and nothing is charged. Lists of jobs and verifications then contain simulated ones only, and the `X-RateLimit-*` headers are simulated. Requests that change jobs or webhook endpoints still take effect.',
    schema: { type: 'string', enum: ['true', 'false'] },
  },
  'X-EV-Sandbox-Delay': {
    description: 'Sandbox only: delay of the response in milliseconds.',
    schema: { type: 'integer', minimum: 0, maximum: 30_000 },
  },
} satisfies Record<string, Header>

export type RequestHeader = keyof typeof REQUEST_HEADERS

export const requestHeaderRef = (name: RequestHeader): Reference => ({
  $ref: `#/components/parameters/${name}`,
})

/** The components that `requestHeaderRef` refers to. */
export const PARAMETER_COMPONENTS = Object.entries(REQUEST_HEADERS).map(
  ([name, header]) => [name, { name, in: 'header' as const, ...header }] as const,
)

/** Response headers. `required` ones are in every response that declares them. */
export const RESPONSE_HEADERS = {
  'X-RateLimit-Limit': {
    description: 'The limit that you are closest to reaching: the number of requests it allows.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
    example: 100,
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left before you reach this limit.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
    example: 99,
  },
  'X-RateLimit-Reset': {
    description: 'When this limit resets, as Unix time in seconds.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
    example: 1_774_089_060,
  },
  'X-Request-Id': {
    description: 'ID of the request. Errors and the log contain it too.',
    required: true,
    schema: { type: 'string', pattern: '^req_' },
    example: 'req_01hx',
  },
  'Retry-After': {
    description: 'Seconds to wait before you retry.',
    required: true,
    schema: { type: 'integer', minimum: 1 },
    example: 42,
  },
  'WWW-Authenticate': {
    description:
      'The authentication scheme: `Bearer`, or `Basic` for a feedback source with a password.',
    required: true,
    schema: { type: 'string', enum: ['Bearer', BASIC_CHALLENGE] },
  },
  Location: {
    description: 'Path of the created resource.',
    required: true,
    schema: { type: 'string', format: 'uri-reference' },
    example: '/v1/keys/key_01',
  },
  'Idempotency-Replayed': {
    description:
      '`true` if this is the stored response of an earlier request with the same `Idempotency-Key`. Otherwise absent.',
    schema: { type: 'string', const: 'true' },
  },
  'Content-Disposition': {
    description: 'The suggested file name (RFC 6266).',
    required: true,
    schema: { type: 'string' },
    example: 'attachment; filename="customers-deliverable.csv"',
  },
  'X-Accel-Buffering': {
    description: '`no`: proxies forward each event at once. Only present with `text/event-stream`.',
    schema: { type: 'string', const: 'no' },
  },
} satisfies Record<string, Header>

export type ResponseHeader = keyof typeof RESPONSE_HEADERS

/** Headers of every response. The security headers are described in the document as a whole. */
const COMMON = [
  ...(['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const),
  'X-Request-Id',
] as const

/**
 * The headers of a response: the common ones and those of `names`. Those of `optional` are not in
 * every such response, although their component requires them.
 */
export function responseHeaders(
  names: readonly ResponseHeader[] = [],
  optional: readonly ResponseHeader[] = [],
) {
  const refs = [...COMMON, ...names].map(
    name => [name, { $ref: `#/components/headers/${name}` }] as const,
  )
  const copies = optional.map(
    name => [name, { ...RESPONSE_HEADERS[name], required: false }] as const,
  )
  return Object.fromEntries<Header | Reference>([...refs, ...copies])
}
