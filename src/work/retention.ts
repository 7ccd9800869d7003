import { DAY, HOUR, sleep } from '../base/clock.ts'
import { KEPT_MS } from '../hook/delivery.ts'
import { deleteHistoryBefore } from '../store/account/history.ts'
import {
  deleteCreditsBefore,
  deleteDeliveriesUntil,
  deleteReplaysBefore,
  deleteStrandedUntil,
  deleteStrayEventsBefore,
  deleteWebhooksUntil,
  type Expiry,
  forgetAnswersBefore,
} from '../store/care/expiry.ts'
import { type Database, write } from '../store/database.ts'
import { REPLAY_MS } from '../store/replays.ts'

/** What goes by its age, and before which time it goes, epoch ms. */
export type Retention = {
  readonly name:
    | ('history' | 'replays' | 'credits' | 'answers')
    | ('deliveries' | 'stranded' | 'webhooks' | 'events')
  readonly expiry: Expiry
  readonly before: number
}

/** An event is written together with its deliveries, and goes with the last of them. */
const STRAY_EVENTS_KEPT_MS = HOUR
/** Credits are counted by the day; what is older is asked for by nobody. */
const CREDITS_KEPT_MS = 40 * DAY

export const retentions = (now: number, keepHistoryMs: number): Retention[] => [
  { name: 'history', expiry: deleteHistoryBefore, before: now - keepHistoryMs },
  { name: 'replays', expiry: deleteReplaysBefore, before: now - REPLAY_MS },
  { name: 'deliveries', expiry: deleteDeliveriesUntil, before: now },
  { name: 'stranded', expiry: deleteStrandedUntil, before: now - KEPT_MS },
  { name: 'webhooks', expiry: deleteWebhooksUntil, before: now },
  { name: 'events', expiry: deleteStrayEventsBefore, before: now - STRAY_EVENTS_KEPT_MS },
  { name: 'credits', expiry: deleteCreditsBefore, before: now - CREDITS_KEPT_MS },
  { name: 'answers', expiry: forgetAnswersBefore, before: now },
]

/** Rows in one transaction: the event loop stands still for the time of it. */
const STEP_ROWS = 1_000
/** Between two steps, so that others come first. */
const STEP_PAUSE_MS = 20

/** Removes what is old in steps, until nothing is left of it or `signal` aborts; gives how many rows went. */
export async function expire(
  database: Database,
  { expiry, before }: Pick<Retention, 'expiry' | 'before'>,
  signal?: AbortSignal,
): Promise<number> {
  let all = 0
  while (signal?.aborted !== true) {
    const removed = await write(database, trx => expiry(trx, before, STEP_ROWS))
    all += removed
    if (removed < STEP_ROWS) break
    await sleep(database.clock, STEP_PAUSE_MS, signal)
  }
  return all
}
