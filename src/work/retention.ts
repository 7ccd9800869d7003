import { DAY, sleep } from '../base/clock.ts'
import { deleteHistoryBefore } from '../store/account/history.ts'
import {
  deleteCreditsBefore,
  deleteEventsBefore,
  deleteReplaysBefore,
  type Expiry,
  forgetAnswersBefore,
} from '../store/care/expiry.ts'
import { type Database, write } from '../store/database.ts'
import { REPLAY_MS } from '../store/replays.ts'

/** What goes by its age, and before which time it goes, epoch ms. */
export type Retention = {
  readonly name: 'history' | 'replays' | 'events' | 'credits' | 'answers'
  readonly expiry: Expiry
  readonly before: number
}

/** Seven days from its last try, which comes within two. */
const EVENTS_KEPT_MS = 9 * DAY
/** Credits are counted by the day; what is older is asked for by nobody. */
const CREDITS_KEPT_MS = 40 * DAY

export const retentions = (now: number, keepHistoryMs: number): Retention[] => [
  { name: 'history', expiry: deleteHistoryBefore, before: now - keepHistoryMs },
  { name: 'replays', expiry: deleteReplaysBefore, before: now - REPLAY_MS },
  { name: 'events', expiry: deleteEventsBefore, before: now - EVENTS_KEPT_MS },
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
