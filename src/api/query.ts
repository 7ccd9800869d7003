import { z } from '@hono/zod-openapi'
import { invalidRequest } from './errors/request-errors.ts'

/** A position in a list sorted newest first: after the row with these values. */
type CursorPosition = { readonly createdAt: number; readonly id: string }

/** The rows of one page and the cursor of the next. */
type Page<Row> = { readonly rows: readonly Row[]; readonly next: string | null }

export const pageQuery = {
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(200)
    .default(50)
    .openapi({ description: 'Maximum number of rows.' }),
  cursor: z.string().max(300).optional().openapi({
    description: '`next_cursor` of the previous page. Omit it to start with the newest row.',
  }),
}

/** Pagination fields of every page. */
export const pageFields = {
  next_cursor: z.string().nullable().openapi({
    description: 'Value of `cursor` for the next page. Null on the last page.',
    example: 'WzE3NzQwODkwMDAwMDAsImlkXzAxIl0',
  }),
  has_more: z.boolean().openapi({ description: 'Whether there is a next page.', example: true }),
}

/** Parses a cursor; null for the first page. Throws ApiError if it is malformed. */
export function parseCursor(cursor: string | undefined): CursorPosition | null {
  if (cursor === undefined) return null
  const [createdAt, id] = decodeCursor(cursor)
  if (Number.isSafeInteger(createdAt) && typeof id === 'string') {
    return { createdAt: Number(createdAt), id }
  }
  throw invalidRequest(
    '"cursor" must be the `next_cursor` of an earlier response. Omit it to start with the newest row.',
  )
}

/** Builds a page from up to `limit` + 1 rows; an extra row means that there is a next page. */
export function toPage<Row extends { created_at: number; id: string }>(
  found: readonly Row[],
  limit: number,
): Page<Row> {
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  const isLast = found.length <= limit || last === undefined
  return { rows, next: isLast ? null : encodeCursor({ createdAt: last.created_at, id: last.id }) }
}

/** Builds the body of a response with one page of items. */
export const toPageBody = <Item>(items: Item[], next: string | null) => ({
  success: true as const,
  data: { items, next_cursor: next, has_more: next !== null },
})

/** Encodes a position as an opaque cursor. */
export const encodeCursor = ({ createdAt, id }: CursorPosition): string =>
  Buffer.from(JSON.stringify([createdAt, id])).toString('base64url')

/** Decodes the parts of an opaque cursor; an empty array if it is malformed. */
export function decodeCursor(cursor: string): unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    return Array.isArray(parts) ? parts : []
  } catch {
    return []
  }
}

/**
 * A query parameter with names of a known set, separated by commas; undefined if it is omitted or
 * empty.
 */
export const namesQuery = <Name extends string>(
  known: readonly Name[],
  o: { readonly description: string; readonly example: string },
) =>
  z
    .string()
    .max(namesLengthMax(known))
    .optional()
    .transform((text, ctx) => parseNames(known, text, message => ctx.addIssue(message)))
    .openapi({
      type: 'string',
      maxLength: namesLengthMax(known),
      description: `${o.description}, separated by commas: ${known.join(', ')}.`,
      example: o.example,
    })

/** All names, with a space after each comma, twice. */
const namesLengthMax = (known: readonly string[]) => 2 * known.join(', ').length

function parseNames<Name extends string>(
  known: readonly Name[],
  text: string | undefined,
  addIssue: (message: string) => void,
): Name[] | undefined {
  if (text === undefined || text.trim() === '') return undefined
  const names = text.split(',').map(name => name.trim())
  if (names.some(name => !known.some(one => one === name))) {
    addIssue(`must be one or more of ${known.join(', ')}, separated by commas`)
  }
  return known.filter(one => names.includes(one))
}

/** A query parameter that is true or false; false if it is omitted. */
export const flagQuery = (description: string) =>
  z
    .enum(['1', '0', 'true', 'false'])
    .optional()
    .transform(value => value === '1' || value === 'true')
    .openapi({ type: 'string', enum: ['true', 'false', '1', '0'], description })

/** A query parameter with a time or a day (UTC), as epoch ms; undefined if it is omitted. */
export const timeFilter = (description: string) =>
  z
    .union([z.iso.datetime({ offset: true }).max(TIME_LENGTH_MAX), z.iso.date()], {
      error: 'must be a time such as 2026-03-21T10:30:00Z, or a day such as 2026-03-21',
    })
    .transform(text => Date.parse(text))
    .optional()
    .openapi({
      type: 'string',
      maxLength: TIME_LENGTH_MAX,
      description,
      example: '2026-03-21T00:00:00Z',
    })

/** A time with nanoseconds and an offset has 35 characters. */
export const TIME_LENGTH_MAX = 40

/** A time in a body (RFC 3339). */
export const timeInput = () => z.iso.datetime({ offset: true }).max(TIME_LENGTH_MAX)
