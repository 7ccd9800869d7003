import { sql } from 'kysely'
import { deleteHistoryBefore, deleteSandboxHistoryBefore } from '../accounts/credits/history.ts'
import { REPLAY_MS } from '../accounts/idempotency.ts'
import {
  deleteCreditsBefore,
  deleteReplaysBefore,
  deleteSessionsUntil,
} from '../accounts/retention.ts'
import { AUDIT_RETENTION_MS, deleteAuditBefore } from '../audit.ts'
import { deleteWitnessesBefore } from '../cluster/witnesses.ts'
import { type Database, write, writeAsyncCommit } from '../db/database.ts'
import type { Expiry } from '../db/paging.ts'
import { serverNow } from '../db/server-time.ts'
import { WITNESS_MS } from '../engine/probe/witnesses.ts'
import { FEEDBACK_AGE_MAX_MS } from '../feedback/feedback.ts'
import { deleteAddressStatesBefore, deleteFeedbackBefore } from '../feedback/feedback-store.ts'
import { REPLY_AGE_MAX_MS } from '../feedback/replies.ts'
import { deleteReplyCountsBefore } from '../feedback/reply-counts.ts'
import { deleteAnswersBefore } from '../jobs/cached-answers.ts'
import { deleteJobsBefore } from '../jobs/delete-job.ts'
import { deleteLoadingJobs } from '../jobs/import/item-import.ts'
import { type Clock, DAY, HOUR, sleep } from '../platform/clock.ts'
import { type Log, type LogEvent, writeLog } from '../platform/log.ts'
import { type Loop, loopFailure, startLoop } from '../platform/loop.ts'
import { RETENTION_MS, SANDBOX_RETENTION_MS } from '../webhooks/delivery-state.ts'
import {
  clearSecretsUntil,
  deleteDeliveriesUntil,
  deleteOrphanedEventsBefore,
  deleteStrandedUntil,
  deleteWebhooksUntil,
} from '../webhooks/retention.ts'

type RetentionJobDeps = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly dataDir: string
  readonly keepResultsMs: number
  readonly keepHistoryMs: number
  /** Interval, ms. Default: one hour. */
  readonly everyMs?: number
}

const EVERY_MS = HOUR
/** An import that takes longer has been abandoned. */
const LOADING_MS_MAX = HOUR

/** Deletes expired data at startup and every hour, as long as the clock can be trusted. */
export function startRetentionJob(deps: RetentionJobDeps): Loop {
  const { clock, log, everyMs = EVERY_MS } = deps
  const clockCheck = new ClockCheck(deps)
  return startLoop({
    failed: RETENTION_FAILED,
    everyMs,
    clock,
    log,
    async run(signal) {
      if (await clockCheck.isTrusted()) await deleteExpired(deps, signal)
    },
  })
}

async function deleteExpired(deps: RetentionJobDeps, signal: AbortSignal): Promise<void> {
  const { database, clock, log, dataDir, keepResultsMs, keepHistoryMs } = deps
  const now = clock.now()
  const sandboxBefore = now - SANDBOX_RETENTION_MS
  const jobs = await deleteJobsBefore(database, dataDir, now - keepResultsMs, sandboxBefore)
  // A member whose clock is ahead must not take the imports of the others for abandoned.
  const earliest = Math.min(now, await serverNow(database))
  const abandoned = await deleteLoadingJobs(database, earliest - LOADING_MS_MAX)
  const deleted: Record<string, number> = { jobs: jobs.length + abandoned }
  for (const rule of retentions(now, database.steadyClock.now(), keepHistoryMs)) {
    deleted[rule.name] = await expire(database, rule, signal)
  }
  const total = Object.values(deleted).reduce((sum, count) => sum + count, 0)
  if (total > 0) writeLog(log, RETENTION_FINISHED, deleted)
}

/** Larger than any drift or correction; a machine may also have been off for longer. */
const JUMP_MS = DAY
/** A clock that jumped is trusted after it has run steadily for this long: time to correct it. */
const STEADY_MS = DAY
/** Allowed drift from the monotonic clock between two readings of a steady clock. */
const STEADY_TOLERANCE_MS = HOUR

type ClockCheckDeps = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}

/**
 * Decides whether the wall clock may be used to delete data by age. A clock that is more than a day
 * ahead of the last known time plus the monotonic time since is trusted only if the clock of the
 * database server agrees, or after it has run steadily for a day.
 */
export class ClockCheck {
  readonly #deps: ClockCheckDeps
  #seen: { readonly at: number; readonly ticks: number } | null = null
  #suspicion: { readonly ticks: number; readonly offset: number } | null = null

  constructor(deps: ClockCheckDeps) {
    this.#deps = deps
  }

