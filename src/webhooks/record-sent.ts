import { isStorageError } from '../db/database.ts'
import { type Clock, SECOND } from '../platform/clock.ts'
import { retry } from '../platform/retry.ts'

/** Wait before the record of a sent mail is written again. */
const RECORD_RETRY_MS = SECOND

/**
 * Records that a mail was sent. Retries while the database is unavailable: once the claim has
 * expired, after `claimMs`, the mail would be sent twice.
 */
export const recordSent = (
  record: () => Promise<unknown>,
  o: { readonly clock: Clock; readonly signal: AbortSignal; readonly claimMs: number },
): Promise<unknown> =>
  retry(record, {
    clock: o.clock,
    signal: o.signal,
    until: o.clock.monotonicNow() + o.claimMs,
    delayMs: RECORD_RETRY_MS,
    isRetryable: isStorageError,
  })
