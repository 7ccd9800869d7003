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
  {
    name: 'Idempotency-Key',
    in: 'header' as const,
    description: 'The same request under the same key has its effect once, for 24 hours.',
    schema: { type: 'string' as const, minLength: 1, maxLength: 255 },
  },
]
