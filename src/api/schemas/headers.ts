/** The header of endpoints that execute a repeated request once; `idempotent` reads it. */
export const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header' as const,
  description:
    'A unique value that you choose for this request. A repeated request with the same value and API key within 24 hours returns the first response and has no further effect. The value is valid for one API key and all paths. With another method, path, query, body or `X-EV-Sandbox`, the request is rejected with 422 `idempotency_mismatch`. While the first request is in progress, it is rejected with 409 `idempotency_in_progress`. After a rejected or failed request, the value can be used again.',
  schema: { type: 'string' as const, minLength: 1, maxLength: 255 },
}

/** Headers of all verification endpoints. They are described here; middleware reads them. */
export const SANDBOX_HEADERS = [
  {
    name: 'X-EV-Sandbox',
    in: 'header' as const,
    description: '`true` simulates results by the prefix of the address. Nothing is charged.',
    schema: { type: 'string' as const, enum: ['true', 'false'] },
  },
  {
    name: 'X-EV-Sandbox-Delay',
    in: 'header' as const,
    description: 'Sandbox only: delay of the response in milliseconds.',
    schema: { type: 'integer' as const, minimum: 0, maximum: 30_000 },
  },
]
