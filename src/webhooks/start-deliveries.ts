import { type RawBuilder, sql } from 'kysely'
import pLimit from 'p-limit'
import { type Database, write } from '../db/database.ts'
import { greatest, least } from '../db/sql-dialect.ts'
import { type Clock, HOUR, SECOND, sleep } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import { startLoop } from '../platform/loop.ts'
import type { SecretBox } from '../platform/secret-box.ts'
import type { Lease, Queue } from '../queue/queue.ts'
import {
  createAttemptLog,
  createAttemptWriter,
  DEFAULT_DELIVERY_TIMINGS,
  type DeliveryTimings,
} from './attempt.ts'
import { createEndpointBackoff, DeliveryRun, type EndpointBackoff } from './delivery-run.ts'
import { WAIT_MAX_MS } from './delivery-state.ts'
import { listDueWebhooks } from './delivery-store.ts'
import type { WebhookTransport } from './transport.ts'

export type DeliveryDeps = {
  readonly database: Database
  readonly queue: Queue
  readonly transport: WebhookTransport
  readonly secretBox: SecretBox
  readonly clock: Clock
  readonly log: Log
  /** Version of ev, sent in the User-Agent header. */
  readonly version: string
  /** Whether sandbox events are retried within seconds. */
  readonly fastSandboxRetries?: boolean
  readonly timings?: DeliveryTimings
}

const KIND = 'deliver'
/** Maximum webhooks claimed from the queue at a time; most of them wait for a slot. */
const CLAIMED_MAX = 10_000
/** The same on a shared database, so that other servers can claim the rest. */
const SHARED_CLAIMED_MAX = 500

/** Starts the delivery of events, including deliveries that became due while no service ran. */
export function startDeliveries(deps: DeliveryDeps): Deliveries {
  const { database, queue, clock, log, timings = DEFAULT_DELIVERY_TIMINGS } = deps
  const stopping = new AbortController()
  const abandoned = new AbortController()
  const runs = new Map<string, DeliveryRun>()
  const endpoints = createEndpointBackoff(clock)
  const writer = createAttemptWriter(deps)
  const counts = { inFlight: 0, delivered: 0, retried: 0, failed: 0 }
  const runDeps = {
    ...deps,
    ...{ writer, endpoints, counts, timings, logAttempt: createAttemptLog(deps) },
    ...{ stopping: stopping.signal, abandoned: abandoned.signal },
  }
  const slots = createDeliveryConcurrency(endpoints)
  const serve = (webhookId: string, { lost }: Lease) =>
    slots.run(webhookId, isBusy => {
      const run = new DeliveryRun({ ...runDeps, isBusy, lost }, webhookId)
      runs.set(webhookId, run)
      return run.run().finally(() => {
        if (runs.get(webhookId) === run) runs.delete(webhookId)
      })
    })
  const correctDueTimes = createClockSkewCorrection(deps)
  const pollDue = async () => {
    await correctDueTimes()
    const due = await listDueWebhooks(database, clock.now())
    for (const { id, url } of due) endpoints.resetIfMoved(id, url)
    const ids = due.map(({ id }) => id).filter(id => endpoints.backoffMs(id) === 0)
    for (const id of ids) runs.get(id)?.wake()
    if (ids.length > 0) await queue.putAll(KIND, ids)
  }
  const poll = startLoop({
    // Other parts and other processes write events without a notification.
    ...{ name: 'delivery poll', run: pollDue, clock, log },
    ...{ everyMs: timings.duePollMs, retryMs: timings.retryMs },
  })
  const concurrency = isShared(database) ? SHARED_CLAIMED_MAX : CLAIMED_MAX
  const worker = queue.work(KIND, serve, { concurrency })
  const stop = async () => {
    stopping.abort()
    const allStopped = new AbortController()
    const drained = Promise.all([poll.stop(), worker.stop()]).finally(() => allStopped.abort())
    await sleep(clock, timings.graceMs, allStopped.signal)
    const { inFlight: requests } = counts
    if (requests > 0)
      log.info(
        'webhook requests without a response aborted; they are sent again after the next start',
        { requests },
      )
    abandoned.abort()
    await drained
    await writer.stop()
  }
  let stopped: Promise<void> | null = null
  return {
    wake: () => poll.wake(),
    status: () => ({ ...counts }),
    stop() {
      stopped ??= stop()
      return stopped
    },
  }
}

/**
 * Whether other servers deliver too. Each webhook is leased to one server at a time; if that server
 * dies, another one repeats its requests in flight.
 */
const isShared = ({ dialect }: Database) => dialect === 'postgres'

/**
 * Returns a function that corrects due times after the wall clock was set back. With several
 * servers the clock of one says nothing about times written by others: then only implausible times
 * are moved.
 */
