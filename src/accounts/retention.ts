import { sql } from 'kysely'
import { createExpiry } from '../db/paging.ts'
import { SESSION_IDLE_MS } from './session-store.ts'

/** Deletes responses stored for an Idempotency-Key until a time, epoch ms. */
export const deleteReplaysBefore = createExpiry(
  'replay',
  ['key_id', 'idempotency_key'],
  before => sql`created_at <= ${before}`,
)

/** Deletes dashboard sessions that are expired or idle for too long at a time, epoch ms. */
export const deleteSessionsUntil = createExpiry(
  'session',
  ['id'],
  until => sql`expires_at <= ${until} or last_seen_at <= ${until - SESSION_IDLE_MS}`,
)

/** Deletes credit counts of days before a time, epoch ms, without reservations. */
export const deleteCreditsBefore = createExpiry(
  'credit',
  ['account_id', 'period_start'],
  before => sql`period_start < ${before} and held = 0`,
)
