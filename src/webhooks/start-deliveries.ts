import pLimit from 'p-limit'
import type { Database } from '../db/database.ts'
import { type Clock, sleep } from '../platform/clock.ts'
import { type Log, writeLog } from '../platform/log.ts'
import { startLoop } from '../platform/loop.ts'
import type { SecretBox } from '../platform/secret-box.ts'
import type { Lease, Queue } from '../queue/queue.ts'
import { createAttemptWriter, DEFAULT_DELIVERY_TIMINGS, type DeliveryTimings } from './attempt.ts'
import { createAttemptLog } from './attempt-log.ts'
import { type DeliveryCounts, DeliveryRun } from './delivery-run.ts'
import { listDueWebhooks } from './delivery-store.ts'
import { createEndpointBackoff, type EndpointBackoff } from './endpoint-backoff.ts'
import { WEBHOOK_LOG } from './telemetry.ts'
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
/** Fewer are claimed on a shared database, so that other servers can claim the rest. */
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
    writer,
    endpoints,
    counts,
    timings,
    logAttempt: createAttemptLog(deps),
    stopping: stopping.signal,
    abandoned: abandoned.signal,
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
  const pollDue = async () => {
    const due = await listDueWebhooks(database, database.steadyClock.now())
    for (const { id, url } of due) endpoints.resetIfMoved(id, url)
    const ids = due.map(({ id }) => id).filter(id => endpoints.backoffMs(id) === 0)
    for (const id of ids) runs.get(id)?.wake()
    if (ids.length > 0) await queue.putAll(KIND, ids)
  }
  const poll = startLoop({
    // Other parts and other processes write events without a notification.
    failed: WEBHOOK_LOG.deliveryPollFailed,
    run: pollDue,
    clock,
    log,
    everyMs: timings.duePollMs,
    retryMs: timings.retryMs,
  })
  const concurrency = isShared(database) ? SHARED_CLAIMED_MAX : CLAIMED_MAX
  const worker = queue.work(KIND, serve, { concurrency })
  const stop = async () => {
    stopping.abort()
    const allStopped = new AbortController()
    const drained = Promise.all([poll.stop(), worker.stop()]).finally(() => allStopped.abort())
    await sleep(clock, timings.graceMs, allStopped.signal)
    const { inFlight: requests } = counts
    if (requests > 0) writeLog(log, WEBHOOK_LOG.requestsAborted, { requests })
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
  status(): Readonly<DeliveryCounts>
  /** Starts no new requests. Resolves once those in flight have finished or were abandoned. */
  stop(): Promise<void>
}
