/** The header of every path that does once what is asked twice; `idempotent` reads it. */
export const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header' as const,
  description:
    'A name of yours for this request. Sent again with the same API key within 24 hours, the request is answered with the first answer and does nothing. The name holds for one API key and all paths: with another method, path, query, body or `X-EV-Sandbox` it is refused with 422 `idempotency_mismatch`, and while the first request is being answered with 409 `idempotency_in_progress`. A request that was refused or failed leaves the name free.',
  schema: { type: 'string' as const, minLength: 1, maxLength: 255 },
}

/** The headers that every path that verifies looks at; described here, and read where they matter. */
export const HEADERS = [
  {
    name: 'X-EV-Sandbox',
    in: 'header' as const,
    description: '`true`: results are simulated, by the prefix of the address; nothing is charged.',
    schema: { type: 'string' as const, enum: ['true', 'false'] },
  },
  {
    name: 'X-EV-Sandbox-Delay',
    in: 'header' as const,
    description: 'In the sandbox: milliseconds that the answer is held back.',
    schema: { type: 'integer' as const, minimum: 0, maximum: 30_000 },
  },
  IDEMPOTENCY_KEY,
]