  async isTrusted(): Promise<boolean> {
    const { database, clock, log } = this.#deps
    const [now, ticks] = [clock.now(), clock.monotonicNow()]
    const expected = await this.#expected(now, ticks)
    if (now - expected <= JUMP_MS || (await this.#isConfirmed(now, ticks))) {
      this.#suspicion = null
      // Never moves back: after a clock was set back, its correction must not count as a jump.
      this.#seen = { at: Math.max(now, expected), ticks }
      await storeSeenClock(database, this.#seen.at)
      return true
    }
    const offset = now - ticks
    if (this.#suspicion === null || !isSteady(this.#suspicion.offset, offset)) {
      this.#suspicion = { ticks, offset }
      writeLog(log, CLOCK_AHEAD, { now: toIso(now), expected: toIso(expected) })
    }
    return false
  }

  /** Returns the expected time: the last known one plus the time since. */
  async #expected(now: number, ticks: number): Promise<number> {
    if (this.#seen !== null) return this.#seen.at + (ticks - this.#seen.ticks)
    return (await readSeenClock(this.#deps.database)) ?? now
  }

  async #isConfirmed(now: number, ticks: number): Promise<boolean> {
    const { database } = this.#deps
    if (database.dialect === 'postgres') {
      return Math.abs((await serverNow(database)) - now) <= JUMP_MS
    }
    const suspicion = this.#suspicion
    if (suspicion === null || !isSteady(suspicion.offset, now - ticks)) return false
    return ticks - suspicion.ticks >= STEADY_MS
  }
}

const isSteady = (a: number, b: number) => Math.abs(a - b) <= STEADY_TOLERANCE_MS
const toIso = (time: number) => new Date(time).toISOString()

export const RETENTION_FAILED = loopFailure('retention run failed')

/** Its fields are the names of what was deleted, with counts. */
export const RETENTION_FINISHED = {
  level: 'info',
  message: 'retention run finished',
  fields: [],
} as const satisfies LogEvent

export const CLOCK_AHEAD = {
  level: 'warn',
  message:
    'The clock of this machine is more than a day ahead of the last known time, so expired data is not deleted. Check the clock. If it is right, deletion resumes after a day.',
  fields: ['now', 'expected'],
} as const satisfies LogEvent

/** Name in the table `setting`. */
const NAME = 'clock-seen-at'

/** Returns the last trusted wall-clock time, epoch ms; null if none is stored. */
async function readSeenClock({ reader }: Database): Promise<number | null> {
  const row = await reader
    .selectFrom('setting')
    .select('value')
    .where('name', '=', NAME)
    .executeTakeFirst()
  return row === undefined ? null : Number(row.value)
}

async function storeSeenClock(database: Database, at: number): Promise<void> {
  await writeAsyncCommit(database, db =>
    sql`insert into setting (name, value) values (${NAME}, ${String(at)})
      on conflict (name) do update set value = excluded.value`.execute(db),
  )
}

export { SANDBOX_RETENTION_MS }

/** A retention rule: rows older than `before` are deleted, epoch ms, or steady time for due times. */
export type Retention = {
  readonly name:
    | ('history' | 'sandboxHistory' | 'replays' | 'credits' | 'answers' | 'witnesses' | 'sessions')
    | ('deliveries' | 'stranded' | 'webhooks' | 'events' | 'secrets' | 'audit')
    | ('feedback' | 'feedbackAddresses' | 'feedbackReplies')
  readonly expiry: Expiry
  readonly before: number
}

/** An event is written with its deliveries and deleted with the last of them. */
const ORPHANED_EVENTS_RETENTION_MS = HOUR
/** Credits are counted by day; older days are not read. */
const CREDITS_RETENTION_MS = 40 * DAY

/** Due times are compared with `steadyNow`. */
export const retentions = (now: number, steadyNow: number, keepHistoryMs: number): Retention[] => [
  { name: 'history', expiry: deleteHistoryBefore, before: now - keepHistoryMs },
  {
    name: 'sandboxHistory',
    expiry: deleteSandboxHistoryBefore,
    before: now - SANDBOX_RETENTION_MS,
  },
  { name: 'replays', expiry: deleteReplaysBefore, before: now - REPLAY_MS },
  { name: 'deliveries', expiry: deleteDeliveriesUntil, before: now },
  { name: 'stranded', expiry: deleteStrandedUntil, before: steadyNow - RETENTION_MS },
  { name: 'webhooks', expiry: deleteWebhooksUntil, before: now },
  {
    name: 'events',
    expiry: deleteOrphanedEventsBefore,
    before: now - ORPHANED_EVENTS_RETENTION_MS,
  },
  { name: 'secrets', expiry: clearSecretsUntil, before: now },
  { name: 'credits', expiry: deleteCreditsBefore, before: now - CREDITS_RETENTION_MS },
  { name: 'answers', expiry: deleteAnswersBefore, before: now },
  {
    name: 'witnesses',
    expiry: deleteWitnessesBefore,
    before: now - Math.min(keepHistoryMs, WITNESS_MS),
  },
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
