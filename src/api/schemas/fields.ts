import { z } from '@hono/zod-openapi'

// Fields of several schemas. Their examples fit together: a day of one account.

/** When something was created or happened. */
export const time = z.string().openapi({ format: 'date-time', example: '2026-03-21T10:30:00.000Z' })

/** Number of the items of a list without pages. */
export const total = z.int().min(0).openapi({ example: 1 })

/** The ID of something in a path or a body. */
export const idField = (description: string, example: string) =>
  z.string().max(ID_LENGTH_MAX).openapi({ description, example })

/** Longer than any ID that the service creates. */
const ID_LENGTH_MAX = 100

/** Path parameters of a route of one thing. */
export const idParams = (description: string, example: string) =>
  z.object({ id: idField(description, example) })
