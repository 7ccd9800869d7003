import { z } from '@hono/zod-openapi'
import { type ApiCode, STATUS } from '../errors/api-error.ts'
import { pageFields } from '../query.ts'

// Parts of responses in the OpenAPI document.

const CODES = Object.keys(STATUS) as [ApiCode, ...ApiCode[]]

export const ErrorBody = z
  .object({
    success: z.literal(false),
    error: z.string().openapi({
      description: 'Human-readable message.',
      example: 'Job job_xyz789 does not exist.',
    }),
    code: z.enum(CODES).openapi({ description: 'Machine-readable code.', example: 'not_found' }),
    reason: z.string().optional().openapi({
      description:
        'What was refused, in more detail than `code`, for texts of your own. New reasons may be added.',
      example: 'job_not_found',
    }),
    remedy: z.string().optional().openapi({
      description:
        'The last part of `error`, if it says what to do in terms of this API. A program for people can replace it.',
      example: 'Create another key first, or delete it with force=true.',
    }),
    request_id: z.string().openapi({
      description: 'ID of the request. The header `X-Request-Id` and the log contain it too.',
      example: 'req_01hx',
    }),
  })
  .openapi('Error')

/** Describes server-sent events whose data has a named schema. */
export function eventContent(schema: string, example: string) {
  const contentSchema = { $ref: `#/components/schemas/${schema}` }
  const keywords = { type: 'string' as const, contentMediaType: 'text/event-stream', contentSchema }
  return { schema: z.string().openapi(keywords), example }
}

/** The values of an example body, or of its items, that differ from the examples of the fields. */
export type Differing<Body> = Body extends readonly (infer Item)[]
  ? readonly Differing<Item>[]
  : Body extends object
    ? { readonly [Name in keyof Body]?: Differing<Body[Name]> }
    : Body

/** Describes a JSON response. Its example has the examples of its required fields. */
export const json = <Schema extends z.ZodType>(
  schema: Schema,
  description: string,
  example?: Differing<z.input<Schema>>,
) => ({
  description,
  content: { 'application/json': { schema, ...(example === undefined ? {} : { example }) } },
})

/** The body of a success, `{ success: true, data }`. */
export const successBody = <Data extends z.ZodType>(data: Data) =>
  z.object({ success: z.literal(true), data })

/** The body with one page of items. */
export const pageBody = <Item extends z.ZodType>(item: Item) =>
  successBody(z.object({ items: z.array(item), ...pageFields }))
