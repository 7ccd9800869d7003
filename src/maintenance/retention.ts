import { deleteHistoryBefore, deleteSandboxHistoryBefore } from '../accounts/credits/history.ts'
import { REPLAY_MS } from '../accounts/idempotency.ts'
import {
  deleteCreditsBefore,
  deleteReplaysBefore,
  deleteSessionsUntil,
} from '../accounts/retention.ts'
import { AUDIT_RETENTION_MS } from '../audit/audit.ts'
import { deleteAuditBefore } from '../audit/retention.ts'
import { type Database, write } from '../db/database.ts'
import type { Expiry } from '../db/expiry.ts'
import { FEEDBACK_AGE_MAX_MS } from '../feedback/feedback.ts'
import { deleteAddressStatesBefore, deleteFeedbackBefore } from '../feedback/feedback-store.ts'
import { REPLY_AGE_MAX_MS } from '../feedback/replies.ts'
import { deleteReplyCountsBefore } from '../feedback/reply-counts.ts'
import { deleteAnswersBefore } from '../jobs/cached-answers.ts'
import { DAY, HOUR, sleep } from '../platform/clock.ts'
import { RETENTION_MS, SANDBOX_RETENTION_MS } from '../webhooks/delivery-state.ts'
import {
  clearSecretsUntil,
  deleteDeliveriesUntil,
  deleteOrphanedEventsBefore,
  deleteStrandedUntil,
  deleteWebhooksUntil,
} from '../webhooks/retention.ts'

export { SANDBOX_RETENTION_MS }

/** A retention rule: rows older than `before`, epoch ms, are deleted. */
export type Retention = {
  readonly name:
    | ('history' | 'sandboxHistory' | 'replays' | 'credits' | 'answers' | 'sessions')
    | ('deliveries' | 'stranded' | 'webhooks' | 'events' | 'secrets' | 'audit')
    | ('feedback' | 'feedbackAddresses' | 'feedbackReplies')
  readonly expiry: Expiry
  readonly before: number
}

/** An event is written with its deliveries and deleted with the last of them. */
const ORPHANED_EVENTS_RETENTION_MS = HOUR
/** Credits are counted by day; older days are not read. */
const CREDITS_RETENTION_MS = 40 * DAY

export const retentions = (now: number, keepHistoryMs: number): Retention[] => [
  { name: 'history', expiry: deleteHistoryBefore, before: now - keepHistoryMs },
  {
    name: 'sandboxHistory',
    expiry: deleteSandboxHistoryBefore,
    before: now - SANDBOX_RETENTION_MS,
  },
  { name: 'replays', expiry: deleteReplaysBefore, before: now - REPLAY_MS },
  { name: 'deliveries', expiry: deleteDeliveriesUntil, before: now },
  { name: 'stranded', expiry: deleteStrandedUntil, before: now - RETENTION_MS },
  { name: 'webhooks', expiry: deleteWebhooksUntil, before: now },
  {
    name: 'events',
    expiry: deleteOrphanedEventsBefore,
    before: now - ORPHANED_EVENTS_RETENTION_MS,
  },
  { name: 'secrets', expiry: clearSecretsUntil, before: now },
  { name: 'credits', expiry: deleteCreditsBefore, before: now - CREDITS_RETENTION_MS },
  { name: 'answers', expiry: deleteAnswersBefore, before: now },
  { name: 'sessions', expiry: deleteSessionsUntil, before: now },
  { name: 'audit', expiry: deleteAuditBefore, before: now - AUDIT_RETENTION_MS },
  { name: 'feedback', expiry: deleteFeedbackBefore, before: now - keepHistoryMs },
  {
    name: 'feedbackAddresses',
    expiry: deleteAddressStatesBefore,
    // A negative time to keep deletes everything.
    before: now - (keepHistoryMs < 0 ? keepHistoryMs : FEEDBACK_AGE_MAX_MS),
  },
  {
    name: 'feedbackReplies',
    expiry: deleteReplyCountsBefore,
    before: now - REPLY_AGE_MAX_MS,
  },
]

/** Rows of the first transaction; the number is doubled or halved by how long each one takes. */
const FIRST_STEP_ROWS = 125
/** Each deleted delivery also deletes up to sixty attempts. */
const STEP_ROWS_MIN = 25
const STEP_ROWS_MAX = 1_000
/** Target duration of a step, which blocks the event loop for about as long. */
const STEP_MS = 20
/** Pause between two steps, for other work. */
const STEP_PAUSE_MS = 20

/** Deletes expired rows in steps until none is left or `signal` aborts. Returns their number. */
export async function expire(
  database: Database,
  { expiry, before }: Pick<Retention, 'expiry' | 'before'>,
  signal?: AbortSignal,
): Promise<number> {
  const { clock } = database
  let all = 0
  let max = FIRST_STEP_ROWS
  while (signal?.aborted !== true) {
    const startedAt = clock.monotonicNow()
    const removed = await write(database, trx => expiry(trx, before, max))
    all += removed
    if (removed < max) break
    max = nextStep(max, clock.monotonicNow() - startedAt)
    await sleep(clock, STEP_PAUSE_MS, signal)
  }
  return all
}

function nextStep(max: number, tookMs: number): number {
  if (tookMs > STEP_MS) return Math.max(STEP_ROWS_MIN, Math.floor(max / 2))
  return tookMs > STEP_MS / 2 ? max : Math.min(STEP_ROWS_MAX, max * 2)
}
