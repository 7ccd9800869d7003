import { deleteHistoryBefore, deleteSandboxHistoryBefore } from '../accounts/credits/history.ts'
import { REPLAY_MS } from '../accounts/idempotency.ts'
import { type Database, write } from '../db/database.ts'
import { DAY, HOUR, sleep } from '../platform/clock.ts'
import { RETENTION_MS, SANDBOX_RETENTION_MS } from '../webhooks/delivery-state.ts'
import {
  deleteCreditsBefore,
  deleteDeliveriesUntil,
  deleteOrphanedEventsBefore,
  deleteReplaysBefore,
  deleteSessionsUntil,
  deleteStrandedUntil,
  deleteWebhooksUntil,
  type Expiry,
  forgetAnswersBefore,
  forgetSecretsUntil,
} from './expired-rows.ts'

export { SANDBOX_RETENTION_MS as SANDBOX_KEPT_MS }

/** What goes by its age, and before which time it goes, epoch ms. */
export type Retention = {
  readonly name:
    | ('history' | 'sandboxHistory' | 'replays' | 'credits' | 'answers' | 'sessions')
    | ('deliveries' | 'stranded' | 'webhooks' | 'events' | 'secrets')
  readonly expiry: Expiry
  readonly before: number
}

/** An event is written together with its deliveries, and goes with the last of them. */
const ORPHANED_EVENTS_RETENTION_MS = HOUR
/** Credits are counted by the day; what is older is asked for by nobody. */
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
  { name: 'secrets', expiry: forgetSecretsUntil, before: now },
  { name: 'credits', expiry: deleteCreditsBefore, before: now - CREDITS_RETENTION_MS },
  { name: 'answers', expiry: forgetAnswersBefore, before: now },
  { name: 'sessions', expiry: deleteSessionsUntil, before: now },
]

/** Rows of the first transaction; those that follow have twice as many, or half as many, by how long it took. */
const FIRST_STEP_ROWS = 125
/** With a delivery go up to sixty attempts. */
const STEP_ROWS_MIN = 25
const STEP_ROWS_MAX = 1_000
/** The event loop stands still for about as long. */
const STEP_MS = 20
/** Between two steps, so that others come first. */
const STEP_PAUSE_MS = 20

/** Removes what is old in steps, until nothing is left of it or `signal` aborts; gives how many rows went. */
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
