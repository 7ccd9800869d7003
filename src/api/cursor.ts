import { z } from '@hono/zod-openapi'
import { ApiError } from './errors/api-error.ts'

/** A place in a list that is shown newest first: behind the row that has these. */
export type CursorPosition = { readonly createdAt: number; readonly id: string }

/** Rows of one page, and where the next one begins. */
export type Page<Row> = { readonly rows: readonly Row[]; readonly next: string | null }

export const pageQuery = {
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(200)
    .default(50)
    .openapi({ description: 'How many rows, at most.' }),
  cursor: z.string().max(300).optional().openapi({
    description: '`next_cursor` of the page before; left out, the newest come first.',
  }),
}

/** What every page has beside its rows. */
export const pageFields = {
  next_cursor: z.string().nullable(),
  has_more: z.boolean(),
}

/** Where a page begins; null: with the newest row. */
export function positionOf(cursor: string | undefined): CursorPosition | null {
  if (cursor === undefined) return null
  const [createdAt, id] = partsOf(cursor)
  if (Number.isSafeInteger(createdAt) && typeof id === 'string') {
    return { createdAt: Number(createdAt), id }
  }
  throw new ApiError(
    'invalid_request',
    '"cursor" must be the `next_cursor` of an earlier answer, or be left out to begin with the newest',
  )
}

/** Takes what was read, one row more than the page has, and tells by that whether there are more. */
export function pageOf<Row extends { created_at: number; id: string }>(
  found: readonly Row[],
  limit: number,
): Page<Row> {
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  const isLast = found.length <= limit || last === undefined
  return { rows, next: isLast ? null : cursorAt({ createdAt: last.created_at, id: last.id }) }
}

/** What leads on from a place. */
export const cursorAt = ({ createdAt, id }: CursorPosition): string =>
  Buffer.from(JSON.stringify([createdAt, id])).toString('base64url')

function partsOf(cursor: string): unknown[] {
  try {
    const deps: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    return Array.isArray(deps) ? deps : []
  } catch {
    return []
  }
}
