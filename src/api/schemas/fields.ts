import { z } from '@hono/zod-openapi'

// Fields of several schemas. Their examples fit together: a day of one account.

/** When something was created or happened. */
export const time = z.string().openapi({ format: 'date-time', example: '2026-03-21T10:30:00.000Z' })

/** Number of the items of a list without pages. */
export const total = z.int().min(0).openapi({ example: 1 })
