import type { Database } from '../db/database.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, writeLog } from '../platform/log.ts'
import type { Reschedule } from '../queue/queue.ts'
import {
  type Attempt,
  type AttemptDeps,
  type AttemptWriter,
  type DeliveryTimings,
  makeAttempt,
} from './attempt.ts'
import type { AttemptLog } from './attempt-log.ts'
import { disabledCode, RETRY_LATER_STATUSES } from './delivery-state.ts'
import { type DueDelivery, listNextDeliveries, nextDueAt } from './delivery-store.ts'
import type { DisabledCode } from './endpoint.ts'
import type { EndpointBackoff } from './endpoint-backoff.ts'
import { WEBHOOK_LOG } from './telemetry.ts'

type DeliveryRunDeps = AttemptDeps & {
  readonly database: Database
  readonly log: Log
  readonly writer: AttemptWriter
  readonly endpoints: EndpointBackoff
  readonly counts: DeliveryCounts
  readonly logAttempt: AttemptLog
  /** Aborts when the service stops: no new requests start, those in flight finish. */
  readonly stopping: AbortSignal
  /** Aborts at the end of the grace period: requests in flight are abandoned. */
  readonly abandoned: AbortSignal
  /**
   * Aborts when the lease is lost: no new requests start and none is awaited, because another
   * server may have the webhook.
   */
  readonly lost: AbortSignal
  readonly timings: DeliveryTimings
  /** Whether other webhooks wait for a run. */
  readonly isBusy: () => boolean
}

/** Counters since the start. */
export type DeliveryCounts = {
  inFlight: number
  /** Attempts by result. */
  delivered: number
  retried: number
  failed: number
}

/** Maximum concurrent requests to one webhook. */
export const CONNECTIONS_MAX = 4
/** Sends what is due for one webhook, a few requests at a time, until nothing is. */
export class DeliveryRun {
  readonly #deps: DeliveryRunDeps
  readonly #webhookId: string
  readonly #inFlight = new Set<string>()
  /** Resolves when a request ends or a delivery may have become due. */
  #wakeup = Promise.withResolvers<void>()

  constructor(deps: DeliveryRunDeps, webhookId: string) {
    this.#deps = deps
    this.#webhookId = webhookId
  }

  /** Returns when the webhook is due next. */
  async run(): Promise<Reschedule> {
    const cancelled = AbortSignal.any([this.#deps.abandoned, this.#deps.lost])
    const wake = () => this.wake()
    cancelled.addEventListener('abort', wake)
    try {
      await this.#sendDue()
    } finally {
      // Wait for the requests in flight, so that the next run does not exceed the limit.
      while (this.#inFlight.size > 0 && !cancelled.aborted) await this.#wakeup.promise
      cancelled.removeEventListener('abort', wake)
    }
    return this.#nextRun()
  }

  /** Checks for due deliveries again. */
  wake(): void {
    this.#wakeup.resolve()
    this.#wakeup = Promise.withResolvers<void>()
  }

  /**
   * Loads deliveries right before they are sent, so that a deletion, a new URL or a new secret
   * takes effect at once.
   */
  async #sendDue(): Promise<void> {
    const { clock, database, timings } = this.#deps
    const { steadyClock } = database
    const endAt = clock.monotonicNow() + timings.runMs
    while (this.#canStart(endAt)) {
      // Captured before the query, so that no event during it is missed.
      const wakeup = this.#wakeup.promise
      const max = CONNECTIONS_MAX - this.#inFlight.size
      if (max > 0) {
        const o = { now: steadyClock.now(), except: [...this.#inFlight], max }
        const due = await listNextDeliveries(database, this.#webhookId, o)
        if (due.length === 0 && this.#inFlight.size === 0) return
        if (!this.#canStart(endAt)) return
        for (const delivery of due) this.#start(delivery)
      }
      await wakeup
    }
  }

  #canStart(endAt: number): boolean {
    const { clock, endpoints, stopping, lost, isBusy } = this.#deps
    if (stopping.aborted || lost.aborted || endpoints.backoffMs(this.#webhookId) > 0) return false
    return clock.monotonicNow() < endAt || !isBusy()
  }

  #start(due: DueDelivery) {
    this.#inFlight.add(due.id)
    void this.#deliver(due).finally(() => {
      this.#inFlight.delete(due.id)
      this.wake()
    })
  }

  /**
   * Sends one delivery and waits until the attempt is durable, so that a crash repeats only
   * requests in flight.
   */
  async #deliver(due: DueDelivery): Promise<void> {
    const { endpoints, writer, log, counts, logAttempt, timings } = this.#deps
    try {
      const attempt = await this.#attempt(due)
      const disabled = this.#updateEndpointHealth(due, attempt)
      const isDurable = await writer.record({
        ...attempt,
        delivery: { id: due.id, webhookId: this.#webhookId, cycle: cycleOf(due) },
        disabledCode: disabled,
      })
      if (!isDurable) return
      counts[COUNTER_OF_STATE[attempt.next.state]]++
      logAttempt(due, attempt, disabled)
    } catch (error) {
      endpoints.backOff(this.#webhookId, timings.failureBackoffMs, due.webhook.url)
      const fields = { webhook: this.#webhookId, event: due.eventId, why: errorMessage(error) }
      writeLog(log, WEBHOOK_LOG.deliveryError, fields)
    }
  }

  async #attempt(due: DueDelivery): Promise<Attempt> {
    const { counts } = this.#deps
    counts.inFlight++
    try {
      return await makeAttempt(this.#deps, due)
    } finally {
      counts.inFlight--
    }
  }

  /**
   * Updates the backoff of the endpoint after an attempt. Returns a reason to disable it, if there
   * is one.
   */
  #updateEndpointHealth({ webhook }: DueDelivery, attempt: Attempt): DisabledCode | null {
    const { durationMs, statusCode, retryAfterMs, next } = attempt
    const { clock, endpoints } = this.#deps
    const { id, failingSince } = webhook
    endpoints.recordDuration(id, durationMs)
    if (next.state === 'delivered') {
      endpoints.delivered(id)
      return null
    }
    if (statusCode !== null && RETRY_LATER_STATUSES.has(statusCode))
      endpoints.backOff(id, retryAfterMs ?? 0, webhook.url)
    const seenMs = endpoints.failed(id)
    return disabledCode({ status: statusCode, failingSince, seenMs, now: clock.now() })
  }

  async #nextRun(): Promise<Reschedule> {
    const { database, endpoints, stopping, lost } = this.#deps
    if (stopping.aborted || lost.aborted) return 'done'
    const dueAt = await nextDueAt(database, this.#webhookId, [])
    if (dueAt === null) return 'done'
    return {
      dueAt: Math.max(dueAt, database.steadyClock.now() + endpoints.backoffMs(this.#webhookId)),
    }
  }
}

const cycleOf = ({ trigger, attempt }: DueDelivery) => ({ trigger, attempt })

const COUNTER_OF_STATE = {
  delivered: 'delivered',
  retry_scheduled: 'retried',
  failed: 'failed',
} as const
