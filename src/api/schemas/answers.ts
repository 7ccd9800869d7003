import { z } from '@hono/zod-openapi'
import { type ApiCode, STATUS } from '../errors/api-error.ts'

// What paths say of their answers in the OpenAPI document.

const CODES = Object.keys(STATUS) as [ApiCode, ...ApiCode[]]

export const ErrorBody = z
  .object({
    success: z.literal(false),
    error: z.string().openapi({ description: 'For people.' }),
    code: z.enum(CODES).openapi({ description: 'For programs.' }),
    request_id: z.string(),
  })
  .openapi('Error')

/** An answer in JSON, with an example of it. */
export const json = <Schema extends z.ZodType>(
  schema: Schema,
  description: string,
  example?: z.input<Schema>,
) => ({
  description,
  content: { 'application/json': { schema, ...(example === undefined ? {} : { example }) } },
})
