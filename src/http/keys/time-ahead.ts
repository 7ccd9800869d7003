import { ApiError } from '../error/api-error.ts'

/** A time that is yet to come, epoch ms; null stays null. */
export function timeAhead(field: string, given: string | null, now: number): number | null {
  if (given === null) return null
  const time = Date.parse(given)
  if (time > now) return time
  throw new ApiError(
    'invalid_request',
    `"${field}" is "${given}"; it must be a time in the future.`,
  )
}
