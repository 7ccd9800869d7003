import { createHash, timingSafeEqual } from 'node:crypto'
import { DAY, MINUTE } from '../../platform/clock.ts'
import type { OperationError } from '../../platform/operation-error.ts'
import { feedbackError } from '../errors.ts'

/** Rejects a request with a sentence. */
export function reject(
  kind: OperationError<'feedback_request_rejected'>['facts']['kind'],
  fault: string,
): never {
  throw feedbackError('feedback_request_rejected', { kind, fault })
}

/** Tolerated difference of the clocks of a provider and of this machine. */
const CLOCK_SKEW_MAX_MS = 10 * MINUTE
/** Providers repeat a request for up to 24 hours. An older one is a replay. */
export const REQUEST_AGE_MAX_MS = 2 * DAY

/** Rejects a signed request with an invalid or old time, or one in the future. */
export function checkAge(signedAt: number, now: number, ageMaxMs = REQUEST_AGE_MAX_MS): void {
  if (Number.isNaN(signedAt)) reject('authentication', 'The time of the signature is invalid.')
  if (signedAt < now - ageMaxMs) reject('authentication', 'The signature is too old.')
  if (signedAt > now + CLOCK_SKEW_MAX_MS)
    reject('authentication', 'The time of the signature is in the future. Check the clock of ev.')
}

/** Compares secrets in constant time. */
export const isEqualSecret = (one: string, other: string): boolean =>
  timingSafeEqual(sha256(one), sha256(other))

const sha256 = (text: string) => createHash('sha256').update(text).digest()