function createClockSkewCorrection({ database, clock }: Pick<DeliveryDeps, 'database' | 'clock'>) {
  let knownOffset: number | null = null
  return async () => {
    const now = clock.now()
    const offset = now - clock.monotonicNow()
    const byMs = knownOffset === null ? 0 : knownOffset - offset
    // Also at the start, because the clock may have been set back while no service ran.
    if (knownOffset === null || byMs > SET_BACK_MIN_MS) {
      await shiftAfterClockSkew(database, { now, byMs: isShared(database) ? 0 : byMs })
    }
    knownOffset = offset
  }
}

/** A smaller shift has passed before it is noticeable. */
const SET_BACK_MIN_MS = SECOND

/**
 * Concurrent runs. With CONNECTIONS_MAX for each, and those of slow endpoints, there are at most
 * 1,024 connections.
 */
export const RUNS_MAX = 192
/**
 * Concurrent runs of slow endpoints. Without a limit of their own, a few hundred of them would
 * delay all others.
 */
export const SLOW_RUNS_MAX = 64

type DeliveryConcurrency = {
  /**
   * Runs `act` once a slot for this webhook is free. `isBusy` tells whether others wait for a slot.
   */
  run<T>(webhookId: string, act: (isBusy: () => boolean) => Promise<T>): Promise<T>
}

/** Creates the slots for runs, first come first served. Slow endpoints wait only for each other. */
export function createDeliveryConcurrency(
  endpoints: Pick<EndpointBackoff, 'isSlow'>,
): DeliveryConcurrency {
  const quick = pLimit(RUNS_MAX)
  const slow = pLimit(SLOW_RUNS_MAX)
  return {
    run(webhookId, act) {
      const slots = endpoints.isSlow(webhookId) ? slow : quick
      return slots(() => act(() => slots.pendingCount > 0))
    },
  }
}

/** Delivers events to subscribed webhooks as their deliveries become due. */
export interface Deliveries {
  /** Polls for due deliveries at once. Otherwise they are found within half a second. */
  wake(): void
  status(): DeliveryStatus
  /** Starts no new requests. Resolves once those in flight have finished or were abandoned. */
  stop(): Promise<void>
}

/** Counters since the start. */
type DeliveryStatus = {
  readonly inFlight: number
  /** Attempts by result. */
  readonly delivered: number
  readonly retried: number
  readonly failed: number
}

type ClockShift = {
  /** Current time, epoch ms. */
  readonly now: number
  /** How far the clock was just set back; 0 if that was not observed. */
  readonly byMs: number
}

/**
 * Moves due times after the wall clock was set back: a delivery that was due at once would
 * otherwise wait until the old time comes round. If `byMs` is 0, only times are moved that are
 * further ahead than any wait.
 */
export async function shiftAfterClockSkew(
  database: Database,
  { now, byMs }: ClockShift,
): Promise<void> {
  const ahead = isAhead({ now, byMs })
  const { rows } = await sql<{ isNeeded: number }>`
    select case when exists (select 1 from delivery where ${ahead})
      or exists (select 1 from notice where due_at > ${now + HOUR} or sent_at > ${now})
      or exists (select 1 from webhook where failing_since > ${now})
      then 1 else 0 end as "isNeeded"`.execute(database.reader)
  if (rows[0]?.isNeeded !== 1) return
  await write(database, async trx => {
    const [present, soon] = [number(now), number(now + HOUR)]
    const moved = least(trx, sql`due_at - ${byMs}`, number(now + WAIT_MAX_MS))
    await sql`
      update delivery
      set due_at = case state when 'pending' then ${present} else ${greatest(trx, present, moved)} end
      where ${ahead}`.execute(trx)
    await sql`
      update notice set due_at = ${atMost('due_at', soon)}, sent_at = ${atMost('sent_at', present)}
      where due_at > ${soon} or sent_at > ${present}`.execute(trx)
    await sql`update webhook set failing_since = ${now} where failing_since > ${now}`.execute(trx)
  })
}

/** PostgreSQL cannot infer the type of the parameter here. */
const number = (value: number) => sql<number>`cast(${value} as bigint)`

/** Null stays null. The minimum functions of the two databases treat null differently. */
const atMost = (column: string, time: RawBuilder<number>) =>
  sql`case when ${sql.ref(column)} > ${time} then ${time} else ${sql.ref(column)} end`

/**
 * The first attempt of a cycle is always due at once. The times are literals: for a parameter
 * PostgreSQL plans as if many rows matched, and scans all of them to find the first.
 */
const isAhead = ({ now, byMs }: ClockShift): RawBuilder<boolean> =>
  sql<boolean>`state in ('pending', 'retry_scheduled') and due_at > ${sql.lit(now)}
    and (state = 'pending' or due_at > ${sql.lit(byMs > 0 ? now : now + WAIT_MAX_MS)})`
