import { ApiError } from '../errors/api-error.ts'

/** Returns the row after which a page starts; 0 for the first page. Throws ApiError. */
export function parseRowCursor(cursor: string | undefined): number {
  if (cursor === undefined) return 0
  const text = Buffer.from(cursor, 'base64url').toString('utf8')
  const digits = /^\[(\d{1,15})\]$/.exec(text)?.[1]
  if (digits !== undefined) return Number(digits)
  throw new ApiError(
    'invalid_request',
    '"cursor" must be the `next_cursor` of an earlier response; omit it to start with the first row',
  )
}

/** Encodes the row after which the next page starts as an opaque cursor. */
export const toRowCursor = (position: number) => Buffer.from(`[${position}]`).toString('base64url')
